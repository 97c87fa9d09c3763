"""The trash: memories as they were before they were deleted or replaced, for some days.

Boundary: sealed rows go in as they stand in the file, and are sealed once more, with when and how
they went. A writer who may not read can delete, and opens nothing; who can open them holds them
against the row tags that the index has, and keeps none that was exchanged, or damaged. The same is
done again when one is put back. No time, id or
size of a memory stands in clear: a thief sees how many there are in each collection, and about how
long. Nothing accounts for the rows: one that was taken out, or put back, is not noticed.

Rows are in order of time, so letting go of old ones opens the oldest until one is young.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from types import MappingProxyType

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode
from msgspec.structs import replace

from memory_store.crypto.sealing import sealed_epoch
from memory_store.dates import format_time
from memory_store.errors import FormatError, MemoryStoreError, TamperedError
from memory_store.records import Memory
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import Keyring
from memory_store.vault.rows import (
    SHORTEST_BEGINNING,
    Origin,
    body_place,
    memory_of,
    opened_head,
    original_in,
    row_tag,
    sealed_head,
)
from memory_store.vault.segments import DELETED
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import Body, MemoryRow
from memory_store.vault.storage.sources import Stored
from memory_store.vault.storage.trash import TABLE, TrashRow

KEPT_DAYS = 30
BY_HAND, BY_IMPORT, BY_TRASH, BY_SYNC = "hand", "import", "trash", "sync"
"""By what a memory was changed: a caller, an import, because an earlier one was restored, or on
another device."""


class Change(Struct, frozen=True):
    """One change of a vault, as all that it takes away says it: a transaction, or an import.

    ``group`` is its name. ``added`` are the memories that it made; ``skipped`` those whose earlier
    version is not kept, for the same import has replaced it already. ``by`` names the assistant
    that made it (empty: none did).
    """

    way: str = BY_HAND
    group: str = field(default_factory=lambda: secrets.token_hex(8))
    added: tuple[str, ...] = ()
    skipped: Collection[str] = ()
    by: str = ""


class Vectors(Struct, frozen=True):
    """What the index had of a memory that was deleted: the mark of the ``model`` that made the
    vectors, the ``tag`` of its content there, the windows, and the length of a vector."""

    model: str
    tag: bytes
    spans: tuple[tuple[int, int], ...]
    dimensions: int

    @property
    def size(self) -> int:
        """How many bytes they are: two a number."""
        return 2 * self.dimensions * len(self.spans)


class Kept(Struct, frozen=True):
    """What is sealed of a row of ``memories`` that went.

    ``operation`` is what the change log says of it, ``principal`` whose key changed it, ``group``,
    ``added`` and ``by`` are those of its :class:`Change`; ``tag`` is its row tag (empty: the index
    had none), ``head`` its sealed head, ``origin`` its columns of ``memory_sources``. ``vectors``
    says which vectors stand behind its body; none do behind that of one that was replaced.
    """

    memory: str
    version: int
    time: str
    operation: str
    way: str
    group: str
    principal: int
    tag: bytes
    content: str
    content_tag: bytes
    head: bytes
    origin: tuple[bytes | None, ...] | None = None
    added: tuple[str, ...] = ()
    by: str = ""
    vectors: Vectors | None = None

    def parted(self, cell: bytes) -> tuple[bytes, bytes]:
        """The sealed body, and the vectors, of what is in a row's second cell."""
        at = len(cell) - (self.vectors.size if self.vectors is not None else 0)
        return cell[:at], cell[at:]


class Entry(Struct, frozen=True):
    """A row of the trash: its number, its collection, and what its seal says."""

    number: int
    collection: str
    kept: Kept


