"""Reading an opened vault: a memory by what names it, a list by filters, all by reference; topics.

Boundary: opens what it returns, where the keys do; memories of collections that may be searched and
not read come out sealed. Memories of collections that the key cannot read are not found. Topics
are read from heads: the index holds them as keyed hashes, which say how many memories carry each.
"""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.collections import collection_ids
from memory_store.dates import epoch, parse_moment, period, validity
from memory_store.errors import (
    BadInputError,
    DamagedError,
    DeletedError,
    FormatError,
    MemoryStoreError,
    NotFoundError,
    TamperedError,
)
from memory_store.index.snapshot import Filters, Mask, Snapshot
from memory_store.records import (
    STATUSES,
    Memory,
    MemoryHead,
    Reference,
    SealedMemory,
    check_types,
    several,
)
from memory_store.session.names import names_in
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic, whole_characters
from memory_store.vault import originals, trash
from memory_store.vault.audit_events import READ
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.rows import (
    Known,
    open_bodies,
    open_head,
    open_memories,
    resolve_id,
    topic_tags,
)
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import vault_faults
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.storage.server import is_on_server

AT_ONCE = 64  # memories that are open at a time where all are asked for
Ordinals = npt.NDArray[np.int64]


def resolve(vault: OpenVault, given: str, *, refs: bool = True) -> str:
    """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

    Raises NotFoundError, also for memories of collections that this key may not read; DeletedError
    for one that it may read in the trash.
    """
    if vault.index_loaded and is_on_server(vault.path):  # which would see what is opened
        snapshot = vault.snapshot()
        if (ordinal := snapshot.ordinal_of(given)) is not None:
            return snapshot.id(ordinal)
    try:
        return resolve_id(vault.reader(), vault.keyring, given)
    except NotFoundError as error:
        missing = error
    if refs:
        try:
            return _find_by_name(vault, given)
        except NotFoundError as error:
            missing = error
    with vault.reader().reading() as storage:
        gone = trash.find_deleted(storage, vault.keyring, given, by_words=refs)
    raise DeletedError(gone.memory, gone.time) if gone is not None else missing


def _find_by_name(vault: OpenVault, ref: str) -> str:
    """The id of the one memory of that ref; else of that title, or whose file is called so; else,
    whatever the case of its letters.

    Raises NotFoundError, BadInputError for several.
    """
    matches, called, alike = [], [], []
    ref = whole_characters(ref)
    folded = ref.strip().casefold()
    for memory, one in names_in(vault, vault.keyring.readable()):
        if ref and ref == one.ref:
            matches.append(memory)
            continue
        names = one.title, one.ref.rpartition("/")[2]
        if ref and ref in names:
            called.append(memory)
        elif folded and folded in (name.casefold() for name in (*names, one.ref)):
            alike.append(memory)
    found = matches or called or alike
    if not found:
        raise NotFoundError(
            f"no memory {ref!r}; name one by its id, its path as imported, or its title"
        )
    if len(found) > 1:
        what = "have the ref" if matches else "are called"
        raise BadInputError(f"{len(found)} memories {what} {ref!r}; use an id", "id")
    return found[0]


def open_all(
    vault: OpenVault, ids: Sequence[str], looked_at: Snapshot | None = None
) -> list[Memory]:
    """The memories of those ids as they are kept, under their collection's id.

    Those of an index that was just ``looked_at`` are read without a look at what was written since,
    and without a transaction. What does not open so is read again, with both.
    """
    found = None if looked_at is None else _as_looked_at(vault, ids, looked_at)
    if found is not None:
        return found
    with vault.moment() as (storage, known):
        return list(open_memories(storage, vault.keyring, ids, known, tags=known.tags))


def _as_looked_at(vault: OpenVault, ids: Sequence[str], snapshot: Snapshot) -> list[Memory] | None:
    """Memories as an index knows them by their tags; None where one is not so, or not any more, and
    beside a mirror, which is of the newest moment: what it has otherwise would be asked for."""
    storage, known = vault.looked_at(snapshot)
    if storage.memories.mirrors or len(known.tags(ids)) < len(ids):
        return None
    try:
        return list(open_memories(storage, vault.keyring, ids, known, tags=known.tags))
    except MemoryStoreError:
        return None


def open_one(vault: OpenVault, given: str, *, refs: bool = True) -> Memory:
    """The memory that :func:`resolve` finds, as it is kept. Raises NotFoundError."""
    opened = open_all(vault, [resolve(vault, given, refs=refs)])
    if not opened:  # it was deleted since it was resolved
        raise NotFoundError(f"no memory {given!r}")
    return opened[0]


