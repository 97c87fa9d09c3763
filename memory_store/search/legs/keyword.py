"""The keyword leg: BM25 over keyed hashes of words, for the query and each ``lex`` variant.

For a memory that others should be like, the words are its most telling ones.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from memory_store.index.terms import bm25, covered, keyword_scores, look_up, top_k
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.legs.contents import enough
from memory_store.search.legs.neighbours import lifted_coverage, lifted_keywords, neighbours_for
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.query.plan import Search

if TYPE_CHECKING:
    from memory_store.index.snapshot import HashGroup


def keyword_leg(search: Search, probe: LegList | None) -> Fetched:
    """BM25 over the query as typed, and over each ``lex`` variant."""
    variants = [_list("lex", groups, search) for groups in search.analysis.variant_groups if groups]
    weighed = not search.recipe.learned  # it asks of all candidates at once what they hold
    typed = probe or _typed(search, weighed)
    lists = (typed, _code_list(typed, search), *variants, _like_list(search))
    return Fetched(tuple(one for one in lists if one is not None))


def probe_keywords(search: Search) -> LegList | None:
    """The keyword leg's list for the query as typed, with the share of the query that each memory
    holds. ``None`` for a query without words."""
    return _typed(search, weighed=True)


def _typed(search: Search, weighed: bool) -> LegList | None:
    groups = search.analysis.groups
    return _list("original", groups, search, weighed) if groups else None


def _code_list(typed: LegList | None, search: Search) -> LegList | None:
    """The list of source code by its own recipe, beside that of all memories."""
    mask = search.as_code
    if mask is None or typed is None or typed.matches is None:
        return None
    from memory_store.search.legs.code_rules import code_list

    return code_list(typed.matches, mask, search)


def _like_list(search: Search) -> LegList | None:
    """The memories that share the telling words of one, as a share of what the best one shares.

    Only its own collection is looked at and counted in: nowhere else the hashes mean anything.
    """
    like, snapshot, recipe = search.analysis.like, search.snapshot, search.recipe
    if like is None or not like.terms:
        return None
    found = keyword_scores(
        snapshot,
        like.terms,
        k1=recipe.k1,
        b=recipe.b,
        title_weight=recipe.title_weight,
        mask=search.analysis.mask,
        visible=(like.collection,),
    )
    best = partial(top_k, snapshot, found.ordinals, found.scores)
    top = enough(best, "keyword", LIKE, search)
    strengths = top.scores / top.scores[:1]
    return LegList.of(
        "keyword", LIKE, ordinals=top.ordinals, scores=top.scores, strengths=strengths
    )


def _list(kind: str, groups: Sequence[HashGroup], search: Search, weighed: bool = True) -> LegList:
    """The list of ``kind`` for some words, each a group of hashes, by BM25; ``weighed``: with the
    share of them that each memory holds, where the recipe counts that."""
    snapshot, recipe, mask = search.snapshot, search.recipe, search.analysis.mask
    matches = look_up(snapshot, groups)
    found = bm25(
        snapshot,
        matches,
        k1=recipe.k1,
        b=recipe.b,
        title_weight=recipe.title_weight,
        mask=mask,
    )
    holding = len(found.ordinals)
    if recipe.has_code_rules:
        from memory_store.search.legs.code_rules import code_ranked

        found = code_ranked(found, search, recipe)
    near = neighbours_for(search)
    if near is not None:
        found = lifted_keywords(found, near, search)
    best = partial(top_k, snapshot, found.ordinals, found.scores)
    top = enough(best, "keyword", kind, search)
    own = held = np.empty(0)
    weighed = weighed and bool(recipe.coverage_power)
    if weighed and near is not None:
        own, held = lifted_coverage(matches, top.ordinals, near, search)
    elif weighed:
        held = covered(snapshot, matches, top.ordinals)
    listed = LegList.of(
        "keyword",
        kind,
        holding,
        ordinals=top.ordinals,
        scores=top.scores,
        strengths=held,
        own_strengths=own,
    )
    return replace(listed, matches=matches, every=found)
