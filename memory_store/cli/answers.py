"""A search answer, laid out to be read on a terminal, and its explanation.

Boundary: titles, topics and previews are untrusted text; all of it passes
:func:`memory_store.cli.terminal.printable_line` or :func:`marked_words`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import UNSET

from memory_store.cli.rows import aligned, usual
from memory_store.cli.terminal import (
    BOLD,
    DIM,
    SHORT_ID,
    bar,
    colour_wanted,
    columns,
    linked_to,
    memories,
    printable_line,
    shortened,
    styled,
    width,
)
from memory_store.plain_text import ITEM, without_marks
from memory_store.records import Passage, SearchResponse, SearchResult
from memory_store.records.searches import WEAK
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.records.explanation import Account, Stage, Verdict
    from memory_store.search.explain.words import StageWords, Table

ARROW = " → "
FIGURE_CELLS = 160  # of one figure: two lines of a terminal; --json has all of it
INDENT = "    "
PREVIEW_LINES = 3
MATCHES_SHOWN = 8  # of a pattern, in one file
SENTENCE_END = re.compile(r"[.!?…:;。！？][\"')\]”»]*\Z")
LEAD = 40  # cells of context before the first highlighted word


class Word(NamedTuple):
    """A word of a preview, printable, and whether any of it is highlighted."""

    text: str
    highlighted: bool


def print_answer(
    response: SearchResponse, more: str = "", *, by_ref: bool = False, pages: str = ""
) -> None:
    """The ranked results, how many memories were opened, how to see ``more``, what was missing.

    Where no reranker was chosen, a usual state, that is said in a few words; what
    mends it is said by ``doctor``, in JSON and with an explanation. ``by_ref``: results are known
    by their files, not by their ids. ``pages`` is the address of the vault's pages, if it is
    served: titles lead there. What is far from the best one takes a line, but with an explanation.
    """
    without_saying = usual(response)
    colour = colour_wanted()
    if not response.rows:
        beyond = response.next or (response.budget and response.budget["too_large"])
        click.echo("Nothing on this page.\n" if beyond else "Nothing found.\n")
    ways: Mapping[str, Account] = {}
    if response.explain:
        from memory_store.search.explain.words import accounts

        ways = accounts(response)
    folded = frozenset[str]() if response.explain else response.far
    before = None
    for row in response.rows:
        if row.id in folded:
            continue
        if response.certain is not None and row.band == WEAK and before != WEAK:
            said = "These may fit" if response.certain else response.how_many(response.found)
            click.echo(styled(f"{said}\n", DIM, colour))
        before = row.band
        lines = result_lines(row, columns(), colour, by_ref=by_ref, pages=pages)
        if row.id in ways:
            way = account_lines(ways[row.id], columns() - len(INDENT), colour)
            lines += [INDENT + line for line in way]
        click.echo("\n".join([*lines, ""]))
    if folded:
        everything = len(folded) == len(response.rows)
        said = f"{len(folded)} more, far less likely"
        said = response.how_many(response.found) if everything else said
        far = [row for row in response.rows if row.id in folded]
        lines = [far_line(row, columns(), colour, by_ref=by_ref, pages=pages) for row in far]
        click.echo("\n".join([styled(f"{said}\n", DIM, colour), *lines, ""]))
    without = " · no reranker, see memory-store doctor" if without_saying else ""
    below = [opened_line(response) + without]
    if response.budget is not None:
        below.append(budget_line(response.budget))
    if more:
        below.append(printable_line(more))
    lines = [styled(line, DIM, colour) for line in below]
    if response.why is not None:
        lines += ["", *why_lines(response.why, columns())]
    if response.explain:
        lines += ["", *stage_lines(response.explain, columns())]
    click.echo("\n".join([*lines, *map(printable_line, response.remarks(without_saying))]))


def opened_line(response: SearchResponse) -> str:
    """``3 certain; 61 may fit · 12 of 48,210 memories opened · 35 ms``."""
    certain = f"{response.how_many(response.found)} · " if response.certain else ""
    opened = f"{response.opened:,} of {memories(response.total)} opened"
    return f"{certain}{opened} · {response.milliseconds:,.0f} ms"


def budget_line(budget: Mapping[str, Any]) -> str:
    """``431 of 500 tokens (all-MiniLM-L6-v2) · 3 left for the next page · 1 too large (812)``."""
    line = f"{budget['spent']:,} of {budget['limit']:,} tokens ({budget['counted_with']})"
    if budget["skipped"]:
        line += f" · {budget['skipped']} left for the next page"
    if budget["too_large"]:
        sizes = ", ".join(f"{one['tokens']:,}" for one in budget["too_large"])
        line += f" · {len(budget['too_large'])} too large ({sizes})"
        if not budget["spent"]:
            line += f" · --budget {min(one['tokens'] for one in budget['too_large'])} holds one"
    return printable_line(line)


def result_lines(
    row: SearchResult, room: int, colour: bool, *, by_ref: bool = False, pages: str = ""
) -> list[str]:
    """One result: rank, score (of a pattern none), title · facts · preview. Lines fit ``room``."""

    def shown(name: str) -> str:
        return title_line(row, name, room, colour, pages)

    if row.line is not None and row.matches:
        place = printable_line(row.ref or row.title)
        return [
            shown(place),
            *match_lines(row, room, colour),
        ]
    if row.line is not None:
        return [
            shown(code_place(row)),
            *code_lines(row, room - len(INDENT), colour),
            *(also_line(one, room, colour) for one in row.passages[1:]),
        ]
    under = (row.passages[0].place or "") if row.passages else ""
    facts = [under, row.type, row.created[:10]]
    facts.append(" ".join(f"#{topic}" for topic in row.topics))
    facts += [f"superseded by {row.superseded_by[:SHORT_ID]}"] if row.superseded_by else []
    facts += [f"by {row.by}"] if row.by else []
    facts.append((row.ref or "") if by_ref else row.id[:SHORT_ID])
    facts_line = " · ".join(printable_line(fact) for fact in facts if fact)
    preview = preview_words(row)
    return [
        shown(title_of(row)),
        INDENT + styled(shortened(facts_line, room - len(INDENT)), DIM, colour),
        *(INDENT + line for line in preview_lines(preview, room - len(INDENT), colour)),
    ]


def title_line(row: SearchResult, name: str, room: int, colour: bool, pages: str = "") -> str:
    """Rank, score and ``name``, in bold, which leads to the memory's page. A pattern gives no
    score, nor do filters alone."""
    score = (
        "" if row.matches or not row.score else f"{bar(row.score)} {round(row.score * 100):>3}  "
    )
    head = f"{row.rank:>2}  {score}"
    there = f"{pages}/-/hybrid/memories/{row.id}" if pages else ""
    name = styled(shortened(name, room - width(head)), BOLD, colour)
    return f"{head}{linked_to(name, there, colour)}"


def far_line(
    row: SearchResult, room: int, colour: bool, *, by_ref: bool = False, pages: str = ""
) -> str:
    """`` 4  ▎·········   3  Lease of the flat · 3f2a9c1b``: a result that is folded to a line."""
    known = " · " + printable_line((row.ref or "") if by_ref else row.id[:SHORT_ID])
    name = title_of(row) if row.line is None else code_place(row)
    line = title_line(row, name, room - width(known), colour, pages)
    return line + styled(known, DIM, colour)


def match_lines(row: SearchResult, room: int, colour: bool) -> list[str]:
    """``  40:5  except OSError: pass``: where a pattern matches source code, and that line."""
    first = {one.line: one for one in reversed(row.matches)}  # of each line
    lines = sorted(first.values(), key=lambda one: one.line)
    shown = [
        f"{INDENT}{one.line}:{one.column}  {source(one.context.strip())}"
        for one in lines[:MATCHES_SHOWN]
    ]
    if len(lines) > MATCHES_SHOWN:
        shown.append(f"{INDENT}… and {len(lines) - MATCHES_SHOWN:,} more: --json has all")
    return [styled(shortened(line, room), DIM, colour) for line in shown]


def code_place(row: SearchResult) -> str:
    """``src/sessions.py:40-62  Session.open``: file, lines and definition of the best passage."""
    changed = f"  {row.last_changed} {row.last_author}" if row.last_author else ""
    return printable_line(f"{row.ref or row.title}:{_lines(row)}{changed}")


def also_line(passage: Passage, room: int, colour: bool) -> str:
    """``also 120-140 Session.close``: a further passage of source code."""
    line = printable_line(f"also {_lines(passage)}")
    return INDENT + styled(shortened(line, room - len(INDENT)), DIM, colour)


def _lines(one: SearchResult | Passage) -> str:
    lines = f"{one.line}-{one.end_line}" if one.end_line != one.line else str(one.line)
    return f"{lines}  {one.symbol}" if one.symbol else lines


def code_lines(row: SearchResult, room: int, colour: bool) -> list[str]:
    """Lines of source as they stand, from the first of those where most is highlighted: each word
    once, and by its length, for a whole name is more than its parts. Lines with the name of the
    definition come first, where that is highlighted."""
    passage = row.passages[0]
    defined = (row.symbol or "").rpartition(".")[2].casefold()
    lines, marked, at = passage.text.split("\n"), list[set[str]](), 0
    for line in lines:
        spans = [one for one in passage.highlights if at <= one[0] <= at + len(line)]
        marked.append({passage.text[start:end].casefold() for start, end in spans})
        at += len(line) + 1
    starts = range(max(1, len(lines) - PREVIEW_LINES + 1))
    first = max(starts, key=lambda n: _weight(marked[n : n + PREVIEW_LINES], defined))
    shown = lines[first : first + PREVIEW_LINES]
    return [
        INDENT + styled(shortened(f"{number:>4}  {source(line)}", room), DIM, colour)
        for number, line in enumerate(shown, start=(row.line or 1) + first)
    ]


def _weight(marked: Sequence[set[str]], defined: str) -> tuple[bool, int]:
    words = set[str]().union(*marked)
    return defined in words, sum(map(len, words))


def source(line: str) -> str:
    """A line of source code, printable, with its indentation."""
    bare = line.expandtabs(4).lstrip()
    return " " * (len(line.expandtabs(4)) - len(bare)) + printable_line(bare)


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
    title = shown_title(row.title, row.preview, passage.start)
    start = after_heading(passage.text, title, passage.highlights)
    moved = [(first - start, end - start) for first, end in passage.highlights if first >= start]
    words = marked_words(*without_marks(passage.text[start:], moved))
    before = [Word("…", False)] if passage.start else []
    after = [] if row.complete else [Word("…", False)]
    return [*before, *words, *after]


def marked_words(text: str, highlights: Sequence[tuple[int, int]]) -> list[Word]:
    """``text`` split at white space into printable words, a dot between lines that stand apart, and
    after a paragraph that is no sentence.

    ``highlights`` are character spans of ``text``; a word is marked when one of them touches it.
    Items of lists begin with their own sign.
    """
    marked = bytearray(len(text))
    for first, end in highlights:
        for at in range(max(0, first), min(end, len(text))):
            marked[at] = 1
    words: list[Word] = []
    at = 0
    for piece in text.split():
        before, at = at, text.index(piece, at)
        lines = text.count("\n", before, at) if words and not ITEM.match(text, at) else 0
        if lines == 1 or (lines and not SENTENCE_END.search(words[-1].text)):
            words.append(Word("·", False))
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


def account_lines(account: Account, room: int, colour: bool) -> list[str]:
    """One result: its places after each stage, what its fusion score is the sum of, later changes.

    ``.31 ███▏······ words held, 3rd`` is one of the sum's parts.
    """
    from memory_store.search.explain import words  # its imports serve those who explain alone

    way = ARROW.join(f"{name} {rank}" for name, rank, _ in words.moves(account))
    named = [words.boost_sentence(account)]
    if account.rerank_score not in (None, UNSET):
        named.append(f"rerank {_score(account.rerank_score)}")
    for name, before, after in words.changes(account):
        named.append(f"{name} {_score(before)}{ARROW}{_score(after)}")
    why = words.because(account)
    because = wrapped(f"here because {why}", room) if why else []
    changed = wrapped(" · ".join(filter(None, named)), room)
    lines = [*because, *wrapped(way, room), *_sum_lines(account, room), *changed]
    return [styled(line, DIM, colour) for line in lines]


def _sum_lines(account: Account, room: int) -> list[str]:
    """The parts of the fusion score, each with a bar; nothing where places alone decide."""
    from memory_store.search.explain import words

    parts = words.terms(account)
    if account.fusion_score is UNSET or not parts:
        return []
    lines = [f"{words.score_name(account)} {_score(account.fusion_score)} ="]
    for name, rank, _, _, points in parts:
        place = f", {words.ordinal(rank)}" if rank else ""
        drawn = bar(max(0.0, min(1.0, points)))
        lines.append(shortened(f"{_score(points):>5} {drawn} {name}{place}", room))
    return lines


def stage_lines(stages: Sequence[Stage], room: int) -> list[str]:
    """What each stage did: name, wall and processor milliseconds, then figures and tables."""
    from memory_store.search.explain.words import stage_words

    name_room = max(len(printable_line(stage.stage)) for stage in stages)
    name_room = max(name_room, len("stage"))
    lines = [f"{'stage':<{name_room}} {'ms':>7} {'cpu':>7}"]
    for report in stages:
        one = stage_words(report)
        name = printable_line(one.stage)
        head = f"{name:<{name_room}} {one.milliseconds:7.1f} {one.cpu_milliseconds:7.1f}  "
        body = _body(one, room - len(head)) or [""]
        lines.append((head + body[0]).rstrip())
        lines += [" " * len(head) + line for line in body[1:]]
    wall = sum(stage.milliseconds for stage in stages)
    cpu = sum(stage.cpu_milliseconds for stage in stages)
    return [*lines, f"{'':<{name_room}} {wall:7.1f} {cpu:7.1f}"]


def why_lines(why: Verdict, room: int) -> list[str]:
    """Why one memory was returned or not: the reason, then the figures behind it."""
    from memory_store.search.explain.words import why_about, why_words

    about = printable_line(why_about(why))
    reason = printable_line(why.reason or "")
    first, *rest = wrapped(f"why {about}: {reason}", room - len(INDENT))
    lines = [first, *(INDENT + line for line in rest)]
    one = why_words(why)
    inside = room - len(INDENT)
    way = account_lines(why, inside, colour=False) if why.ranks else []
    return lines + [INDENT + line for line in [*way, *_body(one, inside)]]


def wrapped(text: str, room: int) -> list[str]:
    """``text`` without control characters, in lines of at most ``room`` cells."""
    lines: list[str] = []
    for word in printable_line(text).split():
        fits = lines and width(lines[-1]) + 1 + width(word) <= room
        if fits:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, room))
    return lines


def _body(one: StageWords, room: int) -> list[str]:
    figures = " · ".join(
        shortened(printable_line(f"{name} {value}"), FIGURE_CELLS) for name, value in one.figures
    )
    lines = wrapped(figures, room)
    for table in one.tables:
        lines += _table_lines(table, room)
    return lines


def _table_lines(table: Table, room: int) -> list[str]:
    """A table with aligned columns; the last one is cut where it does not fit."""
    rows = [tuple(map(printable_line, row)) for row in (table.columns, *table.rows)]
    places = range(len(table.columns))
    numeric = [n for n in places if all(_is_number(row[n]) for row in table.rows)]
    return [shortened(line, room) for line in aligned(rows, numeric)]


def _is_number(cell: str) -> bool:
    figure = cell.removeprefix("-").replace(",", "").replace(".", "").removesuffix("%")
    return not cell.strip("–") or figure.isdigit()


def _score(score: float) -> str:
    """``.83``, ``1.0``."""
    shown = f"{score:.2f}"
    return shown.removeprefix("0") if shown != "1.00" else "1.0"
