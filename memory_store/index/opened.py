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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError, ModelMismatchError, NotFoundError
from memory_store.index.gate import Gate
from memory_store.index.live import LiveIndex
from memory_store.index.marks import wanted_mark
from memory_store.index.snapshot import Snapshot
from memory_store.index.writing import IndexModel, delete_batch
from memory_store.records import CollectionInfo
from memory_store.scopes import EVERYTHING, Scope
from memory_store.sqlite import WRITABLE, FileAccess, connect, file_access, sqlite3
from memory_store.vault import audit
from memory_store.vault.audit import AuditEvent
from memory_store.vault.collections import (
    check_named,
    checked_name,
    insert_collection,
    open_name,
    seal_name,
)
from memory_store.vault.expansions import Expansions
from memory_store.vault.keyring import Keyring
from memory_store.vault.last_seen import counters, remember, rollback_warning
from memory_store.vault.members import OWNER_ROLE, changed_members
from memory_store.vault.schema import check_is_vault
from memory_store.vault.settings import (
    CollectionSettings,
    Settings,
    read_settings,
    read_vault_id,
    stored_revision,
    write_settings,
)
from memory_store.vault.slots import Secret, open_root
from memory_store.vault.transactions import erase_traces, reading, transaction

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

LOCK_PATIENCE = 5.0  # seconds that a lock waits for searches and writes at work
RENAME = "update collections set name = ? where id = ?"


