"""Reading the pool: reranked, skipped as few, or left in fusion's order, and what each way opens.

* With a reranker the pool is opened as far as the model reads it.
* A recipe with rules for files opens it too: the names of files are sealed as texts are.
* With late interaction the first few of it are opened, and the rows of the page.
* Without any (none asked for, none on the machine, sealed, one leg alone) only the rows of the
  page are opened, and those that turn out not to meet a condition.

Boundary: the pool is final here; nothing outside it can be opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import ModelMismatchError, ModelUnavailableError
from memory_store.records import Memory
from memory_store.records.explanation import Adjust, Open, Rerank
from memory_store.search.adjustments import Scored, adjust
from memory_store.search.candidates import Candidate
from memory_store.search.context import SearchContext
from memory_store.search.degraded import (
    FILES_ARE_SEALED,
    PAIRS_DECIDE,
    missing_reranker,
    out_of_time,
)
from memory_store.search.fusion.pool import above, to_come, with_waiting
from memory_store.search.opening import Opened, Opening, conditions
from memory_store.search.outcome import Outcome
from memory_store.search.query.analysis import Analysis
from memory_store.search.query.plan import Plan
from memory_store.search.query.word_matcher import WordMatcher
from memory_store.search.reranking.cross_encoder import (
    Reranked,
    few,
    in_fusion_order,
    rerank,
    skips_reranker,
)
from memory_store.search.trace import Trace

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker

FILE_RULES = "file rules"
OUT_OF_TIME = "out of time"


class Reading(Struct, frozen=True):
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
        if plan.goes_by_files and self.analysis.asks:
            return self._by_files(pool)
        if plan.reads and parsed.reading and pool:
            from memory_store.models.maxsim import asks_for_maxsim

            if skips_reranker(len(pool), plan.recipe, plan.options.deep):
                return self._whole(pool, None)
            try:
                if asks_for_maxsim(plan.options.reranker):
                    return self._interacted(pool)
                model = self.context.reranker(plan.options.reranker)
                if not plan.out_of_time:
                    return self._whole(pool, model)
                degraded = (out_of_time(min(len(pool), plan.rerank_depth)),)
            except (ModelUnavailableError, ModelMismatchError) as error:
                degraded = (missing_reranker(error, self.context.database),)
        if plan.options.sealed and (parsed.required or parsed.excluded):
            degraded = (PAIRS_DECIDE,)
        if plan.misses_files:
            degraded = (*degraded, FILES_ARE_SEALED)
        with self.trace.stage(Rerank) as note:
            late = plan.out_of_time and plan.reads
            note.skipped = OUT_OF_TIME if late else unread_because(plan, parsed.reading)
        return self._page(pool, degraded)

    def _by_files(self, pool: Sequence[Candidate]) -> Outcome:
        """Open the whole pool and reorder it by the files that its memories came from."""
        from memory_store.search.reranking.file_rules import by_file_rules

        plan = self.plan
        with self.trace.stage(Open) as note:
            opened, _ = self._opened(pool, len(pool))
            note.opened, note.kept = self.opening.opened, len(opened)
        with self.trace.stage(Rerank) as note:
            fused = [Scored(o.candidate, o.candidate.share, o.memory) for o in opened]
            results = by_file_rules(fused, plan.recipe, self.analysis.keywords, self.trace)
            note.how, note.reranked, note.calibrated = FILE_RULES, 0, False
        with self.trace.stage(Adjust):
            results = above(plan, results)
            self.trace.order("min_score", results)
        return Outcome(
            rows=tuple(to_come(plan, results)[: plan.options.limit]),
            marker=_marker(self._matchers()),
            ranking=tuple(results),
            tried=self._tried(),
        )

    def _opened(
        self, pool: Sequence[Candidate], reach: int
    ) -> tuple[list[Opened], Sequence[Candidate]]:
        """The first ``reach`` of the pool, opened, and the rest of it, still sealed.

        Conditions may refuse any number of the first; there as many are opened as fill the pool.
        """
        keep = conditions(self.analysis.parsed, self.plan.options.meta, self.trace)
        if keep is None:
            return self.opening.open(pool[:reach]), pool[reach:]
        return list(self.opening.open_until(pool, keep, self.plan.pool)), ()

    def _whole(self, pool: Sequence[Candidate], model: Reranker | None) -> Outcome:
        """Open the pool, let ``model`` read it (``None``: too few to be worth it), adjust.

        Of a pool larger than what the model reads only that much is opened, and the page.
        """
        matcher = self._matchers()
        with self.trace.stage(Open) as note:
            opened, unread = self._opened(pool, self.plan.reach)
            note.opened, note.kept = self.opening.opened, len(opened)
        with self.trace.stage(Rerank) as note:
            answer = self._scores(opened, matcher, model)
            self.trace.order("rerank" if answer.reranked else answer.why, answer.results)
            note.how, note.reranked = answer.why, answer.reranked
            note.calibrated = answer.calibrated
        with self.trace.stage(Adjust):
            results = self._adjusted(answer, opened, matcher)
            results = above(self.plan, with_waiting(self.plan, results, answer.results))
            self.trace.order("min_score", results)
        behind = above(self.plan, [Scored(candidate, 0.0) for candidate in unread])
        ranking = [*results, *behind]
        return Outcome(
            rows=self._shown(to_come(self.plan, ranking)[: self.plan.options.limit]),
            marker=_marker(matcher),
            ranking=tuple(ranking),
            reranked=answer.reranked,
            calibrated=answer.calibrated and answer.verified and self.plan.recipe.is_comparable,
            tried=self._tried(),
            degraded=answer.degraded,
        )

    def _shown(self, rows: Sequence[Scored]) -> tuple[Scored, ...]:
        """A page's rows, those opened that the reranker did not read."""
        if not self.plan.shown:
            return tuple(rows)
        texts = {
            o.candidate.ordinal: o.memory for o in self.opening.open([r.candidate for r in rows])
        }
        return tuple(
            row.opened(texts[row.candidate.ordinal])
            for row in rows
            if row.candidate.ordinal in texts
        )

    def _tried(self) -> int:
        """How many of the pool were opened on this page and on no page before, if all of it is."""
        return self.opening.opened if self.plan.place is None else 0

    def _interacted(self, pool: Sequence[Candidate]) -> Outcome:
        """Let late interaction read the first few, then go on as without a reranker."""
        from memory_store.models.maxsim import NAME as MAXSIM
        from memory_store.search.reranking import late_interaction

        plan, matcher = self.plan, self._matchers()
        embedder = self.context.embedder()  # raises before anything is opened
        if plan.out_of_time:
            return self._page(pool, (out_of_time(min(len(pool), late_interaction.DEPTH)),))
        with self.trace.stage(Open) as note:
            keep = conditions(self.analysis.parsed, self.plan.options.meta, self.trace)
            first = list(self.opening.open_until(pool, keep or _any, late_interaction.DEPTH))
            note.opened, note.kept = self.opening.opened, len(first)
        with self.trace.stage(Rerank) as note:
            answer = late_interaction.interact(
                self.analysis.parsed.reading,
                pool,
                first,
                plan.recipe,
                matcher,
                self.context,
                embedder,
                deadline=plan.reading_deadline,
            )
            note.how, note.reranked, note.calibrated = MAXSIM, answer.read, False
        read = [Scored(c, c.standing, rerank_score=c.late_score) for c in answer.pool]
        self.trace.order("late interaction", read)
        return replace(self._page(answer.pool, answer.degraded), reranked=answer.read)

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
            deadline=self.plan.reading_deadline,
        )

    def _adjusted(
        self, answer: Reranked, opened: Sequence[Opened], matcher: Matchers
    ) -> list[Scored]:
        if answer.settled:
            return list(answer.results)
        by_id = {one.memory.id: one for one in opened}

        def literal_share(memory: Memory) -> float:
            return matcher(by_id[memory.id]).literal_share(memory.title, memory.text)

        results = adjust(
            answer.results,
            self.plan.recipe,
            literal_share=literal_share,
            calibrated=answer.calibrated,
            verified=answer.verified,
            trace=self.trace,
        )
        if not self.plan.recipe.one_per_file:
            return results
        from memory_store.search.reranking.file_rules import best_of_each_file

        return best_of_each_file(results, self.trace)

    def _page(self, pool: Sequence[Candidate], degraded: tuple[str, ...]) -> Outcome:
        """Fusion's order; only the page's own rows are opened, and what its conditions refuse."""
        plan = self.plan
        with self.trace.stage(Adjust):
            ordered = sealed_order(plan, pool)
            self.trace.order("demotions", ordered)
            results = above(plan, ordered)
            self.trace.order("min_score", results)
        sealed = plan.options.sealed
        keep = None if sealed else conditions(self.analysis.parsed, plan.options.meta, self.trace)
        if plan.recipe.one_per_file and plan.shown and not sealed:
            from memory_store.search.reranking.file_rules import first_of_its_file

            keep = first_of_its_file(keep or _any, self.trace)
            self._passed(results, keep)
        if keep is None and not plan.shown:
            rows = tuple(results[: plan.options.limit])
            return Outcome(rows, _marker(self._matchers()), tuple(results), degraded=degraded)
        refused: set[str] = set()
        with self.trace.stage(Open) as note:
            wanted = [result.candidate for result in to_come(plan, results)]
            if keep is None:
                opened = self.opening.open(wanted[: plan.options.limit])
            else:
                noted = _noting(keep, refused)
                tried = wanted[: plan.tries]
                opened = list(self.opening.open_until(tried, noted, plan.options.limit))
            note.opened, note.kept = self.opening.opened, len(opened)
        scores = {result.candidate.ordinal: result for result in results}
        return Outcome(
            rows=tuple(scores[one.candidate.ordinal].opened(one.memory) for one in opened),
            marker=_marker(self._matchers()),
            ranking=tuple(results),
            refused=frozenset(c.ordinal for c in wanted if c.id in refused),
            tried=self.opening.opened,
            degraded=degraded,
        )

    def _passed(self, results: Sequence[Scored], keep: Callable[[Memory], bool]) -> None:
        """Show ``keep``, which remembers what it saw, the rows of earlier pages.

        What narrowing hides was on none of them and stands for nothing.
        """
        waiting, kept = self.plan.waiting, self.plan.kept
        if waiting is not None:
            found = [result.candidate for result in results]
            before = [
                one
                for one in found
                if one.ordinal not in waiting and (kept is None or kept[one.ordinal])
            ]
            for one in self.opening.open(before):
                keep(one.memory)

    def _matchers(self) -> Matchers:
        """A function from an opened candidate to the matcher for its language, made once each."""
        phrases = tuple(phrase.text for phrase in self.analysis.parsed.required)
        keywords = self.analysis.keywords

        @cache
        def of_language(language: str) -> WordMatcher:
            return WordMatcher(keywords, phrases, language)

        return lambda one: of_language(self.context.snapshot.language(one.candidate.ordinal))


