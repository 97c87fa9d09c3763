"""An opened vault: its connections, keys, settings and the live index, until it is locked.

Boundary: the one object that ties keys to a file. Made by unlocking; :meth:`WholeVault.lock` wipes
keys and index, and every later use raises LockedError. One writer at a time in this process, any
number of readers, each thread with a connection of its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.errors import StorageError
from memory_store.index.layout import overwrite
from memory_store.index.snapshot import Snapshot
from memory_store.scopes import Limits
from memory_store.session.collections import CollectionChange, Collections
from memory_store.session.gate import Gate
from memory_store.session.likenesses import Likenesses
from memory_store.session.link_graph import LinkGraph, LinkGraphs
from memory_store.session.live_index import LiveIndex
from memory_store.session.readers import KnownRows, Readers
from memory_store.sqlite import WRITABLE, FileAccess, file_there, sqlite3, storage_faults
from memory_store.vault import trash
from memory_store.vault.collections import insert_collection
from memory_store.vault.expansions import Expansions
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.last_seen import accept, begin, remember, rollback_warning
from memory_store.vault.members import OWNER_ROLE, changed_members
from memory_store.vault.settings import CollectionSettings, Settings, read_settings, write_settings
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.session.limited_vault import LimitedVault
    from memory_store.vault.audit_events import AuditEvent
    from memory_store.vault.share_check import Stored

LOCK_PATIENCE = 5.0  # seconds that a lock waits for searches and writes at work
SEEN_AGAIN = 60.0  # seconds after which what was seen is kept again: not every end is a lock
LOOK_AT_TRASH = 3_600.0  # seconds after which a writer looks again for what is too old in it


class WholeVault:
    """An :class:`.OpenVault` with nothing hidden. Made by :mod:`memory_store.session.unlock`."""

    limits, limited, creating = "", False, True
    unnamed: frozenset[str] = frozenset()
    asker = ""

    def __init__(
        self,
        path: Path,
        vault: bytes,
        keyring: WholeKeyring,
        access: FileAccess = WRITABLE,
        settings: Settings | None = None,
    ) -> None:
        """``access`` is as it was found; ``settings`` are those that were just read with the
        keyring's keys, if they were."""
        self.path = path
        self.access = access.lasting
        self.vault = vault
        self.keyring = keyring
        self.gate = Gate(one_at_a_time=access.in_memory)  # whose readers see what is half written
        self.when_cleared_up: Callable[[], None] = lambda: None
        self._writer = Storage.open(path, access=self.access)
        self._files: list[tuple[str | Path, tuple[int, int] | None]] = [(path, file_there(path))]
        if not access.read_only:
            self._writer.keep_log()
        self._write_lock = threading.RLock()
        self._readers = Readers(path, access, self.check_there)
        self.settings = settings or read_settings(self._writer, keyring)
        """Those that were last read."""
        self.collections = Collections(self)
        keyring.strict = self.settings.strict
        kept = keyring.is_owner and not (keyring.strict or access.read_only or access.in_memory)
        self.expansions: Expansions = Expansions(path, keyring, on_disk=kept)
        keyring.when_unknown(self.refresh_settings)
        self.link_graphs = LinkGraphs()
        self.likenesses = Likenesses()
        self.index = LiveIndex(keyring, Storage.open(path, read_only=True, access=access))
        self._older = not access.in_memory and (
            rollback_warning(vault, path, self._writer, keyring) is not None
        )
        if not access.read_only and (there := file_there(f"{path}-wal")):
            self._files.append((f"{path}-wal", there))
        self._warned, self._trail_writes, self._seen_at = False, 0, time.monotonic()
        self._shares: Stored | None = None
        self._trash_looked_at = -LOOK_AT_TRASH
        self.trashed: dict[tuple[str, str], tuple[float, frozenset[bytes]]] = {}
        """By collection and model, when the trash was looked at, and whose vectors it kept then."""
        self._mirrored: tuple[Callable[[], Snapshot | None], int] = (lambda: None), 0
        self.notices: tuple[str, ...] = ()

    @property
    def older(self) -> str | None:
        """A warning where its file was older than the one last used here, until it is accepted."""
        if not self._older:
            return None
        warning = rollback_warning(self.vault, self.path, self.reader(), self.keyring)
        command = "memory-store verify"
        return warning.replace(f"{command} DB", f"{command} {self.path}") if warning else None

    def first_warning(self) -> str | None:
        """The same warning, once, and what an upgrade changed: to be shown to a person."""
        if self._warned:
            return None
        self._warned = True
        return ". ".join([*self.notices, *filter(None, [self.older])]) or None

    def accept_older(self) -> None:
        """Take the file as it is for the newest there is."""
        accept(self.vault, self.path, self.reader(), self.keyring)

    def begin_copy(self) -> None:
        """From now on it is a device of its own: not older than other copies, but beside them."""
        begin(self.vault, self.path, self.reader(), self.keyring)

    def check_there(self) -> None:
        """Raise StorageError where its file or its log is not the one that was opened: what is
        written to that one would be lost, and another one is another vault, or of another time."""
        for path, opened in self._files:
            if file_there(path) != opened:
                raise StorageError(
                    f"{os.path.basename(path)}: it was moved, deleted or replaced since this "
                    "program opened it, so nothing was written. Open it again, or start the "
                    "program again"
                )

    @contextmanager
    def writing(self) -> Iterator[Storage]:
        """The writing connection, to one thread at a time. Raises ReadOnlyError.

        Where the write fails, settings and keys are as before it: what was committed of it is
        found in the file, as what others write is.
        """
        self.access.refuse_writing(self.path)
        self.check_there()
        with self._write_lock:
            self.keyring.check_open()
            settings, held = self.settings, set(self.keyring.collections)
            self._mend_shares()
            if time.monotonic() > self._trash_looked_at + LOOK_AT_TRASH:
                self.purge_trash()
            try:
                yield self._writer
            except BaseException:
                self.settings = settings
                self.keyring.keep_only(held)
                raise
            self._keep_seen()

    def purge_trash(self) -> None:
        """Let go of what has been in the trash for too long; while another writes, the next time.

        Only opens the oldest row of each collection where there is nothing to do.
        """
        storage, days = self._writer, self.settings.trash
        if self.access.read_only or storage.in_transaction:
            return
        self._trash_looked_at = time.monotonic()
        with self._write_lock:
            try:
                with storage_faults(self.path):
                    if not trash.too_old(storage, self.keyring, days):
                        return
                    from memory_store.session.writer import drop  # late: once a day

                    with storage.transaction(self.keyring):
                        _, deleted = trash.purge(storage, self.keyring, days)
                        drop(storage, self.keyring, deleted)
                    storage.erase_traces()
            except StorageError:  # busy, full or damaged: it stays until it is not
                self._trash_looked_at = -LOOK_AT_TRASH

    def _mend_shares(self) -> None:
        """Write again what the owner signs for others, where another has changed it since."""
        if not self.keyring.is_owner or not self.settings.holders or self._writer.in_transaction:
            return
        if self._writer.shares.all() != self._shares:
            from memory_store.vault.share_check import (
                mend_shares,
            )  # an owner who shares, and writes

            self._shares = mend_shares(self._writer, self.keyring)

    def reader(self) -> Storage:
        """This thread's reading connection."""
        self.keyring.check_open()
        return self._readers.storage()

    def snapshot(
        self, *, whole: bool = False, counted: bool = True, late: bool = False
    ) -> Snapshot:
        """The index as last committed by any process; ``whole`` holds every entry to the accounts,
        ``counted`` counts the rows, ``late`` reads also what is usually read when asked for."""
        return self._newest(whole=whole, counted=counted, late=late)[0]

    def _newest(self, **wanted: Any) -> tuple[Snapshot, Settings, int]:
        """The index, and the settings and the revision that it is of."""
        snapshot, settings, revision = self.index.refresh(self.settings, **wanted)
        if settings.revision > self.settings.revision:
            self.settings = settings
        self._keep_seen()
        return snapshot, settings, revision

    def _keep_seen(self) -> None:
        """Keep what this machine saw of the vault, if that was long ago and a reader is free."""
        if self.access.in_memory or time.monotonic() < self._seen_at + SEEN_AGAIN:
            return
        storage = self.reader()
        if not storage.in_transaction:
            self._seen_at = time.monotonic()
            with contextlib.suppress(sqlite3.Error, StorageError):
                remember(self.vault, self.path, storage, self.keyring, self._trail_writes)

    def link_graph(self) -> LinkGraph:
        """Which memory links to which."""
        return self.link_graphs.of(self)

    @property
    def index_loaded(self) -> bool:
        """Whether the index was read before."""
        return not self.index.untouched

    @contextmanager
    def moment(self, *, counted: bool = False) -> Iterator[tuple[Storage, KnownRows]]:
        """This thread's reading connection at one moment, and what the index knew of its rows then.

        Within another moment it is that one's. ``counted``: no row may be missing.
        """
        storage = self.reader()
        with self._readers.moment(lambda at: self._newest(counted=counted, at=at)) as known:
            newest = known.snapshot, self.settings.opened_with
            if (self._mirrored[0](), self._mirrored[1]) != newest:
                storage.memories.mirror(known.snapshot.row_tags, newest[1])
                self._mirrored = weakref.ref(known.snapshot), newest[1]
            yield storage, known

    def looked_at(self, snapshot: Snapshot) -> tuple[Storage, KnownRows]:
        """This thread's reading connection, of no moment, and what an index that was just looked at
        knows: a row whose tag it knows is of its moment or does not open."""
        return self.reader(), KnownRows(snapshot, self.settings)

    def row_tags(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The row tags of memories, as last committed by any process."""
        return KnownRows(self.snapshot(counted=False), self.settings).tags(ids)

    def kept_vectors(
        self, collection: str, ids: Sequence[str]
    ) -> dict[str, tuple[trash.Vectors, bytearray]]:
        """What the trash is to keep of the index's vectors of some memories of a collection."""
        self.trashed.clear()
        if collection not in self.keyring.openable():
            return {}
        snapshot, found = self.snapshot(counted=False), dict[str, tuple[trash.Vectors, bytearray]]()
        model = self.settings.of(collection).fingerprint
        for memory in ids:
            ordinal = snapshot.ordinal_of(memory)
            spans = () if ordinal is None else tuple(snapshot.windows(ordinal))
            if ordinal is not None and spans:
                vectors = snapshot.stored_vectors(ordinal)
                tag = snapshot.content_tags[ordinal].tobytes()
                about = trash.Vectors(model, tag, spans, vectors.shape[1])
                found[memory] = about, bytearray(vectors.tobytes())
                overwrite([vectors])
        return found

    def follow_settings(self) -> None:
        """Read the settings again if another process has written newer ones."""
        written = self.index.settings_revision()
        if written is None:
            written = self.reader().settings.revision()
        if written > self.settings.revision:
            self.refresh_settings()

    def settings_in(self, storage: Storage) -> Settings:
        """The settings that hold in the caller's transaction: newer ones, if others wrote some."""
        if self.keyring.noted > self.settings.revision:
            self.settings = self.stored_settings(storage)
        return self.settings

    def refresh_settings(self) -> None:
        """Read the settings again: another process may have re-indexed with another model."""
        settings = read_settings(self.reader(), self.keyring)
        if settings.revision >= self.settings.revision:
            self.settings = settings

    def adopt_model(
        self,
        storage: Storage,
        embedder: Embedder,
        collection: str | None = None,
        folder: str = "",
    ) -> None:
        """Make ``embedder`` the model of a collection that has its own, else of the vault.

        The one before goes on with what it has vectors of; it lies in ``folder``, where it was
        given as one. Inside the caller's transaction.
        """
        made_with: dict[str, Any] = {
            "embedder": embedder.name,
            "fingerprint": embedder.fingerprint,
            "dimensions": embedder.dimensions,
        }
        present = self.stored_settings(storage)
        chosen = present.chosen(collection or "")
        earlier = present.with_earlier(chosen.collection, embedder.fingerprint, folder)
        if chosen.embedder:
            made_with = {"choices": present.with_choice(replace(chosen, **made_with))}
        self.change_settings(storage, present=present, earlier=earlier, **made_with)

    def forget_earlier_models(self) -> None:
        """Let the settings forget the models of before that no vector comes from any more."""
        if not self.settings.earlier or not self.keyring.is_owner:
            return
        held, known = self.snapshot(counted=False).earlier_models, self.settings
        kept = tuple(one for one in known.earlier if one.fingerprint in held)
        if kept != known.earlier:
            with self.writing() as storage, storage.transaction(self.keyring):
                present = self.stored_settings(storage)
                if present.revision == known.revision:  # else another one may be on its way
                    self.change_settings(storage, present=present, earlier=kept)

    def change_settings(
        self, storage: Storage, present: Settings | None = None, **changes: Any
    ) -> None:
        """Write the settings anew (inside the caller's transaction), one revision on.

        ``present``: those of before, for one who read them in the same transaction.
        """
        present = present or self.stored_settings(storage)
        changed = replace(present, revision=present.revision + 1, **changes)
        write_settings(storage, self.keyring, changed)
        self.settings = changed

    def stored_settings(self, storage: Storage) -> Settings:
        """The settings as they are in the caller's transaction."""
        return read_settings(storage, self.keyring)

    def add_collection(self, name: str, choice: CollectionSettings, owner: str | None) -> str:
        """A new collection of a checked name, closed where it has an ``owner``. Returns its id."""
        with self.writing() as storage, storage.transaction(self.keyring):
            known = self.stored_settings(storage)
            collection = insert_collection(storage, self.keyring)
            owners = {} if owner is None else changed_members({}, {owner: OWNER_ROLE}, ())
            self.change_settings(
                storage,
                present=known,
                collections=(*known.collections, collection),
                choices=known.with_choice(replace(choice, collection=collection)),
                members=known.with_members(collection, owners),
                names={**known.names, collection: name},
            )
            return collection

    def edit_collection(self, collection: str, change: CollectionChange) -> None:
        """Write what the settings say of one collection."""
        with self.writing() as storage, storage.transaction(self.keyring):
            known = self.stored_settings(storage)
            changes: dict[str, Any] = {}
            if change.name is not None:
                changes["names"] = {**known.names, collection: change.name}
            if change.choice is not None:
                choice = replace(change.choice, collection=collection)
                changes["choices"] = known.with_choice(choice)
                made_with = choice.fingerprint if choice.embedder else known.fingerprint
                changes["earlier"] = known.with_earlier(collection, made_with)
            if change.members is not None:
                roles = change.members(known.members_of(collection))
                changes["members"] = known.with_members(collection, roles)
            self.change_settings(storage, present=known, **changes)

    # -- views of it --------------------------------------------------------------------

    def limited_to(self, limits: Limits) -> LimitedVault:
        """The vault as if there were no other collections than those of the limits' scope."""
        from memory_store.session.limited_vault import LimitedVault  # a command sees all

        return LimitedVault(self, limits)

    def whole_vault(self) -> WholeVault:
        """The vault itself: there is nothing that it hides."""
        return self

    def discloses(self, collection: str) -> bool:
        """Always: nothing is hidden."""
        return True

    # -- the audit trail ----------------------------------------------------------------

    def keep_audit(self, events: Sequence[AuditEvent], *, days: float, most: int) -> None:
        """See :func:`memory_store.vault.audit.append`. Raises ReadOnlyError.

        The trail is the owner's: with another's key none is kept.
        """
        if not self.keyring.is_owner:
            return
        self.access.refuse_writing(self.path)
        self.check_there()
        from memory_store.vault import audit  # written by servers, not by a command

        self._trail_writes = audit.append(self.path, self.keyring, events, days=days, most=most)

    # -- locking ------------------------------------------------------------------------

    def lock(self) -> None:
        """Wipe keys and index and close every connection, once no thread uses them any more.

        A thread that is still at work after a few seconds loses the keys at once, and the rest is
        cleared up when the last one is done. Safe to call twice, from any thread.
        """
        if not self.gate.close(LOCK_PATIENCE, self._clear_up):
            self.keyring.wipe()

    def _clear_up(self) -> None:
        self.when_cleared_up()
        self.expansions.forget()
        if not (self.keyring.locked or self.access.in_memory):
            # an exchanged file: keys are wiped all the same
            with contextlib.suppress(sqlite3.Error):
                remember(self.vault, self.path, self._writer, self.keyring, self._trail_writes)
        self.keyring.wipe()
        self.link_graphs.wipe()
        self.likenesses.wipe()
        self.index.wipe()
        self._readers.close()
        self._writer.close()
