"""How long a leg's list is: as deep as the plan says, counted in different contents.

Boundary: contents are told apart by their keyed tags; nothing is opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from memory_store.search.candidates import LegList
from memory_store.search.context import SearchContext
from memory_store.search.likeness import LIKE
from memory_store.search.recipes import Recipe


def depth_of(leg: str, kind: str, depths: Mapping[str, int]) -> int:
    """How long a list may be: as ``depths`` says for its leg, or for a ``variant``."""
    usual = depths.get(leg, 0)
    return usual if kind in ("original", LIKE) else depths.get("variant", usual)


def enough(
    fetch: Callable[[int], LegList], depth: int, context: SearchContext, recipe: Recipe
) -> LegList:
    """A list long enough that ``depth`` are left of it when equal contents are counted once.

    Starts with the recipe's over-fetch where several collections are searched (published copies
    are expected there), and doubles as long as copies fill the list.
    """
    k = depth
    if len(context.snapshot.collections) > 1:
        k = math.ceil(depth * recipe.over_fetch)
    snapshot = context.snapshot
    while True:
        found = fetch(k)
        if len(found.ordinals) < k or snapshot.differ(found.ordinals):
            return found
        if len(set(snapshot.tags_of(found.ordinals))) >= depth:
            return found
        k *= 2
