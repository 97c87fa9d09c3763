"""Selection: which of the results to keep, by the values that facets count.

A filter decides what a search looks through; a selection (the option ``narrow``), what of its
result is shown. The order stays the same, so that a facet's number comes true when its value is
chosen.

Boundary: opens nothing. A topic is looked up as its keyed hash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.index.places import folders_above
from memory_store.index.topics import with_topic
from memory_store.records import base_type
from memory_store.search.context import SearchContext
from memory_store.search.query.analysis import Blinding
from memory_store.text.canonical import normalise_topic

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask

NAMING = frozenset({"collection", "topic", "folder"})  # counted where names may be read alone
SEVERAL = frozenset({"topic", "folder"})  # of which a memory has several: all chosen ones count

_YEAR = re.compile(r"created:\d{4}", re.ASCII)
_PERIOD = re.compile(r"\d{4}(-(0[1-9]|1[0-2]))?", re.ASCII)


class Narrowing(Struct, frozen=True):
    """What is kept: facet → bool [documents], nothing chosen of a facet: no mask; ``mask``: by all.

    Of one facet any value will do, of topics and folders all must be there. ``by_year``: a
    year was chosen.
    """

    masks: Mapping[str, Mask]
    mask: Mask
    by_year: bool = False

    def besides(self, facet: str) -> Mask | None:
        """bool [documents]: what the others keep, for a facet of which any value will do."""
        others = [mask for name, mask in self.masks.items() if name != facet or name in SEVERAL]
        return np.logical_and.reduce(others) if others else None


def narrowing(context: SearchContext, chosen: Sequence[str]) -> Narrowing | None:
    """The masks of ``FACET:VALUE`` texts; ``None`` where nothing was chosen.

    Raises :class:`BadInputError` (parameter ``narrow``) for what is no facet or none of its values.
    """
    if not chosen:
        return None
    masks: dict[str, Mask] = {}
    for facet, value in map(facet_and_value, chosen):
        mask = _FACETS[facet](context, value) & countable(context, facet)
        if facet not in masks:
            masks[facet] = mask
        elif facet in SEVERAL:
            masks[facet] = masks[facet] & mask
        else:
            masks[facet] = masks[facet] | mask
    by_year = any(_YEAR.fullmatch(text) for text in chosen)
    return Narrowing(masks, np.logical_and.reduce(list(masks.values())), by_year)


def countable(context: SearchContext, facet: str) -> Mask:
    """bool [documents]: those a facet counts, and narrowing by it keeps.

    Names are shown of those collections alone that the caller may read.
    """
    snapshot = context.snapshot
    if facet in NAMING:
        return snapshot.visible(set(snapshot.collections) - context.unnamed)
    return snapshot.alive


def facet_and_value(text: str) -> tuple[str, str]:
    """``type:note`` taken apart. Raises :class:`BadInputError`."""
    facet, _, value = text.partition(":")
    if facet not in _FACETS or not value:
        names = ", ".join(_FACETS)
        raise BadInputError(f"narrow: {text!r} is not FACET:VALUE; facets are {names}", "narrow")
    return facet, value


def periods(created: npt.NDArray[np.float64], unit: str) -> npt.NDArray[np.datetime64]:
    """The months (``unit`` M) or years (Y) that some times are in."""
    seconds = created.astype(np.int64).astype("datetime64[s]")
    return seconds.astype(f"datetime64[{unit}]")


def _of_type(context: SearchContext, value: str) -> Mask:
    codes = [n for n, name in enumerate(context.snapshot.types) if base_type(name) == value]
    return np.isin(context.snapshot.type_codes, codes)


def _of_status(context: SearchContext, value: str) -> Mask:
    if value not in ("open", "done"):
        raise BadInputError(f"narrow: the status {value!r} is not open or done", "narrow")
    return context.snapshot.done if value == "done" else ~context.snapshot.done


def _of_collection(context: SearchContext, value: str) -> Mask:
    names = context.collection_names
    wanted = [n for n, id_ in enumerate(context.snapshot.collections) if names.get(id_) == value]
    return np.isin(context.snapshot.collection_codes, wanted)


def _of_topic(context: SearchContext, value: str) -> Mask:
    topic = normalise_topic(value)
    if not topic:
        raise BadInputError(f"narrow: {value!r} is no topic", "narrow")
    return with_topic(context.snapshot, Blinding(context).topics([topic]))


def _of_folder(context: SearchContext, value: str) -> Mask:
    mask = np.zeros(context.snapshot.size, np.bool_)
    for part, numbers, named in context.folders():
        wanted = [n for n in np.unique(numbers).tolist() if value in folders_above(named(n))]
        mask[part.span] = np.isin(numbers, wanted)
    return mask


def _of_period(context: SearchContext, value: str) -> Mask:
    if not _PERIOD.fullmatch(value):
        raise BadInputError(f"narrow: {value!r} is no year and no month (2025-04)", "narrow")
    created = context.snapshot.created
    mask: Mask = periods(created, "M" if "-" in value else "Y") == np.datetime64(value)
    return mask


_FACETS: Mapping[str, Callable[[SearchContext, str], Any]] = {
    "type": _of_type,
    "status": _of_status,
    "collection": _of_collection,
    "topic": _of_topic,
    "folder": _of_folder,
    "created": _of_period,
}
