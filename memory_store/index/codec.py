"""A segment as three byte strings, and back.

Boundary: the bytes come out of an authenticated envelope, yet are not trusted: anything cut,
garbled or inconsistent is a ``ValueError``, found before the segment is used (vectors and pairs:
before *they* are used), in memory bounded as ``columns`` describes. No pickle.

Every part is 16 bytes of header, then columns: magic ``MSEG``, format version, part number,
two zero bytes, CRC-32 of the rest, four zero bytes. The checksum catches accidents and programming
errors; it is no protection, which is the envelope's work.

*main*: one row of sizes (documents, windows, dimensions), names, then the columns in the order of
:func:`encode_main`; version 1 of it had no row tags, version 2 no names of extra parts. *vectors*:
float16, raw. *pairs*: ascending hashes and their rows. An *extra part* has the columns of its kind
(:mod:`memory_store.index.extras`).
"""

from __future__ import annotations

import functools
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array, Buffer, ColumnReader, pack_planes, pack_raw, row_dtype
from memory_store.index.extras import Extra
from memory_store.index.kinds import KINDS
from memory_store.index.layout import NUMBERS, TAGS, Late, Pairs, Postings, Segment

FORMAT_VERSION = 1
TAGGED_VERSION = 2  # of main, since rows have tags
NAMED_VERSION = 3  # of main, since it names the extra parts
MAX_DIMENSIONS = 8_192  # the widest embedding models in use have 4,096
MAX_NAME_BYTES = 1 << 20

_MAGIC = b"MSEG"
_HEADER = struct.Struct("<4sBBHII")
_MAIN, _VECTORS, _PAIRS, _EXTRA = 1, 2, 3, 4
_COUNTS = ("<u1", "<u2", "<u4")

Part = Buffer | Callable[[], Buffer]
"""A part's bytes, or a function that fetches (and unseals) them when they are first needed."""


class SegmentParts(NamedTuple):
    """An encoded segment. Only ``main`` is needed to search by word and topic."""

    main: bytearray
    vectors: bytearray
    pairs: bytearray

    def wipe(self) -> None:
        """Overwrite the parts with zeros, once they are sealed."""
        for part in self:
            part[:] = bytes(len(part))


def encode(segment: Segment) -> SegmentParts:
    """The segment's bytes. Equal segments give equal bytes."""
    return SegmentParts(
        main=encode_main(segment),
        vectors=_framed(_VECTORS, [pack_raw(segment.vectors.astype("<f2", copy=False))]),
        pairs=_framed(
            _PAIRS,
            [pack_planes(segment.pairs.hashes, delta=True), pack_planes(segment.pairs.docs)],
        ),
    )


def encode_main(segment: Segment) -> bytearray:
    """The part ``main`` alone, as in :func:`encode`."""
    sizes = np.array([segment.count, segment.windows, segment.dimensions], dtype="<u8")
    if segment.row_tags is None:
        raise ValueError("segment: its rows have no tags yet")
    return _framed(
        _MAIN,
        [
            pack_raw(sizes),
            _packed_names(segment.types),
            _packed_names(segment.languages),
            *(pack_raw(getattr(segment, name)) for name in TAGS),
            *(pack_planes(getattr(segment, name)) for name in NUMBERS),
            *_packed_postings(segment.terms),
            pack_planes(segment.title_counts),
            pack_planes(segment.body_counts),
            *_packed_postings(segment.topics),
            pack_planes(np.diff(segment.window_offsets).astype("<u4")),
            pack_planes(segment.window_starts),
            pack_planes(segment.window_ends),
            _packed_names(segment.kinds),
            _packed_names(segment.partial),
        ],
    )


def encode_extras(segment: Segment) -> dict[str, bytearray]:
    """The bytes of a segment's extra parts, by kind."""
    return {
        name: _framed(_EXTRA, KINDS[name].encode(late.get()))
        for name, late in segment.extras.items()
    }


def _no_extras(kind: str) -> Buffer:
    raise ValueError(f"segment: its extra part {kind} is not at hand")


