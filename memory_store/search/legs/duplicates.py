"""Deduplication: memories of one content count once, and the same one stands for it in every list.

Boundary: contents are compared by their keyed tags; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from memory_store.search.candidates import LegList, first_places
from memory_store.search.context import SearchContext
from memory_store.search.legs.depth import depth_of

_STANDING = ("topic", "keyword", "vector")  # whose memory stands for those of equal content


def deduplicated(
    lists: Sequence[LegList], context: SearchContext, depths: Mapping[str, int]
) -> tuple[LegList, ...]:
    """The lists with one memory for each content, the same one in every list.

    Of memories that share a content the one a topic found stands for all, else the first of the
    keyword list, else of the vector list. One that the caller may read goes before one that is
    sealed to them, which would otherwise hide the copy that was published for them.
    """
    found: Sequence[int] = lists[0].ordinals if lists else ()
    if len(lists) > 1:
        by_leg = sorted(lists, key=lambda one: _STANDING.index(one.leg))
        found = list(dict.fromkeys(chain.from_iterable(one.ordinals for one in by_leg)))
    stands_for = {} if context.snapshot.differ(found) else _stand_for(found, context)
    unique = [_unique(one, stands_for, depth_of(one.leg, one.kind, depths)) for one in lists]
    return tuple(_of_one_model(unique))


def _stand_for(found: Sequence[int], context: SearchContext) -> dict[int, int]:
    """Ordinal → the one that stands for its content."""
    if context.unnamed:
        snapshot = context.snapshot
        found = sorted(found, key=lambda one: snapshot.collection(one) in context.unnamed)
    tags = context.snapshot.tags_of(found)
    standing = first_places(tags, found)
    return dict(zip(found, map(standing.__getitem__, tags), strict=True))


def _unique(one: LegList, stands_for: Mapping[int, int], depth: int) -> LegList:
    if not stands_for and len(one.ordinals) <= depth:
        return one
    standing = [stands_for.get(ordinal, ordinal) for ordinal in one.ordinals]
    ordinals = tuple(dict.fromkeys(standing))[:depth]
    if ordinals == one.ordinals:
        return one
    places = first_places(standing, range(len(standing)))
    return replace(_picked(one, [places[ordinal] for ordinal in ordinals]), ordinals=ordinals)


def _of_one_model(lists: Sequence[LegList]) -> Iterator[LegList]:
    """The lists with each memory in those of one model: equal contents may have been in two."""
    if len({one.model for one in lists if one.model}) < 2:
        yield from lists
        return
    claimed: dict[int, str] = {}
    for one in lists:
        if one.model:
            for ordinal in one.ordinals:
                claimed.setdefault(ordinal, one.model)
    for one in lists:
        own = [n for n, o in enumerate(one.ordinals) if claimed.get(o) in (None, one.model)]
        several = one.model and len(own) < len(one.ordinals)
        yield _picked(one, own) if several else one


def _picked(one: LegList, places: Sequence[int]) -> LegList:
    """The list with some of its places."""
    return replace(
        one,
        ordinals=tuple(one.ordinals[place] for place in places),
        scores=tuple(one.scores[place] for place in places),
        windows=tuple(one.windows[place] for place in places) if one.windows else (),
        strengths=tuple(one.strengths[place] for place in places) if one.strengths else (),
        own_strengths=tuple(one.own_strengths[n] for n in places) if one.own_strengths else (),
    )
