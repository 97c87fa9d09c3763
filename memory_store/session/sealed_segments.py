"""Segments as they lie sealed in the vault: opened, decoded, with the mask of what lives in them,
and the mark of what their entries were made with.

Boundary: keys in, keyed hashes and vectors out, which the caller overwrites afterwards.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.errors import TamperedError
from memory_store.index.codec import Part, decode, encode, encode_extras
from memory_store.index.layout import Segment
from memory_store.text.tokens import ANALYSER_VERSION
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.segments import unseal_extra, unseal_part, write_segment
from memory_store.vault.settings import AUTO, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.segments import SegmentRow

Kept = Callable[[Segment], Segment]
_SEPARATOR = "+"
_HASH_BYTES = 8


def opened_segment(
    keys: CollectionKeys,
    row: SegmentRow,
    sealed: Mapping[str, bytes],
    sealed_pairs: Callable[[], bytes],
    sealed_extra: Callable[[str], bytes | None],
    earliest: Callable[[], int],
    kept: Kept | None = None,
) -> Segment:
    """Open and decode the parts ``main`` and, where it is there, ``vectors`` of a segment that was
    read. ``kept`` makes of it what is kept. A part is sealed in no epoch before what is then the
    ``earliest``.

    Its pairs stay sealed until a phrase is asked for, its extra parts until one of their kind is.
    Raises TamperedError when its bytes are not a segment.
    """
    main = unseal_part(keys, row, "main", sealed["main"], earliest())
    vectors: Part = b""
    if "vectors" in sealed:
        vectors = unseal_part(keys, row, "vectors", sealed["vectors"], earliest())
    return _decoded(
        row,
        main,
        vectors,
        lambda: unseal_part(keys, row, "pairs", earliest=earliest(), sealed=sealed_pairs()),
        lambda kind: unseal_extra(keys, row, kind, earliest=earliest(), sealed=sealed_extra(kind)),
        kept,
    )


def load_segment(
    storage: Storage, keys: CollectionKeys, row: SegmentRow, earliest: int = 0
) -> Segment:
    """One segment whose vectors, pairs and extra parts are read when they are first asked for.

    For a caller that reads within one transaction. Raises TamperedError when its bytes are not a
    segment.
    """

    def opened(part: str) -> memoryview:
        found = dict(storage.segments.parts([row.id], [part]))
        if row.id not in found:
            raise TamperedError(f"vault_segments of {row.id}: is gone")
        return unseal_part(keys, row, part, found[row.id][part], earliest)

    def extra(kind: str) -> memoryview:
        return unseal_extra(keys, row, kind, storage.segments.extra(row.id, kind))

    late = partial(opened, "vectors"), partial(opened, "pairs"), extra
    return _decoded(row, opened("main"), *late)


def _decoded(
    row: SegmentRow,
    main: memoryview,
    vectors: Part,
    pairs: Part,
    extra: Callable[[str], memoryview],
    kept: Kept | None = None,
) -> Segment:
    try:
        segment = decode(main, vectors, pairs, extra, kept)
    except ValueError as error:
        raise TamperedError(f"vault_segments of {row.id}: {error}") from None
    if segment.count != row.documents:
        raise TamperedError(f"vault_segments of {row.id}: holds {segment.count} documents")
    return segment


def write_index_segment(
    storage: Storage, keys: CollectionKeys, segment: Segment, mark: str
) -> None:
    """Seal and store a segment, and overwrite it: what stays in memory is read from the vault."""
    try:
        parts, extras = encode(segment), encode_extras(segment)
    finally:
        segment.wipe()
    named = {**parts._asdict(), "extras": extras}
    try:
        write_segment(storage, keys, documents=segment.count, model=mark, **named)
    finally:
        parts.wipe()
        for extra in extras.values():
            extra[:] = bytes(len(extra))


def living_tags(segment: Segment, alive: npt.NDArray[np.bool_]) -> bytes:
    """The row tags of what lives in a segment, side by side. Raises TamperedError where it is one
    of before there were any."""
    if segment.row_tags is None:
        raise TamperedError("vault_segments: one of an earlier format was put back")
    if alive.all():  # as most are: a tenth of the time
        return segment.row_tags.tobytes()
    return segment.row_tags[alive].tobytes()


def collection_tags(storage: Storage, keys: CollectionKeys) -> bytes:
    """The row tags of a collection's living entries, side by side."""
    tags = b""
    for row in storage.segments.rows():
        if row.collection == keys.collection:
            segment = load_segment(storage, keys, row)
            tags += living_tags(segment, alive_rows(storage, row, segment))
            segment.wipe()
    return tags


def alive_rows(storage: Storage, row: SegmentRow, segment: Segment) -> npt.NDArray[np.bool_]:
    """bool [n]: the entries of a segment that no later change replaced or removed."""
    changes = storage.segments.changes_since(row.sequence)
    alive = np.ones(segment.count, dtype=np.bool_)
    changed = [one.memory for one in changes if one.collection == row.collection]
    alive[segment.rows_of_all(id_words(changed))] = False
    return alive


def id_words(memories: Iterable[str]) -> npt.NDArray[np.uint64]:
    """uint64 [n, 2]: the upper and lower 64 bits of each memory's id."""
    try:
        ids = b"".join(uuid.UUID(memory).bytes for memory in memories)
    except (TypeError, ValueError, AttributeError):  # a damaged file may hold anything
        raise TamperedError("vault_changes: names what is no memory's id") from None
    return np.frombuffer(ids, ">u8").astype(np.uint64).reshape(-1, 2)


class IndexModel(Struct, frozen=True):
    """What a segment's entries are made with: its mark, and how many dimensions their vectors have.

    The mark stands in clear in the column ``model`` of ``vault_segments`` and is bound to the
    sealed parts. It holds the embedding model's fingerprint; the analyser, which would give away a
    collection's language, is a keyed hash. Segments of different marks are never merged, so a mark
    holds for all entries of its segment; ``reindex`` renews those whose collection has another by
    now. A fingerprint alone means: analysed automatically, by the version the settings name. All
    that was written before collections had settings has such a mark.
    """

    mark: str = ""
    dimensions: int = 0


def index_model(settings: Settings, keys: CollectionKeys) -> IndexModel:
    """What entries of the collection of ``keys`` are made with now."""
    return IndexModel(wanted_mark(settings, keys), settings.of(keys.collection).dimensions)


def wanted_mark(settings: Settings, keys: CollectionKeys) -> str:
    """The mark of entries made now for the collection of ``keys``."""
    chosen = settings.of(keys.collection)
    if chosen.analyser == AUTO and settings.analyser == ANALYSER_VERSION:
        return chosen.fingerprint
    name, version = chosen.analyser.encode(), str(ANALYSER_VERSION).encode()
    hashed = keys.plain_source.tag(b"analyser", name, version, length=_HASH_BYTES).hex()
    return f"{chosen.fingerprint}{_SEPARATOR}{hashed}"


def is_stale(mark: str, wanted: str, windows: int) -> bool:
    """Whether a segment of that many windows has entries for ``reindex`` to renew."""
    same_analysis = mark.partition(_SEPARATOR)[2] == wanted.partition(_SEPARATOR)[2]
    return not same_analysis or (windows > 0 and not same_model(mark, wanted))


def same_model(mark: str, wanted: str) -> bool:
    """Whether the vectors of two marks may be compared."""
    return model_of(mark) == model_of(wanted)


def model_of(mark: str) -> str:
    """The fingerprint of the model that vectors of a mark come from."""
    return mark.partition(_SEPARATOR)[0]
