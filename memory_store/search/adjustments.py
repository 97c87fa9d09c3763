"""After the reranker: boosts, demotions, the keyword floor, the score floor.

Order: type boosts, demotions and done penalty, keyword floor, score floor. Results are sorted
again after each group. Every change is recorded by name, so that a score can be explained.

Boundary: reads opened text (for the keyword floor) and keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory_store.records import DONE_SUFFIX, base_type
from memory_store.records.searches import WEAK
from memory_store.search.candidates import Scored
from memory_store.search.recipes import Recipe
from memory_store.search.trace import Trace


def adjust(
    results: Sequence[Scored],
    recipe: Recipe,
    *,
    literal_share: Callable[[Scored], float],
    calibrated: bool,
    verified: bool,
    trace: Trace | None = None,
) -> list[Scored]:
    """All adjustments, best first.

    ``literal_share`` gives the share of the query's words that stand in a memory as whole words.
    The score floor applies only to ``calibrated`` scores, and to nothing that the reranker had no
    time to read; scores that no reranker ``verified`` end at the recipe's cap. ``trace`` notes
    the order after each group.
    """
    trace = trace or Trace()
    results = ranked([_boosted(result, recipe) for result in results])
    trace.order("type boosts", results)
    results = ranked([_demoted(result, recipe) for result in results])
    trace.order("demotions", results)
    if recipe.keyword_floor:
        results = ranked([_floored(result, recipe, literal_share) for result in results])
        trace.order("keyword floor", results)
    if not verified:
        return [r.moved("not verified", min(r.score, recipe.unverified_cap)) for r in results]
    if calibrated:
        floor = recipe.score_floor
        results = [r for r in results if r.score >= floor or r.rerank_score is None]
        trace.order("score floor", results)
    return normalised(results) if recipe.normalise else results


def ranked(results: Sequence[Scored]) -> list[Scored]:
    """Best first; equal scores keep the order they came in."""
    return sorted(results, key=lambda result: -result.score)


def demotion(type_: str, recipe: Recipe) -> float:
    """The factor on a memory for what it is: a task's result, something completed, or both."""
    factor = recipe.demotions.get(base_type(type_), 1.0)
    return factor * recipe.done_penalty if type_.endswith(DONE_SUFFIX) else factor


def band(score: float, calibrated: bool, recipe: Recipe) -> str | None:
    """``excellent`` and ``good`` from where the recipe says, else ``weak``; ``None`` without
    calibration."""
    if not calibrated:
        return None
    if score >= recipe.excellent:
        return "excellent"
    return "good" if score >= recipe.good else WEAK


def normalised(results: Sequence[Scored]) -> list[Scored]:
    """Scores stretched over [0, 1] per query (GNO, "Score Normalization"); one alone gets 1.

    The range is that of the scores a model gave: what it did not read stands at 0 below them, so
    that scores do not depend on how much of that was opened.
    """
    read = [r.score for r in results if r.rerank_score is not None] or [r.score for r in results]
    if not read:
        return []
    low, high = min(read), max(read)
    return [result.moved("normalised", _on_range(result.score, low, high)) for result in results]


def _on_range(score: float, low: float, high: float) -> float:
    if score >= high:
        return 1.0
    return max(0.0, (score - low) / (high - low)) if high > low else 0.0


def _boosted(result: Scored, recipe: Recipe) -> Scored:
    kind = base_type(result.candidate.type)
    factor = recipe.rerank_boosts.get(kind, 1.0)
    return result.moved(f"{kind} boost", min(1.0, result.score * factor))


def _demoted(result: Scored, recipe: Recipe) -> Scored:
    type_ = result.candidate.type
    kind = base_type(type_)
    result = result.moved(f"{kind} demotion", result.score * recipe.demotions.get(kind, 1.0))
    if type_.endswith(DONE_SUFFIX):
        result = result.moved("done penalty", result.score * recipe.done_penalty)
    return result


def _floored(result: Scored, recipe: Recipe, literal_share: Callable[[Scored], float]) -> Scored:
    """Raised to the floor × the share of query words found: never lowered, never above it."""
    if result.memory is None or result.score >= recipe.keyword_floor:
        return result
    floor = recipe.keyword_floor * literal_share(result)
    return result.moved("keyword floor", max(result.score, floor))