def shown(
    vault: OpenVault, memories: Sequence[Memory], there: Callable[[str], bool] | None = None
) -> list[Memory]:
    """Memories as callers see them: with their collection's name for its id.

    ``there`` says which ids are there for the caller to see (``None``: the index knows).
    """
    names = vault.collections.known_names()  # they were just read or written
    for memory in memories:
        if memory.collection not in names:
            raise TamperedError(f"collections of {memory.collection}: its name is missing")
    if there is None and any(one.superseded_by for one in memories):
        there = partial(_is_there, vault.snapshot())

    def successor(memory: Memory) -> str | None:
        """The memory that replaced it, as long as that one is there for the caller to see."""
        found = memory.superseded_by
        return found if there is not None and found and there(found) else None

    return [
        replace(memory, collection=names[memory.collection], superseded_by=successor(memory))
        for memory in memories
    ]


def _is_there(snapshot: Snapshot, memory: str) -> bool:
    return snapshot.ordinal_of(memory) is not None


def _counted(found: Sequence[Memory]) -> tuple[int, int]:
    return sum(not isinstance(one, SealedMemory) for one in found), len(found)


@action(READ, writes=False, counts=lambda found: _counted([found]))
def get(opened: Opened, memory_id: str, *, refs: bool = True) -> Memory:
    """One memory with its whole text, by id, the beginning of an id, or ref.

    A ref is sealed, so looking for one opens every head; ``refs=False`` does not. Raises
    NotFoundError.
    """
    return shown(opened.vault, [open_one(opened.vault, memory_id, refs=refs)])[0]


@action(READ, writes=False, counts=lambda walked: (_counted(walked)[0], 1))
def succession(opened: Opened, memory_id: str, as_of: str, *, refs: bool = True) -> list[Memory]:
    """The memory, and those before or after it as far as the one that stood there ``as_of`` a day.

    That one comes last. Names a memory as :func:`get`. Raises NotFoundError where none did, and
    BadInputError for a moment that is none.
    """
    moment = parse_moment(as_of, time.time(), parameter="as_of", end=True)
    walked, here = [], open_one(opened.vault, memory_id, refs=refs)
    while True:
        walked.append(here)
        begun = min(map(epoch, filter(None, (here.created, here.valid_from)))) <= moment
        if begun and (here.valid_to is None or epoch(here.valid_to) > moment):
            return shown(opened.vault, walked)
        beside = here.superseded_by if begun else here.supersedes
        found = open_all(opened.vault, [beside]) if beside else []
        if not found or isinstance(found[0], SealedMemory) or found[0] in walked:
            raise NotFoundError(f"as_of: nothing stood in place of {memory_id!r} on {as_of}")
        here = found[0]


@action(READ, writes=False, counts=lambda _: (1, 1))
def original(opened: Opened, memory_id: str, *, refs: bool = True) -> bytes:
    """The file that a memory was read from, byte for byte, where the import kept it.

    Names a memory as :func:`get`. Raises NotFoundError where none was kept.
    """
    vault, found = opened.vault, resolve(opened.vault, memory_id, refs=refs)
    with vault.moment() as (storage, known):
        for memory in open_memories(storage, vault.keyring, [found], known):
            if not isinstance(memory, SealedMemory):
                return originals.opened(storage, vault.keyring, memory)
    raise NotFoundError(f"no memory {memory_id!r}")


@action(None, writes=False)
def find_id(opened: Opened, given: str, *, refs: bool = True) -> str:
    """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

    Raises NotFoundError, also for memories of collections that this key may not read.
    """
    return resolve(opened.vault, given, refs=refs)


@action(None, writes=False)
def generation(opened: Opened) -> tuple[object, ...]:
    """Equal to an earlier one only while nothing in here was changed: no memory, no model, no name
    of a collection. Opens those names alone."""
    snapshot = opened.vault.snapshot()
    names = opened.vault.collections.names()
    return weakref.ref(snapshot), opened.vault.settings, tuple(names.items())


@action(READ, writes=False, counts=lambda found: (0, len(found)))
def heads(opened: Opened, ids: Sequence[str]) -> dict[str, MemoryHead]:
    """Id → title, collection and topics of those memories that are there; opens no body."""
    return open_heads(opened.vault, ids)


def open_heads(vault: OpenVault, ids: Sequence[str]) -> dict[str, MemoryHead]:
    """Id → head of those memories, less those that are gone or not this key's to read."""
    names = vault.collections.names()
    openable = names.keys() & set(vault.keyring.openable())
    opened = {}
    with vault.moment() as (storage, known):
        for row in storage.memories.rows(ids).values():
            if row.collection in openable:
                head = open_head(vault.keyring, row, known)
                hashes = _topics_by_hash(vault.keyring.of(row.collection), head["topics"])
                opened[row.id] = MemoryHead(
                    row.id, names[row.collection], head["title"], row.content, hashes, head["ref"]
                )
    return opened