Matchers = Callable[[Opened], WordMatcher]


def _any(memory: Memory) -> bool:
    """The condition of a query without conditions."""
    return True


def sealed_order(plan: Plan, candidates: Sequence[Candidate]) -> list[Scored]:
    """The order and scores that need no text."""
    if plan.mode == "hybrid":
        return in_fusion_order(candidates, plan.recipe)
    cap = plan.recipe.unverified_cap
    return [_capped(candidate, cap) for candidate in candidates]


def _capped(candidate: Candidate, cap: float) -> Scored:
    share, score = candidate.share, cap * candidate.share
    steps = (("not verified", score),) if score != share else ()
    return Scored(candidate, score, None, None, None, steps)


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
    if plan.options.like:
        return "no reranker reads for what is like a whole memory"
    return "no reranking model on this machine" if text else "the query has no words to read for"


def _noting(keep: Callable[[Memory], bool], refused: set[str]) -> Callable[[Memory], bool]:
    """``keep``, noting the ids of what it refuses."""

    def noted(memory: Memory) -> bool:
        kept = keep(memory)
        if not kept:
            refused.add(memory.id)
        return kept

    return noted


def _marker(matcher: Matchers) -> Callable[[Scored], WordMatcher]:
    def of(result: Scored) -> WordMatcher:
        assert result.memory is not None, "only opened results are marked"
        return matcher(Opened(result.candidate, result.memory))

    return of
