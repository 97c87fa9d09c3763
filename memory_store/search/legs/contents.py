"""Contents: a list is as deep as the plan says in different ones, and one memory stands for each.

Boundary: contents are compared by their keyed tags; nothing is opened, and what the caller may not
read is compared with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from memory_store.search.candidates import LegList, first_places
from memory_store.search.query.plan import Search

_STANDING = ("topic", "keyword", "vector")  # whose memory stands for those of equal content
_COLUMNS = ("scores", "windows", "strengths", "own_strengths")


class Listed(Protocol):
    """Memories in an order, with whatever else is known of them."""

    @property
    def ordinals(self) -> Any:
        """The memories, each once: a sequence of numbers or an array."""
        ...


Ranked = TypeVar("Ranked", bound=Listed)


def enough(fetch: Callable[[int], Ranked], leg: str, kind: str, search: Search) -> Ranked:
    """A list long enough that its depth is left of it when equal contents are counted once.

    Starts with the recipe's over-fetch where several collections are searched (published copies
    are expected there), and doubles as long as copies fill the list.
    """
    snapshot, depth = search.snapshot, search.plan.depth_of(leg, kind)
    several = len(snapshot.collections) > 1
    k = math.ceil(depth * search.recipe.over_fetch) if several else depth
    while True:
        found = fetch(k)
        if len(found.ordinals) < k or _each_counts(search, found.ordinals):
            return found
        if len(set(search.context.contents(found.ordinals))) >= depth:
            return found
        k *= 2


def deduplicated(lists: Sequence[LegList], search: Search) -> tuple[LegList, ...]:
    """The lists with one memory for each content, the same one in every list.

    Of memories that share a content the one a topic found stands for all, else the first of the
    keyword list, else of the vector list. One that is sealed to the caller stands for itself, and
    so do all where metadata must match.
    """
    by_leg = sorted(lists, key=lambda one: _STANDING.index(one.leg))
    found = list(dict.fromkeys(chain.from_iterable(one.ordinals for one in by_leg)))
    stands_for: dict[int, int] = {}
    if not _each_counts(search, found):
        tags = search.context.contents(found)
        standing = first_places(tags, found)
        stands_for = dict(zip(found, map(standing.__getitem__, tags), strict=True))
    unique = []
    for one in lists:
        depth = search.plan.depth_of(one.leg, one.kind)
        if stands_for or len(one.ordinals) > depth:
            standing_for = [stands_for.get(ordinal, ordinal) for ordinal in one.ordinals]
            places = first_places(standing_for, range(len(standing_for)))
            ordinals = tuple(dict.fromkeys(standing_for))[:depth]
            if ordinals != one.ordinals:
                picked = _picked(one, [places[ordinal] for ordinal in ordinals])
                one = replace(picked, ordinals=ordinals)
        unique.append(one)
    return tuple(_of_one_model(unique))


def _each_counts(search: Search, ordinals: Sequence[int]) -> bool:
    """Whether each memory stands for itself: all contents differ, or metadata must match, which
    only opened memories show, and which those of equal content need not share."""
    return bool(search.options.conditions) or search.snapshot.differ(ordinals)


def _of_one_model(lists: Sequence[LegList]) -> list[LegList]:
    """The lists with each memory in those of one model: equal contents may have been in two."""
    if len({one.model for one in lists if one.model}) < 2:
        return list(lists)
    claimed: dict[int, str] = {}
    for one in lists:
        if one.model:
            claimed = dict.fromkeys(one.ordinals, one.model) | claimed
    kept = []
    for one in lists:
        own = [n for n, o in enumerate(one.ordinals) if claimed.get(o) in (None, one.model)]
        several = one.model and len(own) < len(one.ordinals)
        kept.append(_picked(one, own) if several else one)
    return kept


def _picked(one: LegList, places: Sequence[int]) -> LegList:
    """The list with some of its places."""
    columns = {name: getattr(one, name) for name in ("ordinals", *_COLUMNS)}
    return replace(
        one, **{name: tuple(c[place] for place in places) for name, c in columns.items() if c}
    )
