"""Results and explanations in words: one wording for the terminal and the search page.

Works on the data of :mod:`memory_store.search.explain.account`, also where a surface has withheld
parts of it: what is missing is left out.

Boundary: text from queries and models passes through as it is; surfaces escape it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from memory_store.records import SearchResponse, StageReport

LEG_NAMES = {"keyword": "words", "topic": "topics", "vector": "meaning", "recent": "newest"}
BESIDE = " with neighbours"
SHORT_ID = 8  # characters of an id: the shortest prefix `get` accepts
LONG_NAME = 60  # characters of what somebody typed for an id
LONG_LIST = 12  # entries of a list or table that nothing here knows

# What happened to a result that a stage moved only by moving others.
_BY_OTHERS = {
    "type boosts": "others boosted",
    "demotions": "others demoted",
    "keyword floor": "others raised",
    "score floor": "others left out",
    "min_score": "others left out",
}
_STEP_NAMES = {
    "not verified": "without a reranker",
    "late interaction": "late interaction",  # the score that stands for it; the move is its stage's
}
_WHOLE_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_READINGS = ("fusion", "rerank", "few candidates", "late interaction", *LEG_NAMES)
_IN_THE_WAY = ("fusion_rank", "fusion_score", "rank")


class Move(NamedTuple):
    """A place on a result's way: what put it there, the rank, and the change since before."""

    name: str
    rank: int
    up: int


class Term(NamedTuple):
    """A part of a fusion score: from where, at which place there, its weight and strength, and
    its share of the score in ``points`` (0–1)."""

    name: str
    rank: int | None
    weight: float | None
    strength: float | None
    points: float


class Table(Struct, frozen=True):
    """A small table of a stage."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Told(Struct, frozen=True):
    """One stage in words: figures by name, then tables."""

    stage: str
    milliseconds: float
    cpu_milliseconds: float
    figures: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()


def accounts(response: SearchResponse) -> dict[str, Mapping[str, Any]]:
    """Id → the account of each result, where the response explains itself."""
    results = (
        entry for report in response.explain for entry in report.details.get("results") or ()
    )
    return {entry["id"]: entry for entry in results}


def moves(account: Mapping[str, Any]) -> list[Move]:
    """The way of one result: ``fusion 7, rerank 2, done penalty 3``.

    Fusion and the reranker are always named, other stages when they changed its place.
    """
    told: list[Move] = []
    before: int | None = None
    for entry in account.get("ranks") or ():
        steps, stage = entry.get("steps") or [], entry["after"]
        changed = before is not None and entry["rank"] != before
        if changed or stage in _READINGS:
            own = ", ".join(step for step in steps if step not in _STEP_NAMES)
            name = own or LEG_NAMES.get(stage) or _BY_OTHERS.get(stage, stage)
            told.append(Move(name, entry["rank"], (before or entry["rank"]) - entry["rank"]))
        before = entry["rank"]
    return told


def changes(account: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """What changed the score after fusion or the reranker: a name, the score before and after."""
    return [
        (_STEP_NAMES.get(step["step"], step["step"]), step["before"], step["after"])
        for step in account.get("steps") or ()
    ]


def terms(account: Mapping[str, Any]) -> list[Term]:
    """What the fusion score of one result is the sum of."""
    return [
        Term(
            list_name(part["leg"], part["kind"]) + (BESIDE if "own_strength" in part else ""),
            part.get("rank"),
            part.get("weight"),
            part.get("strength"),
            part["points"],
        )
        for part in account.get("contributions") or ()
    ]


def score_name(account: Mapping[str, Any]) -> str:
    """What the sum of the terms is called: ``fusion``, or ``score`` where one leg stands alone."""
    ranks = account.get("ranks") or ({"after": "fusion"},)
    return "fusion" if ranks[0]["after"] == "fusion" else "score"


def boost_sentence(account: Mapping[str, Any]) -> str:
    """The type's factor by name, and what it did; empty without one."""
    boost = account.get("boost")
    if not boost:
        return ""
    did = "" if boost["decides"] == "order" else ", for the pool only"
    return f"{boost['name']} × {boost['factor']:g}{did}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def told(report: StageReport) -> Told:
    """A stage's report in words; details that nothing here knows are shown as they are."""
    details = {name: value for name, value in report.details.items() if name != "results"}
    figures: list[tuple[str, str]] = []
    tables: list[Table] = []
    for one in _known(report.stage, details):
        if isinstance(one, Table):
            tables.append(one)
        else:
            figures.append(one)
    for name, value in details.items():
        if _is_table(value):
            tables.append(_any_table(name, value))
        elif value not in (None, "", [], (), {}):
            figures.append((_words(name), plain(value)))
    return Told(
        report.stage, report.milliseconds, report.cpu_milliseconds, tuple(figures), tuple(tables)
    )


