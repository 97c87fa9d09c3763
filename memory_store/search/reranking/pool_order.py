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
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_store.errors import ModelError
from memory_store.models.readability import is_read
from memory_store.records import Memory
from memory_store.records.degraded import Degraded
from memory_store.records.explanation import Adjust, Open, Rerank
from memory_store.search.adjustments import adjust
from memory_store.search.candidates import Candidate, Outcome, Scored
from memory_store.search.degraded import (
    FILES_ARE_SEALED,
    PAIRS_DECIDE,
    missing_reranker,
    out_of_time,
    unread_by_reranker,
    without_reranker,
)
from memory_store.search.fusion.pool import above, to_come
from memory_store.search.opening import Opening, conditions
from memory_store.search.query.plan import Plan, Search
from memory_store.search.query.word_matcher import WordMatcher
from memory_store.search.reranking.cross_encoder import (
    Matchers,
    Reranked,
    few,
    in_fusion_order,
    rerank,
    skips_reranker,
)

if TYPE_CHECKING:
    from memory_store.models.reranker import Reranker

FILE_RULES = "file rules"
OUT_OF_TIME = "out of time"
FEW = "few candidates"


class Reading:
    """Reads the pool of one search: what it allows is opened and put into its final order."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.opening = Opening(search.context)
        asked, options = search.analysis.parsed, search.options
        # what only the text can show; nothing in a sealed search
        fits = None if options.sealed else conditions(asked, options.conditions, search.trace)
        self.any_fits = False  # of what was opened to look whether it meets the conditions

        def keep(memory: Memory) -> bool:
            assert fits is not None
            kept = fits(memory)
            self.any_fits |= kept
            return kept

        self.keep: Callable[[Memory], bool] | None = None if fits is None else keep
        phrases = tuple(phrase.text for phrase in asked.required)

        @cache
        def of_language(language: str) -> WordMatcher:
            return WordMatcher(search.analysis.keywords, phrases, language, asked.text)

        snapshot = search.snapshot
        self.matcher: Matchers = lambda one: of_language(snapshot.language(one.candidate.ordinal))

    def read(self, pool: Sequence[Candidate]) -> Outcome:
        """Open what the plan allows of ``pool`` and put it into its final order."""
        outcome, plan = self._read(pool), self.search.plan
        if plan.options.reranker is None or plan.may_read:
            return outcome
        line = without_reranker(plan.recipe.name, plan.mode)
        return replace(outcome, degraded=(line, *outcome.degraded))

    def _read(self, pool: Sequence[Candidate]) -> Outcome:
        plan, context, parsed = self.search.plan, self.search.context, self.search.analysis.parsed
        degraded: tuple[Degraded, ...] = ()
        if plan.goes_by_files and self.search.analysis.asks:
            return self._whole(pool, len(pool), self._by_file_rules)
        if plan.reads and parsed.reading and pool:
            from memory_store.models.maxsim import asks_for_maxsim

            if skips_reranker(len(pool), plan.recipe, plan.options.deep):
                if not plan.recipe.learned:
                    return self._whole(pool, plan.reach, few)
                with self.search.trace.stage(Rerank) as note:
                    note.skipped = FEW
                return self._page(pool, ())
            try:
                if asks_for_maxsim(plan.options.reranker):
                    return self._interacted(pool)
                model = context.reranker(plan.options.reranker)
                if not is_read(model, parsed.reading):
                    return self._unread(pool, model.name)
                if not plan.out_of_time:
                    return self._whole(pool, plan.reach, partial(self._reranked, model))
                degraded = (out_of_time(min(len(pool), plan.rerank_depth)),)
            except ModelError as error:
                degraded = (missing_reranker(error),)
        if plan.options.sealed and (parsed.required or parsed.excluded):
            degraded = (PAIRS_DECIDE,)
        if plan.misses_files:
            degraded = (*degraded, FILES_ARE_SEALED)
        with self.search.trace.stage(Rerank) as note:
            late = plan.out_of_time and plan.reads
            note.skipped = OUT_OF_TIME if late else _unread_because(plan, parsed.reading)
        return self._page(pool, degraded)

    def _unread(self, pool: Sequence[Candidate], model: str) -> Outcome:
        """The page in fusion's order, for a reranker would read noise in the query."""
        with self.search.trace.stage(Rerank) as note:
            note.skipped = f"{model} does not read this query"
        return self._page(pool, (unread_by_reranker(model),))

    def _whole(
        self,
        pool: Sequence[Candidate],
        reach: int,
        read: Callable[[Sequence[Scored]], Reranked],
    ) -> Outcome:
        """Open the first ``reach`` of the pool, let it be ``read``, adjust.

        Conditions may refuse any number of the first; there as many are opened as fill the pool.
        Of a pool larger than what the model reads only that much is opened, and the page.
        """
        plan, trace = self.search.plan, self.search.trace
        with trace.stage(Open) as note:
            if self.keep is None:
                opened, unread = self.opening.open(pool[:reach]), pool[reach:]
            else:
                opened, unread = [*self.opening.open_until(pool, self.keep, plan.pool)], ()
            note.opened, note.kept = self.opening.opened, len(opened)
        with trace.stage(Rerank) as note:
            answer = read(opened)
            if answer.why != FILE_RULES:  # each of them has noted its own
                trace.order("rerank" if answer.reranked else answer.why, answer.results)
            note.how, note.reranked = answer.why, answer.reranked
            note.calibrated = answer.calibrated
        with trace.stage(Adjust):
            results = list(answer.results) if answer.settled else self._adjusted(answer)
            results = above(plan, results)
            trace.order("min_score", results)
        ranking = [*results, *above(plan, [Scored(candidate, 0.0) for candidate in unread])]
        rows = to_come(self.search, ranking)[: plan.options.limit]
        if plan.shown:  # those, too, that the reranker did not read
            held = self.opening.open([row.candidate for row in rows])
            texts = {one.candidate.ordinal: one.memory for one in held}
            found = (row for row in rows if row.candidate.ordinal in texts)
            rows = [row._replace(memory=texts[row.candidate.ordinal]) for row in found]
        return Outcome(
            rows=tuple(rows),
            marker=self.matcher,
            ranking=tuple(ranking),
            reranked=answer.reranked,
            calibrated=answer.calibrated and answer.verified and plan.recipe.is_comparable,
            tried=self.opening.opened,
            degraded=answer.degraded,
        )

    def _reranked(self, model: Reranker, opened: Sequence[Scored]) -> Reranked:
        return rerank(self.search, opened, model, self.matcher) if opened else few(opened)

    def _by_file_rules(self, opened: Sequence[Scored]) -> Reranked:
        """In the order of the files that memories came from, which is final."""
        from memory_store.search.reranking.file_rules import by_file_rules
        from memory_store.search.reranking.source_facts import source_facts

        search, facts = self.search, source_facts(self.search)
        keywords = search.analysis.keywords
        results = by_file_rules(opened, search.recipe, keywords, facts, search.trace)
        return Reranked(tuple(results), 0, False, False, FILE_RULES, settled=True)

    def _adjusted(self, answer: Reranked) -> list[Scored]:
        recipe, trace = self.search.recipe, self.search.trace

        def literal_share(one: Scored) -> float:
            return self.matcher(one).literal_share(one.opened.title, one.opened.text)

        results = adjust(
            answer.results,
            recipe,
            literal_share=literal_share,
            calibrated=answer.calibrated,
            verified=answer.verified,
            trace=trace,
        )
        if not recipe.one_per_file:
            return results
        from memory_store.search.reranking.file_rules import first_of_its_file

        keep = first_of_its_file(_any, trace)
        return [result for result in results if keep(result.opened)]

    def _interacted(self, pool: Sequence[Candidate]) -> Outcome:
        """Let late interaction read the first few, then go on as without a reranker."""
        from memory_store.models.maxsim import NAME as MAXSIM
        from memory_store.search.reranking import late_interaction

        search = self.search
        embedder = search.context.embedder()  # raises before anything is opened
        if search.plan.out_of_time:
            return self._page(pool, (out_of_time(min(len(pool), late_interaction.DEPTH)),))
        with search.trace.stage(Open) as note:
            wanted = late_interaction.DEPTH
            first = list(self.opening.open_until(pool, self.keep or _any, wanted))
            note.opened, note.kept = self.opening.opened, len(first)
        with search.trace.stage(Rerank) as note:
            answer = late_interaction.interact(search, pool, first, self.matcher, embedder)
            note.how, note.reranked, note.calibrated = MAXSIM, answer.read, False
        read = [Scored(c, c.standing, rerank_score=c.late_score) for c in answer.pool]
        search.trace.order("late interaction", read)
        return replace(self._page(answer.pool, answer.degraded), reranked=answer.read)

    def _page(self, pool: Sequence[Candidate], degraded: tuple[Degraded, ...]) -> Outcome:
        """Fusion's order; only the page's own rows are opened, and what its conditions refuse."""
        plan, trace, keep = self.search.plan, self.search.trace, self.keep
        with trace.stage(Adjust):
            ordered = _sealed_order(plan, pool)
            trace.order("demotions", ordered)
            results = above(plan, ordered)
            trace.order("min_score", results)
        coming = [result.candidate for result in to_come(self.search, results)]
        if plan.recipe.one_per_file and plan.shown and not plan.options.sealed:
            from memory_store.search.reranking.file_rules import first_of_its_file

            keep = first_of_its_file(keep or _any, trace)
            # It remembers what it saw: rows of earlier pages stand for those of their files.
            # What narrowing hides was on none of them and stands for nothing.
            left = set(coming)
            passed = [c for c in (one.candidate for one in results) if c not in left]
            for one in self.opening.open([c for c in passed if plan.keeps(c.ordinal)]):
                keep(one.opened)
        outcome = Outcome(
            (),
            self.matcher,
            tuple(results),
            # late interaction stretches what fusion learned: its scores are no probabilities;
            # a list by filters alone has none
            calibrated=plan.recipe.learned
            and not self.search.lists
            and all(one.late_score is None for one in pool),
            degraded=degraded,
        )
        if keep is None and not plan.shown:
            return replace(outcome, rows=tuple(results[: plan.options.limit]))
        refused: set[str] = set()

        def noting(memory: Memory) -> bool:
            kept = keep is None or keep(memory)
            if not kept:
                refused.add(memory.id)
            return kept

        with trace.stage(Open) as note:
            if keep is None:
                opened = self.opening.open(coming[: plan.options.limit])
            else:
                tried = coming[: plan.tries]
                opened = list(self.opening.open_until(tried, noting, plan.options.limit))
            note.opened, note.kept = self.opening.opened, len(opened)
        scores = {result.candidate.ordinal: result for result in results}
        return replace(
            outcome,
            rows=tuple(
                scores[o.candidate.ordinal]._replace(memory=o.memory, passage=o.passage)
                for o in opened
            ),
            refused=frozenset(c.ordinal for c in coming if c.id in refused),
            tried=len(results) - len(coming) + self.opening.opened,
        )


def _any(memory: Memory) -> bool:
    """The condition of a query without conditions."""
    return True


def _sealed_order(plan: Plan, candidates: Sequence[Candidate]) -> list[Scored]:
    """The order and scores that need no text."""
    if plan.mode == "hybrid":
        return in_fusion_order(candidates, plan.recipe)
    cap, ordered = plan.recipe.unverified_cap, []
    for candidate in candidates:
        score = cap * candidate.share
        steps = (("not verified", score),) if score != candidate.share else ()
        ordered.append(Scored(candidate, score, steps=steps))
    return ordered


def _unread_because(plan: Plan, text: str) -> str:
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
