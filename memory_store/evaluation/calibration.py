"""Fitting a reranker's calibration to judgements of the vault's own.

Each judged query gives pairs of query and memory: those that were judged, and some that fusion
finds for it and that have no judgement, which count as irrelevant. The model reads them as a search
would.

Boundary: opens the memories of these pairs, hands them to the model in this process and keeps
nothing of them. What is stored in the end are a model's name and numbers.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.evaluation.judgements import Judgements
from memory_store.evaluation.runs import Catalogue, Progress
from memory_store.models.calibration import Bin, Calibration, Fitted, fit, log_loss, reliability
from memory_store.models.maxsim import asks_for_maxsim
from memory_store.records import search_request
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.opening import Opening
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse
from memory_store.search.query.word_matcher import WordMatcher
from memory_store.search.recipes import DEFAULT
from memory_store.search.reranking.cross_encoder import raw_scores

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker
    from memory_store.store import MemoryStore

POOL = 64  # as deep as a standard search lets the model read
SAMPLED = 12  # of the pool for each query, evenly from first to last
MOST_JUDGED = 64  # pairs of one query, so that none outweighs all others
FOLDS = 5


class Pair(Struct, frozen=True):
    """One query and one memory as the model read them: its ``raw`` score, and the truth."""

    query: int
    raw: float
    relevant: bool
    judged: bool


class CalibrationReport(Struct, frozen=True):
    """A fit, and what it is worth.

    ``before`` is the calibration until now, if there is one; without, the losses are those of the
    raw scores. ``loss`` and ``bins`` are of ``folds`` parts of the queries, each scored by a curve
    fitted to the others; with 1 there were too few and the fit judges itself.
    """

    fitted: Fitted
    before: Calibration | None
    queries: int
    judged: int
    loss_before: float
    loss: float
    bins: tuple[Bin, ...]
    folds: int
    unknown_refs: tuple[str, ...]


def calibrate(
    store: MemoryStore,
    queries: Mapping[str, str],
    judgements: Judgements,
    reranker: str | None = None,
    *,
    progress: Progress | None = None,
) -> CalibrationReport:
    """Fit the curve of a reranker; store it with :func:`calibration.store_fitted`.

    Raises :class:`ModelUnavailableError` without the model, and :class:`BadInputError` where the
    judgements do not suffice, or the scores of the model do not follow them.
    """
    if asks_for_maxsim(reranker):
        raise BadInputError("reranker: maxsim has no score that could be calibrated", "reranker")
    model = store.search_context().reranker(reranker)
    catalogue = Catalogue(store.references())
    pairs = list(_Task(store, model, queries, judgements, catalogue).pairs(progress))
    raw, relevant = [pair.raw for pair in pairs], [pair.relevant for pair in pairs]
    curve, before = fit(raw, relevant), model.calibration
    named = {ref for grades in judgements.values() for ref in grades}
    scores, folds = _held_out(pairs, curve)
    fitted = Fitted(
        model=model.name,
        fingerprint=model.fingerprint,
        centre=round(curve.centre, 6),
        slope=round(curve.slope, 6),
        pairs=len(pairs),
        relevant=sum(relevant),
        fitted=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    return CalibrationReport(
        fitted=fitted,
        before=before if isinstance(before, Calibration) else None,
        queries=len({pair.query for pair in pairs}),
        judged=sum(pair.judged for pair in pairs),
        loss_before=log_loss([before(x) for x in raw] if before else raw, relevant),
        loss=log_loss(scores, relevant),
        bins=tuple(reliability(scores, relevant)),
        folds=folds,
        unknown_refs=tuple(sorted(named - catalogue.ids.keys())),
    )


def _held_out(pairs: Sequence[Pair], curve: Calibration) -> tuple[list[float], int]:
    """The score of each pair by a curve fitted to other queries, and into how many parts."""
    scores = [0.0] * len(pairs)
    try:
        for fold in range(FOLDS):
            others = [pair for pair in pairs if pair.query % FOLDS != fold]
            other = fit([pair.raw for pair in others], [pair.relevant for pair in others])
            for place, pair in enumerate(pairs):
                if pair.query % FOLDS == fold:
                    scores[place] = other(pair.raw)
    except BadInputError:  # four fifths of the judgements are too few
        return [curve(pair.raw) for pair in pairs], 1
    return scores, FOLDS


def evenly(ids: Sequence[str], most: int) -> list[str]:
    """At most ``most`` (two or more) of some ids in their order, the first and the last among
    them, and as far apart as can be."""
    if len(ids) <= most:
        return list(ids)
    last = len(ids) - 1
    return [ids[round(place * last / (most - 1))] for place in range(most)]


class _Task(Struct, frozen=True):
    """Which pairs the model reads, and the reading of them."""

    store: MemoryStore
    model: Reranker
    queries: Mapping[str, str]
    judgements: Judgements
    catalogue: Catalogue

    def pairs(self, progress: Progress | None) -> Iterator[Pair]:
        """The pairs of every query that has something relevant in this vault."""
        asked = [query for query in self.judgements if query in self.queries]
        for number, query in enumerate(asked):
            if progress is not None:
                progress(self.model.name, number, len(asked))
            chosen = self._chosen(self.queries[query], self.judgements[query])
            if any(relevant for relevant, _ in chosen.values()):
                for id_, score in self._read(self.queries[query], list(chosen)):
                    yield Pair(number, score, *chosen[id_])

    def _chosen(self, text: str, grades: Mapping[str, int]) -> dict[str, tuple[bool, bool]]:
        """Memory id → whether it is relevant, and whether a judgement says so."""
        ids, by_id = self.catalogue.ids, self.catalogue.by_id
        judged = {id_: grade > 0 for ref, grade in grades.items() for id_ in ids.get(ref, ())}
        first = sorted(judged, key=lambda id_: not judged[id_])[:MOST_JUDGED]
        known = {by_id[id_].content for id_ in judged}
        ranking = self.store.rank(text, depth=POOL, rerank=False)
        others = [id_ for id_, _ in ranking.results if by_id[id_].content not in known]
        chosen = {id_: (judged[id_], True) for id_ in first}
        return chosen | dict.fromkeys(evenly(others, SAMPLED), (False, False))

    def _read(self, text: str, ids: Sequence[str]) -> Iterator[tuple[str, float]]:
        """The model's raw score of each memory."""
        request, context = search_request(text), self.store.search_context()
        analysis, snapshot = analyse(parse(request), context, request), context.snapshot
        places = {o: id_ for id_ in ids if (o := snapshot.ordinal_of(id_)) is not None}
        ranked = [Candidate(o, id_, "", 0.0, n) for n, (o, id_) in enumerate(places.items(), 1)]
        opened = Opening(context).open(ranked)

        def matcher(one: Scored) -> WordMatcher:
            return WordMatcher(analysis.keywords, (), snapshot.language(one.candidate.ordinal))

        found = raw_scores(analysis.parsed.reading, opened, DEFAULT, self.model, matcher)
        yield from zip((one.candidate.id for one in opened), found, strict=True)
