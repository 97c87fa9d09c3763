"""A shard's part of an index, and what it answers; and an index whose parts are on shards.

Boundary: pure functions over arrays. A shard keeps words and vectors of its own memories alone;
those of others are overwritten as soon as a segment is decoded. Questions come from another
machine: hashes and ordinals in them may be anything, and are only ever looked up or refused.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace as changed

from memory_store.errors import BadInputError
from memory_store.index import shard_questions as asked
from memory_store.index.columns import Array
from memory_store.index.layout import Late, Pairs, Postings, Segment, overwrite
from memory_store.index.neighbours import first_windows
from memory_store.index.numpy_vectors import NumpyVectors, best_cosines, window_cosines
from memory_store.index.shard_questions import Columns, Shards
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.index.terms import Matches, bm25, covered, has_pair, has_term, look_up, pairs_held
from memory_store.index.vectors import VectorHits

MOST_SHARDS = 64
MOST_WANTED = 1_000_000  # memories that a question may want at most
_ODD = np.uint64(0x9E3779B97F4A7C15)  # to mix the bits of an id by


class Part(Struct, frozen=True):
    """Shard ``number`` (from 1) of ``count``: it has the words and vectors of its memories only."""

    number: int
    count: int
    shards: ClassVar[Shards | None] = None

    @classmethod
    def of(cls, number: int, count: int) -> Part:
        """Raises BadInputError where there is no such shard."""
        if not 1 <= number <= count <= MOST_SHARDS:
            raise BadInputError(
                f"part: {number}/{count}: a shard is one of 1 to {MOST_SHARDS}, such as 2/3", "part"
            )
        return cls(number, count)

    def owned(self, id_words: npt.NDArray[np.uint64]) -> Mask:
        """bool [n]: which memories are the shard's, by a hash of their ids."""
        mixed = (id_words[:, 0] ^ id_words[:, 1]) * _ODD >> np.uint64(32)
        owned: Mask = mixed % np.uint64(self.count) == self.number - 1
        return owned

    def kept(self, segment: Segment) -> Segment:
        """A segment just decoded, with the words and vectors of the shard's memories alone."""
        own, terms, pairs = self.owned(segment.id_words), segment.terms, segment.late_pairs
        held, windows = own[terms.docs], own[segment.window_rows]
        offsets = np.append(0, np.cumsum(held))[terms.offsets].astype(np.int64)
        some, counts = np.diff(offsets) > 0, np.where(own, np.diff(segment.window_offsets), 0)
        vectors, taking = segment.late_vectors.get(), threading.Lock()
        kept = {
            "terms": Postings(
                terms.keys[some], np.append(offsets[:-1][some], offsets[-1:]), terms.docs[held]
            ),
            "title_counts": segment.title_counts[held],
            "body_counts": segment.body_counts[held],
            "window_offsets": np.append(0, np.cumsum(counts)).astype(np.int64),
            "window_starts": segment.window_starts[windows],
            "window_ends": segment.window_ends[windows],
            "late_vectors": Late(None, vectors[windows]),
            "late_pairs": Late(lambda: _own_pairs(pairs, own, taking)),
        }
        overwrite([vectors])
        segment.late_vectors.forget()
        return _without_terms(segment, kept)


class Elsewhere:
    """In the place of what is on the shards. Whatever was not made to ask them is refused."""

    def _refuse(self, *_: object) -> Any:
        raise BadInputError(
            "shards: this cannot be done where words and vectors are on shards: do it on a node "
            "that opens the whole vault"
        )

    __getattr__ = __getitem__ = __len__ = _refuse

    def forget(self) -> None:
        """Nothing: there is nothing here."""


class Spread(Struct, frozen=True):
    """An index whose words and vectors are on ``shards``."""

    shards: Shards

    def kept(self, segment: Segment) -> Segment:
        """A segment just decoded, with neither words nor vectors."""
        nothing: Any = Elsewhere()
        names = ("terms", "title_counts", "body_counts", "late_vectors", "late_pairs")
        return _without_terms(segment, dict.fromkeys(names, nothing))


