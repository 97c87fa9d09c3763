"""Where the postings of each word lie, in all segments of a snapshot.

A collection of 10,000 memories has ten segments or more, so eight words are looked up eighty
times, and most of that is waiting for memory. One sorted table of all segments' hashes takes a
tenth of the time. It is made once a snapshot has been searched a few times: who searches once
after each write would make it for nothing.

Boundary: keyed hashes and row numbers. A table is overwritten when no search uses it any more:
that is what a lock and a newer snapshot leave it to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.layout import Postings

if TYPE_CHECKING:
    from memory_store.index.snapshot import Part, Snapshot

WORTH_A_TABLE = 4  # look-ups before it is made: it costs as much as fifteen of them save
FEW_SEGMENTS = 2  # up to here they are asked one by one

Hashes = npt.NDArray[np.uint64]
Piece = tuple[int, Array, Array, Array]
"""The postings of one word in one segment: where its rows begin, the rows, how often the word
stands in their titles and bodies. A plain tuple: sixty are made in a search.
"""


class Terms:
    """The terms of one collection in a snapshot; ``table`` is there once it is worth it."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._postings = [part.segment.terms for part in parts]
        self._columns = [
            (p.base, p.segment.terms.docs, p.segment.title_counts, p.segment.body_counts)
            for p in parts
        ]
        self._asked = 0
        self.table: Table | None = None

    def pieces(self, wanted: Hashes) -> Iterator[tuple[int, Piece]]:
        """The postings of each hash of ``wanted`` in each segment: ``(index in wanted, piece)``."""
        for index, number, start, end in self._places(wanted):
            base, docs, titles, bodies = self._columns[number]
            yield index, (base, docs[start:end], titles[start:end], bodies[start:end])

    def _places(self, wanted: Hashes) -> list[tuple[int, int, int, int]]:
        """``(index in wanted, segment, start, end)`` of all postings."""
        self._asked += 1
        if self._asked > WORTH_A_TABLE and len(self._postings) > FEW_SEGMENTS:
            if self.table is None:  # two threads may both make one: either serves
                self.table = Table(self._postings)
            return self.table.places(wanted)
        return [
            (index, number, start, end)
            for number, postings in enumerate(self._postings)
            for index, start, end in postings.slices(wanted)
        ]


class Table:
    """``keys`` uint64 [n] ascending, those of all segments, and where the ``postings`` of each lie:
    uint32 [n, 3], its segment, their start and their end there. 20 bytes a key."""

    def __init__(self, postings: Sequence[Postings]) -> None:
        keys = np.concatenate([one.keys for one in postings])
        order = keys.argsort(kind="stable")  # quick for what is sorted in runs
        sizes = [len(one.keys) for one in postings]
        self.keys = keys[order]
        places = np.empty((len(keys), 3), dtype=np.uint32)
        places[:, 0] = np.arange(len(postings)).repeat(sizes)
        places[:, 1] = np.concatenate([one.offsets[:-1] for one in postings])
        places[:, 2] = np.concatenate([one.offsets[1:] for one in postings])
        self.postings = places[order]
        keys.fill(0)
        places.fill(0)

    def places(self, wanted: Hashes) -> list[tuple[int, int, int, int]]:
        """``(index in wanted, segment, start, end)`` of all postings, those of a hash in a row."""
        firsts = self.keys.searchsorted(wanted).tolist()
        lasts = self.keys.searchsorted(wanted, side="right").tolist()
        return [
            (index, segment, start, end)
            for index, (first, last) in enumerate(zip(firsts, lasts, strict=True))
            for segment, start, end in self.postings[first:last].tolist()
        ]

    def __del__(self) -> None:
        for array in vars(self).values():
            array.fill(0)


def terms_of(snapshot: Snapshot) -> dict[str, Terms]:
    """Collection → its terms."""

    def made() -> dict[str, Terms]:
        parts: dict[str, list[Part]] = {collection: [] for collection in snapshot.collections}
        for part in snapshot.parts:
            parts[part.collection].append(part)
        return {collection: Terms(own) for collection, own in parts.items()}

    found: dict[str, Terms] = snapshot.worked_out("terms", made)
    return found
