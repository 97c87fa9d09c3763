"""The pipeline: one search from its query to its answer, stage by stage.

    analyse → expand → fetch → fuse → open → rerank → adjust → preview

Boundary: up to and including *fuse* nothing is plain text but the query. The pool is final then;
*open* is the only stage that decrypts, and nothing after it reaches beyond what it opened.

What few searches need (explanations, patterns, feedback) is imported by those: a search from the
command line starts that much sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.records import Ranking, SearchRequest, SearchResponse
from memory_store.records.degraded import Degraded
from memory_store.records.explanation import Analyse, Expand, Fetch, Fuse
from memory_store.search.answer.response import meaning_alone, respond
from memory_store.search.candidates import Fetched, LegList, Outcome, Scored
from memory_store.search.context import SearchContext
from memory_store.search.degraded import NOT_AS_QUOTED, QUOTES_OF_A_TEXT
from memory_store.search.expansion.wordings import expansion
from memory_store.search.facets.selection import narrowing
from memory_store.search.fusion.learned import as_learned
from memory_store.search.fusion.pool import unfinished, untried
from memory_store.search.fusion.rank_fusion import Merged, merge
from memory_store.search.legs.neighbours import sequential_collections
from memory_store.search.legs.retrieval import MOST_NEWEST, fetch, newest
from memory_store.search.paging import continue_place, not_yet_listed
from memory_store.search.query.analysis import analyse, searches_code
from memory_store.search.query.language import (
    PATTERN_MODES,
    WORDS_OF_A_SENTENCE,
    WORDS_OF_A_TEXT,
    parse,
    refuse_nothing,
    resolve_mode,
)
from memory_store.search.query.plan import Plan, Search, make_plan
from memory_store.search.recipes import CODE, DEFAULT, by_places
from memory_store.search.reranking.pool_order import Reading
from memory_store.search.trace import Trace

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask

LIKE_NO_PATTERN = "like: this mode is for a pattern; memories are like others, or not"
DEEP_KEYWORDS = 2  # Gnosis, "Two Search Modes": "requires 2+ keywords"


def run(
    context: SearchContext, request: SearchRequest, *, started: float | None = None
) -> SearchResponse:
    """Answer a request.

    The time limit runs from ``started`` (:func:`time.monotonic`), by default from now.
    Raises :class:`BadInputError` naming the parameter at fault, and what the vault raises when it
    is locked or damaged. A missing model never fails a hybrid search; it is a line in
    ``degraded``.
    """
    trace = Trace(following=request.explain or request.why is not None)
    plan = _plan(context, request, started=started)
    if plan.mode in PATTERN_MODES:
        from memory_store.search.literal import search_by_pattern

        return respond(*search_by_pattern(context, plan, trace))
    return respond(*_search(context, plan, trace))


def rank(context: SearchContext, request: SearchRequest, depth: int = 100) -> Ranking:
    """The first ``depth`` memories of the same search, for evaluation.

    Legs and pool are at least ``depth`` deep. Only what a reranker or a condition must read is
    opened: nothing at all in fusion's own order.
    Raises :class:`BadInputError` for a pattern, which has no order to measure.
    """
    plan = _plan(context, request, depth=depth)
    if plan.mode in PATTERN_MODES:
        raise BadInputError(f"mode: a {plan.mode} search has no order to measure", parameter="mode")
    _, outcome = _search(context, plan, Trace())
    return Ranking(
        results=tuple((row.candidate.id, row.score) for row in outcome.rows),
        pool=min(plan.pool, outcome.found),
        opened=outcome.opened,
        reranked=outcome.reranked,
        degraded=outcome.degraded,
        cosines=tuple(row.candidate.vector_score for row in outcome.rows),
    )


def nearest(context: SearchContext, memory_id: str, most: int) -> Sequence[Scored]:
    """The memories most like one, by fusion alone: none is opened."""
    request = SearchRequest(like=memory_id, limit=most, rerank=False)
    return _search(context, _plan(context, request, depth=most), Trace())[1].rows


def _plan(
    context: SearchContext,
    request: SearchRequest,
    *,
    depth: int = 0,
    started: float | None = None,
) -> Plan:
    refuse_nothing(request)
    mode = resolve_mode(request)
    if mode in PATTERN_MODES and request.like:
        raise BadInputError(LIKE_NO_PATTERN, parameter="like")
    if request.all_ and mode not in PATTERN_MODES:
        raise BadInputError("all: for a pattern (mode literal or structural)", parameter="all")
    if request.language and mode != "structural":
        raise BadInputError("language: for a pattern (mode structural)", parameter="language")
    if request.recipe == DEFAULT.name and not request.like and searches_code(context, request):
        request = replace(request, recipe=CODE.name)
    place = continue_place(context.page_keys, request)
    plan = make_plan(mode, request, depth=depth, started=started, place=place)
    if context.by_places:
        plan = replace(plan, recipe=by_places(plan.recipe, types=not context.strict))
    return replace(plan, narrowing=narrowing(context, request.narrow))


def _search(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Outcome]:
    """Keyword, vector and hybrid search.

    A sentence may quote what no memory holds as typed: a name in another case or language. Its
    words are looked for then, as if they were not in quotes, and the answer says so: on later pages
    as on the first. Quotes in a long text are no conditions.
    """
    parsed = context.parsed or parse(plan.options)
    typed = replace(context, parsed=parsed)
    opened, why = 0, QUOTES_OF_A_TEXT
    if (beside := parsed.words_beside_quotes) < WORDS_OF_A_TEXT:
        search, outcome = _ranked(typed, plan, trace)
        first = outcome
        if beside >= WORDS_OF_A_SENTENCE and not outcome.met and plan.place is not None:
            _, first = _ranked(typed, replace(plan, place=None), trace.again())
            opened = first.opened
        if beside < WORDS_OF_A_SENTENCE or first.met:
            return search, replace(outcome, opened=opened + outcome.opened)
        opened, why, trace = opened + outcome.opened, NOT_AS_QUOTED, trace.again()
    search, outcome = _ranked(replace(typed, parsed=replace(parsed, required=())), plan, trace)
    degraded = (why, *outcome.degraded)
    return search, replace(outcome, opened=opened + outcome.opened, degraded=degraded)


def _ranked(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Outcome]:
    """The search as the query is."""
    search, listed = _analysed(context, plan, trace)
    conditional = search.is_conditional
    if conditional:  # any number may be refused: every leg is as deep as memories are opened
        deeper = {leg: max(plan.tries, plan.depths[leg]) for leg in plan.legs}
        search = replace(search, plan=replace(plan, depths={**plan.depths, **deeper}))
    with trace.stage(Expand) as note:
        expanded = expansion(search, note)
    search = as_learned(expanded.search)
    fetched = _fetched(search, expanded.probe)
    merged = _fused(search, fetched)
    reading = Reading(search)
    outcome = reading.read(merged.pool)
    why = None
    if plan.options.explain or plan.options.why:
        from memory_store.search.explain.account import Found, explain
        from memory_store.search.explain.verdict import why as why_so

        found = Found(search, fetched, merged, outcome)
        if plan.options.explain:
            explain(found)
        why = partial(why_so, found) if plan.options.why else None
    beyond: tuple[Degraded, ...] = ()
    if conditional and listed is None:
        beyond = untried(search, fetched, merged, outcome.tried)
    elif conditional:
        beyond = unfinished(plan, outcome.tried, len(outcome.rows))
    keywords = fetched.of("keyword")
    counted = keywords is not None and not conditional and plan.narrowing is None
    return search, replace(
        outcome,
        found=len(merged.ordered) if listed is None else int(listed.sum()),
        opened=reading.opening.opened,
        holding=keywords.holding if keywords is not None and counted else None,
        degraded=(*expanded.degraded, *fetched.degraded, *beyond, *outcome.degraded),
        nearest=meaning_alone(search, fetched),
        embedder=fetched.embedder,
        why=why,
        listed=listed,
        conditional=conditional,
        met=bool(merged.ordered) and (reading.any_fits or bool(beyond) or not conditional),
    )


def _analysed(context: SearchContext, plan: Plan, trace: Trace) -> tuple[Search, Mask | None]:
    """The search with its analysis; of a list by filters alone, all that they let through, too.

    A later page of such a list looks at what was not on the pages before.
    Raises :class:`BadInputError` for a deep search of less than two different keywords, lest a
    broad word fill the answer. (A memory that others should be like is no broad word.)
    """
    options = plan.options
    with trace.stage(Analyse):
        analysis = analyse(context.parsed or parse(options), context, options, plan.legs)
        few = len({word.casefold() for word in analysis.keywords}) < DEEP_KEYWORDS
        if options.deep and few and not options.like:
            raise BadInputError(
                f"deep: a deep search needs at least {DEEP_KEYWORDS} keywords", parameter="deep"
            )
    search = Search(context, plan, analysis, trace)
    if analysis.asks:
        return search, None
    mask = analysis.mask
    if plan.narrowing is not None:
        mask = mask & plan.narrowing.mask
    if plan.place is not None:
        mask = not_yet_listed(plan.place, context.snapshot, mask)
    return replace(search, analysis=replace(analysis, mask=mask)), analysis.mask


def _fetched(search: Search, probe: LegList | None) -> Fetched:
    """What the legs list."""
    with search.trace.stage(Fetch) as note:
        if search.analysis.asks:
            fetched = fetch(search, probe)
            note.sequential_collections = sequential_collections(search) or UNSET
        else:
            fetched = newest(search)
        if search.recipe.feedback and search.plan.mode == "hybrid":
            from memory_store.search.fusion.vector_feedback import with_feedback

            fetched = with_feedback(fetched, search, note)
    return fetched


def _fused(search: Search, fetched: Fetched) -> Merged:
    """The final pool, still sealed.

    Where conditions decide, it goes on below what fusion cuts, as far as memories are opened.
    """
    plan, asks = search.plan, search.analysis.asks
    pool = plan.pool if asks else MOST_NEWEST  # a list to leaf through
    with search.trace.stage(Fuse):
        return merge(fetched, search, pool, plan.tries if search.is_conditional and asks else 0)
