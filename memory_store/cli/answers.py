"""A search answer, laid out to be read on a terminal.

Boundary: titles, topics and previews are untrusted text; all of it passes
:func:`memory_store.cli.terminal.printable_line` or :func:`marked_words`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import click

from memory_store.cli.explanations import account_lines, stage_lines, why_lines
from memory_store.cli.terminal import (
    BOLD,
    DIM,
    bar,
    colour_wanted,
    columns,
    printable_line,
    shortened,
    styled,
    width,
)
from memory_store.records import SearchResponse, SearchResult
from memory_store.search.degraded import NO_RERANKER
from memory_store.search.explain.words import accounts
from memory_store.titles import shown_title

INDENT = "    "
PREVIEW_LINES = 3
LEAD = 40  # cells of context before the first highlighted word
SHORT_ID = 8  # characters of an id: the shortest prefix `get` accepts


class Word(NamedTuple):
    """A word of a preview, printable, and whether any of it is highlighted."""

    text: str
    highlighted: bool


def print_answer(response: SearchResponse, more: str = "") -> None:
    """The ranked results, how many memories were opened, how to see ``more``, what was missing.

    Where no reranker was chosen, a usual state, that is said in a few words; what
    mends it is said by ``doctor``, in JSON and with an explanation.
    """
    wanted = response.explain or os.environ.get("MEMORY_STORE_RERANKER")
    usual = [] if wanted else [n for n in response.degraded if n.startswith(NO_RERANKER)]
    colour = colour_wanted()
    if not response.rows:
        beyond = response.next or (response.budget and response.budget["too_large"])
        click.echo("Nothing on this page.\n" if beyond else "Nothing found.\n")
    ways = accounts(response)
    for row in response.rows:
        for line in result_lines(row, columns(), colour):
            click.echo(line)
        if row.id in ways:
            for line in account_lines(ways[row.id], columns() - len(INDENT), colour):
                click.echo(INDENT + line)
        click.echo()
    without = " · no reranker, see memory-store doctor" if usual else ""
    click.echo(styled(opened_line(response) + without, DIM, colour))
    if response.budget is not None:
        click.echo(styled(budget_line(response.budget), DIM, colour))
    if more:
        click.echo(styled(printable_line(more), DIM, colour))
    if response.why is not None:
        click.echo()
        for line in why_lines(response.why, columns()):
            click.echo(line)
    if response.explain:
        click.echo()
        for line in stage_lines(response.explain, columns()):
            click.echo(line)
    for line in response.remarks(usual):
        click.echo(printable_line(line))


def opened_line(response: SearchResponse) -> str:
    """``12 of 48,210 memories opened · 35 ms``."""
    noun = "memory" if response.total == 1 else "memories"
    return (
        f"{response.opened:,} of {response.total:,} {noun} opened · {response.milliseconds:,.0f} ms"
    )


def budget_line(budget: Mapping[str, Any]) -> str:
    """``431 of 500 tokens (all-MiniLM-L6-v2) · 3 left for the next page · 1 too large (812)``."""
    line = f"{budget['spent']:,} of {budget['limit']:,} tokens ({budget['counted_with']})"
    if budget["skipped"]:
        line += f" · {budget['skipped']} left for the next page"
    if budget["too_large"]:
        sizes = ", ".join(f"{one['tokens']:,}" for one in budget["too_large"])
        line += f" · {len(budget['too_large'])} too large ({sizes})"
    return printable_line(line)


def result_lines(row: SearchResult, room: int, colour: bool) -> list[str]:
    """One result: rank, score and title · facts · preview. Lines fit ``room`` cells."""
    score = round(row.score * 100)
    head = f"{row.rank:>2}  {bar(row.score)} {score:>3}  "
    title = shortened(title_of(row), room - width(head))
    facts = [row.type, row.created[:10], " ".join(f"#{topic}" for topic in row.topics)]
    facts_line = " · ".join(printable_line(fact) for fact in [*facts, row.id[:SHORT_ID]] if fact)
    preview = preview_words(row)
    return [
        f"{head}{styled(title, BOLD, colour)}",
        INDENT + styled(shortened(facts_line, room - len(INDENT)), DIM, colour),
        *(INDENT + line for line in preview_lines(preview, room - len(INDENT), colour)),
    ]


def title_of(row: SearchResult) -> str:
    """The title on one line, or the first words of what is shown of the text."""
    start = row.passages[0].start if row.passages else 0
    return printable_line(shown_title(row.title, row.preview, start)) or "(untitled)"


def preview_words(row: SearchResult) -> list[Word]:
    """The words to show for a result, with the matching ones marked.

    The best passage carries highlights; without passages (sealed columns, old answers) the bare
    preview is shown.
    """
    from memory_store.search.answer.previews import (
        after_heading,  # loads NumPy, which --help need not
    )

    if not row.passages:
        return marked_words(row.preview, ())
    passage = row.passages[0]
    words = marked_words(passage.text, passage.highlights, after_heading(passage.text, row.title))
    before = [Word("…", False)] if passage.start else []
    after = [] if row.complete else [Word("…", False)]
    return [*before, *words, *after]


def marked_words(text: str, highlights: Sequence[tuple[int, int]], start: int = 0) -> list[Word]:
    """``text`` from ``start`` on, split at white space into printable words.

    ``highlights`` are character spans of ``text``; a word is marked when one of them touches it.
    """
    marked = bytearray(len(text))
    for first, end in highlights:
        for at in range(max(0, first), min(end, len(text))):
            marked[at] = 1
    words: list[Word] = []
    at = start
    for piece in text[start:].split():
        at = text.index(piece, at)
        shown = printable_line(piece)
        if shown:
            words.append(Word(shown, any(marked[at : at + len(piece)])))
        at += len(piece)
    return words


def preview_lines(words: Sequence[Word], room: int, colour: bool) -> list[str]:
    """At most three lines of ``words``, where most of them are highlighted."""
    start = _start(words, room * PREVIEW_LINES - LEAD)
    lines: list[list[Word]] = [[]]
    used = 0
    remaining = list(words[start:])
    if start:
        remaining.insert(0, Word("…", False))
    for word in remaining:
        cut = Word(shortened(word.text, room), word.highlighted)
        needed = width(cut.text) + (1 if lines[-1] else 0)
        if lines[-1] and used + needed > room:
            if len(lines) == PREVIEW_LINES:
                lines[-1] = _with_ellipsis(lines[-1], room)
                break
            lines.append([])
            used, needed = 0, width(cut.text)
        lines[-1].append(cut)
        used += needed
    return [
        " ".join(styled(word.text, BOLD, colour and word.highlighted) for word in line)
        for line in lines
        if line
    ]


def _start(words: Sequence[Word], cells: int) -> int:
    """Where to begin: a little before the stretch of ``cells`` with the most highlighted words."""
    ends = list(accumulate(width(word.text) + 1 for word in words))
    marked = [i for i, word in enumerate(words) if word.highlighted]

    def seen_from(first: int) -> int:
        limit = ends[first] + cells
        return sum(1 for i in marked if i >= first and ends[i] <= limit)

    first = max(marked, key=seen_from, default=0)  # the earliest of equals
    room = LEAD
    while first > 0 and room > 0:
        first -= 1
        room -= width(words[first].text) + 1
    return first if first > 3 else 0  # a start this close to the beginning is the beginning


def _with_ellipsis(line: Sequence[Word], room: int) -> list[Word]:
    kept = list(line)
    while len(kept) > 1 and sum(width(word.text) + 1 for word in kept) + 1 > room:
        kept.pop()
    return [*kept, Word("…", False)]
