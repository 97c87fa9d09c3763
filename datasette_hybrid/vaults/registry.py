"""The vaults of one Datasette: which of its databases hold one, and the clock that rests them."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from datasette.database import Database

from memory_store import host
from memory_store.errors import MemoryStoreError, NotAVaultError
from memory_store.host import file_access, is_vault, says_vault

from .. import configuration
from ..configuration import DatabaseSettings
from .opening import without_folder
from .vault import Vault

changes = 0
"""How often a database of this process came to be known as a vault's, or ceased to."""
MANY = 50  # vaults: more do not stay open from the start, and no menu of a page names them all
WATCH_SECONDS = 3.0  # how late a time-out may come, and how long an audit event may wait


class UnreadableVaultError(NotAVaultError):
    """The file of a database was a vault, and cannot be read as one now (HTTP 503)."""


class Vaults:
    """The vaults of one Datasette."""

    def __init__(self, datasette: Any) -> None:
        self._datasette = weakref.ref(datasette)
        self.settings = configuration.read(datasette)
        self.proxies = configuration.proxies(datasette)
        self.unguarded: set[str] = set()
        """The databases whose connections some plugin keeps from being guarded."""
        self._found: dict[str, Vault] = {}
        self._placed: dict[str, tuple[Vault, str | None]] = {}
        """Those that were found, and the path that their database had then."""
        self._problems: dict[str, str] = {}
        self._not_vaults: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._started = self._serving = False
        self._folder: TemporaryDirectory[str] | None = None
        self._stopped = threading.Event()

    def attach(self) -> None:
        """Give each vault that is no file a database of Datasette's: its functions and pages are
        reached by that name, and its tables hold what stands in clear. They are in memory, where
        the system has a folder there. Raises CannotStartError where a file has the name.
        """
        datasette = self._datasette()
        assert datasette is not None
        for name, settings in self.settings.items():
            if settings.storage is None:
                continue
            if name in datasette.databases:
                raise configuration.CannotStartError(
                    f"datasette-hybrid: databases: {name}: storage: Datasette serves another "
                    "database of that name: give one of them another"
                )
            if self._folder is None:
                place = host.IN_MEMORY if os.access(host.IN_MEMORY, os.W_OK) else None
                self._folder = TemporaryDirectory(prefix="datasette-hybrid-", dir=place)
            tables = host.ClearCopy(Path(self._folder.name, f"{len(self._found)}.db"))
            database = Database(datasette, path=str(tables.path), is_mutable=True)
            datasette.add_database(database, name=name)
            self._found[name] = Vault(name, settings.storage, settings, tables=tables)
            _changed(1)

    def all(self) -> list[Vault]:
        """Every database that holds a vault now, in Datasette's order."""
        return list(self._each())

    def some(self, databases: Collection[str]) -> list[Vault]:
        """Those of them that hold a vault now, in Datasette's order."""
        return list(self._each(databases))

    def of(self, database: str) -> Vault:
        """The vault behind one database. Raises :class:`NotAVaultError`.

        :class:`UnreadableVaultError` where there is one that cannot be read now.
        """
        for vault in self._each((database,)):
            return vault
        with self._lock:
            problem = self._problems.get(database)
        if problem is not None:
            raise UnreadableVaultError(problem)
        raise NotAVaultError(f"the database {database} holds no vault")

    def names(self) -> list[str]:
        """The databases known to hold a vault, without a look at any file."""
        with self._lock:
            return list(self._found)

    def open_at_start(self) -> None:
        """Open what the configuration and the environment have keys for, and watch the clock.

        More than ``MANY`` rest until their first use: each takes memory as long as it is open.
        """
        found = self.all()
        for vault in found:
            vault.open_configured()  # a vault that cannot be opened says so, and is not in the way
            if vault.problem is None and vault.server.answers:
                vault.log(vault.state())
            if len(found) > MANY:
                vault.rest()
        self._started = True
        watcher = threading.Thread(
            target=_watch, args=(weakref.ref(self), self._stopped), name="hybrid-watch", daemon=True
        )
        watcher.start()

    def stay(self) -> int:
        """From now on search in processes of their own, and embed in the background: Datasette
        stays, and serves many.

        Returns how many searches can run at once in some vault, one that is attached later, too.
        """
        self._serving = True
        for vault in self._each():
            vault.stay()
        usual = DatabaseSettings("").search_processes
        return max([usual, *(one.search_processes for one in self.settings.values())])

    def rest_where_due(self) -> None:
        """Apply the time-outs to every vault; lock those that Datasette no longer serves.

        A failure with one does not stop the clock for the others.
        """
        datasette = self._datasette()
        served = {} if datasette is None else datasette.databases
        with self._lock:
            gone = [self._found.pop(name) for name in [*self._found] if name not in served]
            for vault in gone:
                self._placed.pop(vault.database, None)
            _changed(len(gone))
            found = list(self._found.values())
        for vault in gone:
            vault.lock()
        for vault in found:
            try:
                vault.follow_file()
                vault.follow_server()
                vault.rest_if_due()
                vault.write_audit()
            except Exception as error:  # noqa: BLE001 - a watch that ends leaves keys in memory
                vault.note_problem(f"its time-outs are tried again ({type(error).__name__})")

    def lock_all(self) -> None:
        """Wipe every key: the server is stopping."""
        self._stopped.set()
        with self._lock:
            found = list(self._found.values())
        for vault in found:
            vault.lock()
        if self._folder is not None:
            self._folder.cleanup()

    def _each(self, only: Collection[str] | None = None) -> Iterator[Vault]:
        datasette = self._datasette()
        databases = {} if datasette is None else datasette.databases
        if only is not None and len(only) == 1:
            (one,) = only
            databases = {one: databases[one]} if one in databases else {}
        for name, database in list(databases.items()):
            if only is not None and name not in only:
                continue
            vault, place = self._placed.get(name, (None, None))
            if vault is not None and place == database.path and self._found.get(name) is vault:
                yield vault  # as every request finds them: very many may be served
                continue
            vault = self._on_server(name)
            if vault is None and database.path is not None and not database.is_memory:
                vault = self._vault(name, Path(database.path), not database.is_mutable)
            if vault is not None:
                self._placed[name] = vault, database.path
                yield vault

    def _on_server(self, name: str) -> Vault | None:
        """The vault of a database that is no file. Its server is not asked: it may be away."""
        with self._lock:
            vault = self._found.get(name)
        return vault if vault is not None and vault.settings.storage is not None else None

    def _note_problem(self, name: str, path: Path, error: Exception) -> None:
        """Remember why a vault cannot be looked at, and say it once. Other databases are none."""
        problem = f"{path.name} cannot be looked at ({type(error).__name__})"
        if isinstance(error, MemoryStoreError):
            problem = without_folder(path, error)
        if "is locked" not in problem and says_vault(path) and self._problems.get(name) != problem:
            self._problems[name] = problem
            with suppress(OSError, ValueError):  # standard error is closed
                print(f"datasette-hybrid: {name}: {problem}", file=sys.stderr)

    def _vault(self, name: str, path: Path, immutable: bool) -> Vault | None:
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
            nolock = bool(getattr(self._datasette(), "nolock", False))
            choose = partial(file_access, path, immutable=immutable, nolock=nolock)
            try:
                access = choose()
                there = is_vault(path, access, patience=0.0)  # every request asks
            except Exception as error:  # noqa: BLE001 - other vaults are served all the same
                self._note_problem(name, path, error)
                return None  # looked at again later: the disk may read it then, or its lock be free
            self._problems.pop(name, None)
            if not there:
                self._not_vaults[name] = stamp
                return None
            if known is not None:  # another file under the same name: not in the event loop
                threading.Thread(target=known.lock, name="hybrid-lock").start()
            settings = self.settings.get(name) or DatabaseSettings(name)
            vault = self._found[name] = Vault(name, path, settings, access, choose)
            _changed(1)
            if self._started:
                vault.open_when_used()
            if self._serving:
                vault.stay()
            return vault


def _changed(times: int) -> None:
    global changes
    changes += times


_registry: weakref.WeakKeyDictionary[Any, Vaults] = weakref.WeakKeyDictionary()


def vaults_of(datasette: Any) -> Vaults:
    """The vaults of this Datasette; the configuration is read (and checked) the first time."""
    vaults = _registry.get(datasette)
    if vaults is None:
        vaults = _registry[datasette] = Vaults(datasette)
    return vaults


def names_found(datasette: Any) -> list[str]:
    """The databases known to hold a vault; none before the configuration was read, nor a look."""
    vaults = _registry.get(datasette)
    return [] if vaults is None else vaults.names()


def _watch(vaults: weakref.ref[Vaults], stopped: threading.Event) -> None:
    while not stopped.wait(WATCH_SECONDS):
        found = vaults()
        if found is None:
            return
        found.rest_where_due()
        del found
