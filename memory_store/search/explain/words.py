"""Explanations in words: one wording for the terminal, the search page and everything else.

A field that is ``UNSET``, because a stage had nothing to say or a surface withheld it, is left out.

Boundary: text from queries and models passes through as it is; surfaces escape it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from memory_store.records import SearchResponse
from memory_store.records.explanation import (
    TIMES,
    Account,
    Adjust,
    Analyse,
    Contribution,
    Expand,
    Fetch,
    Fuse,
    Open,
    Rerank,
    Stage,
    Verdict,
)
from memory_store.search.fusion.evidence import AHEAD, ALIKE, FEATURES, HELD, MEANING, TOPICS

LEG_NAMES = {"keyword": "words", "topic": "topics", "vector": "meaning", "recent": "newest"}
BESIDE = " with neighbours"
BESIDE_THE_LEG = {*FEATURES} - {HELD, *(FEATURES[place] for place in (MEANING, TOPICS))}
"""Features by which their leg does not order what it lists."""
SHORT_ID = 8  # characters of an id: the shortest prefix `get` accepts
LONG_NAME = 60  # characters of what was typed for an id
LONG_LIST = 12  # entries of a list that stands on one line

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
_OF_ONE_MEMORY = (*_IN_THE_WAY[:2], "pool", "last_score", "rank", "page", "twin")
_NOTHING: tuple[Any, ...] = (UNSET, None, "", (), {})


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


class StageWords(Struct, frozen=True):
    """One stage in words: figures by name, then tables."""

    stage: str
    milliseconds: float
    cpu_milliseconds: float
    figures: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()


def accounts(response: SearchResponse) -> dict[str, Account]:
    """Id → the account of each result, where the response explains itself."""
    stages = (stage for stage in response.explain if isinstance(stage, Open | Adjust))
    return {str(one.id): one for stage in stages for one in stage.results or ()}


def moves(account: Account) -> list[Move]:
    """The way of one result: ``fusion 7, rerank 2, done penalty 3``.

    Fusion and the reranker are always named, other stages when they changed its place.
    """
    found: list[Move] = []
    before: int | None = None
    for place in account.ranks or ():
        changed = before is not None and place.rank != before
        if changed or place.after in _READINGS:
            own = ", ".join(step for step in place.steps or () if step not in _STEP_NAMES)
            name = own or LEG_NAMES.get(place.after) or _BY_OTHERS.get(place.after, place.after)
            found.append(Move(name, place.rank, (before or place.rank) - place.rank))
        before = place.rank
    return found


def changes(account: Account) -> list[tuple[str, float, float]]:
    """What changed the score after fusion or the reranker: a name, the score before and after."""
    return [
        (_STEP_NAMES.get(one.step, one.step), one.before, one.after) for one in account.steps or ()
    ]


def terms(account: Account) -> list[Term]:
    """What the fusion score of one result is the sum of: the features of its evidence, or lists."""
    return [
        Term(
            _term_name(part) + ("" if part.own_strength is UNSET else BESIDE),
            None if part.kind in BESIDE_THE_LEG else part.rank or None,
            None if part.weight is UNSET else part.weight,
            None if part.strength is UNSET else part.strength,
            part.points,
        )
        for part in account.contributions or ()
        if part.kind not in (ALIKE, AHEAD)
    ]


def _term_name(part: Contribution) -> str:
    """What a feature is called, with the number of its model where that is another than the first;
    or what a list is."""
    if part.kind not in FEATURES:
        return list_name(part.leg, part.kind)
    _, paren, number = part.leg.partition(" (")
    return f"{part.kind}{paren}{number}"


def because(account: Account) -> str:
    """Why a result stands where it stands, in one sentence; empty where places alone say it."""
    parts = {part.kind: part for part in account.contributions or ()}
    held, meaning, topics = (parts.get(kind) for kind in (HELD, "meaning", "topics"))
    said = []
    if held is not None and held.strength:
        said.append(f"it holds {held.strength:.0%} of the query's words, by how rare they are")
    if meaning is not None and meaning.term > 0:
        near = (
            f"it is {ordinal(meaning.rank)} of all by meaning"
            if meaning.rank
            else "its meaning is near"
        )
        said.append(near)
    if topics is not None:
        said.append("the query names its topics")
    return ", and ".join((", ".join(said[:-1]), said[-1]) if len(said) > 1 else said)


def score_name(account: Account) -> str:
    """What the sum of the terms is called: ``fusion``, or ``score`` where one leg stands alone, and
    ``words`` where these only decide what is tried first."""
    if not account.ranks or account.ranks[0].after == "fusion":
        return "fusion"
    return "words" if account.ranks[-1].after == "pattern" else "score"


def boost_sentence(account: Account) -> str:
    """The type's factor by name, and what it did; empty without one."""
    if not account.boost:
        return ""
    did = "" if account.boost.decides == "order" else ", for the pool only"
    return f"{account.boost.name} × {account.boost.factor:g}{did}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def stage_words(stage: Stage) -> StageWords:
    """A stage in words."""
    teller, said = _TELLERS.get(type(stage), (None, frozenset[str]()))
    pieces: list[Piece] = [*teller(stage)] if teller is not None else []
    for name in stage.__struct_fields__:
        value = getattr(stage, name)
        if name not in said | TIMES | {"results"} and value not in _NOTHING:
            pieces.append((_words(name), plain(value)))
    return StageWords(
        stage.stage,
        stage.milliseconds,
        stage.cpu_milliseconds,
        tuple(one for one in pieces if not isinstance(one, Table)),
        tuple(one for one in pieces if isinstance(one, Table)),
    )