def why_about(why: Mapping[str, Any]) -> str:
    """Which memory was asked about: the beginning of an id, or what was typed in its place, at
    most :data:`LONG_NAME` characters of it."""
    about = str(why.get("id", ""))
    if _WHOLE_ID.fullmatch(about):
        return about[:SHORT_ID]
    return about if len(about) <= LONG_NAME else f"{about[: LONG_NAME - 1]}…"


def why_told(why: Mapping[str, Any]) -> Told:
    """The figures behind the answer to why: words held, places in the legs, pool and page."""
    figures: list[tuple[str, str]] = []
    words = why.get("words")
    if words:
        figures += [(f"words {name}", ", ".join(words[name])) for name in ("held", "missing")]
    if why.get("coverage") is not None:
        figures.append(("share of the query", f"{why['coverage']:.0%}"))
    figures += [
        (_words(name), plain(why[name]))
        for name in ("fusion_rank", "fusion_score", "pool", "last_score", "rank", "page", "twin")
        if why.get(name) is not None and not (name in _IN_THE_WAY and why.get("ranks"))
    ]
    legs = why.get("legs") or ()
    rows = tuple(
        (
            list_name(leg["leg"], leg["kind"]),
            plain(leg["rank"]),
            plain(leg["score"]),
            plain(leg["taken"]),
            plain(leg["last_score"]),
        )
        for leg in legs
    )
    columns = ("leg", "place", "score", "taken", "score of the last")
    tables = (Table("Its place in each leg", columns, rows),) if rows else ()
    shown = tuple((name, value) for name, value in figures if value)
    return Told("why", 0.0, 0.0, shown, tables)


