"""A member who turns against the others: her own key, and code of her own around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from memory_store.cli import main
from memory_store.session.credentials import secrets_to_open
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.keyring import CollectionKeys, WholeKeyring
from memory_store.vault.opened_slots import open_root
from memory_store.vault.settings import read_vault_id
from memory_store.vault.storage import Storage

SHARED = "work"
Row = dict[str, Any]
Hers = tuple[sqlite3.Connection, CollectionKeys]


@dataclass
class Two:
    """A vault whose owner shares ``work`` with Mallory, each at the command line and in Python."""

    path: Path
    key_file: Path
    hers: Path
    model: Path
    monkeypatch: Any

    def run(self, *arguments: object, key: Path | None = None) -> Result:
        command, *rest = map(str, arguments)
        given = [*command.split(), str(self.path), *rest, "--key-file", str(key or self.key_file)]
        return CliRunner().invoke(main, given)

    def owner(self, path: Path | None = None) -> MemoryStore:
        return MemoryStore.open(path or self.path, key_file=self.key_file, embedder=str(self.model))

    def mallory(self) -> MemoryStore:
        return MemoryStore.open(self.path, key_file=self.hers, embedder=str(self.model))

    def id_of(self, name: str) -> str:
        with self.owner() as store:
            return next(one for one, called in store.collections.names().items() if called == name)

    def texts(self, collection: str) -> list[str]:
        with self.owner() as store:
            return sorted(one.text for one in store.list(collection=collection))

    @contextmanager
    def keys_of_mallory(self) -> Iterator[Hers]:
        """A connection to the file, in a transaction, and her keys of ``work``."""
        with self.mallory() as store, closing(connect(self.path)) as connection:
            keyring = store._opened.vault.keyring
            (shared,) = keyring.readable()
            with Storage(connection).transaction():
                yield connection, keyring.of(shared)

    @contextmanager
    def keys_of_mallory_on(self, folder: Path, name: str = "") -> Iterator[Hers]:
        """The same from a machine of hers, which believes what she likes; of a named collection."""
        wanted = self.id_of(name) if name else ""
        with self.on_another_machine(folder), closing(connect(self.path)) as connection:
            storage = Storage(connection)
            vault = read_vault_id(storage)
            others: Any = {"passphrase": None, "recovery_code": None, "keyring": False}
            secrets = secrets_to_open(self.path, key_file=self.hers, **others)
            keyring = WholeKeyring.of_slot(storage, vault, open_root(storage, vault, secrets))
            shared = wanted or keyring.readable()[0]
            with Storage(connection).transaction():
                yield connection, keyring.of(shared)

    def with_the_file(self, *statements: str, **values: object) -> None:
        """What anybody does who holds the file, and no key."""
        with closing(connect(self.path)) as connection, Storage(connection).transaction():
            for statement in statements:
                connection.execute(statement, values)

    def rows(self, table: str) -> list[Row]:
        with closing(connect(self.path, read_only=True)) as connection:
            found = connection.execute(f"select * from {table} order by rowid")
            names = [one[0] for one in found.description]
            return [dict(zip(names, row, strict=True)) for row in found]

    def put_back(self, table: str, rows: list[Row]) -> None:
        """A table as it was before, by an actor who kept its rows."""
        with closing(connect(self.path)) as connection, Storage(connection).transaction():
            connection.execute(f"delete from {table}")
            for row in rows:
                marks = ", ".join(f":{name}" for name in row)
                connection.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", row)

    @contextmanager
    def on_another_machine(self, folder: Path) -> Iterator[None]:
        """With a state folder that saw nothing yet."""
        with self.monkeypatch.context() as machine:
            machine.setenv("MEMORY_STORE_STATE", str(folder))
            yield


def made(make_store: Callable[..., MemoryStore], tmp_path: Path, model: Path, patch: Any) -> Two:
    """The vault of :class:`Two`, with a memory in each of its two collections."""
    store = make_store()
    two = Two(
        store.path, tmp_path / "keys" / "notes.key", tmp_path / "keys" / "m.key", model, patch
    )
    store.add("The pump is serviced in May.", collection=SHARED)
    store.add("Dear diary.", title="Private")
    greeting, _, _ = MemoryStore.introduce(store.path, "Mallory", key_file=two.hers)
    store.keys.share(SHARED, greeting)
    store.lock()
    return two
