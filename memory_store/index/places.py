"""Places: the source and the folder that each memory was imported from, as an extra part.

Boundary: paths in plain text until they are sealed with their segment.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.extras import RecordRows, Records

MOST_DEPTH = 16  # folders within folders that are told apart
Numbered = tuple[npt.NDArray[np.int32], tuple[int, ...]]
"""int32 [n]: the number of each document's place; and a row that has each."""
_numbered: WeakKeyDictionary[RecordRows, Numbered] = WeakKeyDictionary()


class Place(Struct, frozen=True, array_like=True):
    """Where a memory lies: ``folder`` in its ``source``, with slashes, empty at its top. Both are
    empty for what was not imported from files."""

    source: str = ""
    folder: str = ""


PLACES = Records("place", Place)


def place_in(source: str | None, ref: str | None) -> Place:
    """The place of a memory of that source and name in it; an address is no path."""
    path = (ref or "").replace("\\", "/")
    if not source or not path or "://" in path or path.startswith("/"):
        return Place()
    folder = posixpath.dirname(posixpath.normpath(path))
    return Place(source, "/".join(folder.split("/")[:MOST_DEPTH]))


def numbered_sources(extra: RecordRows, numbers: dict[str, int]) -> npt.NDArray[np.int32]:
    """int32 [n]: the number of each document's source, from 1; 0 for what came from none.

    ``numbers`` are those that sources have so far; new ones are added.
    """
    of_record = {b"": 0}
    found = np.zeros(len(extra.there), np.int32)
    for row in range(len(found)):
        encoded = extra.of(row)
        if encoded not in of_record:  # few folders, many documents
            place = PLACES.record(extra, row)
            source = place.source if place is not None else ""
            of_record[encoded] = numbers.setdefault(source, len(numbers) + 1) if source else 0
        found[row] = of_record[encoded]
    return found


def numbered_places(extra: RecordRows) -> Numbered:
    """The places of a segment as numbers, kept as long as it is."""
    if (kept := _numbered.get(extra)) is None:
        numbers: dict[bytes, int] = {}
        first: list[int] = []
        found = np.zeros(len(extra.there), np.int32)
        for row in range(len(found)):
            number = numbers.setdefault(extra.of(row), len(numbers))
            if number == len(first):
                first.append(row)
            found[row] = number
        kept = _numbered[extra] = found, tuple(first)
    return kept


def folders_above(folder: str) -> Iterator[str]:
    """A folder, and those that it lies in."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
