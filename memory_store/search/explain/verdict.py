"""The verdict on one memory: why it is, or is not, in an answer.

The stages are asked in their order; the first one that lost the memory gives the reason.

Boundary: says only what the same search could show to the same caller, and opens nothing. Keyed
hashes say which of the caller's own words a sealed memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec.structs import replace

from memory_store.index.terms import covered, has_term, look_up
from memory_store.records.explanation import LegPlace, Verdict, WordsHeld
from memory_store.search.candidates import LegList
from memory_store.search.explain.account import (
    Found,
    Restriction,
    figures,
    restrictions,
    ways_of,
)
from memory_store.search.explain.words import list_name
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.plan import Plan, Search

UNKNOWN = "there is no such memory in the collections you can read"
IDS_ONLY = "ids only here, whole or the first 8 characters of one: a ref is sealed"
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F-]*")

_ON_WHAT = {
    "keyword": "BM25",
    "vector": "cosine",
    "topic": "share of the words that are its topics",
}
_LACKS = {
    "topic": "it does not carry this topic",
    "narrow": "it is nothing of that kind",
    "word": "it does not hold this word",
    "phrase": "it does not hold these words side by side",
    "excluded": "it holds what is excluded",
}

Fields = dict[str, Any]
"""Fields of a :class:`Verdict`."""


def unknown(id_: str, reason: str = UNKNOWN) -> Verdict:
    """The verdict on a memory that is not there or that the caller may not read: the same."""
    return Verdict(id=id_, returned=False, stage="unknown", reason=reason)


def no_id(given: str) -> Verdict:
    """The verdict where only ids may be asked for, from the look of what was ``given``."""
    return unknown(given, UNKNOWN if _LIKE_AN_ID.fullmatch(given) else IDS_ONLY)


def why(found: Found, shown: Collection[str]) -> Verdict:
    """What became of the memory named by the option ``why`` (its full id).

    ``shown`` are the ids of the rows that the answer holds.
    """
    id_ = str(found.search.options.why)
    ordinal = found.search.snapshot.ordinal_of(id_)
    if ordinal is None:
        return unknown(id_)
    return Verdict(id=id_, returned=id_ in shown, **_fate(found, ordinal, shown))


def _fate(found: Found, ordinal: int, shown: Collection[str]) -> Fields:
    """Where the memory's way ended."""
    search = found.search
    lost_before = _is_the_question(search, ordinal) or left_out(search, ordinal)
    if lost_before is not None:
        return lost_before
    order = [one.ordinal for one in found.merged.ordered]
    if ordinal not in order:
        return _stood_for(search, ordinal, order) or _not_fetched(found, ordinal)
    fusion_rank = order.index(ordinal) + 1
    if fusion_rank > len(found.merged.pool):
        rest = _below_the_pool(found, ordinal, fusion_rank)
    else:
        rest = _after_the_pool(found, fusion_rank, shown)
    words, share = _words_held(search, ordinal)
    return {"words": words, "coverage": share, **rest}


def _is_the_question(search: Search, ordinal: int) -> Fields | None:
    """Whether it is the memory itself that others should be like, or a copy of it."""
    like = search.analysis.like
    if like is None or not search.context.copies_of(like.ordinal)[ordinal]:
        return None
    itself = "it is the memory that others should be like"
    return {
        "stage": "like",
        "reason": itself if ordinal == like.ordinal else f"{itself}, or has the same content",
    }


def left_out(search: Search, ordinal: int) -> Fields | None:
    """Which filters and conditions leave it out, each with what the memory is instead."""
    refusing = [one for one in restrictions(search) if not one.mask[ordinal]]
    if not refusing:
        return None
    reasons = (f"{one.name} leaves it out: {_refusal(one, search, ordinal)}" for one in refusing)
    return {
        "stage": "filter",
        "reason": "; ".join(reasons),
        "filters": tuple(one.name for one in refusing),
    }


