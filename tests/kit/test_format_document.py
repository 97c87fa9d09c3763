"""A vault with everything in it has the tables and places that how-it-works/format.md names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from independent_reader import PLACES, Vault, open_vault
from independent_sealing import opened

from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "how-it-works" / "format.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)`(?:, if any)? \| (.*) \|$", re.MULTILINE)
CELL = re.compile(r"^\| ((?:`[\w.]+`(?:, )?)+)[^|]*\| ", re.MULTILINE)
GRANTED = ("vault_collection_keys", "wrapped")


@pytest.fixture
def full(store: MemoryStore, key_file: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A vault that was imported into, shared and audited, with an expansion, and with new keys."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "note.md").write_text("# Quay\n\nOn quays.")
    store.import_paths([tmp_path / "folder"], collection="work")
    store.edit(store.add("A text of one's own.").id, topics=["quays"])
    store.trail.keep(
        [AuditEvent("2026-01-01T00:00:00+00:00", "alice", False, "page", "search", 3, 2)],
        days=0,
        most=100,
    )
    store._opened.vault.expansions.keep(b'[["lex", "piers"]]', "quays", "a model")
    introduction, _, _ = MemoryStore.introduce(store.path, "Alice", key_file=tmp_path / "alice.key")
    store.keys.share("work", introduction)
    store.sync_with_folder(tmp_path / "folder")
    store.keys.rotate()
    with closing(connect(store.path, read_only=True)) as connection:
        yield connection


def test_the_document_names_every_table_and_every_column(full: sqlite3.Connection) -> None:
    tables = {name for (name,) in full.execute("select name from sqlite_master where type='table'")}
    has = {
        table: [row[1] for row in full.execute(f"pragma table_info({table})")]
        for table in tables - {"_sqlite_migrations"}
    }
    said = {
        table: re.findall(r"`(\w+)`", columns.partition(";")[0])
        for table, columns in ROW.findall(DOCUMENT.partition("## Primitives")[0])
        if table in has
    }
    assert said == has


def test_every_sealed_cell_opens_at_the_place_that_the_document_gives_it(
    full: sqlite3.Connection, key_file: Path
) -> None:
    vault: Vault = open_vault(full, "key-file", key_file.read_text())
    found = set()
    for cell in vault.cells():
        assert opened(cell.key, cell.place, cell.blob, cell.epoch) is not None
        found.add((cell.table, cell.column))
    assert found == {*PLACES, GRANTED}
    places = DOCUMENT.partition("### Places")[2].partition("\n## ")[0]
    assert {cell for named in CELL.findall(places) for cell in cells_of(named)} == found


def cells_of(named: str) -> Iterator[tuple[str, str]]:
    """Table and column of each cell of a row of the document's table of places."""
    table = ""
    for name in re.findall(r"`([\w.]+)`", named):
        table = name.partition(".")[0] if "." in name else table
        yield table, name.rpartition(".")[2]
