"""The numbers of learned fusion: what a feature of a memory counts for, and what the sum means."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class FusionNumbers(Struct, frozen=True):
    """The numbers for one embedding model.

    A candidate's score is the sum of ``weights`` (by the feature's name) × its features. Its
    probability is 1 ÷ (1 + e^−x), x = ``slope`` × score + ``intercept``. Where vectors say nothing,
    words alone make the score, which is lower for as good an answer and tells more: ``unread`` and
    ``unread_slope`` × score are added there, both × (1 − readability). One that stands out among
    the candidates is the answer more often: added is ``ahead``, and ``unread_ahead`` ×
    (1 − readability), × how far its score lies above the best of the others, or below.
    """

    weights: Mapping[str, float]
    slope: float
    intercept: float
    unread: float
    unread_slope: float = 0.0
    ahead: float = 0.0
    unread_ahead: float = 0.0


class FittedFusion(Struct, frozen=True):
    """Numbers that were fitted to judgements of a vault's own, for the model of that name.

    ``queries`` were judged; ``before`` and ``after`` are the nDCG@10 of queries that were left out
    of the fit, by the numbers until then and by fitted ones. ``day`` is when (ISO 8601).
    """

    model: str
    numbers: FusionNumbers
    queries: int
    before: float
    after: float
    day: str
