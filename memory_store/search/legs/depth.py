"""How long a leg's list is: as deep as the plan says, counted in different contents.

Boundary: contents are compared by their keyed tags; nothing is opened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from memory_store.search.context import SearchContext
from memory_store.search.query.more_like_this import LIKE
from memory_store.search.recipes import Recipe


class Listed(Protocol):
    """Memories in an order, with whatever else is known of them."""

    @property
    def ordinals(self) -> Any:
        """The memories, each once: a sequence of numbers or an array."""
        ...


Ranked = TypeVar("Ranked", bound=Listed)


def depth_of(leg: str, kind: str, depths: Mapping[str, int]) -> int:
    """How long a list may be: as ``depths`` says for its leg, or for a ``variant``."""
    usual = depths.get(leg, 0)
    return usual if kind in ("original", LIKE) else depths.get("variant", usual)


def enough(
    fetch: Callable[[int], Ranked], depth: int, context: SearchContext, recipe: Recipe
) -> Ranked:
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