def keep(
    storage: Storage,
    keyring: Keyring,
    collection: str,
    ids: Sequence[str],
    operation: str,
    change: Change,
    tags: Mapping[str, bytes],
    vectors: Mapping[str, tuple[Vectors, bytearray]] = MappingProxyType({}),
) -> set[str]:
    """Put memories of a collection into the trash, before they are deleted or replaced. Returns
    those that are in it now.

    Inside the caller's transaction. ``tags`` are their row tags, ``vectors`` what the index has of
    some of them, which is overwritten. A row that was tampered with is left out, as far as the
    keyring can say so.
    """
    keys, time = keyring.of(collection), format_time(datetime.now(UTC))
    wanted = [one for one in ids if one not in change.skipped]
    found, origins = storage.memories.with_bodies(wanted), storage.origins.of(wanted)
    number, rows, there = storage.trash.next_number(), list[TrashRow](), set[str]()
    opens = collection in keyring.openable()
    for memory, (row, body) in found.items():
        if body is None or (epoch := _epoch_of(keys, row, body)) is None:
            continue
        content_tag, sealed = body
        kept = Kept(
            memory=memory,
            version=row.version,
            time=time,
            operation=operation,
            way=change.way,
            group=change.group,
            principal=keyring.principal,
            tag=tags.get(memory, b""),
            content=row.content,
            content_tag=content_tag,
            head=row.head,
            origin=_origin(origins.get(memory)),
            added=change.added,
            by=change.by,
        )
        if opens and not _is_whole(keyring, collection, kept, sealed):
            continue
        about, numbers = vectors.get(memory, (None, bytearray()))
        cell = sealed + numbers
        rows.append(_sealed(keys, number + len(rows), replace(kept, vectors=about), cell, epoch))
        numbers[:] = bytes(len(numbers))
        there.add(memory)
    storage.trash.insert(rows)
    return there


def _epoch_of(keys: CollectionKeys, row: MemoryRow, body: Body) -> int | None:
    """The earlier one of the epochs that head and body are sealed in.

    The row of the trash is sealed in it, too, so that a change of keys finds all three.
    """
    tag, sealed = body
    try:
        places = (keys.place("memories", "head", row.id, row.version), body_place(keys, "", b""))
        epochs = [
            sealed_epoch(one, place) for one, place in zip((row.head, sealed), places, strict=True)
        ]
    except MemoryStoreError:
        return None
    whole = isinstance(tag, bytes) and isinstance(row.content, str)
    return min(epochs) if whole and all(map(keys.holds, epochs)) else None


def _origin(stored: Stored | None) -> Stored | None:
    """The columns as they are, if they are what a vault writes there."""
    whole = stored is not None and all(one is None or isinstance(one, bytes) for one in stored)
    return stored if whole else None


def _sealed(
    keys: CollectionKeys, number: int, kept: Kept, cell: bytes, epoch: int | None = None
) -> TrashRow:
    said, content = (keys.place(TABLE, column, str(number)) for column in ("sealed", "body"))
    return (
        number,
        keys.collection,
        keys.seal("trash", said, encode(kept), epoch),
        keys.seal("trash", content, cell, epoch),
    )


def entries(storage: Storage, keyring: Keyring, collections: Collection[str]) -> list[Entry]:
    """What is in the trash of some collections, oldest first. Opens no memory.

    Raises TamperedError for a row that was changed or moved, FormatError for a newer one.
    """
    return [
        Entry(number, collection, _read(keyring.of(collection), number, sealed))
        for number, collection, sealed in storage.trash.of(collections)
    ]


def whole_entries(
    storage: Storage, keyring: Keyring, collections: Collection[str]
) -> tuple[list[Entry], list[int]]:
    """The same of the rows that open, and the numbers of those that do not."""
    found, damaged = list[Entry](), list[int]()
    for number, collection, sealed in storage.trash.of(collections):
        try:
            found.append(Entry(number, collection, _read(keyring.of(collection), number, sealed)))
        except (TamperedError, FormatError):
            damaged.append(number)
    return found, damaged


def is_named(entry: Entry, given: str) -> bool:
    """Whether a row is of the memory of an id, or of one that begins so."""
    memory, wanted = entry.kept.memory, given.strip().lower()
    return memory == given or (len(wanted) >= SHORTEST_BEGINNING and memory.startswith(wanted))


def find_deleted(storage: Storage, keyring: Keyring, given: str, *, by_words: bool) -> Kept | None:
    """What the trash says of the memory deleted last that an id or its beginning names, or, where
    ``by_words``, its ref or its title. Of what these keys may not open nothing is there."""
    rows = entries(storage, keyring, keyring.openable())
    last = {one.kept.memory: one for one in rows}  # others may have been restored since
    deleted = [one for one in last.values() if is_deleted(one)]
    named = [one for one in deleted if is_named(one, given)]
    if not named and by_words and given.strip():
        heads = ((one, open_entry(storage, keyring, one, text=False)) for one in deleted)
        named = [one for one, head in heads if given in (head.ref, head.title)]
    return max(named, key=lambda one: one.number).kept if named else None


def _read(keys: CollectionKeys, number: int, sealed: bytes) -> Kept:
    opened = keys.unseal("trash", keys.place(TABLE, "sealed", str(number)), sealed)
    try:
        return decode(opened, type=Kept)
    except MsgspecError:
        raise FormatError(f"{TABLE} {number}: is nothing that this reads") from None


