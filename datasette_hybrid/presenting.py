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

from .reading import unwrapped

FACETS_SHOWN = 24
LONG_DETAIL = 12  # entries of a list or table inside one stage's explanation


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


@dataclass(frozen=True)
class FacetView:
    """One value of a facet: how many results have it, and the link that adds or removes it."""

    name: str
    value: str
    count: int | None
    selected: bool
    href: str


@dataclass(frozen=True)
class RankView:
    """One result's way through the stages, for the explanation."""

    title: str
    href: str
    keyword: int | None
    topic: int | None
    vector: int | None
    fused: int | None
    rank: int
    change: int
    steps: str
    rerank_score: float | None
    score: float


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
    return [_result(row, grants, base, keep) for row in response.rows]


def _result(row: SearchResult, grants: Grants, base: str, keep: str) -> ResultView:
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


def rank_table(response: SearchResponse, views: Sequence[ResultView]) -> list[RankView]:
    """Where each result stood in every list, after fusion and at the end, and what moved it."""
    adjusted = {}
    for report in response.explain:
        for entry in _records(report.details.get("results")):
            adjusted[entry.get("id")] = entry
    table = []
    for view in views:
        row = view.row
        entry = adjusted.get(row.id, {})
        fused = entry.get("fusion_rank")
        table.append(
            RankView(
                title=view.title or row.id[:8],
                href=view.href,
                keyword=row.keyword_rank,
                topic=row.topic_rank,
                vector=row.vector_rank,
                fused=fused,
                rank=row.rank,
                change=fused - row.rank if isinstance(fused, int) else 0,
                steps=_steps(entry),
                rerank_score=row.rerank_score,
                score=row.score,
            )
        )
    return table


def _records(value: Any) -> list[Mapping[str, Any]]:
    """A list of records about results, as the stage that adjusts scores leaves it."""
    items = value if isinstance(value, list | tuple) else []
    return [item for item in items if isinstance(item, Mapping) and "fusion_rank" in item]


def _steps(entry: Mapping[str, Any]) -> str:
    """What changed a score after fusion, in words: the boosts by type, floors and penalties."""
    steps = [str(step[0]) for step in entry.get("steps") or ()]
    boost = entry.get("fusion_boost") or 1.0
    if boost != 1.0:
        steps.insert(0, f"type × {boost:g}")
    return ", ".join(_words(step) for step in steps)


@dataclass(frozen=True)
class StageView:
    """One stage of the pipeline: its time, its figures, and its tables."""

    name: str
    milliseconds: float
    figures: tuple[tuple[str, str], ...]
    tables: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...], int], ...]


def stages(response: SearchResponse) -> list[StageView]:
    """The explanation, stage by stage. Details are data of any shape; see :func:`_sorted_out`."""
    views = []
    for report in response.explain:
        figures, tables = _sorted_out(report.details)
        views.append(StageView(_words(report.stage), report.milliseconds, figures, tables))
    return views


def _sorted_out(details: Mapping[str, Any]) -> tuple[Any, Any]:
    """Details apart: lists of records become tables, everything else a line."""
    figures: list[tuple[str, str]] = []
    tables: list[Any] = []
    for key, value in details.items():
        if _records(value):
            continue  # the table of ranks shows these
        if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            columns = tuple(dict.fromkeys(name for row in value for name in row))
            rows = tuple(
                tuple(_plain(row.get(name)) for name in columns) for row in value[:LONG_DETAIL]
            )
            headings = tuple(_words(name) for name in columns)
            tables.append((_words(key), headings, rows, max(0, len(value) - LONG_DETAIL)))
        elif value not in (None, "", [], (), {}):
            figures.append((_words(key), _plain(value)))
    return tuple(figures), tuple(tables)


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_words(str(k))} {_plain(v)}" for k, v in list(value.items())[:LONG_DETAIL]
        )
    if isinstance(value, list | tuple):
        listed = ", ".join(_plain(item) for item in value[:LONG_DETAIL])
        return f"{listed} … ({len(value)})" if len(value) > LONG_DETAIL else listed
    return str(value)


def _words(name: str) -> str:
    return name.replace("_", " ").strip()


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