def _topics_by_hash(keys: CollectionKeys, topics: Sequence[str]) -> dict[str, str]:
    """The forms in which topics stand in the file, in hex → the topic."""
    return {
        form.hex(): topic
        for topic in topics
        if normalise_topic(topic)
        for form in keys.stored_forms(topic_tags(keys, [topic])[0])
    }


@action(READ, writes=False, counts=lambda found: (len(found), len(found)))
def texts(opened: Opened, contents: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Id of a body (``memories.content``) → the id of a memory that holds it, and the text.

    Opens that memory's head, too, which names its body. Less those not this key's to read.
    """
    with opened.vault.moment() as (storage, known):
        return open_bodies(storage, opened.vault.keyring, contents, known)


@action(None, writes=False)
def present(opened: Opened, ids: Sequence[str]) -> frozenset[str]:
    """Those of some whole ids that are memories in here; opens nothing."""
    readable = set(opened.vault.keyring.readable())
    rows = opened.vault.reader().memories.rows(ids).values()
    return frozenset(row.id for row in rows if row.collection in readable)


@action(READ, writes=False, counts=lambda found: (len(found), len(found)))
def found_again(opened: Opened, ids: Sequence[str]) -> list[Memory]:
    """The memories of those ids, in that order, less those deleted meanwhile."""
    there = {memory.id: memory for memory in open_all(opened.vault, ids)}
    return [there[one] for one in ids if one in there]


@action(READ, writes=False, counts=_counted)
def newest(
    opened: Opened,
    *,
    collection: str | Sequence[str] = (),
    type: str | Sequence[str] = (),
    topic: str | Sequence[str] = (),
    status: str = "all",
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
    superseded: bool = False,
    by: str | None = None,
    changed: str | None = None,
    limit: int = 100,
    offset: int = 0,
    after: tuple[str, str] | None = None,
) -> list[Memory]:
    """What the filters let through, with texts, newest first, of one moment by id.

    ``as_of``, ``superseded`` and ``by`` are as in a search. Who wrote a memory is sealed, so
    ``by`` opens them one after another. ``changed``: only what was made or changed since then.
    ``after``, the ``created`` and the id of the last memory seen, goes on behind it, whatever was
    added or deleted meanwhile. Raises BadInputError, NotFoundError for a collection that is not
    there.
    """
    if status not in STATUSES:
        raise BadInputError(f"no status {status!r}; there is: {', '.join(STATUSES)}", "status")
    if limit < 0 or offset < 0:
        raise BadInputError("limit and offset are 0 or more", "limit")
    vault = opened.vault

    def wanted(snapshot: Snapshot) -> Ordinals:
        check_types(several(type), snapshot.types)
        mask = snapshot.mask(
            Filters(
                collections=collection_ids(vault, several(collection)),
                types=several(type),
                topics_any=tuple(_topic_group(vault, name) for name in several(topic)),
                status=status,
                **period(since, until),
                **validity(as_of, superseded),
            )
        )
        if changed is not None:
            moment = parse_moment(changed, parameter="changed")
            mask &= np.maximum(snapshot.updated, snapshot.created) >= moment
        if after is not None:
            mask &= _behind(snapshot, *after)
        most = None if by is not None else offset + limit
        return newest_first(snapshot, mask.nonzero()[0], most)

    page = slice(offset, offset + limit)
    if by is None:
        snapshot = vault.snapshot()
        found = _as_looked_at(vault, snapshot.ids(wanted(snapshot)[page]), snapshot)
        if found is not None:
            return shown(vault, found)
    with vault.moment(counted=True) as (_, known):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        ordinals = wanted(snapshot)
        if by is not None:
            written = islice(_written(vault, snapshot.ids(ordinals), by), offset, offset + limit)
            return shown(vault, list(written))
        return shown(vault, open_all(vault, snapshot.ids(ordinals[page])))


def written_by(vault: OpenVault, by: str) -> list[Memory]:
    """All that an assistant of that name added and is there, also what is superseded."""
    with vault.moment(counted=True) as (_, known):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        ids = snapshot.ids(snapshot.alive.nonzero()[0])
        return list(_written(vault, ids, by))


def _written(vault: OpenVault, ids: Sequence[str], by: str) -> Iterator[Memory]:
    """Those memories that an assistant of that name wrote, in their order."""
    for start in range(0, len(ids), AT_ONCE):
        for memory in open_all(vault, ids[start : start + AT_ONCE]):
            if memory.by == by:
                yield memory


@action(None, writes=False, in_batches=True)
def every(
    opened: Opened, /, *, damaged: Callable[[str, str], None] | None = None
) -> Iterator[Memory]:
    """Every memory with its text, newest first and of one moment, whatever is written meanwhile.

    ``damaged`` is called with the id of each memory that cannot be read, and why. Without it, the
    first such memory raises. If the index is damaged, ``damaged`` is called for that first, and the
    memories come in the order of their ids.
    Holds a few of them in memory, however many there are. One thread has to ask for all; it holds
    the vault open until the last one.
    """
    vault = opened.vault
    with vault_faults(vault.path), vault.gate.entered(), ExitStack() as moment:
        storage, known, there, batches = _listed(vault, moment, damaged)
        read = partial(open_memories, storage, vault.keyring, known=known)
        if damaged is not None:
            read = partial(_undamaged, vault.path, read, damaged)
        for ids in batches:
            some = list(read(ids))
            vault.access.check_unchanged(vault.path)
            yield from shown(vault, some, there)


def _listed(
    vault: OpenVault, moment: ExitStack, damaged: Callable[[str, str], None] | None
) -> tuple[Storage, Known, Callable[[str], bool], Iterator[Sequence[str]]]:
    """What reads every memory at one moment, which ids there are, and these in batches.

    If the index is damaged, ``damaged`` is called for it, and the ids are those of all rows.
    """
    readable = vault.keyring.readable()
    try:
        with vault_faults(vault.path):  # a count reads every page, also those that are damaged
            storage, known = moment.enter_context(vault.moment(counted=damaged is None))
    except (TamperedError, FormatError, DamagedError):
        if damaged is None:
            raise
        damaged(
            "the index", "it is damaged: whether a memory was put back or taken away is not known"
        )
        rows = moment.enter_context(vault.reader().reading())
        ids = [memory for memory, collection in rows.memories.places() if collection in readable]
        batches = (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
        return rows, AllRows(), set(ids).__contains__, batches
    snapshot = known.snapshot.limited_to(readable)
    ordinals = newest_first(snapshot, snapshot.alive.nonzero()[0])
    starts = range(0, len(ordinals), AT_ONCE)
    found = (snapshot.ids(ordinals[start : start + AT_ONCE]) for start in starts)
    return storage, known, partial(_is_there, snapshot), found


class AllRows:
    """Takes every row that opens, where no index says which one was written last."""

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Nothing is known of it."""

    def check_absent(self, memory: str, elsewhere: str = "") -> None:
        """Nothing is known of it."""

    def earliest(self, collection: str) -> int:
        """The first: nothing is known of it."""
        return 0


def _undamaged(
    path: Path,
    read: Callable[[list[str]], Iterator[Memory]],
    damaged: Callable[[str, str], None],
    ids: Sequence[str],
) -> Iterator[Memory]:
    """Read memories one by one. ``damaged`` is called for each that cannot be read."""
    for one in ids:
        try:
            with vault_faults(path):
                found = [*read([one])]
        except DamagedError:
            damaged(one, "the file is damaged there")
        except (TamperedError, FormatError) as error:
            damaged(one, str(error))
        else:
            yield from found


def newest_first(snapshot: Snapshot, ordinals: Ordinals, most: int | None = None) -> Ordinals:
    """Documents by when they were created, then by id; ``most`` of them (``None``: all)."""
    most = len(ordinals) if most is None else most
    return ordinals[snapshot.best_first(ordinals, snapshot.created[ordinals], most)]


def _behind(snapshot: Snapshot, created: str, memory_id: str) -> Mask:
    """bool [size]: what comes behind a place in the order of :func:`newest_first`."""
    moment = epoch(created, parameter="after")
    number = uuid.UUID(memory_id).int
    high, low = np.uint64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)
    highs, lows = snapshot.id_words.T
    later_id = (highs > high) | ((highs == high) & (lows > low))
    behind: Mask = (snapshot.created < moment) | ((snapshot.created == moment) & later_id)
    return behind


@action(None, writes=False)
def references(opened: Opened) -> list[Reference]:
    """Every memory's id, ref and content, for evaluation."""
    vault = opened.vault
    snapshot = vault.snapshot()
    refs = {memory: one.ref for memory, one in names_in(vault, vault.keyring.readable())}
    contents: dict[bytes, int] = {}
    return [
        Reference(
            memory := snapshot.id(int(ordinal)),
            refs.get(memory) or None,
            contents.setdefault(snapshot.content_tags[ordinal].tobytes(), len(contents)),
        )
        for ordinal in snapshot.alive.nonzero()[0]
    ]


def _topic_group(vault: OpenVault, topic: str) -> dict[str, list[bytes]]:
    """A topic's hashes in every collection that the key can read."""
    normalised = normalise_topic(topic)
    if not normalised:
        raise BadInputError(f"{topic!r} is no topic", "topic")
    return {
        collection: [vault.keyring.of(collection).blinder.topic(normalised)]
        for collection in vault.keyring.readable()
    }
