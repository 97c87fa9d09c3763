"""Extra parts of a segment: what is known of each document besides words, topics and vectors.

Boundary: a record is as sensitive as the text it was made of. Records are bytes here, in arrays
that can be overwritten; they are sealed before they reach a disk, and unsealed when asked for.

A *kind* has a name and decides how the records of a segment's documents are kept: side by side
(:class:`Records`), or in a form of its own (an :class:`ExtraKind` with its own ``collect`` and
``merge``). Each segment has a part for every kind that any of its documents has a record of; a
document that was indexed before a kind existed has none, until ``reindex`` makes it.

To add a kind: a module of this room with a ``Records("name", Struct)``, its line in
:data:`memory_store.index.kinds.KINDS`, and in :data:`memory_store.session.entries.RECORDS` the
function that makes a document's record from its memory and language. Read it with
:func:`memory_store.session.extras.rows`. A later change of the struct adds fields with defaults,
or is a new kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import MsgspecError, Struct, msgpack

from memory_store.index.columns import ColumnReader, pack_planes

if TYPE_CHECKING:
    from memory_store.index.layout import Segment

T = TypeVar("T", bound=Struct)

Rows = npt.NDArray[np.intp]


class Extra(ABC):
    """An extra part, decoded. Its fields are arrays, so that a wipe finds them."""

    @property
    @abstractmethod
    def there(self) -> npt.NDArray[np.bool_]:
        """bool [n]: the documents that have a record."""


class Source:
    """A segment that is merged: its part (``None``: it has none), and its living rows."""

    def __init__(self, segment: Segment, extra: Any, rows: Rows) -> None:
        self.segment, self.extra, self.rows = segment, extra, rows


class ExtraKind(Protocol):
    """How one kind of record is kept in a segment."""

    name: str

    def collect(self, records: Sequence[bytes], segment: Segment) -> Extra:
        """The part of a new segment: one record a document, ``b""`` where there is none."""

    def merge(self, sources: Sequence[Source], merged: Segment) -> Extra:
        """The part of ``merged``, which holds the living rows of the sources one after another."""

    def encode(self, extra: Any) -> list[bytes | bytearray]:
        """Its columns."""

    def decode(self, reader: ColumnReader, segment: Segment) -> Extra:
        """The part in columns. Raises ValueError when they are not of that segment."""


@dataclass(frozen=True, eq=False)
class RecordRows(Extra):
    """Records side by side: that of row ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    @property
    def there(self) -> npt.NDArray[np.bool_]:
        return np.diff(self.offsets) > 0

    def of(self, row: int) -> bytes:
        """The record of one row; empty where there is none."""
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()


class Records(Generic[T]):
    """The plain kind: each document's record, a msgspec struct as MessagePack."""

    def __init__(self, name: str, struct: type[T]) -> None:
        self.name = name
        self._decoder = msgpack.Decoder(struct)

    def record(self, extra: Any, row: int) -> T | None:
        """The record of one row, ``None`` where there is none. Raises ValueError."""
        encoded = extra.of(row)
        if not encoded:
            return None
        try:
            return self._decoder.decode(encoded)
        except MsgspecError as error:
            raise ValueError(f"segment: no record of the kind {self.name}: {error}") from None

    def collect(self, records: Sequence[bytes], segment: Segment) -> RecordRows:
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        return RecordRows(_ends(lengths), _bytes(b"".join(records)))

    def merge(self, sources: Sequence[Source], merged: Segment) -> RecordRows:
        lengths, pieces = [], []
        for source in sources:
            if source.extra is None:
                lengths.append(np.zeros(len(source.rows), np.int64))
                continue
            each = np.diff(source.extra.offsets)
            alive = np.zeros(len(each), np.bool_)
            alive[source.rows] = True
            lengths.append(each[source.rows])
            pieces.append(source.extra.data[np.repeat(alive, each)])
        data = np.concatenate([np.empty(0, np.uint8), *pieces])
        for piece in pieces:
            piece.fill(0)
        return RecordRows(_ends(np.concatenate(lengths)), data)

    def encode(self, extra: Any) -> list[bytes | bytearray]:
        lengths = np.diff(extra.offsets).astype("<u4")
        return [pack_planes(lengths), pack_planes(extra.data)]

    def decode(self, reader: ColumnReader, segment: Segment) -> RecordRows:
        ends = _ends(reader.take(["<u4"], segment.count))
        return RecordRows(ends, reader.take(["u1"], int(ends[-1])))


def _ends(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(bytearray(data), np.uint8)  # a bytearray, so that it can be wiped
