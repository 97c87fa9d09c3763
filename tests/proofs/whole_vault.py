"""A vault with every kind of row, and what each of its openers reads of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from private import private_below

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))

from independent_reader import Cell, open_vault

from memory_store.records import MemoryDraft
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent

RECOGNISING = frozenset(
    {
        ("memory_sources", "origin"),
        ("memory_sources", "draft"),
        ("memory_sources", "file"),
        ("vault_sources", "tag"),
        ("vault_source_files", "tag"),
        ("vault_source_files", "content"),
    }
)
"""What only lets an import recognise what it has read before: changed, it is read again."""
IDENTITIES = frozenset({("vault_identities", "public")})
UNSEALED = frozenset(
    {
        *RECOGNISING,
        *IDENTITIES,
        ("memory_bodies", "tag"),
        ("memory_topics", "topic"),
        ("vault_expansions", "tag"),
        ("vault_slots", "salt"),
        ("vault_slots", "commitment"),
        ("vault_slots", "wrapped"),
        ("vault_sync", "tag"),
    }
)
"""Columns of keyed hashes, public keys and slots, which no collection's key seals."""
KINDS = re.compile(r"\b(text|blob|strict|not null|integer(?! primary key))\b", re.IGNORECASE)
EVENT = AuditEvent("2024-03-01T08:00:00Z", "ada", False, "api", "search", opened=3, returned=2)


@dataclass(frozen=True)
class Whole:
    """A vault with every kind of row, and the truth about it."""

    path: Path
    key_file: Path
    recovery_code: str
    model: Path

    def open(self, opener: str = "owner") -> MemoryStore:
        """Opened by the owner's key file, by her recovery code, or by whom she shares with."""
        secrets: dict[str, dict[str, Any]] = {
            "owner": {"key_file": self.key_file},
            "recovery": {"recovery_code": self.recovery_code},
            "member": {"key_file": self.key_file.with_suffix(".member")},
        }
        return MemoryStore.open(self.path, embedder=str(self.model), **secrets[opener])

    def openers(self, table: str, rowid: int) -> tuple[str, ...]:
        """Those whose secret or keys meet a row: its own opener, for those of one."""
        queries = {
            "vault_slots": "select kind, principal from vault_slots where rowid = ?",
            "vault_collection_keys": (
                "select 'key-file', principal from vault_collection_keys where rowid = ?"
            ),
            "vault_identities": "select 'key-file', 1",
            "vault_shares": "select 'key-file', 1",
        }
        if table not in queries:
            return ("owner",)
        with closing(connect(self.path, read_only=True)) as connection:
            query = queries[table]
            kind, principal = connection.execute(query, (rowid,) * query.count("?")).fetchone()
        return ("member",) if principal else ("recovery",) if kind == "recovery" else ("owner",)

    def cells(self) -> list[Cell]:
        with closing(connect(self.path, read_only=True)) as connection:
            return list(open_vault(connection, "key-file", self.key_file.read_text()).cells())


def fill(store: MemoryStore, notes: Path) -> None:
    """Every kind of row, and what is left of an edit and a deletion."""
    notes.mkdir(exist_ok=True)
    (notes / "weir.md").write_text("---\ntags: [lake]\n---\nThe weir is opened in March.\n")
    store.import_paths([notes])
    store.collections.create("mill")
    first, second = store.add_many(
        [
            MemoryDraft("The spare key hangs in the boathouse.", title="Key", topics=("keys",)),
            MemoryDraft("The ledger is reconciled on Fridays.", collection="mill"),
        ]
    )
    store.edit(first.id, add_topics=["lake"], text="The spare key hangs in the mill.")
    store.delete(store.add("Regretted at once.").id)
    exchanged = notes.with_name("exchanged")
    exchanged.mkdir(exist_ok=True)
    store.sync_with_folder(exchanged)
    store.keys.rotate("mill")
    store._opened.vault.expansions.keep(b"oar, paddle", "oar", "a model")
    store.trail.keep([EVENT], days=0, most=100)
    assert second.collection != first.collection


def blob_columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(
        connection.execute(
            """
            select t.name, c.name from sqlite_master t, pragma_table_info(t.name) c
            where t.type = 'table' and upper(c.type) = 'BLOB'
            """
        )
    )


def set_schema(connection: sqlite3.Connection, schema: list[tuple[str, str]]) -> None:
    """Write what tables are made with, without looking at what they hold."""
    connection.execute("pragma writable_schema = on")
    connection.executemany(
        "update sqlite_master set sql = ? where type = 'table' and name = ?",
        [(sql, table) for table, sql in schema],
    )


@contextmanager
def loosened(path: Path, table: str) -> Iterator[None]:
    """While inside, a writer of the file may put anything into the columns of a table."""
    with closing(connect(path)) as connection:
        query = "select sql from sqlite_master where type = 'table' and name = ?"
        (sql,) = connection.execute(query, (table,)).fetchone()
        set_schema(connection, [(table, KINDS.sub("", sql))])
    try:
        yield
    finally:
        with closing(connect(path)) as connection:
            set_schema(connection, [(table, sql)])


@pytest.fixture(scope="module")
def make_whole(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path
) -> Callable[[str], Whole]:
    folder = tmp_path_factory.mktemp("every-bit")
    (folder / "keys").mkdir(mode=0o700)

    def make(name: str) -> Whole:
        path, key_file = folder / name / "notes.db", folder / "keys" / f"{name}.key"
        path.parent.mkdir()
        store, code = MemoryStore.create(path, key_file=key_file, embedder=str(tiny_model))
        with store:
            fill(store, folder / name / "notes")
            mine = key_file.with_suffix(".member")
            store.keys.share("mill", MemoryStore.introduce(path, "Grace", key_file=mine)[0])
        return Whole(path, key_file, code, tiny_model)

    return make


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of these tests alone, for as long as the vault lives."""
    with private_below(tmp_path_factory.mktemp("private")):
        yield


@pytest.fixture(scope="module")
def whole(make_whole: Callable[[str], Whole], state: None) -> Whole:
    return make_whole("whole")
