"""Reranking: a cross-encoder reads query and text together and says how well they fit.

Also what happens without one: a search with few candidates skips it, and a machine without a
model keeps the order of fusion; both give scores that never look like verified ones.

Boundary: reads opened text, hands it to a model in this process, keeps nothing of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.search.adjustments import Scored, demotion, ranked
from memory_store.search.candidates import Candidate
from memory_store.search.degraded import out_of_time, shortfall
from memory_store.search.opening import Opened
from memory_store.search.query.word_matcher import WordMatcher
from memory_store.search.recipes import Recipe
from memory_store.search.reranking.chunk_choice import chunk_by_terms
from memory_store.text.chunks import passages

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker

SIGMOID_CENTRE = 0.4  # Gnosis, "Smart Skip"
SIGMOID_SLOPE = 10.0  # ours: .18 at a quarter of the centre's way up, .98 at a share of .8
SYNTHETIC_LOW = 0.40  # Gnosis, "Smart Skip": calibrated scores in the 0.40–0.70 range
SYNTHETIC_HIGH = 0.70
BLEND_BANDS = ((3, 0.75), (10, 0.60))  # GNO and QMD: fusion's share at ranks 1–3 and 4–10
BLEND_REST = 0.40  # and from rank 11
PASSAGE_CHARACTERS = 1_600  # about 400 tokens: with the query it fits a window of 512
MAX_PIECES = 16  # of one document, for recipes that rerank whole documents


class Reranked(Struct, frozen=True):
    """What the stage made of the opened pool.

    ``reranked`` is how many a model read; ``verified`` whether scores are a model's at all,
    ``calibrated`` whether they mean the same for every query; ``why`` says which way was taken.
    What is ``settled`` is fusion's own order, which no adjustment may touch.
    """

    results: tuple[Scored, ...]
    reranked: int
    verified: bool
    calibrated: bool
    why: str
    degraded: tuple[str, ...] = ()
    settled: bool = False


def sigmoid(share: float) -> float:
    """The curve of synthetic scores: 0.5 where ``share`` is 0.4."""
    return 1.0 / (1.0 + math.exp(-SIGMOID_SLOPE * (share - SIGMOID_CENTRE)))


def synthetic_score(share: float, cosine: float | None) -> float:
    """A score within 0.40–0.70 for what no reranker read.

    ``share`` is the fusion score as a share of the best possible; ``cosine`` modulates it where
    the memory was found by vector (as a factor (1 + cosine) ÷ 2), and is ``None`` elsewhere.
    """
    factor = 1.0 if cosine is None else (1.0 + max(-1.0, min(cosine, 1.0))) / 2.0
    return SYNTHETIC_LOW + (SYNTHETIC_HIGH - SYNTHETIC_LOW) * sigmoid(share) * factor


def blended(fusion: float, rerank: float, rank: int) -> float:
    """Position-aware blending: the higher a memory stood after fusion, the more that counts."""
    share = next((share for last, share in BLEND_BANDS if rank <= last), BLEND_REST)
    return share * fusion + (1.0 - share) * rerank


def skips_reranker(candidates: int, recipe: Recipe, deep: bool) -> bool:
    """Whether so few candidates are left that all can be returned; deep search never skips."""
    return not deep and candidates < recipe.skip_below


def few(pool: Sequence[Opened]) -> Reranked:
    """Smart skip: synthetic scores from fusion and cosine, every adjustment still to come."""
    results = [
        Scored(o.candidate, synthetic_score(o.candidate.share, o.candidate.vector_score), o.memory)
        for o in pool
    ]
    return Reranked(tuple(ranked(results)), 0, False, False, "few candidates")


def in_fusion_order(candidates: Sequence[Candidate], recipe: Recipe) -> list[Scored]:
    """Fusion's order, for want of a reranker or of text: only what is completed sinks.

    The demotions act on the fusion score, which needs no text; type boosts are in it already.
    """
    types = {candidate.type for candidate in candidates}
    factors = {one: demotion(one, recipe) ** recipe.unverified_demotion for one in types}
    results = []
    for candidate in candidates:
        result = Scored(candidate, candidate.standing, rerank_score=candidate.late_score)
        results.append(result.moved("demotion", result.score * factors[candidate.type]))
    return [
        result.moved(_unverified_by(result.candidate), _unverified(result.score, recipe))
        for result in ranked(results)
    ]


def _unverified_by(candidate: Candidate) -> str:
    """The step that gives a score no cross-encoder vouches for."""
    return "not verified" if candidate.late_score is None else "late interaction"


def rerank(
    text: str,
    pool: Sequence[Opened],
    recipe: Recipe,
    model: Reranker,
    matcher: Callable[[Opened], WordMatcher],
    *,
    depth: int,
    deadline: float | None = None,
) -> Reranked:
    """Score the first ``depth`` of the pool with ``model``; the rest stays behind them.

    ``deadline`` is on :func:`time.monotonic`'s clock: what does not fit before it keeps its place
    in fusion's order below everything that was read, and ``degraded`` says how many were. When
    not one was, the whole pool is in fusion's order.
    """
    read, rest = pool[:depth], pool[depth:]
    pieces = [_pieces(text, opened, recipe, matcher(opened)) for opened in prepared(read, deadline)]
    raw = _scores(text, pieces, model, deadline)
    raw += [None] * (len(read) - len(raw))
    scored = [(o, best) for o, best in zip(read, raw, strict=True) if best is not None]
    late = [o for o, best in zip(read, raw, strict=True) if best is None]
    if not scored:
        results = in_fusion_order([o.candidate for o in pool], recipe)
        texts = {o.candidate.ordinal: o.memory for o in pool}
        opened = tuple(result.opened(texts[result.candidate.ordinal]) for result in results)
        note = (out_of_time(len(read)),)
        return Reranked(opened, 0, False, False, "out of time", note, settled=True)
    values = _calibrated([score for _, (score, _) in scored], model)
    results = [
        Scored(
            o.candidate,
            _final(o.candidate, value, recipe),
            o.memory,
            rerank_score=value,
            passage=span,
        )
        for (o, (_, span)), value in zip(scored, values, strict=True)
    ]
    results = ranked(results) + _behind(results, [*late, *rest])
    return Reranked(
        tuple(results),
        len(scored),
        True,
        model.calibration is not None,
        model.name,
        (shortfall(len(scored), len(read)),) if late else (),
    )


def prepared(read: Sequence[Opened], deadline: float | None) -> Iterator[Opened]:
    """The first of ``read`` whose passages can be chosen in half of the time that is left.

    Choosing takes long where texts are long, and time that it uses up is not there for reading.
    """
    until = math.inf if deadline is None else (monotonic() + deadline) / 2
    for opened in read:
        if monotonic() >= until:
            return
        yield opened


def raw_scores(
    text: str,
    pool: Sequence[Opened],
    recipe: Recipe,
    model: Reranker,
    matcher: Callable[[Opened], WordMatcher],
) -> list[float]:
    """The model's own score of each candidate, read as a search reads it, for calibration."""
    pieces = [_pieces(text, opened, recipe, matcher(opened)) for opened in pool]
    found = _scores(text, pieces, model, None)
    return [0.0 if best is None else best[0] for best in found]


