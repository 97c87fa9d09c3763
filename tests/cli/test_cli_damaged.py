"""A damaged vault on the command line: what is damaged is named, taken away, or left behind."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typing_commands import Vault

from memory_store.store import MemoryStore

pytestmark = pytest.mark.in_a_file

FLIPPED = {
    "text": "update memory_bodies set body = zeroblob(length(body)) where id in "
    "(select content from memories where id = ?)",
    "head": "update memories set head = substr(head, 1, length(head) - 1) where id = ?",
    "nothing but a row": "delete from memory_bodies where id in "
    "(select content from memories where id = ?)",
}


@pytest.fixture
def many(empty_vault: Vault, tmp_path: Path) -> Vault:
    """A vault of 60 notes, on several pages of the file."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(60):
        words = " ".join(f"word{number + one}" for one in range(80))
        (folder / f"{number}.md").write_text(f"# Note {number}\n\n{words}\n\nNumber {number}.")
    assert empty_vault.run("import", str(folder), "--no-embed").exit_code == 0
    return empty_vault


def change(vault: Vault, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(vault.path)) as connection, connection:
        connection.execute(statement, values)


def zero_page_of(vault: Vault, table: str) -> None:
    """Overwrite one page of a table, or of an index, with zeros."""
    with closing(sqlite3.connect(vault.path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        query = "select pageno from dbstat where name = ? and pagetype = 'leaf' order by pageno"
        pages = [page for (page,) in connection.execute(query, [table])]
        (size,) = connection.execute("pragma page_size").fetchone()
    with vault.path.open("r+b") as file:
        file.seek((pages[len(pages) // 2] - 1) * size)
        file.write(bytes(size))


@pytest.mark.parametrize("part", FLIPPED)
def test_a_damaged_memory_is_named_and_deleted_and_nothing_else_is(vault: Vault, part: str) -> None:
    damaged, *others = [memory["id"] for memory in vault.json("list")]
    change(vault, FLIPPED[part], damaged)
    unread = vault.run("get", damaged)
    assert "memory-store verify names every damaged memory" in unread.stderr
    named = vault.run("verify")
    assert named.exit_code == 1
    assert f"failed: memory {damaged}: " in named.stderr
    assert "memory-store delete ID takes away a memory that is damaged" in named.stderr
    deleted = vault.run("delete", damaged, others[0])
    assert deleted.stdout.splitlines() == [f"{damaged} erased", f"{others[0]} deleted"]
    assert f"Damaged, so not in the trash: {damaged}" in deleted.stderr
    assert "undo brings it back" in deleted.stderr
    assert vault.run("verify").exit_code == 0
    assert vault.run("undo").exit_code == 0
    assert {memory["id"] for memory in vault.json("list")} == set(others)
    assert vault.run("verify").exit_code == 0


@pytest.mark.parametrize("table", ["memories", "memory_bodies"])
def test_of_a_page_that_cannot_be_read_the_memories_are_named_and_the_rest_is_moved(
    many: Vault, tmp_path: Path, table: str
) -> None:
    ids = {memory["id"] for memory in many.json("list", "--limit", "100")}
    zero_page_of(many, table)
    failures = many.run("verify").stderr.splitlines()
    lost = {line.split()[2].rstrip(":") for line in failures if line.startswith("failed: memory ")}
    assert lost < ids
    refused = many.run("delete", min(lost))
    assert refused.exit_code == 1
    assert "memory-store export DIR --skip-damaged and import it into a new vault" in refused.stderr
    written = many.run("export", str(tmp_path / "rest"), "--ndjson", "--skip-damaged")
    said = [line for line in written.stderr.splitlines() if line.startswith("left out ")]
    assert sorted(said) == [f"left out {one}: the file is damaged there" for one in sorted(lost)]
    lines = (tmp_path / "rest" / "memories.ndjson").read_text("utf-8").splitlines()
    assert {json.loads(line)["id"] for line in lines} == ids - lost


def test_an_export_beside_a_damaged_index_writes_every_memory(vault: Vault, tmp_path: Path) -> None:
    old, *others = [memory["id"] for memory in vault.json("list")]
    with MemoryStore.open(vault.path, key_file=vault.key_file) as store:
        new = store.supersede(old, "The lease ends in June.", embed=False).id
    change(vault, "update vault_segments set main = zeroblob(length(main))")
    refused = vault.run("export", str(tmp_path / "all"))
    assert "give --skip-damaged, too" in refused.stderr
    written = vault.run("export", str(tmp_path / "rest"), "--ndjson", "--skip-damaged")
    assert written.exit_code == 1
    assert "left out the index: it is damaged" in written.stderr
    lines = (tmp_path / "rest" / "memories.ndjson").read_text("utf-8").splitlines()
    found = {one["id"]: one.get("superseded_by") for one in map(json.loads, lines)}
    assert found == {old: new, new: None} | dict.fromkeys(others)


def test_a_memory_on_a_whole_page_is_deleted_beside_a_damaged_one(many: Vault) -> None:
    ids = {memory["id"] for memory in many.json("list", "--limit", "100")}
    zero_page_of(many, "memory_bodies")
    failures = many.run("verify").stderr
    whole = next(one for one in ids if one not in failures)
    deleted = many.run("delete", whole)
    assert deleted.stdout == f"{whole} deleted\n", deleted.stderr


@pytest.mark.parametrize("table", ["vault_segments", "vault_trash", "sqlite_autoindex_memories_1"])
def test_verify_tells_of_any_page_that_cannot_be_read(many: Vault, table: str) -> None:
    zero_page_of(many, table)
    verified = many.run("verify")
    assert verified.exit_code == 1
    assert "failed: database: SQLite says: database disk image is malformed" in verified.stderr
    assert "records verified" in verified.stdout
    if table != "sqlite_autoindex_memories_1":
        assert "failed: memory " not in verified.stderr  # their own pages are whole
