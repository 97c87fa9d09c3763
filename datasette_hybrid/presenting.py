"""A search's answer as the search page shows it: percentages, marked words, facets, links.

Boundary: text from memories enters HTML only through ``escape`` (in :func:`marked`) or through
the templates' own escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from memory_store.records import DONE_SUFFIX, MODES, Passage, SearchResponse, SearchResult
from memory_store.sql.functions import Grants
from memory_store.sql.permitted import UNREAD_MODES

from .explaining import AccountView, account_views
from .reading import unwrapped

FACETS_SHOWN = 24


@dataclass(frozen=True)
class ResultView:
    """One result, ready to print."""

    rank: int
    id: str
    href: str
    title: str
    score: int
    band: str | None
    type: str
    done: bool
    date: str
    collection: str
    topics: tuple[str, ...]
    first: Markup
    more: tuple[Markup, ...]
    complete: bool
    sealed: bool
    row: SearchResult
    account: AccountView | None = None


@dataclass(frozen=True)
class FacetView:
    """One value of a facet: how many results have it, and the link that adds or removes it."""

    name: str
    value: str
    count: int | None
    selected: bool
    href: str


def marked(text: str, highlights: Iterable[Sequence[int]]) -> Markup:
    """``text`` escaped, with the character ranges in ``highlights`` inside ``<mark>``."""
    parts: list[Markup] = []
    position = 0
    for start, end in sorted((int(pair[0]), int(pair[1])) for pair in highlights):
        if start < position or end <= start or end > len(text):
            continue  # overlapping: the earlier one stays
        parts.append(escape(text[position:start]))
        parts.append(Markup("<mark>{}</mark>").format(text[start:end]))
        position = end
    parts.append(escape(text[position:]))
    return Markup("").join(parts)


def results(
    response: SearchResponse, grants: Grants, base: str, keep: str = ""
) -> list[ResultView]:
    """The rows of an answer; ``base`` is the search page's address.

    ``keep`` goes behind each memory's address, so that its page knows the way back.
    """
    told = account_views(response)
    return [_result(row, grants, base, keep, told.get(row.id)) for row in response.rows]


def _result(
    row: SearchResult, grants: Grants, base: str, keep: str, account: AccountView | None
) -> ResultView:
    passages = row.passages if grants.decrypt else ()
    preview = row.preview if grants.decrypt else ""
    first, *rest = _excerpts(preview, passages)
    plain_type = row.type.removesuffix(DONE_SUFFIX)
    return ResultView(
        rank=row.rank,
        id=row.id,
        href=f"{base}/memories/{row.id}{keep}",
        title=row.title if grants.decrypt else "",
        score=round(row.score * 100),
        band=row.band,
        type=plain_type,
        done=plain_type != row.type,
        date=row.created[:10],
        collection=row.collection,
        topics=row.topics if grants.decrypt else (),
        first=first,
        more=tuple(rest),
        complete=row.complete,
        sealed=not grants.decrypt,
        row=row,
        account=account,
    )


def _excerpts(preview: str, passages: Sequence[Passage]) -> list[Markup]:
    """What to show of a memory: the best passage first, the others to unfold."""
    shown = [_excerpt(passage) for passage in passages]
    return shown or [escape(unwrapped(preview))]


def _excerpt(passage: Passage) -> Markup:
    text = passage.text.rstrip()
    lead = len(text) - len(text.lstrip())
    moved = [(start - lead, end - lead) for start, end in passage.highlights]
    # a passage from the middle says so, unless it begins with a heading or a list
    inside = passage.start > 0 and text[lead : lead + 1].isalnum()
    return Markup("… " if inside else "") + marked(unwrapped(text[lead:]), moved)


def facets(
    name: str, counts: Mapping[str, int], given: Mapping[str, Any], path: str
) -> list[FacetView]:
    """The values of one facet, chosen ones first; each link switches its value."""
    chosen = _values(given, name)
    views = [
        FacetView(name, value, counts.get(value), True, switched(given, path, name, value))
        for value in chosen
    ]
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    for value, count in ordered[:FACETS_SHOWN]:
        if value not in chosen:
            views.append(FacetView(name, value, count, False, switched(given, path, name, value)))
    return views


def switched(given: Mapping[str, Any], path: str, name: str, value: str) -> str:
    """The address of the same search with one value of a parameter added or taken away."""
    pairs = pairs_of(given, without=("continue",))
    pair = (name, value)
    pairs = [kept for kept in pairs if kept != pair] if pair in pairs else [*pairs, pair]
    return f"{path}?{urlencode(pairs)}"


def changed(given: Mapping[str, Any], path: str, **changes: str | None) -> str:
    """The address of the same search with parameters replaced, or removed (``None``)."""
    names = {name.rstrip("_"): value for name, value in changes.items()}
    pairs = pairs_of(given, without=tuple(names))
    pairs += [(name, value) for name, value in names.items() if value is not None]
    return f"{path}?{urlencode(pairs)}"


def pairs_of(given: Mapping[str, Any], without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Parameters as name and value pairs, empty ones left out."""
    return [
        (name, value)
        for name in given
        if name not in without
        for value in _values(given, name)
        if value
    ]


def _values(given: Mapping[str, Any], name: str) -> list[str]:
    value = given.get(name, [])
    return [value] if isinstance(value, str) else [str(item) for item in value]


def offered_modes(current: str, grants: Grants) -> list[tuple[str, str, bool]]:
    """The choices of the mode field: value, label, chosen. Some are for readers only."""
    offered = MODES if grants.decrypt else UNREAD_MODES
    labels = {
        "hybrid": "Words and meaning",
        "keyword": "Words only",
        "vector": "Meaning only",
        "literal": "Exact text or pattern",
        "structural": "Code structure",
        "auto": "Decide by the query",
    }
    return [(mode, labels.get(mode, mode), mode == current) for mode in offered]


def with_command(line: str) -> tuple[str, str]:
    """A line about something missing, apart from the command that mends it."""
    sentence, separator, command = line.rpartition("Try: ")
    return (sentence.strip(), command.strip()) if separator else (line, "")