def _unverified(share: float, recipe: Recipe) -> float:
    """Synthetic where the recipe caps what no model verified, else the fusion score as it is."""
    return synthetic_score(share, None) if recipe.unverified_cap < 1.0 else share


def _final(candidate: Candidate, value: float, recipe: Recipe) -> float:
    if recipe.blending == "replace":
        return value
    rank = candidate.fusion_rank
    fusion = 1.0 / rank if recipe.blend_fusion == "reciprocal" else candidate.share
    return blended(fusion, value, rank)


def _behind(results: Sequence[Scored], unread: Sequence[Opened]) -> list[Scored]:
    """What was not read, in fusion's order, below the lowest score that was."""
    lowest = min(result.score for result in results)
    return [
        Scored(o.candidate, lowest * (1.0 - position / (len(unread) + 1)), o.memory)
        for position, o in enumerate(unread, start=1)
    ]


def _calibrated(raw: Sequence[float], model: Reranker) -> list[float]:
    """Raw scores as 0–1: by the model's calibration, else stretched per query."""
    calibration = model.calibration  # each look at it asks for the file of fitted ones
    if calibration is not None:
        return [float(min(1.0, max(0.0, calibration(score)))) for score in raw]
    return scaled(raw)


def scaled(values: Sequence[float]) -> list[float]:
    """Values stretched over 0–1; all 1 where they do not differ."""
    low, high = min(values), max(values)
    if high == low:
        return [1.0 for _ in values]
    return [(value - low) / (high - low) for value in values]