def decode(
    main: Buffer,
    vectors: Part,
    pairs: Part,
    extra: Callable[[str], Buffer] = _no_extras,
    kept: Callable[[Segment], Segment] | None = None,
) -> Segment:
    """The segment in ``main``; its vectors, pairs and extra parts (which ``extra`` fetches by
    kind) are read when first asked for. ``kept`` makes of the segment what is kept of it.

    Pass ``bytearray``s to let raw columns and vectors be views into them, so that wiping the
    segment wipes them too; ``bytes`` are copied. Raises ``ValueError`` when ``main`` is not valid.
    ``Segment.vectors`` and ``Segment.pairs`` raise the same for their parts.
    """
    reader = _opened(main, _MAIN)
    count, windows, dimensions = (int(n) for n in reader.take(["<u8"], 3))
    if dimensions > MAX_DIMENSIONS:
        raise ValueError("segment: too many dimensions")
    types, languages = _names(reader), _names(reader)
    version = memoryview(main).cast("B")[len(_MAGIC)]
    columns: dict[str, Any] = {"row_tags": None}
    for name in TAGS if version >= TAGGED_VERSION else TAGS[:-1]:
        columns[name] = reader.take(["u1"], 16 * count).reshape(-1, 16)
    columns |= {name: reader.take([kind], count) for name, kind in NUMBERS.items()}
    _below(columns["type_codes"], len(types))
    _below(columns["language_codes"], len(languages))
    terms = _postings(reader, count)
    titles = reader.take(_COUNTS, len(terms.docs))
    bodies = reader.take(_COUNTS, len(terms.docs))
    topics = _postings(reader, count)
    offsets = _offsets(reader.take(["<u4"], count), windows)
    starts, ends = (reader.take(["<u4"], windows) for _ in range(2))
    kinds, partial = (_names(reader), _names(reader)) if version >= NAMED_VERSION else ((), ())
    reader.finish()
    segment = Segment(
        count=count,
        dimensions=dimensions,
        **columns,
        types=types,
        languages=languages,
        terms=terms,
        title_counts=titles,
        body_counts=bodies,
        topics=topics,
        window_offsets=offsets,
        window_starts=starts,
        window_ends=ends,
        late_vectors=Late(
            lambda: _decode_vectors(vectors, windows, dimensions),
            buffer=None if callable(vectors) else vectors,
        ),
        late_pairs=Late(lambda: _decode_pairs(pairs, count)),
        kinds=kinds,
        partial=partial,
    )
    segment = segment if kept is None else kept(segment)
    extras = {
        kind: Late(functools.partial(_decode_extra, extra, kind, segment))
        for kind in kinds
        if kind in KINDS
    }
    return replace(segment, extras=extras)


def _packed_postings(postings: Postings) -> list[bytes | bytearray]:
    return [
        pack_raw(postings.keys),
        pack_planes(np.diff(postings.offsets).astype("<u4")),
        pack_planes(postings.docs, delta=True),
    ]


def _packed_names(names: tuple[str, ...]) -> bytes:
    return pack_planes(np.frombuffer(json.dumps(names).encode(), dtype=np.uint8))


def _framed(part: int, columns: list[bytes | bytearray]) -> bytearray:
    framed = bytearray().join((bytes(_HEADER.size), *columns))
    checksum = zlib.crc32(memoryview(framed)[_HEADER.size :])
    version = NAMED_VERSION if part == _MAIN else FORMAT_VERSION
    _HEADER.pack_into(framed, 0, _MAGIC, version, part, 0, checksum, 0)
    for column in columns:
        if isinstance(column, bytearray):  # holds vectors or keyed hashes as they are
            column[:] = bytes(len(column))
    return framed


def _opened(buffer: Buffer, part: int) -> ColumnReader:
    view = memoryview(buffer).cast("B")
    if len(view) < _HEADER.size:
        raise ValueError("segment: cut short")
    magic, version, number, zero, checksum, zeros = _HEADER.unpack(view[: _HEADER.size])
    if magic != _MAGIC or number != part or zero or zeros:
        raise ValueError("segment: not a segment of this kind")
    if not FORMAT_VERSION <= version <= (NAMED_VERSION if part == _MAIN else FORMAT_VERSION):
        raise ValueError(f"segment: format {version} is not known")
    if zlib.crc32(view[_HEADER.size :]) != checksum:
        raise ValueError("segment: garbled")
    return ColumnReader(view, _HEADER.size)


def _names(reader: ColumnReader) -> tuple[str, ...]:
    data = reader.take(["u1"]).tobytes()
    if len(data) > MAX_NAME_BYTES:
        raise ValueError("segment: names are too long")
    try:
        names = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError("segment: names are not valid") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("segment: names are not valid")
    return tuple(names)


def _below(values: Array, limit: int) -> Array:
    if len(values) and int(values.max()) >= limit:
        raise ValueError("segment: a number is out of range")
    return values


def _offsets(counts: Array, total: int) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, dtype=np.int64, out=offsets[1:])
    if offsets[-1] != total:
        raise ValueError("segment: counts do not add up")
    return offsets


def _postings(reader: ColumnReader, count: int) -> Postings:
    keys = reader.take(["<u8"])
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("segment: keys are not ascending")
    counts = reader.take(["<u4"], len(keys))
    docs = _below(reader.take([np.dtype(row_dtype(count)).str]), count)
    offsets = _offsets(counts, len(docs))
    rising = docs[1:] > docs[:-1]
    rising[offsets[1:-1] - 1] = True  # a new key may start anywhere
    if (len(counts) and int(counts.min()) == 0) or not rising.all():
        raise ValueError("segment: a key's documents are not ascending")
    return Postings(keys, offsets, docs)


def _decode_vectors(part: Part, windows: int, dimensions: int) -> npt.NDArray[np.float16]:
    reader = _opened(part() if callable(part) else part, _VECTORS)
    vectors = reader.take(["<f2"], windows * dimensions)
    reader.finish()
    return vectors.reshape(windows, dimensions)


def _decode_pairs(part: Part, count: int) -> Pairs:
    reader = _opened(part() if callable(part) else part, _PAIRS)
    hashes = reader.take(["<u4"])
    docs = _below(reader.take([np.dtype(row_dtype(count)).str], len(hashes)), count)
    reader.finish()
    if np.any(hashes[1:] < hashes[:-1]):
        raise ValueError("segment: pairs are not ascending")
    return Pairs(hashes, docs)


def _decode_extra(fetch: Callable[[str], Buffer], kind: str, segment: Segment) -> Extra:
    reader = _opened(fetch(kind), _EXTRA)
    extra = KINDS[kind].decode(reader, segment)
    reader.finish()
    return extra