def _without_terms(segment: Segment, kept: Mapping[str, Any]) -> Segment:
    """The segment with other parts, its own overwritten. Its other columns are copied: as views
    they would keep all of its bytes."""
    topics = segment.topics
    parts: dict[str, Any] = {
        "topics": Postings(topics.keys.copy(), topics.offsets.copy(), topics.docs.copy())
    }
    left: list[Array] = [*vars(topics).values(), *vars(segment.terms).values()]
    for field in fields(segment):
        value = getattr(segment, field.name)
        if isinstance(value, np.ndarray) and field.name not in kept:
            parts[field.name] = value.copy()
        if isinstance(value, np.ndarray):
            left.append(value)
    found = replace(segment, **{**parts, **kept})
    overwrite(left)
    return found


def _own_pairs(late: Late[Pairs], own: Mask, taking: threading.Lock) -> Pairs:
    """By one thread at a time: it overwrites what another would be about to take its own from."""
    with taking:
        pairs = late.get()
        held = own[pairs.docs]
        kept = Pairs(pairs.hashes[held], pairs.docs[held])
        overwrite([pairs.hashes, pairs.docs])
        late.value = None
    return kept


def moment(snapshot: Snapshot) -> bytes:
    """What tells two moments of a vault apart, alike on every node: whether ordinals mean the same.

    16 bytes: a hash of the ids, versions and collections in their order, and of which are alive.
    """

    def hashed() -> bytes:
        found = hashlib.blake2b(digest_size=16)
        for column in (snapshot.id_words, snapshot.versions, snapshot.alive):
            found.update(np.ascontiguousarray(column).data)
        for part in snapshot.parts:
            found.update(f"{part.collection} {part.end} {part.segment.dimensions} ".encode())
        return found.digest()

    known: bytes = snapshot.worked_out("moment", hashed)
    return known


