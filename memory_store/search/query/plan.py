"""The plan of one search: recipe chosen, sizes worked out; and the search on its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_store.records import SearchRequest
from memory_store.search.candidates import AS_CODE
from memory_store.search.paging import Order, Place
from memory_store.search.query.analysis import ranked_as_code
from memory_store.search.query.language import PATTERN_MODES
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.recipes import Depth, Recipe, of_one_leg, recipe_named

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.search.candidates import Scored
    from memory_store.search.context import SearchContext
    from memory_store.search.facets.selection import Narrowing
    from memory_store.search.query.analysis import Analysis
    from memory_store.search.trace import Trace

SINGLE_LEG = ("keyword", "vector")  # modes that are one leg, in its own order and on its own scale
SINGLE_DEPTH = Depth(64, 256)  # how long their list is at least, where the recipe cuts no pool
AFTER_READING = 0.1  # of a time limit: kept for what comes after the reranker
NO_CUT = 1_000_000  # a pool of all that the legs found
TRIES = Depth(256, 1_000)  # memories opened at most to find those that a condition on texts keeps


class Plan(Struct, frozen=True):
    """What will be done: ``legs`` with their ``depths``, ``pool`` and ``rerank_depth`` memories.

    ``place`` is where this page starts (``None``: at the top); ``deadline`` is a
    :func:`time.monotonic` moment or ``None``. ``narrowing`` says what of the result is shown.
    What is not ``shown`` is ranked to be measured: no row is opened only for being on the page.
    """

    mode: str
    options: SearchRequest
    recipe: Recipe
    legs: tuple[str, ...]
    depths: Mapping[str, int]
    pool: int
    rerank_depth: int
    deadline: float | None
    place: Place | None = None
    shown: bool = True
    narrowing: Narrowing | None = None

    def depth_of(self, leg: str, kind: str) -> int:
        """How long a list may be: as is planned for its leg, or for a ``variant``."""
        usual = self.depths.get(leg, 0)
        return usual if kind in ("original", LIKE, AS_CODE) else self.depths.get("variant", usual)

    def keeps(self, ordinal: int) -> bool:
        """Whether narrowing shows a memory."""
        return self.narrowing is None or bool(self.narrowing.mask[ordinal])

    @property
    def reads(self) -> bool:
        """Whether a reranker may read the pool. None reads for what is like a whole memory."""
        wanted = self.options.rerank and not self.options.sealed
        return wanted and self.may_read and not self.options.like

    @property
    def may_read(self) -> bool:
        """Whether a reranker reads where the recipe and the mode decide."""
        return self.recipe.rerank and self.mode == "hybrid"

    @property
    def out_of_time(self) -> bool:
        """Whether no time is left to read in."""
        return self.reading_deadline is not None and monotonic() >= self.reading_deadline

    @property
    def reading_deadline(self) -> float | None:
        """When a reranker must be done, so that adjusting and previews still fit."""
        if self.deadline is None or self.options.budget_ms is None:
            return None
        return self.deadline - AFTER_READING * self.options.budget_ms / 1_000

    @property
    def goes_by_files(self) -> bool:
        """Whether the recipe's rules for files may look at the pool, instead of a reranker."""
        wanted = self.options.rerank and self.recipe.has_file_rules and not self.options.sealed
        return wanted and self.mode == "hybrid"

    @property
    def misses_files(self) -> bool:
        """Whether a sealed search leaves out what the recipe would do by the names of files."""
        by_rules = self.recipe.has_file_rules and self.options.rerank and self.mode == "hybrid"
        return self.options.sealed and (by_rules or self.recipe.one_per_file)

    @property
    def reach(self) -> int:
        """How far down the pool a reranker or a page opens."""
        return max(self.rerank_depth, self.end if self.shown else 0)

    @property
    def tries(self) -> int:
        """How many memories may be opened to look at what only their texts can show."""
        return max(self.pool if self.pool < NO_CUT else 0, TRIES.of(0, self.options.deep))

    @property
    def offset(self) -> int:
        """How many rows stood on the pages before."""
        return 0 if self.place is None else self.place.shown

    @property
    def end(self) -> int:
        """Where the page ends."""
        return self.offset + self.options.limit


def make_plan(
    mode: str,
    options: SearchRequest,
    *,
    depth: int = 0,
    started: float | None = None,
    place: Place | None = None,
) -> Plan:
    """Choose the recipe and work out the sizes.

    With ``depth`` > 0 the order is to be measured as far as that: legs and pool are at least as
    deep, and nothing is shown.
    The time limit runs from ``started`` (:func:`time.monotonic`; by default now).
    Raises BadInputError (parameter ``recipe``) for one that there is not.
    """
    recipe = recipe_named(options.recipe)
    legs = (mode,) if mode in SINGLE_LEG else recipe.legs
    # of the first page, so that a later one ranks the same
    limit, deep = options.limit if place is None else place.limit, options.deep
    pool = NO_CUT if recipe.pool is None else recipe.pool.of(limit, deep)
    depths = {leg: max(depth, recipe.leg_depth(leg, limit, deep)) for leg in legs}
    depths["variant"] = recipe.variant_depth.of(limit, deep)
    if mode in SINGLE_LEG:
        recipe = of_one_leg(recipe.name)
        depths = {mode: max(depths[mode], (recipe.pool or SINGLE_DEPTH).of(limit, deep))}
    started = monotonic() if started is None else started
    budget_ms = options.budget_ms
    return Plan(
        mode=mode,
        options=replace(options, limit=depth) if depth else options,
        recipe=recipe,
        legs=legs,
        depths=depths,
        pool=max(pool, depth),
        rerank_depth=recipe.rerank_depth.of(limit, deep),
        deadline=None if budget_ms is None else started + budget_ms / 1_000,
        place=place,
        shown=not depth,
    )


class Search(Struct, frozen=True):
    """One search on its way: what it may reach, what is done, what was asked, what is noted."""

    context: SearchContext
    plan: Plan
    analysis: Analysis
    trace: Trace

    @property
    def snapshot(self) -> Snapshot:
        """The index that it runs on."""
        return self.context.snapshot

    @property
    def recipe(self) -> Recipe:
        """Its ranking."""
        return self.plan.recipe

    @property
    def options(self) -> SearchRequest:
        """What was asked for besides the query."""
        return self.plan.options

    @property
    def is_conditional(self) -> bool:
        """Whether only opened text shows which candidates may be answers."""
        asked, options = self.analysis.parsed, self.options
        return bool(asked.required or asked.excluded or options.conditions) and not options.sealed

    @property
    def as_code(self) -> Mask | None:
        """bool [documents]: what is ranked by the recipe for source code, whatever else is found.

        Only learned fusion can hand its probabilities on; ``None`` where it does not, or where
        there is no source code.
        """
        if not self.recipe.learned or self.plan.mode != "hybrid" or not self.analysis.asks:
            return None
        return ranked_as_code(self.context)

    @property
    def lists(self) -> bool:
        """Whether it is a list by filters alone, the newest first."""
        return self.plan.mode not in PATTERN_MODES and not self.analysis.asks

    def order(self, results: Sequence[Scored]) -> Order:
        """The ordinals of ``results`` with what they are ordered by."""
        if not self.lists:
            return [(one.candidate.ordinal, one.score) for one in results]
        ordinals = [one.candidate.ordinal for one in results]
        return list(zip(ordinals, self.snapshot.created[ordinals].tolist(), strict=True))
