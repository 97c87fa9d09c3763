"""The vaults behind Datasette's databases: opening, resting, locking.

Boundary: the only module that hands secrets to :mod:`memory_store`. Keys are in memory between an
unlock and a lock: by the button, after 15 idle minutes, after 12 hours, and when the server stops.
A vault whose key the configuration names rests instead of staying locked: its keys are wiped all
the same, and the next granted use reads them again from where they are kept. Locked by the
button, it stays locked until somebody unlocks it. An open vault grants nothing to anybody: see
``grants.py``.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_store.index.opened import open_vault
from memory_store.keys import secret_from_key_text
from memory_store.records import (
    BadInputError,
    LockedError,
    MemoryStoreError,
    NotAVaultError,
    WrongKeyError,
)
from memory_store.sql.permitted import STRICT
from memory_store.store import MemoryStore
from memory_store.unlocking import KEY_FILE_VARIABLE
from memory_store.vault.schema import LATER_TABLES, VAULT_TABLES, is_vault
from memory_store.vault.slots import Secret

from . import configuration
from .configuration import DatabaseSettings

WATCH_SECONDS = 10.0  # how late a time-out may come


class Moment:
    """A point in time that survives both a suspended laptop and a clock set back."""

    def __init__(self) -> None:
        self.monotonic, self.wall = time.monotonic(), time.time()

    def elapsed(self) -> float:
        """Seconds since, by whichever clock says more: one stands still in suspend."""
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


class Vault:
    """One database that holds a vault, open or locked. Safe to use from many threads."""

    def __init__(self, database: str, path: Path, settings: DatabaseSettings) -> None:
        self.database = database
        self.path = path
        self.settings = settings
        self.vault_id = ""
        self.strict = True  # until it was opened once: nothing is shown that might be sealed
        self.unlock_id: str | None = None
        self.problem: str | None = None
        self._store: MemoryStore | None = None
        self._resting = False
        self._opened = self._used = Moment()
        self._lock = threading.RLock()

    @property
    def locked(self) -> bool:
        """Whether a use would need somebody to unlock it first. Never waits for an opening."""
        if self._lock.acquire(blocking=False):
            try:
                self.rest_if_due()
            finally:
                self._lock.release()
        return self._store is None and not self._resting

    @property
    def is_open(self) -> bool:
        """Whether keys are in memory now."""
        return self._store is not None

    def use(self) -> MemoryStore:
        """The open store; call it only for somebody with a grant. Raises :class:`LockedError`."""
        with self._lock:
            self.rest_if_due()
            if self._store is None and self._resting:
                self.open_configured()
            if self._store is None:
                raise LockedError(f"{self.database} is locked: unlock it first")
            self._used = Moment()
            return self._store

    def open_configured(self) -> None:
        """Open with the key that the configuration or the environment names, if it fits.

        A configured key that is missing or wrong leaves the vault locked, with the reason in
        ``problem`` and on standard error: Datasette's other databases go on.
        """
        with self._lock:
            if self._store is not None:
                return
            try:
                store = self._open_with_configuration()
            except MemoryStoreError as error:
                self.problem = str(error)
                print(f"datasette-hybrid: {self.database}: {error}", file=sys.stderr)
                return
            if store is not None:
                self._adopt(store)
                self._resting = True

    def unlock(self, secret: str) -> None:
        """Open with a passphrase, a recovery code, or the content of a key file.

        Where the vault is open already the secret is only checked. Raises
        :class:`WrongKeyError`, or another :class:`MemoryStoreError` when the file is damaged.
        """
        store = _open_with_secret(self.path, secret)
        with self._lock:
            if self._store is not None:
                store.close()
            else:
                self._adopt(store)

    def lock(self) -> None:
        """Wipe the keys, end every session, and stay locked."""
        with self._lock:
            self._resting = False
            self._wipe()

    def rest_if_due(self) -> None:
        """Wipe the keys when the idle or the absolute time-out has passed."""
        with self._lock:
            if self._store is None:
                return
            idle = self.settings.idle_seconds
            too_idle = bool(idle) and self._used.elapsed() >= idle
            if too_idle or self._opened.elapsed() >= configuration.ABSOLUTE_HOURS * 3600:
                self._wipe()

    def _adopt(self, store: MemoryStore) -> None:
        store.expander = self.settings.expander
        self._store = store
        self.vault_id = store.vault_id
        self.strict = store.profile == STRICT
        self.unlock_id = secrets.token_urlsafe(16)
        self.problem = None
        self._opened = self._used = Moment()
        threading.Thread(target=_warm, args=(store,), name="hybrid-warm", daemon=True).start()

    def _wipe(self) -> None:
        store, self._store, self.unlock_id = self._store, None, None
        if store is not None:
            store.close()

    def _open_with_configuration(self) -> MemoryStore | None:
        settings = self.settings
        if settings.key_file is not None:
            named = configuration.resolved(settings.key_file)
            if named is None:
                raise BadInputError("key-file: its variable or file is missing", "key-file")
            return MemoryStore.open(self.path, key_file=named)
        if settings.passphrase is not None:
            passphrase = configuration.resolved(settings.passphrase)
            if passphrase is None:
                raise BadInputError("passphrase: its variable or file is missing", "passphrase")
            return MemoryStore.open(self.path, passphrase=passphrase)
        named = os.environ.get(KEY_FILE_VARIABLE)
        if not named:
            return None
        try:
            return MemoryStore.open(self.path, key_file=named)
        except WrongKeyError:
            return None  # the variable is for everybody: it may belong to another vault


class Vaults:
    """The vaults of one Datasette."""

    def __init__(self, datasette: Any) -> None:
        self._datasette = weakref.ref(datasette)
        self.settings = configuration.read(datasette)
        self._found: dict[str, Vault] = {}
        self._not_vaults: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def all(self) -> list[Vault]:
        """Every database that holds a vault now, in Datasette's order."""
        return list(self._each())

    def of(self, database: str) -> Vault:
        """The vault behind one database. Raises :class:`NotAVaultError`."""
        for vault in self._each(database):
            return vault
        raise NotAVaultError(f"the database {database} holds no vault")

    def names(self) -> list[str]:
        """The databases known to hold a vault, without a look at any file."""
        with self._lock:
            return list(self._found)

    def open_at_start(self) -> None:
        """Open what the configuration and the environment have keys for, and watch the clock."""
        for vault in self._each():
            vault.open_configured()
        watcher = threading.Thread(
            target=_watch, args=(weakref.ref(self), self._stopped), name="hybrid-watch", daemon=True
        )
        watcher.start()

    def rest_where_due(self) -> None:
        """Apply the time-outs to every vault."""
        with self._lock:
            found = list(self._found.values())
        for vault in found:
            vault.rest_if_due()

    def lock_all(self) -> None:
        """Wipe every key: the server is stopping."""
        self._stopped.set()
        with self._lock:
            found = list(self._found.values())
        for vault in found:
            vault.lock()

    def _each(self, only: str | None = None) -> Iterator[Vault]:
        datasette = self._datasette()
        databases = {} if datasette is None else datasette.databases
        for name, database in list(databases.items()):
            if database.path is None or database.is_memory or only not in (None, name):
                continue
            vault = self._vault(name, Path(database.path))
            if vault is not None:
                yield vault

    def _vault(self, name: str, path: Path) -> Vault | None:
        """The vault in the file at ``path``; files that are none are looked at when they change."""
        with self._lock:
            known = self._found.get(name)
            if known is not None and known.path == path:
                return known
            try:
                status = path.stat()
            except OSError:
                return None
            stamp = (status.st_mtime_ns, status.st_size)
            if self._not_vaults.get(name) == stamp:
                return None
            if not is_vault(path):
                self._not_vaults[name] = stamp
                return None
            settings = self.settings.get(name) or DatabaseSettings(name)
            self._found[name] = Vault(name, path, settings)
            return self._found[name]


