"""The copy of what stands in clear in a vault, for programs that show tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory_store.store import MemoryStore
from memory_store.vault.storage import Storage, clear_copy
from memory_store.vault.storage.clear_copy import ClearCopy

WORD = b"kingfisher"


def held(copy: ClearCopy) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(copy.path)) as connection:
        return {
            table: sorted(connection.execute(f"select {', '.join(columns)} from {table}"))
            for table, columns in clear_copy.IN_CLEAR.items()
        }


def test_it_follows_the_vault_and_holds_no_sealed_value(
    make_store: Callable[..., MemoryStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    kept = store.add(f"A {WORD.decode()} at the weir", topics=["river"])
    gone = store.add("An old boat", topics=["river"])
    copy = ClearCopy(tmp_path / "copy.db")
    with closing(Storage.open(store.path, read_only=True)) as source:
        copy.refresh(source, source.revision())
        before = held(copy)
        assert {row[0] for row in before["memories"]} == {kept.id, gone.id}
        assert len(before["memory_topics"]) == 2
        store.delete(gone.id)
        store.edit(kept.id, text=f"Two of them: {WORD.decode()}")
        copy.refresh(source, source.revision())
        ((memory, *_, version, _),) = held(copy)["memories"]
        assert (memory, version) == (kept.id, 2)
        assert WORD not in copy.path.read_bytes()
        with closing(sqlite3.connect(copy.path)) as connection:
            sealed = "select count(head) + (select count(body) + count(tag) from memory_bodies)"
            assert connection.execute(f"{sealed} from memories").fetchone() == (0,)
        monkeypatch.setattr(clear_copy, "MOST", 1)
        store.add("Another one")
        copy.refresh(source, source.revision())
        assert held(copy)["memories"] == []


@pytest.mark.in_a_file
def test_where_nothing_was_committed_nothing_is_asked(store: MemoryStore, tmp_path: Path) -> None:
    store.add("An old boat")
    copy = ClearCopy(tmp_path / "copy.db")
    source = Storage.open(store.path, read_only=True)
    at = source.revision()
    copy.refresh(source, at)
    source.close()
    copy.refresh(source, at)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        copy.refresh(source, at + 1)
