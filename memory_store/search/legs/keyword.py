"""The keyword leg: BM25 over keyed hashes of words, for the query and each ``lex`` variant.

For a memory that others should be like, the words are its most telling ones.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.terms import bm25, covered, keyword_scores, look_up, top_k
from memory_store.search.candidates import Fetched, LegList
from memory_store.search.context import SearchContext
from memory_store.search.legs.depth import depth_of, enough
from memory_store.search.legs.neighbours import lifted_coverage, lifted_keywords, neighbours_for
from memory_store.search.query.analysis import Analysis
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.recipes import Recipe

if TYPE_CHECKING:
    from memory_store.index.snapshot import HashGroup


def keyword_leg(
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    depths: Mapping[str, int],
    probe: LegList | None,
) -> Fetched:
    """BM25 over the query as typed, and over each ``lex`` variant."""
    probe = probe or probe_keywords(analysis, context, recipe, depths)
    variants = [
        keyword_list("lex", groups, analysis, context, recipe, depth_of("keyword", "lex", depths))
        for groups in analysis.variant_groups
        if groups
    ]
    alike = like_list(analysis, context, recipe, depth_of("keyword", LIKE, depths))
    return Fetched((*((probe,) if probe else ()), *variants, *alike))


def probe_keywords(
    analysis: Analysis, context: SearchContext, recipe: Recipe, depths: Mapping[str, int]
) -> LegList | None:
    """The keyword leg's list for the query as typed; ``None`` for a query without words."""
    if not analysis.groups:
        return None
    return keyword_list("original", analysis.groups, analysis, context, recipe, depths["keyword"])


def like_list(
    analysis: Analysis, context: SearchContext, recipe: Recipe, depth: int
) -> tuple[LegList, ...]:
    """The memories that share the telling words of one, as a share of what the best one shares.

    Only its own collection is looked at and counted in: nowhere else the hashes mean anything.
    """
    like, snapshot = analysis.like, context.snapshot
    if like is None or not like.terms:
        return ()
    own = (like.collection,)
    found = keyword_scores(
        snapshot,
        like.terms,
        k1=recipe.k1,
        b=recipe.b,
        title_weight=recipe.title_weight,
        mask=analysis.mask,
        visible=own,
    )

    best = partial(top_k, snapshot, found.ordinals, found.scores)
    top = enough(best, depth, context, recipe)
    scores = tuple(top.scores.tolist())
    strengths = tuple(score / scores[0] for score in scores)
    return (LegList("keyword", tuple(top.ordinals.tolist()), scores, LIKE, strengths=strengths),)


def keyword_list(
    kind: str,
    groups: Sequence[HashGroup],
    analysis: Analysis,
    context: SearchContext,
    recipe: Recipe,
    depth: int,
) -> LegList:
    """The keyword leg's list of ``kind`` for some words, each a group of hashes, by BM25."""
    snapshot = context.snapshot
    matches = look_up(snapshot, groups)
    found = bm25(
        snapshot,
        matches,
        k1=recipe.k1,
        b=recipe.b,
        title_weight=recipe.title_weight,
        mask=analysis.mask,
    )
    holding = len(found.ordinals)
    near = neighbours_for(snapshot, recipe)
    if near is not None:
        found = lifted_keywords(found, near, recipe, analysis.mask)

    best = partial(top_k, snapshot, found.ordinals, found.scores)
    top = enough(best, depth, context, recipe)
    own = held = np.empty(0)
    if recipe.coverage_power and near is not None:
        own, held = lifted_coverage(snapshot, matches, top.ordinals, near, recipe, analysis.mask)
    elif recipe.coverage_power:
        held = covered(snapshot, matches, top.ordinals)
    return LegList(
        "keyword",
        tuple(top.ordinals.tolist()),
        tuple(top.scores.tolist()),
        kind,
        strengths=tuple(held.tolist()),
        own_strengths=tuple(own.tolist()),
        holding=holding,
    )