def open_entry(storage: Storage, keyring: Keyring, entry: Entry, *, text: bool = True) -> Memory:
    """The memory of a row of the trash, as it was; without its text, if that is not wanted.

    Raises TamperedError where it is not the row that the index had of it, or where it is gone.
    """
    kept, keys = entry.kept, keyring.of(entry.collection)
    body = None
    if text:
        sealed = storage.trash.body(entry.number)
        if sealed is None:
            raise TamperedError(f"{TABLE} {entry.number}: the row is gone")
        place = keys.place(TABLE, "body", str(entry.number))
        body, _ = kept.parted(bytes(keys.unseal("trash", place, sealed)))
    return _opened(keyring, entry.collection, kept, body)


def _opened(keyring: Keyring, collection: str, kept: Kept, body: bytes | None) -> Memory:
    """The memory in a head and a sealed body. Raises TamperedError."""
    keys, said = keyring.of(collection), ""
    row = _row_of(collection, kept)
    opened = opened_head(keyring, row)
    tag = row_tag(keys, kept.memory, kept.version, opened)
    if kept.tag and not compare_digest(tag, kept.tag):
        raise TamperedError(f"{TABLE}: {kept.memory} is not as it was written last")
    if body is not None:
        place = body_place(keys, kept.content, kept.content_tag)
        said = str(keys.unseal("body", place, body, keyring.counter), "utf-8", "surrogatepass")
    return memory_of(row, sealed_head(row, opened), said)


def _row_of(collection: str, kept: Kept) -> MemoryRow:
    return MemoryRow(
        kept.memory, collection, None, None, None, kept.version, kept.content, kept.head
    )


def _is_whole(keyring: Keyring, collection: str, kept: Kept, body: bytes) -> bool:
    """Whether a memory opens, and is the one that the index knows."""
    try:
        _opened(keyring, collection, kept, body)
    except (TamperedError, FormatError):
        return False
    return True


def vectors_of(
    storage: Storage,
    keyring: Keyring,
    collection: str,
    model: str,
    wanted: Collection[bytes],
    most: int,
) -> tuple[dict[bytes, tuple[Vectors, bytes]], set[bytes] | None]:
    """Of some contents, by their tags in the index, what the trash of a collection keeps of the
    vectors that a model made, and the tags of all whose vectors it keeps; nothing and None where
    it has more than so many rows to open for it.

    Opens no memory. A row that does not open is left for ``verify`` to name.
    """
    keys, rows = keyring.of(collection), storage.trash.of([collection])
    found: dict[bytes, tuple[Vectors, bytes]] = {}
    if len(rows) > most:
        return found, None
    there: set[bytes] = set()
    for number, _, sealed in rows:
        try:
            kept = _read(keys, number, sealed)
            about = kept.vectors
            if about is None or about.model != model:
                continue
            there.add(about.tag)
            if about.tag not in wanted:
                continue
            cell = storage.trash.body(number)
            if cell is not None:
                opened = bytes(keys.unseal("trash", keys.place(TABLE, "body", str(number)), cell))
                found[about.tag] = about, kept.parted(opened)[1]
        except (TamperedError, FormatError):
            continue
    return found, there


def origin_of(storage: Storage, keyring: Keyring, entry: Entry) -> Origin:
    """Where a memory of the trash came from, if its row proved it and no other came from there."""
    stored, keys = entry.kept.origin, keyring.of(entry.collection)
    if stored is None or len(stored) != 3:
        return Origin()
    for through in dict.fromkeys((entry.collection, *storage.collections.created())):
        said = Origin.proven(keys, entry.kept.memory, through, stored)
        if said is not None:
            taken = said.origin and storage.origins.memory_of(said.origin)
            return Origin() if taken and taken[0] != entry.kept.memory else said
    return Origin()


# -- letting go --------------------------------------------------------------------------------


def erase(storage: Storage, keyring: Keyring, memories: Iterable[str]) -> int:
    """Take every row of some memories out (inside the caller's transaction). Returns how many."""
    gone = set(memories)
    found = entries(storage, keyring, keyring.readable())
    count = storage.trash.delete(one.number for one in found if one.kept.memory in gone)
    drop_originals(storage, keyring, gone)
    return count


