"""Late interaction: the first few of the pool put into a better order by their words' vectors.

Opt-in (``reranker=maxsim``), for machines without a cross-encoder. It never replaces fusion: what
it finds is blended with fusion's own score, among the first few only. Its scores are no
probabilities, so there are no bands and no score floor, and the cap of unverified scores holds.

Boundary: reads opened text of those few, hands it to the embedding model in this process, keeps
nothing of it. The weights of words come from the sealed index's own document frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.index.terms import document_frequency
from memory_store.models.maxsim import WordWeights, maxsim_scores
from memory_store.records.degraded import Code, Degraded
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.context import SearchContext
from memory_store.search.degraded import out_of_time, shortfall
from memory_store.search.legs.neighbours import neighbours_for
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.plan import Search
from memory_store.search.reranking.cross_encoder import (
    Matchers,
    best_span,
    prepared,
    scaled,
    titled,
)
from memory_store.text.words import words

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

DEPTH = 16  # candidates read: search.md, "MaxSim over the first 16"
# Of the blend that is MaxSim's, the rest is fusion's. Measured (docs/how-to/models.md): above .1
# the demo's notes lose .005; turns of conversations gain up to .8. Where long texts are
# sequential fusion counts a memory's neighbours: there any share loses on Cranfield.
SHARE = 0.1
SHORT_SHARE = 0.5
SHORT = 256  # characters a candidate, on average: about 64 tokens
LEAST_SHARE = 0.02  # below, no place would change
KEPT = Degraded(
    Code.NOT_RERANKED,
    "maxsim: long texts in sequence keep the order of fusion, which counts their neighbours",
)
PASSAGE_CHARACTERS = 1_000  # about 250 tokens: what the model reads of a candidate


class Interacted(Struct, frozen=True):
    """The pool with the candidates read at new places of the order, and how many were read."""

    pool: tuple[Candidate, ...]
    read: int
    degraded: tuple[Degraded, ...] = ()


def interact(
    search: Search,
    pool: Sequence[Candidate],
    first: Sequence[Scored],
    matcher: Matchers,
    embedder: Embedder,
) -> Interacted:
    """Blend fusion with MaxSim among the ``first`` candidates of ``pool``; the rest stays.

    What the plan's deadline cuts off keeps fusion's score.
    Raises :class:`ModelUnavailableError` for a model that has no vectors of tokens.
    """
    text, deadline = search.analysis.parsed.reading, search.plan.reading_deadline
    weights = word_weights(text, search.context)
    texts = [
        titled(one, best_span(text, one, search.recipe, matcher(one), PASSAGE_CHARACTERS))
        for one in prepared(first, deadline)
    ]
    late = _late_share(texts, first, search)
    if texts and late < LEAST_SHARE:
        return Interacted(tuple(pool), 0, (KEPT,))
    raw = maxsim_scores(embedder, text, texts, weights, deadline=deadline)
    read = {o.candidate.ordinal: s for o, s in zip(first, raw, strict=False) if s is not None}
    if not read:
        return Interacted(tuple(pool), 0, (out_of_time(len(first)),) if first else ())
    blended = [c for c in pool if c.ordinal in read]
    shares = blended_shares(blended, read.__getitem__, late)
    shares |= _of_code_in_its_order(blended, shares, search)
    return Interacted(
        tuple(
            one._replace(late_score=read.get(one.ordinal), late_share=shares.get(one.ordinal))
            for one in pool
        ),
        len(read),
        (shortfall(len(read), len(first)),) if len(read) < len(first) else (),
    )


def _late_share(texts: Sequence[str], first: Sequence[Scored], search: Search) -> float:
    """How much of the blend is MaxSim's for candidates such as these: 0 to :data:`SHORT_SHARE`."""
    if not texts or fmean(map(len, texts)) <= SHORT:
        return SHORT_SHARE
    neighbours, codes = neighbours_for(search), search.snapshot.collection_codes
    if neighbours is None:
        return SHARE
    sequential = fmean(neighbours.sequential[codes[one.candidate.ordinal]] for one in first)
    return SHARE * (1.0 - sequential)


def blended_shares(
    read: Sequence[Candidate], score: Callable[[int], float], late: float
) -> dict[int, float]:
    """Ordinal → share: fusion and MaxSim, both standardised, mixed ``1 − late`` to ``late``.

    The mix is stretched over the span of the fusion shares it came from, so that none that was read
    sinks below, or rises above, those whom fusion put below or above all that were read.
    """
    shares = [candidate.share for candidate in read]
    low, high = min(shares), max(shares)
    by_fusion = standardised(shares)
    by_words = standardised([score(candidate.ordinal) for candidate in read])
    mixed = scaled([(1 - late) * f + late * w for f, w in zip(by_fusion, by_words, strict=True)])
    return {c.ordinal: low + (high - low) * mix for c, mix in zip(read, mixed, strict=True)}


def _of_code_in_its_order(
    read: Sequence[Candidate], shares: Mapping[int, float], search: Search
) -> dict[int, float]:
    """The shares of source code handed on in fusion's order, as with a reranking model: words say
    how code stands among notes, and its own recipe which code is first."""
    mask = search.as_code
    code = [one.ordinal for one in read if mask is not None and mask[one.ordinal]]
    return dict(zip(code, sorted((shares[one] for one in code), reverse=True), strict=True))


def standardised(values: Sequence[float]) -> list[float]:
    """Values as standard deviations from their mean; all 0 where they do not differ.

    Not stretched over 0–1 instead: one outlier would push all others together.
    """
    middle = fmean(values)
    spread = pstdev(values, middle)
    return [(value - middle) / spread if spread else 0.0 for value in values]


def word_weights(text: str, context: SearchContext) -> WordWeights:
    """Each word of ``text`` with its inverse document frequency in this vault (Lucene's form)."""
    blinding = Blinding(context)
    found = words(text)
    documents = context.snapshot.total
    weight = {}
    for word in {word.text for word in found}:
        frequency = document_frequency(context.snapshot, blinding.term(word))
        weight[word] = math.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    return [((word.start, word.end), weight[word.text]) for word in found]
