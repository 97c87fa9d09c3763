"""Reading the pool: reranked, skipped as few, or left in fusion's order, and what each way opens.

* With a reranker the whole pool is opened, because the model must read it.
* Without one (none asked for, none on the machine, sealed, one leg alone) only the rows of the
  page are opened, and those that turn out not to meet a condition.

Boundary: the pool is final here; nothing outside it can be opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from memory_store.records import Memory, ModelUnavailableError
from memory_store.search.adjustments import Scored, adjust
from memory_store.search.analysis import Analysis
from memory_store.search.answering import Outcome
from memory_store.search.candidates import Candidate
from memory_store.search.context import SearchContext
from memory_store.search.matching import WordMatcher
from memory_store.search.opening import Opened, Opening, conditions
from memory_store.search.planning import Plan
from memory_store.search.reranking import (
    Reranked,
    few,
    in_fusion_order,
    missing_model,
    rerank,
    skips_reranker,
)
from memory_store.search.tracing import Trace

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker

PAIRS_DECIDE = (
    "sealed: phrases were matched by their stems, not their spelling. Search without sealed"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a pool needs: where, how, for which query, and who counts and reports."""

    context: SearchContext
    plan: Plan
    analysis: Analysis
    opening: Opening
    trace: Trace

    def read(self, pool: Sequence[Candidate]) -> Outcome:
        """Open what the plan allows of ``pool`` and put it into its final order."""
        parsed, plan = self.analysis.parsed, self.plan
        degraded: tuple[str, ...] = ()
        if plan.reads and parsed.reading and pool:
            if skips_reranker(len(pool), plan.recipe, plan.options.deep):
                return self._whole(pool, None)
            try:
                model = self.context.reranker(plan.options.reranker)
            except ModelUnavailableError as error:
                degraded = (missing_model(error),)
            else:
                return self._whole(pool, model)
        if plan.options.sealed and (parsed.required or parsed.excluded):
            degraded = (PAIRS_DECIDE,)
        with self.trace.stage("rerank") as details:
            details["skipped"] = unread_because(plan, parsed.reading)
        return self._page(pool, degraded)

    def _whole(self, pool: Sequence[Candidate], model: Reranker | None) -> Outcome:
        """Open the whole pool, let ``model`` read it (``None``: too few to be worth it), adjust."""
        matcher = self._matchers()
        with self.trace.stage("open") as details:
            keep = conditions(self.analysis.parsed, self.plan.options.meta, self.trace)
            opened = [o for o in self.opening.open(pool) if keep is None or keep(o.memory)]
            details |= {"opened": self.opening.opened, "kept": len(opened)}
        with self.trace.stage("rerank") as details:
            answer = self._scores(opened, matcher, model)
            self.trace.order("rerank" if answer.reranked else answer.why, answer.results)
            details |= {
                "how": answer.why,
                "reranked": answer.reranked,
                "calibrated": answer.calibrated,
            }
        with self.trace.stage("adjust"):
            results = above(self.plan, self._adjusted(answer, opened, matcher))
            self.trace.order("min_score", results)
        return Outcome(
            rows=tuple(results[self.plan.offset : self.plan.end]),
            more=len(results) > self.plan.end,
            marker=_marker(matcher),
            ranking=tuple(results),
            reranked=answer.reranked,
            calibrated=answer.calibrated and answer.verified,
            degraded=answer.degraded,
        )

    def _scores(
        self, opened: Sequence[Opened], matcher: Matchers, model: Reranker | None
    ) -> Reranked:
        if model is None or not opened:
            return few(opened)
        return rerank(
            self.analysis.parsed.reading,
            opened,
            self.plan.recipe,
            model,
            matcher,
            depth=self.plan.rerank_depth,
            deadline=self.plan.deadline,
        )

    def _adjusted(
        self, answer: Reranked, opened: Sequence[Opened], matcher: Matchers
    ) -> list[Scored]:
        by_id = {one.memory.id: one for one in opened}

        def literal_share(memory: Memory) -> float:
            return matcher(by_id[memory.id]).literal_share(memory.title, memory.text)

        return adjust(
            answer.results,
            self.plan.recipe,
            literal_share=literal_share,
            calibrated=answer.calibrated,
            verified=answer.verified,
            trace=self.trace,
        )

    def _page(self, pool: Sequence[Candidate], degraded: tuple[str, ...]) -> Outcome:
        """Fusion's order; only the page's own rows are opened, and what its conditions refuse."""
        plan = self.plan
        with self.trace.stage("adjust"):
            ordered = sealed_order(plan, pool)
            self.trace.order("demotions", ordered)
            results = above(plan, ordered)
            self.trace.order("min_score", results)
        sealed = plan.options.sealed
        keep = None if sealed else conditions(self.analysis.parsed, plan.options.meta, self.trace)
        if keep is None and not plan.shown:
            rows, more = results[plan.offset : plan.end], len(results) > plan.end
            return Outcome(
                tuple(rows), more, _marker(self._matchers()), tuple(results), degraded=degraded
            )
        with self.trace.stage("open") as details:
            wanted = [result.candidate for result in results]
            if keep is None:
                opened = self.opening.open(wanted[plan.offset : plan.end])
                more = len(results) > plan.end
            else:
                opened = list(self.opening.open_until(wanted, keep, plan.end))[plan.offset :]
                more = self.opening.opened < len(results)
            details |= {"opened": self.opening.opened, "kept": len(opened)}
        scores = {result.candidate.ordinal: result for result in results}
        rows = [scores[one.candidate.ordinal].opened(one.memory) for one in opened]
        return Outcome(
            rows=tuple(rows),
            more=more,
            marker=_marker(self._matchers()),
            ranking=tuple(results),
            degraded=degraded,
        )

    def _matchers(self) -> Matchers:
        """A function from an opened candidate to the matcher for its language, made once each."""
        phrases = tuple(phrase.text for phrase in self.analysis.parsed.required)
        keywords = self.analysis.keywords

        @cache
        def of_language(language: str) -> WordMatcher:
            return WordMatcher(keywords, phrases, language)

        return lambda one: of_language(self.context.snapshot.language(one.candidate.ordinal))


Matchers = Callable[[Opened], WordMatcher]


def sealed_order(plan: Plan, candidates: Sequence[Candidate]) -> list[Scored]:
    """The order and scores that need no text."""
    if plan.mode == "hybrid":
        return in_fusion_order(candidates, plan.recipe)
    cap = plan.recipe.unverified_cap
    return [Scored(candidate, cap * candidate.share) for candidate in candidates]


def unread_because(plan: Plan, text: str) -> str:
    """Why no reranker read the pool, in words."""
    if plan.mode != "hybrid":
        return f"a {plan.mode} search keeps the order of its leg"
    if not plan.recipe.rerank:
        return f"the recipe {plan.recipe.name} has no reranker"
    if plan.options.sealed:
        return "sealed: nothing may be read to rank it"
    if not plan.options.rerank:
        return "switched off"
    return "no reranking model on this machine" if text else "the query has no words to read for"


def above(plan: Plan, results: Sequence[Scored]) -> list[Scored]:
    """Those that reach the asker's own ``min_score``."""
    least = plan.options.min_score
    return [result for result in results if least is None or result.score >= least]


def _marker(matcher: Matchers) -> Callable[[Scored], WordMatcher]:
    def of(result: Scored) -> WordMatcher:
        assert result.memory is not None, "only opened results are marked"
        return matcher(Opened(result.candidate, result.memory))

    return of
