"""An open vault keeps its locks: a program that opens and closes its file takes none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.storage.schema import is_vault

VISIT = """
import sys
from memory_store.store import MemoryStore

path, key_file, model, memory, title = sys.argv[1:]
with MemoryStore.open(path, key_file=key_file, embedder=model) as store:
    store.edit(memory, title=title)
"""


def visited(store: MemoryStore, key_file: Path, model: Path, memory: str, title: str) -> None:
    """Another process opens the vault, changes a memory, and closes the vault again."""
    arguments = [str(store.path), str(key_file), str(model), memory, title]
    subprocess.run([sys.executable, "-c", VISIT, *arguments], check=True, timeout=300)


@pytest.mark.sampled(0)
def test_looking_whether_a_file_is_a_vault_takes_no_lock_away(
    store: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    """Would lose writes: with the locks gone, the visitor deletes the log as it leaves."""
    memory = store.add("A memory")
    beside = connect(store.path, read_only=True)  # as Datasette has one before any unlock
    beside.execute("select count(*) from memories").fetchone()
    assert is_vault(store.path)
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as again:
        again.get(memory.id)
    log = store.path.with_name(f"{store.path.name}-wal")
    inode = log.stat().st_ino
    for title in ("First", "Second"):
        visited(store, key_file, tiny_model, memory.id, title)
        assert log.stat().st_ino == inode
        assert store.get(memory.id).title == title
        store.edit(memory.id, text=f"After the {title.lower()} visit")
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as again:
        assert again.get(memory.id).text == "After the second visit"
    assert store.verify()
    beside.close()
