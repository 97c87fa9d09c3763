"""A search's answer as the search page shows it: percentages, marked words, facets, links.

Boundary: text from memories enters HTML only through ``escape`` (in :func:`.marked`) or through
the templates' own escaping.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from datasette.utils import to_css_class
from markupsafe import Markup

from memory_store.access import Grants
from memory_store.host import (
    NO_RERANKER,
    PERSONAL,
    Code,
    after_heading,
    language_of_name,
    plain_text,
)
from memory_store.records import Passage, SearchResponse, SearchResult, base_type

from ..code.source import coloured
from ..marks import joined, marked
from ..requests.frame import sentence
from .addresses import Asked
from .explanation import AccountView, account_views

CODE_TYPE = "code"
MATCHES_SHOWN = 8  # lines of one file
FENCE = re.compile(r"^ {0,3}(?:`{3,20}|~{3,20})([^`\n]*)$", re.MULTILINE)
LIST_MARK = re.compile(r"^[ \t]*([-*+] )(?!\[[ xX]\] )(?=\S)", re.MULTILINE)
HASHTAG = re.compile(r"#(?!\d+\Z)[\w/-]+")
CODE_BLOCK, CODE_WORD = Markup('<code class="hy-block">'), Markup("<code>")
CODE_END = Markup("</code>")


@dataclass(frozen=True)
class Excerpt:
    """A piece of a memory; ``code`` keeps its lines and their indentation."""

    html: Markup
    code: bool = False


@dataclass(frozen=True)
class ValueLink:
    """A facet's value that a result has, and the address that narrows the search to it.

    ``style`` is its CSS class; ``done`` stands beside the type of what is completed.
    """

    name: str
    value: str
    href: str
    style: str
    done: bool = False


@dataclass(frozen=True)
class ResultView:
    """One result, ready to print: its row, and what a page makes of it.

    ``far`` ones are folded (:attr:`memory_store.records.SearchResponse.far`). ``matches`` are lines
    of source code that a pattern matches, each with where it is; these stand for ``first``.
    """

    row: SearchResult
    href: str
    title: Markup
    score: int
    date: str
    links: tuple[ValueLink, ...]
    like_href: str
    first: Excerpt
    also: tuple[tuple[str, str], ...]
    sealed: bool
    matches: tuple[tuple[int, str, Markup], ...] = ()
    more_matches: int = 0
    successor_href: str = ""
    place: str = ""
    account: AccountView | None = None
    far: bool = False


def with_code(text: str, highlights: Iterable[Sequence[int]]) -> Markup:
    """Like :func:`marked`, with fenced blocks and what stands in backticks as ``<code>``.

    The other marks of Markdown are left out; in code every line stays as it is.
    """
    coded = list(plain_text.CODE.finditer(text))
    plain = plain_text.plainly(text, [found.span() for found in coded], _shown_marks(text))
    spans = [(plain.place(int(pair[0])), plain.place(int(pair[1]))) for pair in highlights]

    def part(start: int, end: int) -> Markup:
        start, end = plain.place(start), plain.place(end)
        inside = [(max(a, start) - start, min(b, end) - start) for a, b in spans]
        return marked(plain.text[start:end], inside)

    parts: list[Markup] = []
    position = 0
    for found in coded:
        block = found["inline"] is None
        code = part(*found.span("block" if block else "inline"))
        parts += part(position, found.start()), CODE_BLOCK if block else CODE_WORD, code, CODE_END
        position = found.end()
    return joined([*parts, part(position, len(text))])


def _shown_marks(text: str) -> Iterator[plain_text.Edit]:
    """Marks of lists as signs; hashtags on lines of their own at the end go, for the
    page lists the topics below."""
    for found in LIST_MARK.finditer(text):
        yield plain_text.Edit(*found.span(1), "• ")
    rest = text.rstrip()
    before, _, last = rest.rpartition("\n")
    while before.strip() and all(HASHTAG.fullmatch(word) for word in last.split()):
        rest = before.rstrip()
        before, _, last = rest.rpartition("\n")
    if len(rest) < len(text.rstrip()):
        yield plain_text.Edit(len(rest), len(text))


def results(
    response: SearchResponse, grants: Grants, asked: Asked, code: Container[str] = ()
) -> list[ResultView]:
    """The rows of an answer.

    ``asked`` is the search as asked, where it may stand in addresses: a memory's page then knows
    the way back, and its type, collection and topics narrow the result. ``code`` names the
    collections of source code.
    """
    ways, far, views = account_views(response), response.far, []
    for row in response.rows:
        readable = bool(grants.decrypt and row.collection)  # else nothing shows that is sealed
        is_code = row.collection in code or base_type(row.type) == CODE_TYPE
        title, first = Markup(""), Excerpt(Markup(""))
        if readable:
            title = marked(row.shown_title or "Untitled", row.title_highlights)
            best = row.passages[0] if row.passages else Passage(0, len(row.preview), row.preview)
            first = _excerpt(
                best, row.shown_title, is_code, row.ref or row.title if is_code else ""
            )
        views.append(
            ResultView(
                row=row,
                href=asked.memory(row.id) + anchor(row),
                title=title,
                score=round(row.score * 100),
                date=row.created[:10],
                links=tuple(_links(row, asked, readable)),
                like_href=asked.like(row.id),
                first=first,
                also=tuple(_also(row, asked)) if readable and not row.matches else (),
                sealed=not readable,
                matches=tuple(_matches(row, asked)) if readable and row.line else (),
                more_matches=max(0, len({one.line for one in row.matches}) - MATCHES_SHOWN),
                place=_place(row) if readable else "",
                successor_href=asked.memory(row.superseded_by) if row.superseded_by else "",
                account=ways.get(row.id),
                far=row.id in far,
            )
        )
    return views


def anchor(row: SearchResult) -> str:
    """Where in the page of a file a result is: its first match, or its best passage."""
    line = row.matches[0].line if row.matches else row.line
    return "" if row.line is None or line is None else f"#L{line}"


def _also(row: SearchResult, asked: Asked) -> Iterator[tuple[str, str]]:
    """The next best passages of source code: lines and definition, and where they are."""
    for one in row.passages[1:]:
        yield f"{_lines(one)} {one.symbol or ''}".rstrip(), f"{asked.memory(row.id)}#L{one.line}"


def _matches(row: SearchResult, asked: Asked) -> Iterator[tuple[int, str, Markup]]:
    """The first lines that a pattern matches: their numbers, where they are, and the matches in
    them marked."""
    path, language = asked.memory(row.id), language_of_name(row.ref or row.title)
    for number, some in islice(groupby(row.matches, key=lambda one: one.line), MATCHES_SHOWN):
        first, *others = some
        line, spans, end = first.context.strip(), list[tuple[int, int]](), 0
        for one in (first, *others):
            said = one.text.partition("\n")[0].strip()
            at = line.find(said, end) if said else -1
            if at >= 0:
                end = at + len(said)
                spans.append((at, end))
        yield number, f"{path}#L{number}", coloured(line, spans, language)


def _lines(one: SearchResult | Passage) -> str:
    return f"line {one.line}" if one.end_line == one.line else f"lines {one.line}–{one.end_line}"


def _place(row: SearchResult) -> str:
    """``app/session.py · lines 40–62 · Session.open`` of source code; else the heading that the
    passage is under."""
    if row.line is None:
        return (row.passages[0].place or "") if row.passages else ""
    path = row.ref if row.ref != row.title else None
    changed = f"{row.last_changed} {row.last_author}" if row.last_author else ""
    where = () if row.matches else (_lines(row), row.symbol)  # the matches say their own lines
    return " · ".join(filter(None, (path, *where, changed)))


def _links(row: SearchResult, asked: Asked, readable: bool) -> Iterator[ValueLink]:
    """What a result has in common with others: each a value to narrow the search to."""
    plain_type = base_type(row.type)
    named = [("type", plain_type, f"hy-type hy-type-{to_css_class(plain_type)}")]
    if row.collection != PERSONAL:
        named.append(("collection", row.collection or "", "hy-collection"))
    named += (("topic", topic, "hy-topic") for topic in row.topics if readable)
    for facet, name, style in named:
        if name:
            value, done = f"{facet}:{name}", facet == "type" and plain_type != row.type
            yield ValueLink(name, value, asked.switched("narrow", value), style, done)


def _excerpt(passage: Passage, title: str, code: bool, file: str) -> Excerpt:
    text = passage.text.rstrip()
    headed = after_heading(text, title, passage.highlights)
    # else the empty lines before the first one with words
    lead = headed or text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    fences = FENCE.findall(passage.text)
    # a passage that closes a fence that it has not opened begins within fenced code
    code = code or (passage.start > 0 and len(fences) % 2 == 1 and not fences[0].strip())
    if not code:
        lead += len(text[lead:]) - len(text[lead:].lstrip())
    shown = text[lead:]
    moved = [(start - lead, end - lead) for start, end in passage.highlights if start >= lead]
    language = language_of_name(file) if code else None
    html = coloured(shown, moved, language) if code else with_code(shown, moved)
    # a passage from the middle says so, unless it begins with a heading or a list
    inside = passage.start > 0 and not headed and shown[:1].isalnum()
    return Excerpt(Markup("… " if inside else "") + html, code)


def remarks(response: SearchResponse, grants: Grants) -> dict[str, Any]:
    """What an answer rests on, what it went without, and whether that is just a reranker.

    That one is a usual state, and for those who may read.
    """
    usual = [line for line in response.degraded if line.code is Code.NO_RERANKER]
    quiet = [one.sentence.removeprefix(NO_RERANKER) for one in usual if grants.decrypt]
    return {
        "also_searched": response.also_searched,
        "nearest": response.nearest,
        "degraded": [(one.sentence, one.command) for one in response.degraded if one not in usual],
        "no_reranker": (sentence(quiet[0]), usual[0].command) if quiet else None,
    }