def _scores(
    text: str,
    pieces: Sequence[Sequence[tuple[tuple[int, int], str]]],
    model: Reranker,
    deadline: float | None,
) -> list[tuple[float, tuple[int, int]] | None]:
    """The best score and its place in the text for each candidate; ``None`` if it was too late."""
    flat = [(index, span, part) for index, parts in enumerate(pieces) for span, part in parts]
    scores = model.score(text, [part for _, _, part in flat], deadline=deadline)
    best: list[tuple[float, tuple[int, int]] | None] = [None] * len(pieces)
    for (index, span, _), score in zip(flat, scores, strict=True):
        known = best[index]
        if score is not None and (known is None or score > known[0]):
            best[index] = (score, span)
    return best


def _pieces(
    query: str, opened: Opened, recipe: Recipe, matcher: WordMatcher
) -> list[tuple[tuple[int, int], str]]:
    """What the model reads of a candidate: spans of its text, each with the title in front."""
    text = opened.memory.text
    if len(text) > PASSAGE_CHARACTERS and recipe.rerank_text == "document":
        parts = passages(text, target_tokens=PASSAGE_CHARACTERS // 4)
        spans = [(part.start, part.end) for part in parts[:MAX_PIECES]]
    else:
        width = min(recipe.rerank_characters, PASSAGE_CHARACTERS)
        spans = [best_span(query, opened, recipe, matcher, width)]
    return [(span, titled(opened, span)) for span in spans]


def titled(opened: Opened, span: tuple[int, int]) -> str:
    """A stretch of a candidate's text with its title in front, as models read it."""
    return f"{opened.memory.title}\n{opened.memory.text[span[0] : span[1]]}".strip()


def best_span(
    query: str,
    opened: Opened,
    recipe: Recipe,
    matcher: WordMatcher,
    width: int,
) -> tuple[int, int]:
    """The stretch of a text, ``width`` characters at most, that answers best.

    By meaning (its best window) or by words: ``chunk_choice`` of the recipe says which is asked
    first, the other is the way out.
    """
    text, window = opened.memory.text, opened.candidate.window
    if len(text) <= width:
        return 0, len(text)
    if recipe.chunk_choice == "substring":
        return chunk_by_terms(text, query, width)
    by_meaning = window is not None and recipe.chunk_choice == "vector"
    by_words = None if by_meaning else matcher.densest(text, width)
    if window is not None and by_words is None:
        middle = (window[0] + window[1]) // 2
        return around(text, middle - width // 2, width)
    return around(text, (by_words or 0) - width // 8, width)


def around(text: str, start: int, width: int) -> tuple[int, int]:
    """A span of at most ``width`` characters near ``start`` that cuts no word."""
    start = max(0, min(start, len(text) - width))
    end = min(len(text), start + width)
    if start > 0:
        space = text.find(" ", start, start + width // 8)
        start = start if space < 0 else space + 1
    if end < len(text):
        space = text.rfind(" ", end - width // 8, end)
        end = end if space < 0 else space
    return start, end