class OpenVault:
    """See the module. Made by :func:`open_vault` and :mod:`memory_store.index.creating`."""

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
        self._write_lock = threading.RLock()
        self._readers: list[sqlite3.Connection] = []
        self._readers_lock = threading.Lock()
        self._local = threading.local()
        self._settings = read_settings(self._writer, keyring)
        self._membership: tuple[Settings, Mapping[str, Mapping[str, str]]] | None = None
        keyring.strict = self.settings.profile == "strict"
        self.expansions = Expansions(
            path,
            keyring,
            on_disk=keyring.is_owner and not keyring.strict and not access.read_only,
        )
        keyring.when_unknown(self.refresh_settings)
        self.index = LiveIndex(keyring, connect(path, read_only=True, access=access))
        older = rollback_warning(vault, counters(self._writer))
        self.warnings = (older,) if older else ()

    @property
    def settings(self) -> Settings:
        """The settings as they were last read."""
        return self._settings

    @property
    def strict(self) -> bool:
        """Whether nothing but row ids and collection ids stands in clear."""
        return self.settings.profile == "strict"

    @property
    def locked(self) -> bool:
        return self.keyring.locked

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, to one thread at a time. Raises ReadOnlyError."""
        self.access.refuse_writing(self.path)
        with self._write_lock:
            self.keyring.check_open()
            yield self._writer

    def reader(self) -> sqlite3.Connection:
        """This thread's reading connection."""
        self.keyring.check_open()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = connect(
                self.path, read_only=True, access=self.access
            )
            with self._readers_lock:
                self._readers.append(connection)
        return connection

    def snapshot(self, *, whole: bool = False) -> Snapshot:
        """The index as last committed by anybody; ``whole`` holds every entry to the accounts."""
        snapshot, settings = self.index.refresh(self.settings, whole=whole)
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
                where = f"collection {self.collection_names()[collection]!r} of {where}"
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
        self, scope: Scope, *, creating: bool = False, named: Scope = EVERYTHING
    ) -> OpenVault:
        """The vault as if there were no other collections than those in ``scope``."""
        from memory_store.index.limited import LimitedVault

        return LimitedVault(self, scope, creating=creating, named=named)

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

    # -- collections --------------------------------------------------------------------

    def collection_names(self) -> dict[str, str]:
        """Id → opened name of every collection this key may read."""
        connection = self.reader()
        known = set(self.keyring.readable())
        rows = connection.execute("select id, name from collections order by rowid").fetchall()
        if any(self.keyring.lacks(collection) for collection, _ in rows):
            self.keyring.load(connection)
            known = set(self.keyring.readable())
        names = {
            collection: open_name(self.keyring.of(collection), name)
            for collection, name in rows
            if collection in known
        }
        if len(names) < len(known):
            check_named(connection, self.keyring.principal)
        return names

    def collection_infos(self) -> list[CollectionInfo]:
        """Every readable collection with its count, in the order they were made."""
        self.follow_settings()
        names = self.collection_names()
        counts = dict(
            self.reader()
            .execute("select collection, count(*) from memories group by collection")
            .fetchall()
        )
        created = dict(self.reader().execute("select id, created from collections").fetchall())
        held = {collection: self.settings.of(collection) for collection in names}
        return [
            CollectionInfo(
                collection,
                name,
                int(counts.get(collection, 0)),
                created[collection],
                held[collection].analyser,
                held[collection].embedder or None,
                bool(self.settings.chosen(collection).embedder),
            )
            for collection, name in names.items()
        ]

    def find_collection(self, given: str | None) -> str:
        """The id of the collection of that name or id; the personal one for None."""
        if given is None:
            return self.settings.personal or self._only_collection()
        names = self.collection_names()
        if given in names:
            return given
        for collection, name in names.items():
            if name == given:
                return collection
        known = ", ".join(sorted(names.values()))
        raise NotFoundError(f"no collection {given!r}; there is: {known}")

    def _only_collection(self) -> str:
        """The one collection that is shared. Raises BadInputError where there are several."""
        shared = self.keyring.readable()
        if len(shared) != 1:
            raise BadInputError("collection: say which; the personal one is hidden", "collection")
        return shared[0]

    def find_or_create_collection(self, given: str | None) -> str:
        """As :meth:`find_collection`, making a collection of a name that is not there yet."""
        try:
            return self.find_collection(given)
        except NotFoundError:
            return self.create_collection(str(given))

    def create_collection(
        self, name: str, choice: CollectionSettings | None = None, owner: str | None = None
    ) -> str:
        """A new collection with a key of its own, indexed as chosen. Returns its id.

        With an ``owner`` (an actor's id) it is closed, else open.
        """
        name = checked_name(name)
        if name in self.collection_names().values():
            raise BadInputError(f"there is a collection {name!r} already", "collection")
        return self.insert_collection(name, choice, owner)

    def insert_collection(
        self, name: str, choice: CollectionSettings | None, owner: str | None
    ) -> str:
        """As :meth:`create_collection`, of a name that was looked at before."""
        with self.writing() as connection, transaction(connection, self.keyring):
            known = self.stored_settings(connection)
            collection = insert_collection(connection, self.keyring, name)
            owners = {} if owner is None else changed_members({}, {owner: OWNER_ROLE}, ())
            chosen = replace(choice or CollectionSettings(""), collection=collection)
            self.change_settings(
                connection,
                present=known,
                collections=(*known.collections, collection),
                choices=known.with_choice(chosen),
                members=known.with_members(collection, owners),
            )
            return collection

    def choose(self, choice: CollectionSettings) -> None:
        """Set how a collection is indexed from now on. What is there is stale until reindexed."""
        with self.writing() as connection, transaction(connection, self.keyring):
            known = self.stored_settings(connection)
            self.change_settings(connection, choices=known.with_choice(choice))

    def change_members(
        self,
        collection: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        sealed_name: bytes | None = None,
    ) -> None:
        """Give a collection the members (actor → role) that ``change`` makes of the present ones.

        No members at all open it. With :meth:`sealed_name`, it gets that name at once.
        """
        with self.writing() as connection, transaction(connection, self.keyring):
            known = self.stored_settings(connection)
            roles = change(known.members_of(collection))
            if sealed_name is not None:
                connection.execute(RENAME, (sealed_name, collection))
            self.change_settings(connection, members=known.with_members(collection, roles))

    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Collection id → actor → role, of every collection; no actor where it is open.

        Follows what other processes write, at the cost of one look at the settings' revision.
        """
        self.follow_settings()
        settings, known = self.settings, self._membership
        if known is None or known[0] is not settings:
            known = self._membership = (settings, settings.membership())
        return known[1]

    def rename_collection(self, given: str, name: str) -> None:
        """Give a collection another name. Its id and its memories stay as they are."""
        collection = self.find_collection(given)
        sealed = self.sealed_name(collection, name)
        if sealed is not None:
            with self.writing() as connection:
                connection.execute(RENAME, (sealed, collection))

    def sealed_name(self, collection: str, name: str) -> bytes | None:
        """Another name of a collection, as it is kept; ``None`` if that is its name already."""
        name = checked_name(name)
        if self.collection_names().get(collection) == name:
            return None
        if name in self.collection_names().values():
            raise BadInputError(f"there is a collection {name!r} already", "collection")
        return seal_name(self.keyring.of(collection), name)

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
            gone = delete_batch(connection, self.keyring, memories, versions=versions, also=drop)
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
                remember(self.vault, counters(self._writer))
        self.keyring.wipe()
        self.index.wipe()
        with self._readers_lock:
            for connection in (*self._readers, self._writer):
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
            keyring = Keyring.of_slot(connection, vault, open_root(connection, vault, secrets))
    finally:
        connection.close()
    return OpenVault(path, vault, keyring, access)


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
    return OpenVault(path, vault, keyring, access)
