"""Verification: every record authenticated, every account held against its rows and its index, and
the index against the texts.

Boundary: opens everything, keeps nothing. The report names rows, never contents.

Everything is read at one moment, and the index anew from its segments: what this process has in
memory is not asked. Of each memory the row, the account's tag of it and what its index entry says
of type, times, topics and content are compared; its words are analysed again, and its vectors made
again, for as many as are asked for, chosen at random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import structs

from memory_store.crypto.blinding import SUM_MODULUS
from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.index.layout import Segment
from memory_store.index.snapshot import Snapshot
from memory_store.records import Memory
from memory_store.session.comparison import EntryChecks, Model
from memory_store.session.readers import KnownRows
from memory_store.session.sealed_segments import (
    alive_rows,
    is_stale,
    living_tags,
    load_segment,
    wanted_mark,
)
from memory_store.session.whole_vault import WholeVault
from memory_store.sqlite import sqlite3
from memory_store.vault import audit, originals, sources, sync_state, trash
from memory_store.vault.collections import check_named
from memory_store.vault.expansions import stored
from memory_store.vault.manifest import CONTENT_FORMAT, earlier_total, read_manifest, rows_of
from memory_store.vault.rows import content_tag, open_memories, own_tag, read_origins, topic_tags
from memory_store.vault.segments import unseal_extra
from memory_store.vault.settings import FILLING, MEMORY
from memory_store.vault.share_check import share_checks
from memory_store.vault.slots import OWNER, list_slots
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import UNFORESEEN
from memory_store.vault.storage.schema import FORMAT_VERSION
from memory_store.vault.storage.segments import SegmentRow

MEND = "memory-store reindex --all makes the entry anew"
IN_THE_FILE = (
    "topics are kept in memory, and hashes are in the file: "
    "memory-store settings DB topics memory deletes them"
)
PLANTED = "vault_slots: not one that the owner made; memory-store keys remove takes it away"

Check = Callable[[], object]
DATABASE = "database"


def verify(
    vault: WholeVault,
    progress: Callable[[str, int, int | None], None] | None = None,
    *,
    full: bool = False,
    model: Model | None = None,
) -> dict[str, Any]:
    """``{"records": how many were authenticated, "failures": ["what is wrong", …], "compared":
    {"entries", "words", "vectors", "left"}}``.

    ``full`` compares the words and the vectors of all memories; ``model`` loads that of a
    collection by its id (``None``: no vectors are compared).
    """
    failures = []
    # what others write meanwhile is left out
    with vault.reader().reading() as storage, vault.keyring.lasting():
        work = _Work(vault, storage, full=full, model=model)
        checks = list(work.checks())
        for done, (name, check) in enumerate(checks):
            if progress is not None:
                progress(name, done, len(checks))
            try:
                check()
            except (MemoryStoreError, ValueError, sqlite3.DatabaseError) as error:
                failures.append(f"{name}: {error}")
            except UNFORESEEN:
                if not failures or not failures[0].startswith(DATABASE):
                    raise  # the file is whole: the fault is ours
                failures.append(f"{name}: has values that no vault writes")
        work.snapshot.wipe()
    if progress is not None:
        progress("", len(checks), len(checks))
    compared = structs.asdict(work.entries.compared)
    return {"records": len(checks), "failures": failures, "compared": compared}


class _Work:
    """One verification: what is read once for all of its checks."""

    def __init__(
        self, vault: WholeVault, storage: Storage, *, full: bool, model: Model | None
    ) -> None:
        self._vault = vault
        self._storage = storage
        self._readable = set(vault.keyring.readable())
        self._lost = set[str]()  # collections of which a part of the index cannot be read
        self.snapshot = self._read_index()
        self._known = KnownRows(self.snapshot, vault.settings)
        self.entries = EntryChecks(self.snapshot, vault.keyring, model, full=full)

    def _read_index(self) -> Snapshot:
        """The index as its segments say; those that do not open have checks of their own."""
        vault, storage = self._vault, self._storage
        parts, stale, earlier = [], [], set()
        try:
            rows = storage.segments.rows()
        except sqlite3.DatabaseError:
            rows, self._lost = [], self._readable
        for row in rows:
            if row.collection not in self._readable:
                continue
            keys = vault.keyring.of(row.collection)
            try:
                segment = load_segment(storage, keys, row)
                parts.append((segment, alive_rows(storage, row, segment), row.collection))
            except (MemoryStoreError, *UNFORESEEN):
                self._lost.add(row.collection)
                continue
            wanted = wanted_mark(vault.settings, keys)
            stale.append(is_stale(row.model, wanted, segment.windows))
            with suppress(MemoryStoreError, *UNFORESEEN):  # its account has a check of its own, too
                if read_manifest(storage, keys).format < CONTENT_FORMAT:
                    earlier.add(row.collection)
        return Snapshot(parts, stale=stale, untagged=earlier)

    def checks(self) -> Iterator[tuple[str, Check]]:
        """What each is called, and what raises where it is not as it should be."""
        vault, storage = self._vault, self._storage
        problem = storage.damage(thorough=True)
        yield DATABASE, lambda: _refuse_unless(problem is None, str(problem))
        yield "settings", vault.refresh_settings
        yield "collections", self._collections
        for collection in vault.keyring.readable():
            yield f"account of collection {collection}", partial(self._account, collection)
        yield from _each("vault_segments", self._segments())
        yield "vault_segment_parts", self._extra_parts
        if vault.settings.format >= FORMAT_VERSION:
            yield from _each("vault_sources", _rows_of_format_3(vault, storage))
        if vault.keyring.is_owner:
            yield from _each("vault_expansions", self._expansions())
            yield from _each("vault_sync", self._sync_state())
            yield "audit trail", partial(audit.check, storage, vault.keyring)
            yield from _each("vault_slots", _slots_not_listed(vault, storage))
        if vault.settings.topics_kept == MEMORY:
            yield "memory_topics", lambda: _refuse_unless(storage.topics.count() == 0, IN_THE_FILE)
        yield from _each("vault_trash", self._trash())
        yield "index", partial(vault.snapshot, whole=True)
        yield from _each("memories", self._memories())

    def _segments(self) -> Iterator[tuple[str, Check]]:
        for row in self._storage.segments.rows():
            if row.collection in self._readable:
                yield f"segment {row.id}", partial(self._segment, row)

    def _expansions(self) -> Iterator[tuple[str, Check]]:
        for sequence, tag, sealed in stored(self._storage):
            yield f"expansion {sequence}", partial(self._vault.expansions.open, tag, sealed)

    def _sync_state(self) -> Iterator[tuple[str, Check]]:
        for tag, sealed in sync_state.stored(self._storage):
            yield "vault_sync", partial(sync_state.check, self._vault.keyring, tag, sealed)

    def _trash(self) -> Iterator[tuple[str, Check]]:
        storage, keyring = self._storage, self._vault.keyring
        for number, collection, sealed in storage.trash.of(keyring.readable()):
            check = partial(trash.check, storage, keyring, number, collection, sealed)
            yield f"vault_trash {number}", check
        if keyring.is_owner:
            known = set(self._vault.settings.collections)
            for number, collection in storage.trash.places():
                said = "it is of a collection that the vault does not have"
                stray = partial(_refuse_unless, collection in known, said)
                yield f"vault_trash {number}", stray

    def _memories(self) -> Iterator[tuple[str, Check]]:
        known = self.snapshot.ids(self.snapshot.alive.nonzero()[0])
        try:
            rows = dict(self._storage.memories.places())
        except sqlite3.DatabaseError:  # of those in the index, each that can be read is checked
            for memory in known:
                yield f"memory {memory}", partial(self._memory, memory)
            raise
        for memory, collection in rows.items():
            unknown = collection in self._lost and self.snapshot.ordinal_of(memory) is None
            if collection in self._readable and not unknown:
                yield f"memory {memory}", partial(self._memory, memory)
        for memory in known:
            if (collection := rows.get(memory, "")) not in self._readable:
                check = partial(self._known.check_absent, memory, collection)
                yield f"memory {memory}", check

    def _collections(self) -> None:
        _refuse_unless(bool(self._vault.collections.names()), "none is readable")
        check_named(self._storage, self._vault.keyring.principal)

    def _account(self, collection: str) -> None:
        keys, snapshot = self._vault.keyring.of(collection), self.snapshot
        account = read_manifest(self._storage, keys)
        rows = rows_of(self._storage, collection)
        held = [part for part in snapshot.parts if part.collection == collection]
        count = sum(int(part.alive.sum()) for part in held)
        if account.format < CONTENT_FORMAT:
            total = earlier_total(keys, rows, account.epoch)
        else:
            elements = keys.elements_of(account.epoch)
            total = sum(elements.total(living_tags(p.segment, p.alive)) for p in held) % SUM_MODULUS
        _refuse_unless(
            account.count == count == len(rows) and account.total == total,
            f"says {account.count} memories; {len(rows)} are there and {count} in the index, "
            "or not the same ones",
        )

    def _segment(self, row: SegmentRow) -> None:
        segment = load_segment(self._storage, self._vault.keyring.of(row.collection), row)
        try:
            _refuse_unless(len(segment.vectors) == segment.windows, "vectors are missing")
            segment.pairs.rows(0)
            self._extras(row, segment)
        finally:
            segment.wipe()

    def _extras(self, row: SegmentRow, segment: Segment) -> None:
        """Its extra parts: those that it names, whether this version knows their kinds or not."""
        keys, stored = self._vault.keyring.of(row.collection), self._storage.segments
        there = stored.extras(row.id)
        for kind in {*segment.kinds, *there}:
            unseal_extra(keys, row, kind, there.get(kind))
            _refuse_unless(kind in segment.kinds, f"its part {kind} is one that it does not name")
        for late in segment.extras.values():
            late.get()

    def _extra_parts(self) -> None:
        segments = {row.id for row in self._storage.segments.rows()}
        stray = {segment for segment, _ in self._storage.segments.extra_kinds()} - segments
        _refuse_unless(not stray, "has parts of segments that are not there")

    def _memory(self, memory: str) -> None:
        keyring = self._vault.keyring
        opened = list(open_memories(self._storage, keyring, [memory], self._known))
        _refuse_unless(bool(opened), "is gone")
        self._rows_beside(opened[0])
        if opened[0].original is not None and opened[0].original.token:
            originals.opened(self._storage, keyring, opened[0])
        differing = self.entries.differences(opened[0])
        complaint = f"differs from its index entry in: {', '.join(differing)}; {MEND}"
        _refuse_unless(not differing, complaint)

    def _rows_beside(self, opened: Memory) -> None:
        """Its content tag, and its topics in the file."""
        storage, keys = self._storage, self._vault.keyring.of(opened.collection)
        tag = content_tag(keys, opened.title, opened.text)
        stored_tag = storage.memories.body_tag(opened.id)
        known = [*keys.stored_forms(tag), *keys.stored_forms(own_tag(keys, opened))]
        _refuse_unless(stored_tag in known, "its content tag is another's")
        kept = self._vault.settings.topics_kept
        if kept != MEMORY:
            topics = {bytes(topic) for _, topic in storage.topics.of([opened.id])}
            tags = topic_tags(keys, opened.topics)
            wanted = [{keys.stored(tag, epoch) for tag in tags} for epoch in keys.bundles()]
            # while the key is being replaced, they may stand there in both of its epochs
            whole = kept == FILLING or any(one <= topics for one in wanted)
            whole = whole and topics <= set().union(*wanted)
            _refuse_unless(whole, "its topic hashes are others")


def _each(table: str, checks: Iterator[tuple[str, Check]]) -> Iterator[tuple[str, Check]]:
    """The checks of a table's rows; where these cannot be read, one that says so."""
    try:
        yield from checks
    except sqlite3.DatabaseError as error:
        yield table, partial(_refuse_unless, False, str(error))


