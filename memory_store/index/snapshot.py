"""A snapshot: the segments of every open collection, seen as one list of documents.

Boundary: holds keyed hashes, times, types and vectors of the collections whose keys were opened,
never words. It is immutable: readers need no lock, and a writer makes a new snapshot. Building
one copies only the small per-document columns, so adding a document to 100,000 takes milliseconds.
"""

from __future__ import annotations

import threading
import uuid
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.layout import Segment, unit_rows, without_vectors
from memory_store.index.sample import Sample
from memory_store.index.shard_questions import Shards, Vectors
from memory_store.index.topics import TopicGroup, with_topic_or_below
from memory_store.records import DONE_SUFFIX
from memory_store.text.identifiers import CODE

MOST_PLACES = 4_096  # ids whose documents are remembered, since they were asked for
_ODD, _OTHER_ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # to mix bits by
MOST_LIMITED = 16  # views of some collections kept at once: about 90 bytes a document each

Mask = npt.NDArray[np.bool_]
HashGroup = Mapping[str, Sequence[int]]
"""Collection id → the uint64 keyed hashes that stand for one word (or pair) there."""


class Filters(Struct, frozen=True):
    """What a document must be to take part in a search. ``None`` or empty means: not asked.

    ``collections`` are ids; note that an *empty* tuple there lets nothing through. ``types`` are
    names; each also means the completed ones of its kind (``task``: ``task_done`` too), which
    ``status`` distinguishes. A document must hold one topic of each group in ``topics_any``,
    or one below it.
    ``status`` is ``open``, ``done`` or ``all``. ``since`` and ``until`` bound ``created`` (epoch
    seconds, inclusive). ``known_at`` lets through what was written, or began to be valid, by then;
    ``valid_at`` what did not end by then.
    """

    collections: tuple[str, ...] | None = None
    types: tuple[str, ...] = ()
    topics_any: tuple[TopicGroup, ...] = ()
    status: str = "all"
    since: float | None = None
    until: float | None = None
    known_at: float | None = None
    valid_at: float | None = None


class Part(Struct, frozen=True, eq=False):
    """One segment in its place: its documents are the ordinals ``base`` … ``end - 1``.

    ``earlier_model``: its vectors come from that model, not from its collection's; so they stand
    in :meth:`Snapshot.with_vectors_of` alone.
    """

    segment: Segment
    collection: str
    base: int
    alive: Mask
    stale: bool
    earlier_model: str = ""

    @property
    def end(self) -> int:
        """One past the last ordinal."""
        return self.base + self.segment.count

    @property
    def span(self) -> slice:
        """The part's place in the snapshot's arrays."""
        return slice(self.base, self.end)


