"""The answer: rows with previews, counts, the topics among them, and where to go on.

The token budget is a ceiling on the text of a page, kept by leaving results out, never by cutting.
A result that no longer fits is skipped and comes first on the next page. One that is larger than
the whole budget could never be shown: it is named with its size and does not come again, so that
following ``next`` always ends.

Boundary: turns opened memories into what the caller reads. Grants are checked by the surfaces.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Any

from msgspec import Struct

from memory_store.code.blame import last_change
from memory_store.index.terms import has_term
from memory_store.records import Memory, SearchResponse, SearchResult, explanation
from memory_store.records.degraded import Code, Degraded
from memory_store.search.adjustments import band
from memory_store.search.answer.previews import PASSAGES, Preview, expands, preview
from memory_store.search.candidates import Fetched, Outcome, Scored
from memory_store.search.degraded import SEALED
from memory_store.search.facets.counts import counted, facets
from memory_store.search.fusion.pool import to_come
from memory_store.search.paging import (
    CHANGED,
    MOST_CERTAIN,
    REACH,
    Place,
    coming,
    continue_token,
    id_tag,
)
from memory_store.search.query.analysis import leaves_out_words
from memory_store.search.query.plan import Search
from memory_store.search.recipes.recipe import CERTAIN
from memory_store.text.token_count import counted_with, is_exact, tokens
from memory_store.titles import shown_title

BY_NAME = ("keyword", "topic")  # the legs that find what is called by the query's own words


class Spending(Struct, frozen=True):
    """What a budget buys of the results in order, as their indexes.

    ``taken`` together cost ``spent``; ``skipped`` do not fit beside them; ``too_large`` cost more
    than the whole budget.
    """

    taken: tuple[int, ...]
    skipped: tuple[int, ...] = ()
    too_large: tuple[int, ...] = ()
    spent: int = 0


def respond(search: Search, outcome: Outcome) -> SearchResponse:
    """The response: previews, budget, counts, facets, the token for the next page."""
    plan, context, options, trace = search.plan, search.context, search.options, search.trace
    with trace.stage(explanation.Preview) as note:
        shown, budget, spending = _previewed(search, outcome)
        rows = tuple(
            _row(search, plan.offset + rank, outcome, n, shown[n])
            for rank, n in enumerate(spending.taken, start=1)
        )
        note.returned, note.complete = len(rows), sum(row.complete for row in rows)
        if budget is not None:
            note.budget, note.tokens = budget["limit"], budget["spent"]
            note.tokens_counted_with = budget["counted_with"]
            note.skipped_for_budget = budget["skipped"] + len(budget["too_large"])
    left = {one.candidate.ordinal for one in to_come(search, _order(outcome))} - outcome.refused
    next_token = _next(search, outcome, spending, left)
    degraded = [*context.degraded, *_changed(search, outcome), *outcome.degraded]
    if options.sealed and len(rows) < len(outcome.rows):
        beyond = len(outcome.rows) - len(rows)
        said = f"{SEALED}{beyond} more were opened to see that they do not fit the budget"
        degraded.append(Degraded(Code.SEALED, said))
    # what was not opened is not known to be an answer, where opened text decides that
    unsure = outcome.conditional and any(one.memory is None for one in outcome.ranking)
    whole = outcome.rows if unsure else outcome.ranking
    listed = None if outcome.conditional else outcome.listed
    return SearchResponse(
        query=options.query,
        mode=plan.mode,
        rows=rows,
        counts=f"Reranked {outcome.reranked} of {outcome.found}, returned {len(rows)}",
        opened=outcome.opened,
        total=context.snapshot.total,
        topics=counted(topic for row in rows for topic in row.topics),
        types=counted(row.type for row in rows),
        facets=facets(context, whole, outcome.rows, listed, plan.narrowing),
        budget=budget,
        next=next_token,
        truncated=next_token is not None or len(rows) < len(shown),
        nearest=outcome.nearest if rows else None,
        also_searched=search.analysis.corrected,
        degraded=tuple(dict.fromkeys(degraded)),
        milliseconds=trace.milliseconds,
        explain=trace.stages if options.explain else (),
        why=None if outcome.why is None else outcome.why([row.id for row in rows]),
        holding=outcome.holding,
        totals={
            "matched": outcome.found,
            "certain": _certain(search, outcome, whole, left),
            "reranked": outcome.reranked,
            "returned": len(rows),
            "opened": outcome.opened,
            "total": context.snapshot.total,
        },
    )


def _previewed(
    search: Search, outcome: Outcome
) -> tuple[list[Preview], dict[str, Any] | None, Spending]:
    """What would be shown of every row, and which rows the token budget buys.

    Tokens are exact where a library counts them, else those of the loaded model, else estimated by
    length. A whole text that is larger
    than the budget by itself is shown in part. A budget buys of each row its best passage alone.
    """
    limit, deep, offset = search.options.budget, search.options.deep, search.plan.offset
    embedder, symbols = outcome.embedder, search.context.symbols
    most = PASSAGES if limit is None else 1
    named, count = "", tokens
    if limit is not None:  # what counts is looked for in the folders of modules
        named = counted_with()
        if embedder is not None and not is_exact():
            named, count = embedder.name, embedder.count_tokens
    shown, costs = [], []
    for n, row in enumerate(outcome.rows):
        expanded = expands(offset + n, row, deep)
        marker = outcome.marker(row)
        one = preview(row, marker, expanded=expanded, passages=most, symbols=symbols)
        cost = 0 if limit is None else count(_text(row, one))
        if limit is not None and expanded and cost > limit:
            one = preview(row, marker, expanded=False, passages=most, symbols=symbols)
            cost = count(_text(row, one))
        shown.append(one)
        costs.append(cost)
    if limit is None:
        return shown, None, Spending(tuple(range(len(shown))))
    spending = spend(costs, limit)
    if spending.skipped:  # a token says of so many after them whether they wait
        places = {one.candidate.ordinal: n for n, one in enumerate(_order(outcome))}
        at = [places[one.candidate.ordinal] for one in outcome.rows]
        spending = spend(costs[: bisect_right(at, at[spending.skipped[0]] + REACH)], limit)
    too_large = [
        {"id": outcome.rows[n].candidate.id, "tokens": costs[n]} for n in spending.too_large
    ]
    budget = {
        "limit": limit,
        "spent": spending.spent,
        "counted_with": named,
        "skipped": len(spending.skipped),
        "too_large": too_large,
    }
    return shown, budget, spending


def _text(row: Scored, shown: Preview) -> str:
    """What a row costs: its title and its preview."""
    return f"{row.opened.title}\n{shown.passage.text}"


def spend(costs: Sequence[int], budget: int) -> Spending:
    """Take results in order as long as they fit, passing over those that do not (prx)."""
    taken, skipped, too_large = [], [], []
    spent = 0
    for index, cost in enumerate(costs):
        if cost > budget:
            too_large.append(index)
        elif spent + cost > budget:
            skipped.append(index)
        else:
            taken.append(index)
            spent += cost
    return Spending(tuple(taken), tuple(skipped), tuple(too_large), spent)


def _order(outcome: Outcome) -> tuple[Scored, ...]:
    """What a place between two pages is a place in."""
    return outcome.candidates or outcome.ranking


def _changed(search: Search, outcome: Outcome) -> Iterator[Degraded]:
    """What to say where the page before was one of another order."""
    place = search.plan.place
    if place is not None and not coming(place, search.snapshot, search.order(_order(outcome)))[1]:
        yield CHANGED


def _next(search: Search, outcome: Outcome, spending: Spending, left: Set[int]) -> str | None:
    """The token for what is still to come: what follows the page, and what did not fit it."""
    skipped = {outcome.rows[n].candidate.ordinal for n in spending.skipped}
    waiting = left - ({row.candidate.ordinal for row in outcome.rows} - skipped)
    order = search.order(_order(outcome))
    first = next((n for n, (one, _) in enumerate(order) if one in waiting), None)
    if first is None:
        return None
    plan, (ordinal, value) = search.plan, order[first]
    gone = (outcome.rows[n] for n in (*spending.taken, *spending.too_large))
    seen = _certain_before(search) + _good(gone)
    after = order[first + 1 : first + 1 + REACH]
    place = Place(
        shown=plan.offset + len(spending.taken),
        certain=min(seen, MOST_CERTAIN),
        limit=plan.options.limit if plan.place is None else plan.place.limit,
        revision=search.snapshot.revision,
        start=0 if search.lists else first,
        tag=id_tag(search.snapshot, ordinal),
        value=value,
        done=sum(1 << n for n, (one, _) in enumerate(after) if one not in waiting),
    )
    return continue_token(search.context.page_keys(), search.options, place)


def _row(search: Search, rank: int, outcome: Outcome, n: int, shown: Preview) -> SearchResult:
    result = outcome.rows[n]
    memory, candidate = result.opened, result.candidate
    collection = search.snapshot.collection(candidate.ordinal)
    best = shown.passage
    first, last = best.line, best.end_line
    changed = last_change(memory.metadata, first, last) if first and last else None
    title = shown_title(memory.title, best.text, best.start)
    return SearchResult(
        rank=rank,
        id=memory.id,
        ref=memory.ref,
        score=_rounded(result.score),
        band=band(result.score, outcome.calibrated, search.recipe),
        collection=search.context.collection_names.get(collection, collection),
        type=memory.type,
        created=memory.created,
        topics=memory.topics,
        title=memory.title,
        preview=best.text,
        complete=shown.complete,
        keyword_rank=candidate.keyword_rank,
        topic_rank=candidate.topic_rank,
        vector_rank=candidate.vector_rank,
        vector_score=None if candidate.vector_score is None else _rounded(candidate.vector_score),
        fusion_score=_rounded(candidate.share),
        rerank_score=None if result.rerank_score is None else _rounded(result.rerank_score),
        passages=(best, *shown.others),
        line=best.line,
        end_line=best.end_line,
        symbol=best.symbol,
        last_author=changed.author if changed else None,
        last_changed=changed.date if changed else None,
        superseded_by=_successor(search, memory),
        by=memory.by,
        matches=outcome.matches.get(candidate.ordinal, ()),
        title_highlights=tuple(outcome.marker(result).spans(title)),
    )


def _successor(search: Search, memory: Memory) -> str | None:
    """The memory that replaced it, where the caller may know of it."""
    found = memory.superseded_by
    return found if found and search.snapshot.ordinal_of(found) is not None else None


def _certain(
    search: Search, outcome: Outcome, whole: Sequence[Scored], left: Set[int]
) -> int | None:
    """How many results of all pages are rather answers than not: of those that earlier pages
    showed, and of the ``whole`` result what they ``left`` and this one did not refuse. ``None``
    where scores do not say.

    Only the default recipe's scores are probabilities, its reranker's included.
    """
    if not (outcome.calibrated and search.recipe.good == CERTAIN):
        return None
    here = _good(one for one in whole if one.candidate.ordinal in left)
    return _certain_before(search) + here


def _certain_before(search: Search) -> int:
    return 0 if search.plan.place is None else search.plan.place.certain


def _good(results: Iterable[Scored]) -> int:
    return sum(round(one.score, 6) >= CERTAIN for one in results)  # as they are shown


def _rounded(score: float) -> float:
    return round(max(0.0, min(score, 1.0)), 6)


def meaning_alone(search: Search, fetched: Fetched) -> str | None:
    """The sentence that calls what was found merely nearest in meaning; ``None`` where it is not.

    The nearest vectors are near to something in every vault, and look like hits. The sentence says
    only what a keyword search for the same words would show the same caller.
    For hybrid searches with words alone: who asks for vectors, or for what is like a memory, asked
    for no words. Memories that are to be indexed again may hold words that no search finds yet.
    """
    analysis, snapshot, mask = search.analysis, search.snapshot, search.analysis.mask
    if search.plan.mode != "hybrid" or analysis.like or not search.plan.shown:
        return None
    words = (*analysis.groups, *chain.from_iterable(analysis.variant_groups))
    named = any(one.ordinals for one in fetched.lists if one.leg in BY_NAME)
    if not words or named or (snapshot.stale & mask).any():
        return None
    # Not every recipe has a keyword leg that would have found them.
    if any((has_term(snapshot, word) & mask).any() for word in words):
        return None
    parsed = analysis.parsed
    filtered = parsed.has_filters or parsed.excluded or search.options.status != "all"
    searched = "No memory that the filters let through" if filtered else "No memory"
    left_out = " but function words" if leaves_out_words(analysis) else ""
    return f"{searched} holds any of these words{left_out}; these are the nearest in meaning."