def _rows_of_format_3(vault: WholeVault, storage: Storage) -> Iterator[tuple[str, Check]]:
    for source, collection, sealed in storage.sources.of(vault.keyring.principal):
        check = partial(sources.check, storage, vault.keyring, source, collection, sealed)
        yield f"source {source}", check
    yield "origins", partial(_check_origins, vault, storage)
    if vault.keyring.is_owner:
        yield from share_checks(storage, vault.keyring, vault.settings)


def _check_origins(vault: WholeVault, storage: Storage) -> None:
    """Raise TamperedError where a row that is not proven says where a memory came from."""
    rows = storage.origins.places()
    readable = set(vault.keyring.readable())
    mine = [(memory, collection) for memory, collection in rows if collection in readable]
    proven = read_origins(storage, vault.keyring, mine)
    wrong = [memory for memory, _ in mine if memory not in proven]
    _refuse_unless(not wrong, f"memory_sources of {', '.join(wrong[:3])}: not written by a reader")


def _slots_not_listed(vault: WholeVault, storage: Storage) -> Iterator[tuple[str, Check]]:
    """The slots in the file that say they are the owner's, and that his settings do not name.

    An owner who never changed a key has listed none, so none can be compared.
    """
    try:
        known = vault.stored_settings(storage).slots
    except MemoryStoreError:
        return  # the check of the settings says so
    for slot in list_slots(storage, OWNER):
        if known and slot.id not in known:
            yield f"key slot {slot.id}", partial(_refuse_unless, False, PLANTED)


def _refuse_unless(holds: bool, complaint: str) -> None:
    if not holds:
        raise TamperedError(complaint)