class ShardVectors:
    """:class:`~memory_store.index.vectors.VectorIndex` over the vectors of all shards."""

    kind = "shards"
    reason = "on shards"

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`."""
        shards = self._snapshot.shards
        assert shards is not None
        every = mask is None or bool(mask[self._snapshot.alive].all())
        packed = None if every or mask is None else zlib.compress(np.packbits(mask).tobytes(), 1)
        sent = np.asarray(query, "<f4").tobytes()
        ordinals, cosines, windows = shards.ask(self._snapshot, asked.Nearest(sent, k, packed))
        best = self._snapshot.best_first(ordinals, cosines, k)
        return VectorHits(ordinals[best], cosines[best], windows[best])

    def wipe(self) -> None:
        """Nothing: it holds no vectors."""


# -- what a shard answers -------------------------------------------------------------------


@singledispatch
def answer(question: Any, snapshot: Snapshot, part: Part) -> Columns:
    """The answer of a shard about its own memories. Raises BadInputError for a question that
    cannot be meant."""
    raise BadInputError(f"shards: {type(question).__name__} is no question", "shards")


def _matches(question: asked.Words, snapshot: Snapshot) -> Matches:
    found = look_up(snapshot, question.groups, question.visible)
    frequencies = question.frequencies or found.frequencies
    if len(frequencies) != len(question.groups):
        raise BadInputError("shards: frequencies of other words", "shards")
    return changed(found, frequencies=frequencies)


@answer.register
def _(question: asked.Frequencies, snapshot: Snapshot, part: Part) -> Columns:
    return (np.array(look_up(snapshot, question.groups, question.visible).frequencies, np.int64),)


@answer.register
def _(question: asked.Scores, snapshot: Snapshot, part: Part) -> Columns:
    found = _matches(question, snapshot)
    return bm25(snapshot, found, k1=question.k1, b=question.b, title_weight=question.title_weight)


@answer.register
def _(question: asked.Coverage, snapshot: Snapshot, part: Part) -> Columns:
    own = _own(question.ordinals, snapshot, part)
    return own, covered(snapshot, _matches(question, snapshot), own)


@answer.register
def _(question: asked.Holders, snapshot: Snapshot, part: Part) -> Columns:
    return (_places(has_term(snapshot, question.group)),)


@answer.register
def _(question: asked.PairHolders, snapshot: Snapshot, part: Part) -> Columns:
    return (_places(has_pair(snapshot, question.pair)),)


@answer.register
def _(question: asked.PairCounts, snapshot: Snapshot, part: Part) -> Columns:
    counts = pairs_held(snapshot, question.pairs)
    held = _places(counts > 0)
    return held, counts[held]


@answer.register
def _(question: asked.Nearest, snapshot: Snapshot, part: Part) -> Columns:
    if not 0 <= question.k <= MOST_WANTED:
        raise BadInputError("shards: too many memories wanted", "shards")
    mask = None if question.mask is None else _mask(question.mask, snapshot.size)
    index: NumpyVectors = snapshot.worked_out("vectors", lambda: NumpyVectors(snapshot))
    return index.search(_query(question.query), question.k, mask)[:3]


@answer.register
def _(question: asked.Cosines, snapshot: Snapshot, part: Part) -> Columns:
    own = _own(question.ordinals, snapshot, part)
    (cosines,) = best_cosines(snapshot, own, _query(question.query))
    return own, cosines


@answer.register
def _(question: asked.WindowCosines, snapshot: Snapshot, part: Part) -> Columns:
    ordinals = _ordinals(question.ordinals, snapshot)
    windows, there = np.frombuffer(question.windows, "<i4"), snapshot.window_counts
    if len(windows) != len(ordinals) or (np.diff(ordinals) < 0).any():
        raise BadInputError("shards: windows of other memories", "shards")
    if len(np.unique(np.column_stack((ordinals, windows)), axis=0)) < len(ordinals):
        raise BadInputError("shards: the same window twice", "shards")
    own = _places(part.owned(snapshot.id_words[ordinals]))
    query = _query(question.query)
    if ((windows[own] < 0) | (windows[own] >= there[ordinals[own]])).any():
        raise BadInputError("shards: a window that there is not", "shards")
    return own, window_cosines(snapshot, query, ordinals[own], windows[own])


@answer.register
def _(question: asked.Vectors, snapshot: Snapshot, part: Part) -> Columns:
    own = _own(question.ordinals, snapshot, part)
    if question.first:
        vectors, known = first_windows(snapshot, own, question.dimensions)
        return own[known], vectors[known]
    held = [snapshot.stored_vectors(ordinal) for ordinal in own.tolist()]
    rows = [len(vectors) for vectors in held]
    nothing = np.zeros((0, question.dimensions), np.float16)
    return np.repeat(own, rows), np.concatenate([nothing, *held])


def _places(mask: Mask) -> npt.NDArray[np.int32]:
    return np.flatnonzero(mask).astype(np.int32)


def _ordinals(sent: bytes, snapshot: Snapshot) -> npt.NDArray[np.int32]:
    found = np.frombuffer(sent, "<i4").astype(np.int32)
    if len(found) and not 0 <= int(found.min()) <= int(found.max()) < snapshot.size:
        raise BadInputError("shards: a memory that there is not", "shards")
    return found


def _own(sent: bytes, snapshot: Snapshot, part: Part) -> npt.NDArray[np.int32]:
    """The shard's own of some memories, each once: or a small question had a boundless answer."""
    ordinals = np.unique(_ordinals(sent, snapshot))
    return ordinals[part.owned(snapshot.id_words[ordinals])]


def _query(sent: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(sent, "<f4").astype(np.float32)


def _mask(sent: bytes, size: int) -> Mask:
    inflating = zlib.decompressobj()
    try:
        packed = inflating.decompress(sent, -(-size // 8))
    except zlib.error:
        raise BadInputError("shards: a mask that is not deflated", "shards") from None
    if len(packed) != -(-size // 8) or inflating.unconsumed_tail:
        raise BadInputError("shards: a mask of another size", "shards")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=size).astype(bool)