def _refusal(one: Restriction, search: Search, ordinal: int) -> str:
    """Why it leaves a memory out, in words about that memory."""
    snapshot = search.snapshot
    if one.kind == "collection":
        id_ = snapshot.collection(ordinal)
        return f"it is in the collection {search.context.collection_names.get(id_, id_)}"
    if one.kind == "type":
        return f"its type is {snapshot.type(ordinal)}"
    if one.kind == "status":
        return f"it is {'done' if snapshot.done[ordinal] else 'open'}"
    if one.kind in ("since", "until"):
        return f"it is from {_day(snapshot.created[ordinal])}"
    if one.kind == "known":
        return f"it was written on {_day(snapshot.created[ordinal])}"
    if one.kind == "valid":
        return f"it was valid until {_day(snapshot.valid_to[ordinal])}"
    return _LACKS[one.kind]


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def _stood_for(search: Search, ordinal: int, order: list[int]) -> Fields | None:
    tag, *tags = search.context.contents([ordinal, *order])
    if tag not in tags:
        return None
    twin = search.snapshot.id(order[tags.index(tag)])
    return {
        "stage": "twin",
        "reason": f"it has the same content as {twin}, which stands for both",
        "twin": twin,
    }


def _not_fetched(found: Found, ordinal: int) -> Fields:
    """No leg had it among its first: at which place would each have had it?"""
    search = found.search
    if not search.analysis.asks:
        if search.plan.place is not None and not search.analysis.mask[ordinal]:
            return {"stage": "page", "reason": "an earlier page has listed it"}
        return {"stage": "fetch", "reason": "it is older than the newest that are listed"}
    places = _leg_places(found, ordinal)
    words, share = _words_held(search, ordinal)
    each = "; ".join(map(_leg_sentence, places))
    lacks = f". Of the words asked for it lacks {', '.join(words.missing)}" if words.missing else ""
    return {
        "stage": "fetch",
        "reason": f"no leg found it near enough: {each}{lacks}",
        "legs": places,
        "words": words,
        "coverage": share,
    }


def _leg_places(found: Found, ordinal: int) -> tuple[LegPlace, ...]:
    """For each list: the memory's ``rank`` and ``score`` there, how many were ``taken``, and the
    ``last_score`` of those. A rank of ``None`` comes with ``because``.

    Runs the legs once more, over everything: as slow as a search of the whole vault.
    """
    search, snapshot = found.search, found.search.snapshot
    everything = dict.fromkeys(search.plan.legs, max(1, snapshot.size))
    whole = fetch(replace(search, plan=replace(search.plan, depths=everything)))
    own = snapshot.part_of(ordinal).earlier_model
    own = own or search.context.indexed_with[snapshot.collection(ordinal)].fingerprint
    taken = {(o.leg, o.kind): o for o in found.fetched.lists if o.model in ("", own)}
    lists = [one for one in whole.lists if one.model in ("", own)]  # others cannot hold it
    named = {one.leg for one in lists}
    lists += [LegList(leg, ()) for leg in search.plan.legs if leg not in named]
    tag, places = search.context.contents([ordinal])[0], []
    for one in lists:
        scores = taken.get((one.leg, one.kind), LegList("", ())).scores
        last = (len(scores), round(scores[-1], 4) if scores else None)
        tags = search.context.contents(one.ordinals)
        if tag in tags:
            place = tags.index(tag)
            score = round(one.scores[place], 4)
            places.append(LegPlace(one.leg, one.kind, place + 1, score, *last))
        else:
            because = _absence(found, one.leg, ordinal)
            places.append(LegPlace(one.leg, one.kind, None, None, *last, because))
    return tuple(places)


def _absence(found: Found, leg: str, ordinal: int) -> str:
    """Why a leg does not have the memory at all."""
    if leg == "keyword":
        return "it holds none of the words"
    if leg == "topic":
        return "it carries none of the query's words as a topic"
    snapshot = found.search.snapshot
    if not snapshot.windows(ordinal) and not snapshot.part_of(ordinal).earlier_model:
        return "it has no vector yet"
    return "not searched" if found.fetched.of("vector") is None else "not near"


def _leg_sentence(place: LegPlace) -> str:
    """One leg's place in words."""
    leg = list_name(place.leg, place.kind)
    if place.rank is None:
        return f"{leg}: {place.because}"
    figures = f"{_ON_WHAT[place.leg]} {place.score:.3g}"
    if place.rank <= place.taken:  # by a vector that counts for nothing
        unread = "but its model does not read the query, or the language of this memory"
        return f"{leg}: place {place.rank} ({figures}), {unread}"
    return (
        f"{leg}: place {place.rank} ({figures}), and the first {place.taken} are taken "
        f"(the last has {place.last_score:.3g})"
    )


