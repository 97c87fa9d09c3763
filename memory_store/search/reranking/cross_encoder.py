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

from memory_store.records.degraded import Degraded
from memory_store.search.adjustments import demotion, ranked
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.degraded import cut_texts, out_of_time, shortfall
from memory_store.search.query.plan import Search
from memory_store.search.query.word_matcher import WordMatcher, densest
from memory_store.search.recipes import Recipe
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
DENSE_CHARACTERS = 400  # the same window in scripts of which models read each letter by itself
WHOLE_CHARACTERS = 25_600  # of one document at most, for recipes that rerank whole documents
LAST_LATIN = "\u024f"  # the end of Latin Extended-B
SHORT_TERM = 2  # characters: terms up to this are not counted (QMD, "Chunk Selection")

Matchers = Callable[[Scored], WordMatcher]
"""From an opened candidate to what finds the query's words in its language."""
Span = tuple[int, int]


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
    degraded: tuple[Degraded, ...] = ()
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


def few(pool: Sequence[Scored]) -> Reranked:
    """Smart skip: synthetic scores from fusion and cosine, every adjustment still to come."""
    scores = (synthetic_score(one.score, one.candidate.vector_score) for one in pool)
    results = [one._replace(score=score) for one, score in zip(pool, scores, strict=True)]
    return Reranked(tuple(ranked(results)), 0, False, False, "few candidates")


def in_fusion_order(candidates: Sequence[Candidate], recipe: Recipe) -> list[Scored]:
    """Fusion's order, for want of a reranker or of text: only what is completed sinks.

    The demotions act on the fusion score, which needs no text; type boosts are in it already.
    A learned score is a probability: demotions are factors of its odds, and nothing caps it.
    """
    types = {candidate.type for candidate in candidates}
    power = 1.0 if recipe.learned else recipe.unverified_demotion
    factors = {one: demotion(one, recipe) ** power for one in types}
    results = []
    for candidate in candidates:
        result = Scored(candidate, candidate.standing, None, candidate.late_score)
        factor = factors[candidate.type]
        if factor != 1.0:
            moved = by_odds(result.score, factor) if recipe.learned else result.score * factor
            result = result.moved("demotion", moved)
        results.append(result)
    if recipe.learned:
        late = "late interaction"
        return [
            one._replace(steps=((late, one.score),)) if one.rerank_score is not None else one
            for one in ranked(results)
        ]
    capped = recipe.unverified_cap < 1.0  # what no model verified is synthetic then
    return [
        result.moved(
            "not verified" if result.candidate.late_score is None else "late interaction",
            synthetic_score(result.score, None) if capped else result.score,
        )
        for result in ranked(results)
    ]


def by_odds(probability: float, factor: float) -> float:
    """A probability (0-1) whose odds are multiplied by ``factor``."""
    if factor == 1.0:
        return probability
    return factor * probability / (1.0 - probability + factor * probability)


def rerank(search: Search, pool: Sequence[Scored], model: Reranker, matcher: Matchers) -> Reranked:
    """Score the first of the pool with ``model``; the rest stays behind them.

    What does not fit before the plan's deadline keeps its place in fusion's order below everything
    that was read, and ``degraded`` says how many were. When not one was, the whole pool is in
    fusion's order.
    """
    text, recipe, plan = search.analysis.parsed.reading, search.recipe, search.plan
    read, deadline = pool[: plan.rerank_depth], plan.reading_deadline
    pieces = [_pieces(text, one, recipe, matcher(one)) for one in prepared(read, deadline)]
    raw = _scores(text, pieces, model, deadline)
    raw += [None] * (len(read) - len(raw))
    scored = [(one, best) for one, best in zip(read, raw, strict=True) if best is not None]
    late = [one for one, best in zip(read, raw, strict=True) if best is None]
    if not scored:
        texts = {one.candidate.ordinal: one.memory for one in pool}
        opened = tuple(
            result._replace(memory=texts[result.candidate.ordinal])
            for result in in_fusion_order([one.candidate for one in pool], recipe)
        )
        note = (out_of_time(len(read)),)
        return Reranked(opened, 0, False, False, "out of time", note, settled=True)
    values = _calibrated([score for _, (score, _) in scored], model)
    readings = [
        one._replace(score=_final(one.candidate, value, recipe), rerank_score=value, passage=span)
        for (one, (_, span)), value in zip(scored, values, strict=True)
    ]
    results = ranked(_code_in_its_order(readings, search))
    lowest, unread = results[-1].score, [*late, *pool[plan.rerank_depth :]]
    behind = [
        one._replace(score=lowest * (1.0 - position / (len(unread) + 1)))
        for position, one in enumerate(unread, start=1)
    ]
    return Reranked(
        (*results, *behind),
        len(scored),
        True,
        model.calibration is not None,
        model.name,
        tuple(_limits([one for one, _ in scored], len(read), recipe)),
    )


def _code_in_its_order(results: Sequence[Scored], search: Search) -> list[Scored]:
    """The results with the scores of code handed on in fusion's order.

    The recipe for source code has no reranker: the model says how code stands among notes.
    """
    mask, found = search.as_code, list(results)
    of_code = [n for n, one in enumerate(found) if mask is not None and mask[one.candidate.ordinal]]
    scores = sorted((found[n].score for n in of_code), reverse=True)
    of_code.sort(key=lambda n: found[n].candidate.fusion_rank)
    for n, score in zip(of_code, scores, strict=True):
        found[n] = found[n].moved("ranked as code", score)
    return found


