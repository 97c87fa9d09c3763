"""Runs: every judged query ranked in each of several ways, measured and held against the first.

Memories that hold the same text are one: a search returns one of them, so a judgement of either is
met by whichever was returned, and where both were judged the higher grade counts once.

Boundary: what is ranked are ids; of the vault's content, refs alone pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.evaluation.judgements import Judgements
from memory_store.evaluation.measures import MEASURES
from memory_store.evaluation.statistics import Comparison, Estimate, Values, compare, estimate
from memory_store.records import Ranking, Reference
from memory_store.search.recipes import recipe_named

DEFAULT_DEPTH = 100
LEAST_DEPTH, MOST_DEPTH = 10, 1_000  # the shallowest measure; and a ranking, not a dump

Options = Mapping[str, Any]
"""Keywords of ``MemoryStore.search``."""
Progress = Callable[[str, int, int | None], None]
Unit = int | str
"""What a judgement is about: a content of the vault, or a ref that nothing in it has."""


class Rankable(Protocol):
    """What can be evaluated: a ``MemoryStore``, or what ranks like one."""

    def rank(self, query: str, *, depth: int = ..., **options: Any) -> Ranking:
        """The order to ``depth``."""
        ...

    def references(self) -> Sequence[Reference]:
        """Every memory that may be ranked."""
        ...


class RankedMemory(Struct, frozen=True):
    """One place of a ranking. ``ref`` is what the judgements call the memory, where they do."""

    ref: str
    id: str
    score: float


class RunResult(Struct, frozen=True, eq=False):
    """One run over all measured queries.

    ``values`` (measure → one value per query) are in the order of :attr:`Evaluation.queries`.
    ``pool`` is the largest pool of any query, ``opened`` and ``reranked`` count memories over all
    queries. ``degraded`` says what was missing.
    """

    name: str
    options: Options
    rankings: Mapping[str, tuple[RankedMemory, ...]]
    values: Mapping[str, Values]
    pool: int
    opened: int
    reranked: int
    degraded: tuple[str, ...]

    def estimate(self, measure: str) -> Estimate:
        """The mean of a measure and its interval."""
        return estimate(self.values[measure])


class Loss(Struct, frozen=True):
    """A query on which a run does worse than the first one: the values of both."""

    query: str
    baseline: float
    value: float


class Evaluation(Struct, frozen=True, eq=False):
    """All runs over the same queries; the first is what the others are held against.

    ``queries`` are those with something relevant judged. ``textless`` of them were judged but not
    asked, and count 0. ``unknown_refs`` are judged refs that the vault has nothing for: they
    count as not found. ``shared_refs`` are judged refs of several memories, which all count.
    """

    runs: tuple[RunResult, ...]
    queries: tuple[str, ...]
    memories: int
    depth: int
    textless: tuple[str, ...] = ()
    unknown_refs: tuple[str, ...] = ()
    shared_refs: tuple[str, ...] = ()

    @property
    def baseline(self) -> RunResult:
        """The run that the others are held against."""
        return self.runs[0]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that ``depth`` is deep enough for."""
        return _measures(self.depth)

    def run(self, name: str) -> RunResult:
        """The run of that name. Raises KeyError."""
        return {run.name: run for run in self.runs}[name]

    def comparison(self, name: str, measure: str) -> Comparison:
        """A run against the first one, query by query."""
        return compare(self.run(name).values[measure], self.baseline.values[measure])

    def losses(self, name: str, count: int, measure: str = "ndcg@10") -> tuple[Loss, ...]:
        """The ``count`` queries on which a run loses most against the first one."""
        pairs = zip(self.baseline.values[measure], self.run(name).values[measure], strict=True)
        losses = [
            Loss(query, float(before), float(after))
            for query, (before, after) in zip(self.queries, pairs, strict=True)
            if after < before
        ]
        return tuple(sorted(losses, key=lambda loss: (loss.value - loss.baseline, loss.query)))[
            :count
        ]