def plain(value: Any) -> str:
    """A detail as text."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(k))} {plain(v)}" for k, v in list(value.items())[:LONG_LIST])
    if isinstance(value, list | tuple):
        listed = ", ".join(plain(item) for item in value[:LONG_LIST])
        return f"{listed} … ({len(value)})" if len(value) > LONG_LIST else listed
    return str(value)


Piece = tuple[str, str] | Table
Details = dict[str, Any]


def _known(stage: str, details: Details) -> Iterator[Piece]:
    """What is known of a stage, taken out of ``details``."""
    teller: Callable[[Details], Iterator[Piece]] | None = _TELLERS.get(stage)
    if teller is not None:
        yield from teller(details)


def _analyse(details: Details) -> Iterator[Piece]:
    for name in ("language", "keywords"):
        if details.get(name):
            yield name, plain(details.pop(name))
    searchable, of = details.pop("searchable", None), details.pop("of", None)
    if searchable is not None:
        yield "searchable", f"{searchable:,}" if of is None else f"{searchable:,} of {of:,}"
    details.pop("topic_groups", None)
    filters = details.pop("filters", None)
    if filters:
        rows = tuple((one["filter"], f"{one['lets_through']:,}") for one in filters)
        yield Table("What each filter alone lets through", ("filter", "memories"), rows)


def _expand(details: Details) -> Iterator[Piece]:
    for name in ("model", "skipped"):
        if details.get(name):
            yield name, plain(details.pop(name))
    kept, written = details.pop("cached", None), details.pop("lines", None)
    variants = details.get("variants") or ()
    usable = f"{len(variants) or 'none'} usable"
    if kept:
        yield "answered before", usable
    elif written is not None:
        yield "called", f"{written:,} line{'' if written == 1 else 's'}, {usable}"
    if details.get("sent"):
        yield "sent", f"“{details.pop('sent')}”"


def _fetch(details: Details) -> Iterator[Piece]:
    lists, spent = details.pop("lists", None), details.pop("leg_milliseconds", {})
    if not lists:
        return
    rows, timed = [], set()
    for one in lists:
        first = one["leg"] not in timed  # a leg's time is that of all its lists
        timed.add(one["leg"])
        rows.append(
            (
                list_name(one["leg"], one["kind"]),
                f"{one['found']:,}",
                plain(one["best"]),
                plain(one["last"]),
                f"{spent[one['leg']]:.1f}" if first and one["leg"] in spent else "",
            )
        )
    rows += [
        (_name(leg), "0", "–", "–", f"{ms:.1f}") for leg, ms in spent.items() if leg not in timed
    ]
    yield Table("What each leg found", ("list", "found", "best", "last", "ms"), tuple(rows))


def _fuse(details: Details) -> Iterator[Piece]:
    for name in ("recipe", "k", "candidates", "pool"):
        if details.get(name) is not None:
            yield name, plain(details.pop(name))
    details.pop("weights", None)
    rows = []
    for one in details.pop("lists", ()):
        named = enumerate(one["factors"].items())
        told = [f"{name} {value:g}" for n, (name, value) in named if value != 1 or not n]
        rows.append((list_name(one["leg"], one["kind"]), f"{one['weight']:.3g}", " × ".join(told)))
    if rows:
        yield Table("What each list counts", ("list", "weight", "because"), tuple(rows))


def _rerank(details: Details) -> Iterator[Piece]:
    skipped = details.pop("skipped", None)
    if skipped:
        yield "skipped", skipped
    how = details.pop("how", None)
    if how:
        yield "by", how
    if not details.get("reranked"):
        details.pop("calibrated", None)


def _adjust(details: Details) -> Iterator[Piece]:
    for name, count in details.pop("moved", {}).items():
        yield _STEP_NAMES.get(name, name), f"{count:,} result{'' if count == 1 else 's'}"


_TELLERS: Mapping[str, Callable[[Details], Iterator[Piece]]] = {
    "analyse": _analyse,
    "expand": _expand,
    "fetch": _fetch,
    "fuse": _fuse,
    "rerank": _rerank,
    "adjust": _adjust,
}


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and any(value)
        and all(isinstance(one, Mapping) for one in value)
    )


def _any_table(name: str, records: Sequence[Mapping[str, Any]]) -> Table:
    columns = tuple(dict.fromkeys(column for record in records for column in record))
    rows = tuple(
        tuple(plain(record.get(column)) for column in columns) for record in records[:LONG_LIST]
    )
    left = len(records) - LONG_LIST
    caption = f"{_words(name)} (and {left} more)" if left > 0 else _words(name)
    return Table(caption, tuple(map(_words, columns)), rows)


def list_name(leg: str, kind: str) -> str:
    """``words``, or ``meaning (hyde)`` for a list of another wording."""
    if leg in ("type", "bonus"):
        return kind
    return _name(leg) if kind == "original" else f"{_name(leg)} ({kind})"


def _name(leg: str) -> str:
    first, blank, rest = leg.partition(" ")  # "vector (2)": the second model's
    return LEG_NAMES.get(first, first) + blank + rest


def _words(name: str) -> str:
    return name.replace("_", " ").strip()