_registry: weakref.WeakKeyDictionary[Any, Vaults] = weakref.WeakKeyDictionary()


def vaults_of(datasette: Any) -> Vaults:
    """The vaults of this Datasette; the configuration is read (and checked) the first time."""
    vaults = _registry.get(datasette)
    if vaults is None:
        vaults = _registry[datasette] = Vaults(datasette)
    return vaults


def hidden_tables(datasette: Any) -> dict[str, Any]:
    """Metadata that hides the machinery of the vaults found so far; made anew for each caller.

    Asked for in the middle of reading the configuration, too: nothing is hidden before that.
    """
    vaults = _registry.get(datasette)
    names = [] if vaults is None else vaults.names()
    machinery = (*VAULT_TABLES, *LATER_TABLES)
    return {
        "databases": {
            name: {"tables": {table: {"hidden": True} for table in machinery}} for name in names
        }
    }


def _warm(store: MemoryStore) -> None:
    """Load the models before the first question. What is missing shows in every answer."""
    try:
        store.warm()
    except MemoryStoreError as error:
        print(f"datasette-hybrid: {error}", file=sys.stderr)


def _watch(vaults: weakref.ref[Vaults], stopped: threading.Event) -> None:
    while not stopped.wait(WATCH_SECONDS):
        found = vaults()
        if found is None:
            return
        found.rest_where_due()
        del found


def _open_with_secret(path: Path, secret: str) -> MemoryStore:
    """Try the readings of a pasted secret, the quick and certain ones first."""
    key = secret_from_key_text(secret)
    readings = [*([key] if key is not None else ()), *Secret.typed(secret)]
    return MemoryStore(open_vault(path, readings))
