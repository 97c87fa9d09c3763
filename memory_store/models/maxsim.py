"""Late interaction: each word of a query looks for its best counterpart in a passage (MaxSim).

The embedding model's token vectors are compared before they are pooled, as ColBERT does (Khattab
and Zaharia 2020), with a model that was not trained for it: good for the order of a few
candidates beside another score, not for a score that means something by itself.

Boundary: query and passages are opened text. They are handed to a model in this process, kept
by nothing here and never logged. Word weights come from the caller; nothing is counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memory_store.configuration import chosen
from memory_store.models.time_limit import batches_in_time
from memory_store.paths import RERANKER_VARIABLE

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.models.token_vectors import TokenVectors

NAME = "maxsim"  # what an asker calls it; no model of that name exists
MAX_TOKENS = 256  # of a passage: what sentence models were trained on; cost grows with it
BATCH_SIZE = 8  # measures.md: 8-16 sorted by length; the smaller, the finer a deadline cuts

Span = tuple[int, int]
WordWeights = Sequence[tuple[Span, float]]
"""Character spans of a query's words, each with its weight (0 and above)."""


def asks_for_maxsim(reranker: str | None) -> bool:
    """Whether that reranker, or without one the environment's, is this one."""
    return (reranker or chosen(RERANKER_VARIABLE)) == NAME


def maxsim_scores(
    embedder: Embedder,
    query: str,
    passages: Sequence[str],
    weights: WordWeights,
    *,
    deadline: float | None = None,
) -> list[float | None]:
    """How well each passage answers the words of ``query``: a weighted mean of cosines.

    ``deadline`` is a :func:`time.monotonic` moment; passages that did not fit before it get
    ``None``. Raises :class:`ModelUnavailableError` for a model without token vectors.
    """
    asked = embedder.token_vectors([query])[0] if passages else None
    clean = [_cut(embedder, passage) for passage in passages]
    distinct = list(dict.fromkeys(clean))
    scores: dict[str, float] = {}
    for batch in batches_in_time([len(p) + 1 for p in distinct], BATCH_SIZE, deadline):
        assert asked is not None
        read = embedder.token_vectors([distinct[place] for place in batch])
        for place, passage in zip(batch, read, strict=True):
            scores[distinct[place]] = maxsim(asked, passage, weights)
    return [scores.get(passage) for passage in clean]


def maxsim(query: TokenVectors, passage: TokenVectors, weights: WordWeights) -> float:
    """Σ weight · best cosine among the passage's tokens ÷ Σ weight, over the query's tokens."""
    shares = token_weights(query.offsets, weights)
    if not shares.any() or not len(passage.vectors):
        return 0.0
    best = (query.vectors @ passage.vectors.T).max(axis=1)
    return float((shares * best).sum() / shares.sum())


def token_weights(offsets: Sequence[Span], weights: WordWeights) -> NDArray[np.float64]:
    """The weight of each token: of the weightiest word it is part of, 0 between words."""
    return np.array(
        [
            max((w for (s, e), w in weights if s < end and start < e), default=0.0)
            for start, end in offsets
        ]
    )


def _cut(embedder: Embedder, passage: str) -> str:
    """The first :data:`MAX_TOKENS` tokens, where the model itself would read further."""
    if embedder.max_tokens <= MAX_TOKENS:
        return passage
    offsets = embedder.token_offsets(passage)
    return passage[: offsets[MAX_TOKENS - 1][1]] if len(offsets) > MAX_TOKENS else passage