def _limits(scored: Sequence[Scored], asked: int, recipe: Recipe) -> Iterator[Degraded]:
    """The lines for ``degraded``: what the model did not read, or did not read to the end."""
    if len(scored) < asked:
        yield shortfall(len(scored), asked)
    if recipe.rerank_text == "document":
        cut = sum(len(one.opened.text) > WHOLE_CHARACTERS for one in scored)
        if cut:
            yield cut_texts(cut, WHOLE_CHARACTERS)


def prepared(read: Sequence[Scored], deadline: float | None) -> Iterator[Scored]:
    """The first of ``read`` whose passages can be chosen in half of the time that is left.

    Choosing takes long where texts are long, and time that it uses up is not there for reading.
    """
    until = math.inf if deadline is None else (monotonic() + deadline) / 2
    for opened in read:
        if monotonic() >= until:
            return
        yield opened


def raw_scores(
    text: str, pool: Sequence[Scored], recipe: Recipe, model: Reranker, matcher: Matchers
) -> list[float]:
    """The model's own score of each candidate, read as a search reads it, for calibration."""
    pieces = [_pieces(text, one, recipe, matcher(one)) for one in pool]
    found = _scores(text, pieces, model, None)
    return [0.0 if best is None else best[0] for best in found]


def _final(candidate: Candidate, value: float, recipe: Recipe) -> float:
    if recipe.blending == "replace":
        return value
    rank = candidate.fusion_rank
    fusion = 1.0 / rank if recipe.blend_fusion == "reciprocal" else candidate.share
    return blended(fusion, value, rank)


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
    pieces: Sequence[Sequence[tuple[Span, str]]],
    model: Reranker,
    deadline: float | None,
) -> list[tuple[float, Span] | None]:
    """The best score and its place in the text for each candidate; ``None`` if it was too late."""
    flat = [(index, span, part) for index, parts in enumerate(pieces) for span, part in parts]
    scores = model.score(text, [part for _, _, part in flat], deadline=deadline)
    best: list[tuple[float, Span] | None] = [None] * len(pieces)
    for (index, span, _), score in zip(flat, scores, strict=True):
        known = best[index]
        if score is not None and (known is None or score > known[0]):
            best[index] = (score, span)
    return best


def _pieces(
    query: str, one: Scored, recipe: Recipe, matcher: WordMatcher
) -> list[tuple[Span, str]]:
    """What the model reads of a candidate: spans of its text, each with the title in front."""
    text = one.opened.text
    window = DENSE_CHARACTERS if _is_dense(text) else PASSAGE_CHARACTERS
    if len(text) > window and recipe.rerank_text == "document":
        parts = passages(text[:WHOLE_CHARACTERS], target_tokens=window // 4)
        spans = [(part.start, part.end) for part in parts]
    else:
        width = min(recipe.rerank_characters, PASSAGE_CHARACTERS)
        spans = [best_span(query, one, recipe, matcher, width)]
    return [(span, titled(one, span)) for span in spans]


def _is_dense(text: str) -> bool:
    """Whether most letters at the beginning of a text are of no Latin script."""
    letters = [letter for letter in text[:DENSE_CHARACTERS] if letter.isalpha()]
    return 2 * sum(letter > LAST_LATIN for letter in letters) > len(letters)


def titled(one: Scored, span: Span) -> str:
    """A stretch of a candidate's text with its title in front, as models read it."""
    return f"{one.opened.title}\n{one.opened.text[span[0] : span[1]]}".strip()


def best_span(query: str, one: Scored, recipe: Recipe, matcher: WordMatcher, width: int) -> Span:
    """The stretch of a text, ``width`` characters at most, that answers best.

    By meaning (its best window) or by words: ``chunk_choice`` of the recipe says which is asked
    first, the other is the way out.
    """
    text, window = one.opened.text, one.passage
    if len(text) <= width:
        return 0, len(text)
    if recipe.chunk_choice == "substring":
        return chunk_by_terms(text, query, width)
    by_meaning = window is not None and recipe.chunk_choice == "vector"
    by_words = None if by_meaning else densest(matcher.hits(text), width)
    if window is not None and by_words is None:
        middle = (window[0] + window[1]) // 2
        return around(text, middle - width // 2, width)
    return around(text, (by_words or 0) - width // 8, width)


def around(text: str, start: int, width: int) -> Span:
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


def chunk_terms(query: str) -> tuple[str, ...]:
    """The terms of a query that are counted: what stands between blanks, longer than two."""
    return tuple(term for term in query.lower().split() if len(term) > SHORT_TERM)


def best_chunk(chunks: Sequence[str], terms: Sequence[str]) -> int:
    """The number of the chunk that holds most of ``terms``, anywhere, even within words.

    A term counts once however often it stands there. The first of equals wins, so that it is the
    first chunk where no term is found at all.
    """
    held = [sum(term in chunk.lower() for term in terms) for chunk in chunks]
    return held.index(max(held))


def chunk_by_terms(text: str, query: str, characters: int) -> Span:
    """The span of the best chunk of ``text`` for ``query``, chunks being ``characters`` long.

    They do not overlap by more than passages do (15 %), and are as long as the reranker reads, so
    that nothing of the chosen one is cut off.
    """
    spans = passages(text, target_tokens=characters // 4)
    chosen = spans[best_chunk([text[start:end] for start, end in spans], chunk_terms(query))]
    return chosen.start, chosen.end