def _words_held(search: Search, ordinal: int) -> tuple[WordsHeld, float]:
    """Which of the query's words the sealed memory holds, in any inflection, and their share of
    the query by rarity (0–1)."""
    analysis, snapshot = search.analysis, search.snapshot
    held: dict[str, bool] = {}
    # The groups after those of the words stand for parts of names, in code.
    for word, group in zip(analysis.keywords, analysis.groups, strict=False):
        held.setdefault(word, bool(has_term(snapshot, group)[ordinal]))
    matches = look_up(snapshot, analysis.groups)
    share = covered(snapshot, matches, np.array([ordinal]))[0] if held else 0.0
    words = WordsHeld(
        held=tuple(word for word, found in held.items() if found),
        missing=tuple(word for word, found in held.items() if not found),
    )
    return words, round(float(share), 4)


def _below_the_pool(found: Found, ordinal: int, fusion_rank: int) -> Fields:
    merged = found.merged
    size = len(merged.pool)
    taken_out = 0.0 if found.search.recipe.boosts_order else 1.0
    last = min(one.share * one.boost**taken_out for one in merged.ordered[:size])
    share = merged.ordered[fusion_rank - 1].share
    return {
        "stage": "fuse",
        "reason": f"fusion put it at place {fusion_rank} ({share:.3g}), below the pool of the "
        f"first {size} (the last has {last:.3g})",
        "fusion_rank": fusion_rank,
        "fusion_score": round(share, 4),
        "pool": size,
        "last_score": round(last, 4),
        "legs": _leg_places(found, ordinal),
    }


def _after_the_pool(found: Found, fusion_rank: int, shown: Collection[str]) -> Fields:
    """It was in the pool: opened, ranked, shown?"""
    search, plan, dropped = found.search, found.search.plan, found.search.trace.dropped
    candidate = found.merged.pool[fusion_rank - 1]
    places: Fields = {
        "fusion_rank": fusion_rank,
        "fusion_score": round(candidate.share, 4),
        "keyword_rank": candidate.keyword_rank,
        "topic_rank": candidate.topic_rank,
        "vector_rank": candidate.vector_rank,
    }
    if candidate.id in dropped:
        reason = f"it was opened and left out: {dropped[candidate.id]}"
        return {"stage": "open", "reason": reason, **places}
    way = ways_of(search.trace, [candidate.ordinal])[candidate.ordinal]
    ahead = [result.candidate for result in found.outcome.ranking]
    ahead = [one for one in ahead if one.id not in dropped and plan.keeps(one.ordinal)]
    listed = plan.offset if search.lists else 0  # not in a list's ranking
    place = {one.ordinal: n for n, one in enumerate(ahead, listed + 1)}.get(candidate.ordinal)
    if way:
        places = figures(place, way[-1][2], found, way)
        del places["id"]
    if place is not None:
        return {**places, **placed(plan, candidate.id, place, shown)}
    if way:
        return {**places, **lost(search, candidate.ordinal)}
    # not opened: the search had all it wanted before it came to it, or it is gone
    reason = f"fusion put it at place {fusion_rank}, and {plan.pool} before it were enough"
    if fusion_rank <= plan.pool:
        reason = "it was deleted while the search ran"
    return {**places, "stage": "fuse", "reason": reason, "pool": plan.pool}


def lost(search: Search, ordinal: int) -> Fields:
    """Which stage after the reranker left it out, and at which score."""
    stage, score = "", None
    for standing in search.trace.standings:
        found = [r.score for r in standing.results if r.candidate.ordinal == ordinal]
        if not found:
            stage = standing.stage
            break
        score = found[0]
    floors = {"score floor": search.recipe.score_floor, "min_score": search.options.min_score}
    at_least = floors.get(stage)
    reason = f"it was left out by {stage or 'a change of the vault during the search'}"
    if at_least is not None and score is not None:
        name = "the score floor" if stage == "score floor" else stage
        reason = f"its score of {score:.3g} is below {name}, {at_least:g}"
    return {"stage": "adjust", "reason": reason}


def placed(plan: Plan, id_: str, rank: int, shown: Collection[str]) -> Fields:
    """Where it stands among the results, and on which page."""
    page = (rank - 1) // plan.options.limit + 1
    place = {"rank": rank, "page": page}
    if id_ in shown:
        return {**place, "stage": "returned", "reason": f"it is result {rank}"}
    if plan.options.budget is not None and plan.offset < rank <= plan.end:
        reason = f"it ranks {rank}, but did not fit the budget of {plan.options.budget} tokens"
        return {**place, "stage": "budget", "reason": reason}
    here = f"{plan.offset + 1} to {plan.end}"
    reason = f"it ranks {rank}, on page {page} of {plan.options.limit} each; this shows {here}"
    return {**place, "stage": "page", "reason": reason}