class Snapshot:
    """Documents ``0 … size - 1``, in the order of the given segments.

    Arrays, one item per document: ``alive`` and ``done`` bool; ``collection_codes``,
    ``type_codes``, ``language_codes`` int16 into ``collections``, ``types``, ``languages``;
    ``created``, ``updated``, ``valid_from``, ``valid_to`` float64 epoch seconds; ``lengths``
    uint32; ``versions`` int64; ``content_tags`` uint8 [size, 16]. ``total`` counts the living.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Segment, Mask, str]],
        *,
        stale: Sequence[bool] = (),
        earlier_models: Sequence[str] = (),
        untagged: Collection[str] = (),
        shards: Shards | None = None,
    ) -> None:
        """From ``(segment, alive, collection id)`` triples. The masks must not change later.

        ``stale`` says of each whether it was made with other settings than its collection has now
        (default: none was), ``earlier_models`` which model of before made the vectors that it was
        given without (default: none did). ``untagged`` are collections of before rows had tags.
        ``shards`` have the words and vectors of its memories, where it has not.
        """
        self.shards = shards
        self.untagged = frozenset(untagged)
        self.parts: tuple[Part, ...] = tuple(_placed(parts, stale, earlier_models))
        segments = [part.segment for part in self.parts]
        self.size: int = self.parts[-1].end if self.parts else 0
        self.alive: Mask = _joined([part.alive for part in self.parts], np.bool_)
        self.total: int = int(np.count_nonzero(self.alive))
        self.collections, self.collection_codes = _coded(
            [((p.collection,), np.zeros(p.segment.count, np.uint16)) for p in self.parts]
        )
        self.types, self.type_codes = _coded([(s.types, s.type_codes) for s in segments])
        self.languages, self.language_codes = _coded(
            [(s.languages, s.language_codes) for s in segments]
        )
        self.done: Mask = self._of_types([t for t in self.types if t.endswith(DONE_SUFFIX)])
        self.created = _joined([s.created for s in segments], np.float64)
        self.updated = _joined([s.updated for s in segments], np.float64)
        self.valid_from = _joined([s.valid_from for s in segments], np.float64)
        self.valid_to = _joined([s.valid_to for s in segments], np.float64)
        self.lengths = _joined([s.lengths for s in segments], np.uint32)
        self.versions = _joined([s.versions for s in segments], np.int64)
        self.content_tags = _joined([s.content_tags for s in segments], np.uint8, 16)
        self.id_words = _joined([s.id_words for s in segments], np.uint64, 2)
        self.caches: dict[Any, Any] = {}
        self.sample: Sample | None = None
        """Windows that were last asked what is usual for a query."""
        self._worked_out: dict[str, Any] = {}
        self._places: dict[str, int] = {}
        self.limited = False
        """Whether it is one of some collections, see :meth:`limited_to`."""
        self._limited: OrderedDict[frozenset[str], Snapshot] = OrderedDict()
        self._earlier: dict[str, Snapshot] = {}
        self._working = threading.Lock()
        self._limiting = threading.Lock()

    def limited_to(self, collections: Collection[str]) -> Snapshot:
        """The snapshot of those collections alone, as if there were no others in the vault.

        Shares the segments, and lives as long as this one: the last ``MOST_LIMITED`` are kept.
        """
        wanted = frozenset(collections).intersection(self.collections)
        if len(wanted) == len(self.collections):
            return self
        with self._limiting:
            found = self._limited.get(wanted)
            if found is None:
                chosen = [part for part in self.parts if part.collection in wanted]
                found = self._limited[wanted] = Snapshot(
                    [(part.segment, part.alive, part.collection) for part in chosen],
                    stale=[part.stale for part in chosen],
                    earlier_models=[part.earlier_model for part in chosen],
                    untagged=self.untagged,
                    shards=self.shards,
                )
                found.limited = True
            self._limited.move_to_end(wanted)
            if len(self._limited) > MOST_LIMITED:
                self._limited.popitem(last=False)
            return found

    @cached_property
    def earlier_models(self) -> tuple[str, ...]:
        """Fingerprints of the models of before that memories still have vectors of."""
        aside = [part for part in self.parts if part.earlier_model and part.alive.any()]
        return tuple(dict.fromkeys(p.earlier_model for p in aside if _set_aside(p).windows))

    def with_vectors_of(self, model: str) -> Snapshot:
        """The same documents with the vectors of an earlier model, and with no others.

        Shares the segments, and lives as long as this one.
        """
        with self._limiting:
            if model not in self._earlier:
                self._earlier[model] = Snapshot(
                    [
                        (
                            _set_aside(part)
                            if part.earlier_model == model
                            else without_vectors(part.segment),
                            part.alive,
                            part.collection,
                        )
                        for part in self.parts
                    ],
                    untagged=self.untagged,
                )
            return self._earlier[model]

    @cached_property
    def stale(self) -> Mask:
        """bool [size]: living documents indexed with other settings than hold now."""
        mask = _joined([np.full(part.segment.count, part.stale) for part in self.parts], np.bool_)
        if {CODE, CODE + DONE_SUFFIX}.intersection(self.types):
            # Before identifiers had terms of their own, code was analysed as prose.
            spelled = np.array([name == CODE for name in self.languages] or [False], dtype=bool)
            mask |= self._of_types([CODE]) & ~spelled[self.language_codes]
        return mask & self.alive

    @cached_property
    def revision(self) -> int:
        """32 bits that differ where memories, their versions or their vectors do.

        The same in every process, however the memories are spread over segments.
        """
        ids = self.id_words[:, 0] ^ (self.id_words[:, 1] * _ODD)
        mixed = ids + self.versions.view(np.uint64) * _OTHER_ODD
        mixed += self.window_counts.astype(np.uint64)
        mixed ^= mixed >> np.uint64(29)
        mixed *= _ODD
        mixed ^= mixed >> np.uint64(32)
        return int(mixed[self.alive].sum(dtype=np.uint64)) & 0xFFFF_FFFF

    @property
    def all_dimensions(self) -> tuple[int, ...]:
        """The dimensions of all vectors, each once, in the order of the segments."""
        held = (part.segment.dimensions for part in self.parts if part.segment.windows)
        return tuple(dict.fromkeys(held))

    @property
    def vectors(self) -> int:
        """How many vectors the segments hold, those of dead documents included."""
        return sum(part.segment.windows for part in self.parts)

    @property
    def living_vectors(self) -> int:
        """How many vectors the living documents have."""
        counts = (np.diff(p.segment.window_offsets.astype(np.int64))[p.alive] for p in self.parts)
        return sum(int(count.sum()) for count in counts)

    def unembedded(self) -> Mask:
        """Which documents have no vectors; to be asked by :meth:`worked_out`."""
        lacking: Mask = self.window_counts == 0
        return lacking

    @property
    def window_counts(self) -> npt.NDArray[np.int64]:
        """int64 [size]: how many vectors each document has."""
        counts = [np.diff(part.segment.window_offsets.astype(np.int64)) for part in self.parts]
        return _joined(counts, np.int64)

    def id(self, ordinal: int) -> str:
        """The memory's id (UUID text)."""
        return self.ids([ordinal])[0]

    def ids(self, ordinals: Sequence[int] | npt.NDArray[np.integer[Any]]) -> list[str]:
        """The memories' ids, in the order given."""
        places = np.asarray(ordinals, dtype=np.intp)
        found = list(id_texts(self.id_words[places].astype(">u8").tobytes()))
        if len(found) <= MOST_PLACES:  # the caller opens them next, and asks back
            if len(self._places) > MOST_PLACES:
                self._places = {}
            self._places.update(zip(found, places.tolist(), strict=True))
        return found

    def best_first(
        self, ordinals: npt.NDArray[np.integer[Any]], scores: npt.NDArray[np.floating[Any]], k: int
    ) -> npt.NDArray[np.intp]:
        """Places of the ``k`` highest ``scores``, equal ones in the order of the memories' ids."""
        if k <= 0:
            return np.empty(0, dtype=np.intp)
        places = np.arange(len(scores))
        if len(scores) > k:
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            places = np.flatnonzero(scores >= least)
        falling = -scores[places]
        order = falling.argsort()
        falling = falling[order]
        if (falling[1:] == falling[:-1]).any():  # seldom, and ids lie far apart in memory
            words = self.id_words[ordinals[places]]
            order = np.lexsort((words[:, 1], words[:, 0], -scores[places]))
        return places[order[:k]]

    def differ(self, ordinals: Sequence[int]) -> bool:
        """Whether no two of some different documents share a content.

        Tags are compared by their halves, which takes a tenth of comparing them: once in 2 ** 64
        it says no for nothing.
        """
        halves = self.content_tags.view(np.uint64)[np.asarray(ordinals, dtype=np.intp), 0]
        halves.sort()
        return not (halves[1:] == halves[:-1]).any()

    def tags_of(self, ordinals: Sequence[int]) -> list[bytes]:
        """The keyed tags of the memories' contents, in the order given."""
        tags = self.content_tags[np.asarray(ordinals, dtype=np.intp)]
        found: list[bytes] = tags.view("V16")[:, 0].tolist()
        return found

    def ordinal_of(self, memory_id: str) -> int | None:
        """The living document with that id (UUID text), or ``None``."""
        place = self._places.get(memory_id)
        if place is not None and self.alive.item(place):
            return place
        try:
            number = uuid.UUID(memory_id).int
        except ValueError:
            return None
        high, low = number >> 64, number & 0xFFFF_FFFF_FFFF_FFFF
        for part in reversed(self.parts):
            for row in part.segment.rows_of(high, low):
                if part.alive[row]:
                    return part.base + row
        return None

    def row_tag(self, ordinal: int) -> bytes | None:
        """The tag of the memory's row; ``None`` in a vault of before rows had any."""
        part = self.part_of(ordinal)
        if part.collection in self.untagged:
            return None
        tags = part.segment.row_tags
        return b"" if tags is None else tags[ordinal - part.base].tobytes()  # that of no row

    def row_tags(self) -> dict[str, bytes]:
        """Memory → the tag of its row, of all that have one."""
        found: dict[str, bytes] = {}
        for part in self.parts:
            if part.segment.row_tags is not None and part.collection not in self.untagged:
                tags = part.segment.row_tags[part.alive].view("V16")[:, 0].tolist()
                words = self.id_words[part.span][part.alive].astype(">u8")
                found.update(zip(id_texts(words.tobytes()), tags, strict=True))
        return found

    def collection(self, ordinal: int) -> str:
        """The id of the document's collection."""
        return self.collections[int(self.collection_codes[ordinal])]

    def type(self, ordinal: int) -> str:
        """The document's type, with ``_done`` where it is completed."""
        return self.types[int(self.type_codes[ordinal])]

    def types_of(self, ordinals: Sequence[int]) -> list[str]:
        """The documents' types, in the order given."""
        codes = self.type_codes[np.asarray(ordinals, dtype=np.intp)]
        return [self.types[code] for code in codes.tolist()]

    def language(self, ordinal: int) -> str:
        """The document's language (ISO 639-1)."""
        return self.languages[int(self.language_codes[ordinal])]

    def languages_in(self, collection: str) -> dict[str, int]:
        """Language → living documents of that collection in it, most frequent first."""
        return dict(self._languages.get(collection, {}))

    @cached_property
    def language_counts(self) -> dict[str, int]:
        """Language → living documents in it, in all collections."""
        counts: Counter[str] = Counter()
        for languages in self._languages.values():
            counts.update(languages)
        return dict(counts)

    @cached_property
    def _languages(self) -> dict[str, dict[str, int]]:
        """Collection → language → living documents, most frequent first."""
        found = {}
        for code, collection in enumerate(self.collections):
            chosen = self.language_codes[self.alive & (self.collection_codes == code)]
            counts = np.bincount(chosen, minlength=len(self.languages))
            order = np.argsort(-counts, kind="stable")
            found[collection] = {self.languages[i]: int(counts[i]) for i in order if counts[i]}
        return found

    def part_of(self, ordinal: int) -> Part:
        """The part that holds a document."""
        if not 0 <= ordinal < self.size:
            raise IndexError(f"no document {ordinal}")
        return self.parts[bisect_right(self._bases, ordinal) - 1]

    @cached_property
    def _bases(self) -> list[int]:
        return [part.base for part in self.parts]

    def windows(self, ordinal: int) -> list[tuple[int, int]]:
        """The document's embedded windows as ``(start, end)`` character offsets."""
        segment, rows = self._window_rows(ordinal)
        starts, ends = segment.window_starts[rows], segment.window_ends[rows]
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    def window(self, ordinal: int, number: int) -> tuple[int, int] | None:
        """The document's window of that number, ``None`` where it has fewer."""
        part = self.part_of(ordinal)
        segment, row = part.segment, ordinal - part.base
        place = segment.window_offsets.item(row) + number
        if place >= segment.window_offsets.item(row + 1):
            return None
        return segment.window_starts.item(place), segment.window_ends.item(place)

    def any_window(self, ordinal: int, number: int) -> tuple[int, int] | None:
        """The same; of a document with vectors of an earlier model a window of that."""
        model = self.part_of(ordinal).earlier_model
        return (self.with_vectors_of(model) if model else self).window(ordinal, number)

    def document_vectors(self, ordinal: int) -> npt.NDArray[np.float32]:
        """The document's vectors, float32 [windows, dimensions] of length 1 (a copy)."""
        stored = self.stored_vectors(ordinal)
        rows = unit_rows(stored)
        if stored.flags.writeable:  # what a shard sent is not
            stored.fill(0)  # freed memory keeps what stood in it, past a lock
        return rows

    def stored_vectors(self, ordinal: int) -> npt.NDArray[np.float16]:
        """The document's vectors bit by bit as they are kept, float16 [windows, dimensions]."""
        segment, rows = self._window_rows(ordinal)
        if self.shards is not None:
            one = np.array([ordinal], "<i4").tobytes()
            return self.shards.ask(self, Vectors(one, segment.dimensions, first=False))[1]
        return segment.vectors[rows].copy()

    def _window_rows(self, ordinal: int) -> tuple[Segment, slice]:
        part = self.part_of(ordinal)
        return part.segment, slice(*part.segment.window_offsets[ordinal - part.base :][:2].tolist())

    def visible(self, collections: Collection[str] | None) -> Mask:
        """bool [size]: living documents of those collections (``None``: of all)."""
        if collections is None or set(collections) >= set(self.collections):
            return self.alive
        allowed = np.array([c in collections for c in self.collections], dtype=bool)
        return self.alive & allowed[self.collection_codes] if len(allowed) else self.alive

    def mask(self, filters: Filters) -> Mask:
        """bool [size]: the living documents that ``filters`` lets through.

        Raises ``ValueError`` on an unknown status.
        """
        mask = self.visible(filters.collections).copy()
        if filters.types:
            mask &= self._of_types(filters.types)
        if filters.status not in ("all", "open", "done"):
            raise ValueError(f"status: {filters.status!r} is not open, done or all")
        if filters.status != "all":
            mask &= self.done if filters.status == "done" else ~self.done
        if filters.since is not None:
            mask &= self.created >= filters.since
        if filters.until is not None:
            mask &= self.created <= filters.until
        if filters.known_at is not None:
            begun = (self.valid_from <= filters.known_at) & np.isfinite(self.valid_from)
            mask &= begun | (self.created <= filters.known_at)
        if filters.valid_at is not None:
            mask &= self.valid_to > filters.valid_at
        for group in filters.topics_any:
            mask &= with_topic_or_below(self, group)
        return mask

    def worked_out(self, name: str, work: Callable[[], Any]) -> Any:
        """What ``work`` makes of this snapshot, made once, by whichever thread asks first."""
        with self._working:
            if name not in self._worked_out:
                self._worked_out[name] = work()
            return self._worked_out[name]

    def has_worked_out(self, name: str) -> bool:
        """Whether that was made before."""
        return name in self._worked_out

    def wipe(self) -> None:
        """Overwrite the snapshot's and its segments' arrays with zeros."""
        for limited in self._limited.values():
            limited.wipe()
        self._limited.clear()
        for earlier in self._earlier.values():
            earlier.wipe()
        self._earlier.clear()
        for part in self.parts:
            part.segment.wipe()
        for value in vars(self).values():
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value.fill(0)
        if self.sample is not None:
            self.sample.wipe()
            self.sample = None
        self.caches.clear()
        self._worked_out.clear()

    def _of_types(self, types: Collection[str]) -> Mask:
        wanted = {*types, *(name + DONE_SUFFIX for name in types)}
        chosen = np.array([name in wanted for name in self.types] or [False], dtype=bool)
        return chosen[self.type_codes]


