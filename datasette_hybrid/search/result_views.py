"""A search's answer as the search page shows it: percentages, marked words, facets, links.

Boundary: text from memories enters HTML only through ``escape`` (in :func:`marked`) or through
the templates' own escaping.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from datasette.utils import to_css_class
from markupsafe import Markup, escape

from memory_store.access import Grants
from memory_store.host import NO_RERANKER, PERSONAL, after_heading
from memory_store.records import DONE_SUFFIX, Passage, SearchResponse, SearchResult

from ..requests.frame import sentence
from .addresses import Asked
from .explanation import AccountView, account_views
from .plain_text import plainly

CODE_TYPE = "code"
FENCE = re.compile(r"^ {0,3}(?:```|~~~)([^`\n]*)$", re.MULTILINE)
CODE = re.compile(
    r"^ {0,3}(?P<fence>```|~~~)[^`\n]*\n(?P<block>(?:(?! {0,3}(?P=fence)).*(?:\n|\Z))*)"
    r"(?: {0,3}(?P=fence).*(?:\n|\Z))?"
    r"|(?<!`)`(?P<inline>[^`\n]{1,200})`(?!`)",
    re.MULTILINE,
)
MARK, MARK_END = Markup("<mark>"), Markup("</mark>")
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
    """One result, ready to print."""

    rank: int
    id: str
    href: str
    title: Markup
    score: int
    band: str | None
    date: str
    links: tuple[ValueLink, ...]
    like_href: str
    first: Excerpt
    more: tuple[Excerpt, ...]
    complete: bool
    sealed: bool
    row: SearchResult
    account: AccountView | None = None


def marked(text: str, highlights: Iterable[Sequence[int]]) -> Markup:
    """``text`` escaped, with the character ranges in ``highlights`` inside ``<mark>``."""
    parts: list[Markup] = []
    position = 0
    for start, end in sorted((int(pair[0]), int(pair[1])) for pair in highlights):
        if start < position or end <= start or end > len(text):
            continue  # overlapping: the earlier one stays
        parts += escape(text[position:start]), MARK, escape(text[start:end]), MARK_END
        position = end
    return _joined([*parts, escape(text[position:])])


def _joined(parts: Sequence[Markup]) -> Markup:
    """Pieces of HTML in a row: ``Markup.join`` asks each of them again whether it is one."""
    return Markup("".join(parts))


def with_code(text: str, highlights: Iterable[Sequence[int]]) -> Markup:
    """Like :func:`marked`, with fenced blocks and what stands in backticks as ``<code>``.

    The other marks of Markdown are left out; in code every line stays as it is.
    """
    coded = list(CODE.finditer(text))
    plain = plainly(text, [found.span() for found in coded])
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
    return _joined([*parts, part(position, len(text))])


def results(
    response: SearchResponse, grants: Grants, asked: Asked, code: Container[str] = ()
) -> list[ResultView]:
    """The rows of an answer.

    ``asked`` is the search as asked, where it may stand in addresses: a memory's page then knows
    the way back, and its type, collection and topics narrow the result. ``code`` names the
    collections of source code.
    """
    ways = account_views(response)
    return [
        _result(
            row,
            asked,
            ways.get(row.id),
            readable=bool(grants.decrypt and row.collection),
            code=row.collection in code,
        )
        for row in response.rows
    ]


def _links(row: SearchResult, asked: Asked, readable: bool) -> Iterator[ValueLink]:
    """What a result has in common with others: each a value to narrow the search to."""
    plain_type = row.type.removesuffix(DONE_SUFFIX)
    if plain_type:
        style = f"hy-type hy-type-{to_css_class(plain_type)}"
        yield _link(asked, "type", plain_type, style, done=plain_type != row.type)
    if row.collection and row.collection != PERSONAL:
        yield _link(asked, "collection", row.collection, "hy-collection")
    for topic in row.topics if readable else ():
        yield _link(asked, "topic", topic, "hy-topic")


def _link(asked: Asked, facet: str, name: str, style: str, *, done: bool = False) -> ValueLink:
    value = f"{facet}:{name}"
    return ValueLink(name, value, asked.switched("narrow", value), style, done)


def _result(
    row: SearchResult,
    asked: Asked,
    account: AccountView | None,
    *,
    readable: bool,
    code: bool,
) -> ResultView:
    """A row; of one that is not ``readable`` nothing shows that is sealed."""
    code = code or row.type.removesuffix(DONE_SUFFIX) == CODE_TYPE
    first, *rest = _excerpts(row, code) if readable else [Excerpt(Markup(""))]
    return ResultView(
        rank=row.rank,
        id=row.id,
        href=asked.memory(row.id),
        title=_title(row) if readable else Markup(""),
        score=round(row.score * 100),
        band=row.band,
        date=row.created[:10],
        links=tuple(_links(row, asked, readable)),
        like_href=asked.like(row.id),
        first=first,
        more=tuple(rest),
        complete=row.complete,
        sealed=not readable,
        row=row,
        account=account,
    )


def _title(row: SearchResult) -> Markup:
    """The title, or the first words of what is shown of the text; the words looked for marked."""
    return marked(row.shown_title or "Untitled", row.title_highlights)


def _excerpts(row: SearchResult, code: bool) -> list[Excerpt]:
    """What to show of a memory: the best passage first, the others to unfold."""
    passages = row.passages or (Passage(0, len(row.preview), row.preview),)
    return [_excerpt(passage, row.title, code) for passage in passages]


def _excerpt(passage: Passage, title: str, code: bool) -> Excerpt:
    text = passage.text.rstrip()
    headed = after_heading(text, title)
    lead = headed or _blank_lines(text)
    code = code or _ends_a_block(passage)
    if not code:
        lead += len(text[lead:]) - len(text[lead:].lstrip())
    shown = text[lead:]
    moved = [(start - lead, end - lead) for start, end in passage.highlights if start >= lead]
    html = marked(shown, moved) if code else with_code(shown, moved)
    # a passage from the middle says so, unless it begins with a heading or a list
    inside = passage.start > 0 and not headed and shown[:1].isalnum()
    return Excerpt(Markup("… " if inside else "") + html, code)


def _ends_a_block(passage: Passage) -> bool:
    """Whether a passage begins within fenced code: it closes a fence that it has not opened."""
    fences = FENCE.findall(passage.text)
    return passage.start > 0 and len(fences) % 2 == 1 and not fences[0].strip()


def _blank_lines(text: str) -> int:
    """How many characters of ``text`` are empty lines before the first one with words."""
    return text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1


def remarks(response: SearchResponse, grants: Grants) -> dict[str, Any]:
    """What an answer rests on, what it went without, and whether that is just a reranker.

    That one is a usual state, and for those who may read.
    """
    usual = [line for line in response.degraded if line.startswith(NO_RERANKER)]
    quiet = [_with_command(line.removeprefix(NO_RERANKER)) for line in usual if grants.decrypt]
    return {
        "nearest": response.nearest,
        "degraded": [_with_command(line) for line in response.degraded if line not in usual],
        "no_reranker": (sentence(quiet[0][0]), quiet[0][1]) if quiet else None,
    }


def _with_command(line: str) -> tuple[str, str]:
    """A line about something missing, apart from the command that mends it."""
    sentence, separator, command = line.rpartition("Try: ")
    return (sentence.strip(), command.strip()) if separator else (line, "")
