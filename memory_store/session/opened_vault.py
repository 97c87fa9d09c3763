"""An opened vault: its connections, keys, settings and the live index, until it is locked.

Boundary: the one object that ties keys to a file. Created by unlocking; :meth:`OpenVault.lock`
wipes keys and index, and every later use raises LockedError. One writer at a time in this
process, any number of readers, each thread with a connection of its own.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.crypto.keys import SecretKey
from memory_store.errors import (
    MemoryStoreError,
    ModelMismatchError,
    SupersededError,
    TamperedError,
)
from memory_store.index.known_rows import KnownRows
from memory_store.index.snapshot import Snapshot
from memory_store.scopes import EVERYTHING, Scope
from memory_store.session.collections import Collections
from memory_store.session.gate import Gate
from memory_store.session.live_index import LiveIndex
from memory_store.session.marks import wanted_mark
from memory_store.session.writer import IndexModel, delete_batch
from memory_store.sqlite import (
    FAILING,
    FULL,
    WRITABLE,
    FileAccess,
    connect,
    plain_cause,
    sqlite3,
)
from memory_store.vault.earlier_sources import warnings
from memory_store.vault.expansions import Expansions
from memory_store.vault.file_access import file_access
from memory_store.vault.keyring import Keyring
from memory_store.vault.last_seen import accept, counters, remember, rollback_warning
from memory_store.vault.opened_slots import OpenedSlot, is_cheap, open_root, strengthened
from memory_store.vault.schema import FORMAT_VERSION, check_is_vault
from memory_store.vault.settings import (
    Settings,
    read_settings,
    read_vault_id,
    stored_revision,
    write_settings,
)
from memory_store.vault.share_check import Stored, mend_shares, stored_shares
from memory_store.vault.slots import Secret
from memory_store.vault.transactions import erase_traces, keep_log, reading
from memory_store.vault.upgrade import upgrade

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.vault.audit_events import AuditEvent

MOST_MOMENTS = 64  # tries to read rows and index of one moment, beside a busy writer
SLOT_PATIENCE = 1.0  # seconds that wrapping a slot anew waits for another writer, at most
LOCK_PATIENCE = 5.0  # seconds that a lock waits for searches and writes at work


class OpenVault:
    """See the module. Made by :func:`open_vault` and :mod:`memory_store.session.creation`."""

    def __init__(
        self, path: Path, vault: bytes, keyring: Keyring, access: FileAccess = WRITABLE
    ) -> None:
        self.path = path
        self.access = access
        self.vault = vault
        self.keyring = keyring
        self.gate = Gate()
        self.when_cleared_up: Callable[[], None] = lambda: None
        self._writer = connect(path, access=access)
        if not access.read_only:
            keep_log(self._writer)
        self._write_lock = threading.RLock()
        self._readers: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._readers_lock = threading.Lock()
        self._local = threading.local()
        self._settings = read_settings(self._writer, keyring)
        self._collections = Collections(self)
        keyring.strict = self.settings.strict
        self.expansions = Expansions(
            path,
            keyring,
            on_disk=keyring.is_owner and not keyring.strict and not access.read_only,
        )
        keyring.when_unknown(self.refresh_settings)
        self.index = LiveIndex(keyring, connect(path, read_only=True, access=access))
        self._older = rollback_warning(vault, path, counters(self._writer)) is not None
        self._told = False
        self._shares: Stored | None = None
        self.notices: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings as they were last read."""
        return self._settings

    @property
    def collections(self) -> Collections:
        """The collections that its key may read."""
        return self._collections

    @property
    def strict(self) -> bool:
        """Whether nothing but row ids and collection ids stands in clear."""
        return self.settings.strict

    @property
    def locked(self) -> bool:
        return self.keyring.locked

    @property
    def older(self) -> str | None:
        """A warning where its file was older than the one last used here, until it is accepted."""
        if not self._older:
            return None
        warning = rollback_warning(self.vault, self.path, counters(self.reader()))
        command = "memory-store verify"
        return warning.replace(f"{command} DB", f"{command} {self.path}") if warning else None

    def untold(self) -> str | None:
        """The same warning, once, and what an upgrade changed: to be shown to a person."""
        if self._told:
            return None
        self._told = True
        told = [*self.notices, *filter(None, [self.older])]
        return ". ".join(told) if told else None

    def accept_older(self) -> None:
        """Take the file as it is for the newest there is."""
        accept(self.vault, self.path, counters(self.reader()))

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, to one thread at a time. Raises ReadOnlyError.

        Where the write fails, settings and keys are as before it: what was committed of it is
        found in the file, as what others write is.
        """
        self.access.refuse_writing(self.path)
        with self._write_lock:
            self.keyring.check_open()
            settings, held = self._settings, set(self.keyring.collections)
            self._mend_shares()
            try:
                yield self._writer
            except BaseException:
                self._settings = settings
                self.keyring.keep_only(held)
                raise

    def _mend_shares(self) -> None:
        """Write again what the owner tells others, where another has changed it since."""
        if not self.keyring.is_owner or not self.settings.holders or self._writer.in_transaction:
            return
        if stored_shares(self._writer) != self._shares:
            self._shares = mend_shares(self._writer, self.keyring)

    def reader(self) -> sqlite3.Connection:
        """This thread's reading connection."""
        self.keyring.check_open()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(
                self.path, read_only=True, access=self.access
            )
            with self._readers_lock:
                self._close_readers_of_the_ended()
                self._readers.append((threading.current_thread(), connection))
        return connection

    def _close_readers_of_the_ended(self) -> None:
        """Each import on a server has a thread of its own: its files stay open else."""
        for thread, connection in self._readers:
            if not thread.is_alive():
                connection.close()
        self._readers = [one for one in self._readers if one[0].is_alive()]

    def snapshot(self, *, whole: bool = False) -> Snapshot:
        """The index as last committed by anybody; ``whole`` holds every entry to the accounts."""
        snapshot, settings = self.index.refresh(self.settings, whole=whole)
        if settings.revision > self.settings.revision:
            self._settings = settings
        return snapshot

    @contextmanager
    def moment(self, *, counted: bool = False) -> Iterator[tuple[sqlite3.Connection, KnownRows]]:
        """This thread's reading connection at one moment, and what the index knew of its rows then.

        Within another moment it is that one's. ``counted``: no row may be missing.
        """
        connection, inside = self.reader(), getattr(self._local, "moment", None)
        if inside is not None:
            yield connection, inside
            return
        known = self._begin_moment(connection, counted=counted)
        self._local.moment = known
        try:
            yield connection, known
        finally:
            self._local.moment = None
            if connection.in_transaction:
                connection.execute("rollback")

    def _begin_moment(self, connection: sqlite3.Connection, *, counted: bool) -> KnownRows:
        for _ in range(MOST_MOMENTS):
            snapshot = self._index(counted=counted)
            connection.execute("begin")
            try:
                connection.execute("select 1 from vault_manifests limit 1").fetchone()
                if self._index(counted=counted) is snapshot:  # nothing was written in between
                    return KnownRows(snapshot)
            except BaseException:
                connection.execute("rollback")
                raise
            connection.execute("rollback")
        raise SupersededError("the vault is being written too often to be read")

    def row_tags(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The row tags of memories, as last committed by anybody."""
        return KnownRows(self._index(counted=False)).tags(ids)

    def _index(self, *, counted: bool) -> Snapshot:
        snapshot, settings = self.index.refresh(self.settings, counted=counted)
        if settings.revision > self.settings.revision:
            self._settings = settings
        return snapshot

    def model(self, collection: str) -> IndexModel:
        """What index entries of a collection are made with now."""
        mark = wanted_mark(self.settings, self.keyring.of(collection))
        return IndexModel(mark, self.settings.of(collection).dimensions)

    def follow_settings(self) -> None:
        """Read the settings again if another process has written newer ones."""
        if stored_revision(self.reader()) > self.settings.revision:
            self.refresh_settings()

    def settings_in(self, connection: sqlite3.Connection) -> Settings:
        """The settings that hold in the caller's transaction: newer ones, if others wrote some."""
        if stored_revision(connection) > self._settings.revision:
            self._settings = self.stored_settings(connection)
        return self._settings

    def refresh_settings(self) -> None:
        """Read the settings again: another process may have re-indexed with another model."""
        settings = read_settings(self.reader(), self.keyring)
        if settings.revision >= self._settings.revision:
            self._settings = settings

    def check_model(self, embedder: Embedder, collection: str | None = None) -> None:
        """Raise ModelMismatchError unless ``embedder`` made the vectors there (or may).

        Those of a collection (by id), or of what has no model of its own (``None``).
        """
        if self.settings.of(collection or "").fingerprint not in ("", embedder.fingerprint):
            self.refresh_settings()
        kept = self.settings.of(collection or "")
        if kept.fingerprint not in ("", embedder.fingerprint):
            where = self.path.name
            if collection and self.settings.chosen(collection).embedder:
                where = f"collection {self.collections.names()[collection]!r} of {where}"
            raise ModelMismatchError(
                f"the vectors of {where} come from {kept.embedder} "
                f"(fingerprint {kept.fingerprint[:12]}), but {embedder.name} "
                f"({embedder.fingerprint[:12]}) is loaded: memory-store reindex {self.path}"
            )

    def adopt_model(
        self, connection: sqlite3.Connection, embedder: Embedder, collection: str | None = None
    ) -> None:
        """Make ``embedder`` the model of a collection that has its own, else of the vault.

        Inside the caller's transaction.
        """
        made_with: dict[str, Any] = {
            "embedder": embedder.name,
            "fingerprint": embedder.fingerprint,
            "dimensions": embedder.dimensions,
        }
        chosen = self.settings.chosen(collection or "")
        if chosen.embedder:
            choices = self.settings.with_choice(replace(chosen, **made_with))
            self.change_settings(connection, choices=choices)
        else:
            self.change_settings(connection, **made_with)

    def change_settings(
        self, connection: sqlite3.Connection, present: Settings | None = None, **changes: Any
    ) -> None:
        """Write the settings anew (inside the caller's transaction), one revision on.

        ``present``: those of before, for one who read them in the same transaction.
        """
        present = present or self.stored_settings(connection)
        changed = replace(present, revision=present.revision + 1, **changes)
        write_settings(connection, self.keyring, changed)
        self._settings = changed

    def stored_settings(self, connection: sqlite3.Connection) -> Settings:
        """The settings as they are in the caller's transaction."""
        return read_settings(connection, self.keyring)

    def limited_to(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> OpenVault:
        """The vault as if there were no other collections than those in ``scope``."""
        from memory_store.session.limited_vault import LimitedVault

        return LimitedVault(
            self, scope, creating=creating, readable=readable, told=told, writer=writer
        )

    def tells(self, collection: str) -> bool:
        """Whether who writes into a collection may learn what is in there."""
        return True

    def whole_vault(self) -> OpenVault:
        """The vault, for what is about its whole file. Raises BadInputError in a part of it."""
        return self

    @property
    def limits(self) -> str:
        """What tells a search of this view of the vault from those of others; empty: the whole."""
        return ""

    @property
    def unnamed(self) -> frozenset[str]:
        """The collections that go by their ids here."""
        return frozenset()

    # -- forgetting --------------------------------------------------------------------------

    def forget(
        self,
        memories: Sequence[str],
        also: Callable[[sqlite3.Connection], None] | None = None,
        *,
        versions: Mapping[str, int] | None = None,
    ) -> int:
        """Delete memories from rows, index and write-ahead log. Returns how many were there.

        Raises ConflictError when one has not the version that ``versions`` says.
        """

        def drop(connection: sqlite3.Connection) -> None:
            self.index.drop(connection, memories)
            if also is not None:
                also(connection)

        with self.writing() as connection:
            gone = delete_batch(
                connection,
                self.keyring,
                memories,
                row_tags=self.row_tags,
                versions=versions,
                also=drop,
            )
            erase_traces(connection)
        return gone

    # -- the audit trail ----------------------------------------------------------------

    def keep_audit(self, events: Sequence[AuditEvent], *, days: float, most: int) -> None:
        """See :func:`memory_store.vault.audit.append`. Raises ReadOnlyError.

        The trail is the owner's: with the key of somebody else none is kept.
        """
        if not self.keyring.is_owner:
            return
        self.access.refuse_writing(self.path)
        from memory_store.vault import audit  # written by servers, not by a command

        audit.append(self.path, self.keyring, events, days=days, most=most)

    # -- locking ------------------------------------------------------------------------

    def lock(self) -> None:
        """Wipe keys and index and close every connection, once nobody uses them any more.

        Whoever is still at work after a few seconds loses the keys at once, and the rest is
        cleared up when the last one is done. Safe to call twice, from any thread.
        """
        if not self.gate.close(LOCK_PATIENCE, self._clear_up):
            self.keyring.wipe()

    def _clear_up(self) -> None:
        self.when_cleared_up()
        self.expansions.forget()
        if not self.keyring.locked:
            with contextlib.suppress(
                sqlite3.Error
            ):  # an exchanged file: keys are wiped all the same
                remember(self.vault, self.path, counters(self._writer))
        self.keyring.wipe()
        self.index.wipe()
        with self._readers_lock:
            for connection in (*(one for _, one in self._readers), self._writer):
                connection.close()
            self._readers.clear()


def open_vault(
    path: Path, secrets: Iterable[Secret], access: FileAccess | None = None
) -> OpenVault:
    """Unlock a vault with the first secret that fits. Raises WrongKeyError when none does.

    ``access``: how its file is opened; ``None`` for whatever the file allows.
    """
    access = access or file_access(path)
    check_is_vault(path, access)
    connection = connect(path, read_only=True, access=access)
    try:
        vault = read_vault_id(connection)
        with reading(connection):
            slot = open_root(connection, vault, secrets, path)
            keyring = Keyring.of_slot(connection, vault, slot)
    finally:
        connection.close()
    if is_cheap(slot.slot) and not access.read_only:
        keyring.slot_key = _strengthened(path, vault, slot, access).key
    told: Sequence[str] = ()
    if keyring.is_owner and not access.read_only:
        access, told = _upgraded(path, keyring, access)
    opened = OpenVault(path, vault, keyring, access)
    opened.notices = tuple(told)
    access.check_unchanged(path)
    return opened


def _upgraded(path: Path, keyring: Keyring, access: FileAccess) -> tuple[FileAccess, Sequence[str]]:
    """How a vault is opened that is brought up to today's format, if it is not, and what its owner
    has to know of that: one that was tampered with is left as it is, to be read as far as it can
    be; and so is one for which the disk has no room, until it has."""
    connection = connect(path, access=access)
    try:
        settings = read_settings(connection, keyring)
        if settings.format >= FORMAT_VERSION:
            return access, []
        told = warnings(connection, keyring, settings)
        return access, told if upgrade(connection, keyring, (_tag_rows,)) else []
    except TamperedError as error:
        return FileAccess(f"it cannot be brought up to today's format: {error}", "mode=ro"), []
    except sqlite3.OperationalError as error:
        cause = plain_cause(error)
        if cause not in (FULL, FAILING):
            raise
    finally:
        connection.close()
    now = file_access(path)
    return (now if now.read_only else FileAccess(cause, "mode=ro")), []


def _tag_rows(connection: sqlite3.Connection, keyring: Keyring, settings: Settings) -> Settings:
    from memory_store.session.row_tags import tag_rows  # analyses texts: seldom needed

    return tag_rows(connection, keyring, settings)


def _strengthened(path: Path, vault: bytes, slot: OpenedSlot, access: FileAccess) -> OpenedSlot:
    """The slot at today's cost; as it was, where that cannot be written: it did open the vault."""
    try:
        with contextlib.closing(connect(path, access=access, patience=SLOT_PATIENCE)) as connection:
            slot = strengthened(connection, vault, slot)
            erase_traces(connection)
    except (sqlite3.Error, MemoryStoreError):
        return slot
    return slot


def open_with_root(
    path: Path, principal: int, root: SecretKey, access: FileAccess, pin: bytes = b""
) -> OpenVault:
    """A vault that is open in another process of ours, which gave us its root key."""
    connection = connect(path, read_only=True, access=access)
    try:
        vault = read_vault_id(connection)
        keyring = Keyring.unlock(connection, vault, principal, root, pin)
    finally:
        connection.close()
    opened = OpenVault(path, vault, keyring, access)
    opened.untold()  # the process that gave us the key tells it
    return opened