def id_texts(ids: bytes) -> Iterator[str]:
    """Ids of 16 bytes each, as they are written: in an eighth of the time that UUIDs take."""
    digits = np.frombuffer(ids.hex().encode(), dtype=np.uint8).reshape(-1, 32)
    written = np.full((len(digits), 36), ord("-"), dtype=np.uint8)
    for start, end, hyphens in ((0, 8, 0), (8, 12, 1), (12, 16, 2), (16, 20, 3), (20, 32, 4)):
        written[:, start + hyphens : end + hyphens] = digits[:, start:end]
    text = written.tobytes().decode()
    return (text[at : at + 36] for at in range(0, len(text), 36))


def _placed(
    parts: Sequence[tuple[Segment, Mask, str]], stale: Sequence[bool], earlier: Sequence[str]
) -> Iterator[Part]:
    base = 0
    known = zip(stale or [False] * len(parts), earlier or [""] * len(parts), strict=True)
    for (segment, alive, collection), (old, model) in zip(parts, known, strict=True):
        if alive.shape != (segment.count,) or alive.dtype != np.bool_:
            raise ValueError("the mask does not fit the segment")
        yield Part(segment, collection, base, alive, old, model)
        base += segment.count


def _set_aside(part: Part) -> Segment:
    """A part's segment with the vectors that it was given without."""
    return part.segment.origin or part.segment


def _joined(columns: Sequence[npt.NDArray[Any]], dtype: Any, *shape: int) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros((0, *shape), dtype=dtype), *columns])


def _coded(
    columns: Sequence[tuple[tuple[str, ...], npt.NDArray[np.uint16]]],
) -> tuple[tuple[str, ...], npt.NDArray[np.int16]]:
    """Columns of codes into names of their own, as one column into the names of all."""
    codes: dict[str, int] = {}
    tables = [[codes.setdefault(name, len(codes)) for name in names] for names, _ in columns]
    renamed = [
        np.array(table or [0], dtype=np.int16)[column]
        for table, (_, column) in zip(tables, columns, strict=True)
    ]
    return tuple(codes), _joined(renamed, np.int16)