def why_about(why: Verdict) -> str:
    """Which memory was asked about: the beginning of an id, or what was typed in its place, at
    most :data:`LONG_NAME` characters of it."""
    about = why.id or ""
    if _WHOLE_ID.fullmatch(about):
        return about[:SHORT_ID]
    return about if len(about) <= LONG_NAME else f"{about[: LONG_NAME - 1]}…"


def why_words(why: Verdict) -> StageWords:
    """The figures behind a verdict: words held, places in the legs, pool and page."""
    figures: list[tuple[str, str]] = []
    if why.words:
        figures.append(("words held", ", ".join(why.words.held)))
        figures.append(("words missing", ", ".join(why.words.missing)))
    if why.coverage is not UNSET:
        figures.append(("share of the query", f"{why.coverage:.0%}"))
    for name in _OF_ONE_MEMORY:
        value = getattr(why, name)
        if value not in _NOTHING and not (name in _IN_THE_WAY and why.ranks):
            figures.append((_words(name), plain(value)))
    rows = tuple(
        (
            list_name(leg.leg, leg.kind),
            *map(plain, (leg.rank, leg.score, leg.taken, leg.last_score)),
        )
        for leg in why.legs or ()
    )
    columns = ("leg", "place", "score", "taken", "score of the last")
    tables = (Table("Its place in each leg", columns, rows),) if rows else ()
    shown = tuple((name, value) for name, value in figures if value)
    return StageWords("why", 0.0, 0.0, shown, tables)


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


def _analyse(stage: Analyse) -> Iterator[Piece]:
    if stage.language:
        yield "language", stage.language
    if stage.keywords:
        yield "keywords", plain(stage.keywords)
    if stage.searchable is not UNSET:
        of = "" if stage.of is UNSET else f" of {stage.of:,}"
        yield "searchable", f"{stage.searchable:,}{of}"
    if stage.filters:
        rows = tuple((one.filter, f"{one.lets_through:,}") for one in stage.filters)
        yield Table("What each filter alone lets through", ("filter", "memories"), rows)


def _expand(stage: Expand) -> Iterator[Piece]:
    if stage.model:
        yield "model", stage.model
    if stage.skipped:
        yield "skipped", stage.skipped
    usable = f"{len(stage.variants or ()) or 'none'} usable"
    if stage.cached:
        yield "answered before", usable
    elif stage.lines is not UNSET:
        yield "called", f"{stage.lines:,} line{'' if stage.lines == 1 else 's'}, {usable}"
    if stage.sent:
        yield "sent", f"“{stage.sent}”"


def _fetch(stage: Fetch) -> Iterator[Piece]:
    spent = dict(stage.leg_milliseconds or {})
    if not stage.lists:
        return
    rows = [
        (
            list_name(one.leg, one.kind),
            f"{one.found:,}",
            plain(one.best),
            plain(one.last),
            # a leg's time is that of all its lists
            f"{spent.pop(one.leg):.1f}" if one.leg in spent else "",
        )
        for one in stage.lists
    ]
    rows += [(_name(leg), "0", "–", "–", f"{ms:.1f}") for leg, ms in spent.items()]
    yield Table("What each leg found", ("list", "found", "best", "last", "ms"), tuple(rows))


def _fuse(stage: Fuse) -> Iterator[Piece]:
    for name in ("recipe", "k", "candidates", "pool"):
        if getattr(stage, name) is not UNSET:
            yield name, plain(getattr(stage, name))
    if stage.weights and not stage.lists:
        weights = [(name, f"{weight:.3g}") for name, weight in stage.weights.items()]
        yield Table("What each feature counts", ("feature", "weight"), tuple(weights))
    for leg, read in (stage.read or {}).items():
        if read < 1:
            yield f"{_name(leg)} counts", f"{read:.0%}, as far as its model reads the language"
    rows = []
    for one in stage.lists or ():
        named = enumerate(one.factors.items())
        because = [f"{name} {value:g}" for n, (name, value) in named if value != 1 or not n]
        rows.append((list_name(one.leg, one.kind), f"{one.weight:.3g}", " × ".join(because)))
    if rows:
        yield Table("What each list counts", ("list", "weight", "because"), tuple(rows))


def _rerank(stage: Rerank) -> Iterator[Piece]:
    if stage.skipped:
        yield "skipped", stage.skipped
    if stage.how:
        yield "by", stage.how
    if stage.reranked is not UNSET:
        yield "reranked", plain(stage.reranked)
    if stage.reranked and stage.calibrated is not UNSET:
        yield "calibrated", plain(stage.calibrated)


def _adjust(stage: Adjust) -> Iterator[Piece]:
    for name, count in (stage.moved or {}).items():
        yield _STEP_NAMES.get(name, name), f"{count:,} result{'' if count == 1 else 's'}"


# By stage: what is said of it in its own way, and of which fields. Others stand as they are.
_TELLERS: Mapping[type[Stage], tuple[Callable[[Any], Iterator[Piece]], frozenset[str]]] = {
    Analyse: (
        _analyse,
        frozenset({"language", "keywords", "topic_groups", "searchable", "of", "filters"}),
    ),
    Expand: (_expand, frozenset({"model", "cached", "sent", "lines", "skipped"})),
    Fetch: (_fetch, frozenset({"lists", "leg_milliseconds"})),
    Fuse: (_fuse, frozenset(Fuse.__struct_fields__)),
    Rerank: (_rerank, frozenset(Rerank.__struct_fields__)),
    Adjust: (_adjust, frozenset({"moved"})),
}


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