def evaluate(
    store: Rankable,
    queries: Mapping[str, str],
    judgements: Judgements,
    runs: Mapping[str, Options],
    *,
    depth: int = DEFAULT_DEPTH,
    progress: Progress | None = None,
) -> Evaluation:
    """Rank every judged query in each of ``runs`` (name → keywords of ``search``) and measure.

    Queries without a relevant judgement are left out, as by trec_eval. Raises BadInputError for
    an unknown recipe, for judgements that fit no query, and for a query that no search takes,
    naming its id; what the vault and a missing model raise passes through.
    """
    if not LEAST_DEPTH <= depth <= MOST_DEPTH:
        raise BadInputError(f"depth: must be from {LEAST_DEPTH} to {MOST_DEPTH:,}", "depth")
    for options in runs.values():
        recipe_named(str(options.get("recipe", "default")))
    if not queries:
        raise BadInputError("queries: there is no query in it", "queries")
    relevant = {
        query: grades for query, grades in judgements.items() if any(g > 0 for g in grades.values())
    }
    asked = {query: queries[query] for query in relevant if query in queries}
    if not asked:
        raise BadInputError("qrels: no query here has something relevant judged", "qrels")
    catalogue = Catalogue(store.references())
    results = []
    for place, (name, options) in enumerate(runs.items()):
        found: dict[str, Ranking] = {}
        for done, (query, text) in enumerate(asked.items(), start=place * len(asked)):
            if progress is not None:
                progress(name, done, len(runs) * len(asked))
            try:
                found[query] = store.rank(text, depth=depth, **options)
            except BadInputError as error:
                raise BadInputError(f"query {query!r}: {error}", error.parameter) from error
        results.append(_result(name, options, found, relevant, catalogue, depth))
    names = dict.fromkeys(ref for grades in relevant.values() for ref in grades)
    return Evaluation(
        runs=tuple(results),
        queries=tuple(relevant),
        memories=catalogue.memories,
        depth=depth,
        textless=tuple(query for query in relevant if query not in queries),
        unknown_refs=tuple(name for name in names if not catalogue.contents(name)),
        shared_refs=tuple(name for name in names if len(catalogue.contents(name)) > 1),
    )


class Catalogue:
    """What judgements call memories, and which contents those are.

    ``by_id`` are the memories, ``ids`` those that a ref or an id names.
    """

    def __init__(self, references: Iterable[Reference]) -> None:
        self.by_id = {one.id: one for one in references}
        self.ids: dict[str, list[str]] = {}
        for one in self.by_id.values():
            for name in {one.id, one.ref or one.id}:
                self.ids.setdefault(name, []).append(one.id)

    @property
    def memories(self) -> int:
        """How many there are."""
        return len(self.by_id)

    def contents(self, name: str) -> set[int]:
        """The contents of the memories with that ref or id."""
        return {self.by_id[id_].content for id_ in self.ids.get(name, ())}

    def judged(self, grades: Mapping[str, int]) -> dict[Unit, int]:
        """Grades by content: each at the highest that any of its names was given."""
        units: dict[Unit, int] = {}
        for name, grade in grades.items():
            for unit in self.contents(name) or (name,):
                units[unit] = max(grade, units.get(unit, grade))
        return units

    def units(self, ids: Iterable[str]) -> list[Unit]:
        """The contents of ranked memories."""
        return [self.by_id[id_].content if id_ in self.by_id else id_ for id_ in ids]

    def named(self, ranking: Ranking, grades: Mapping[str, int]) -> tuple[RankedMemory, ...]:
        """A ranking under the names that ``grades`` use, each name once."""
        judged: dict[int, list[str]] = {}
        for name in grades:
            for content in self.contents(name):
                judged.setdefault(content, []).append(name)
        taken: set[str] = set()
        named = []
        for id_, score in ranking.results:
            known = self.by_id.get(id_)
            names = _names(known, judged.get(known.content, ()), grades) if known else ()
            ref = next((name for name in names if name not in taken), id_)
            taken.add(ref)
            named.append(RankedMemory(ref, id_, score))
        return tuple(named)


def _names(memory: Reference, judged: Sequence[str], grades: Mapping[str, int]) -> tuple[str, ...]:
    """What a memory may be called: the judged names, its own or a twin's, then its own ref."""
    own = () if memory.ref is None else (memory.ref,)
    if not judged:
        return own
    best_first = sorted(
        judged, key=lambda name: (-grades[name], name not in (memory.ref, memory.id), name)
    )
    return (*best_first, *own)


def _result(
    name: str,
    options: Options,
    found: Mapping[str, Ranking],
    judgements: Judgements,
    catalogue: Catalogue,
    depth: int,
) -> RunResult:
    """A run: every measure of every judged query; one that was not asked found nothing."""
    pairs = []
    for query, grades in judgements.items():
        results = found[query].results if query in found else ()
        pairs.append((catalogue.units(id_ for id_, _ in results), catalogue.judged(grades)))
    values = {
        one: np.array([MEASURES[one](*pair) for pair in pairs], dtype=np.float64)
        for one in _measures(depth)
    }
    named = {query: catalogue.named(one, judgements[query]) for query, one in found.items()}
    return RunResult(
        name=name,
        options=options,
        rankings=named,
        values=values,
        pool=max(one.pool for one in found.values()),
        opened=sum(one.opened for one in found.values()),
        reranked=sum(one.reranked for one in found.values()),
        degraded=tuple(dict.fromkeys(line for one in found.values() for line in one.degraded)),
    )


def _measures(depth: int) -> tuple[str, ...]:
    return tuple(name for name, one in MEASURES.items() if one.depth <= depth)