def drop_originals(storage: Storage, keyring: Keyring, memories: Iterable[str]) -> None:
    """Delete what was kept of originals that some memories had, and that neither they nor their
    rows in the trash name any more (in the caller's transaction). In collections that the keyring
    does not read, where another memory may have had the same id, all stays."""
    readable = keyring.readable()
    parts = storage.memories.originals([*memories], readable)
    if not parts:
        return
    holders = {part.partition(".")[0] for part in parts}
    there = storage.memories.rows([*holders]).values()
    heads = [row for row in there if row.collection in readable]
    try:
        found = entries(storage, keyring, readable)
    except (TamperedError, FormatError):
        return  # what a damaged row names is not known; ``verify`` says which one it is
    heads += [_row_of(one.collection, one.kept) for one in found if one.kept.memory in holders]
    named, openable = set[tuple[str, str]](), set(keyring.openable())
    for row in heads:
        try:
            if row.collection not in openable:
                raise TamperedError("sealed")
            original = original_in(sealed_head(row, opened_head(keyring, row)))
            if original is not None:
                named.add((row.id, original.token))
        except TamperedError:
            holders.discard(row.id)  # what it names is not known: all of it stays
    left = []
    for part in parts:  # a person who can write to the file could have invented ids
        memory, _, rest = part.partition(".")
        if memory in holders and (memory, rest.rpartition(".")[0]) not in named:
            left.append(part)
    storage.memories.remove_bodies(left)


def too_old(storage: Storage, keyring: Keyring, days: int) -> bool:
    """Whether there may be a row of before so many days. Opens one row of each collection."""
    readable = set(keyring.readable())
    return any(
        _is_old(keyring.of(collection), number, sealed, days) is not False
        for number, collection, sealed in storage.trash.oldest()
        if collection in readable
    )


def purge(storage: Storage, keyring: Keyring, days: int) -> tuple[int, set[str]]:
    """Take out what is older than so many days (in the caller's transaction). Returns how many
    rows, and which memories were deleted in them.

    What does not open stays, for ``verify`` to name, and keeps nothing behind it.
    """
    gone, deleted = 0, set[str]()
    for collection in keyring.readable():
        keys, old = keyring.of(collection), list[Entry]()
        for number, _, sealed in storage.trash.of([collection]):
            is_old = _is_old(keys, number, sealed, days)
            if is_old:
                old.append(Entry(number, collection, _read(keys, number, sealed)))
            elif is_old is False:
                break
        gone += storage.trash.delete(one.number for one in old)
        drop_originals(storage, keyring, {one.kept.memory for one in old})
        deleted |= {one.kept.memory for one in old if is_deleted(one)}
    return gone, deleted


def _is_old(keys: CollectionKeys, number: int, sealed: bytes, days: int) -> bool | None:
    """Whether a row was made before so many days; None where it does not open.

    Whole days, so that what was deleted on one of them is erased at once: see
    :func:`memory_store.session.writer.drop` for what that costs.
    """
    try:
        time = _read(keys, number, sealed).time
    except (TamperedError, FormatError):
        return None
    first = datetime.now(UTC).date() - timedelta(days=days)
    return not days or time < first.isoformat()


# -- keys --------------------------------------------------------------------------------------


def resealed(keys: CollectionKeys, number: int, sealed: bytes, body: bytes) -> tuple[bytes, bytes]:
    """A row sealed anew in the newest epoch, with the head and the body in it."""
    kept = _read(keys, number, sealed)
    head = keys.place("memories", "head", kept.memory, kept.version)
    before = body_place(keys, kept.content, kept.content_tag)
    cell = bytes(keys.unseal("trash", keys.place(TABLE, "body", str(number)), body))
    wrapped, vectors = kept.parted(cell)
    text = keys.unseal("body", before, wrapped)
    tag = keys.exchanged(kept.content_tag, sealed_epoch(wrapped, before), keys.epoch)
    anew = replace(
        kept,
        head=keys.seal("head", head, keys.unseal("head", head, kept.head)),
        content_tag=tag,
    )
    fresh = keys.seal("body", body_place(keys, kept.content, tag), text)
    return _sealed(keys, number, anew, fresh + vectors)[2:]


def check(storage: Storage, keyring: Keyring, number: int, collection: str, sealed: bytes) -> None:
    """Open a row and the memory in it. Raises TamperedError, FormatError."""
    entry = Entry(number, collection, _read(keyring.of(collection), number, sealed))
    open_entry(storage, keyring, entry)


def is_deleted(entry: Entry) -> bool:
    """Whether the memory was deleted, and not replaced."""
    return entry.kept.operation == DELETED
