"""Statements stand in one room, and a wish of the user's takes few of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_store.records import MemoryDraft
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]
Said = list[str]
PACKAGE = Path(__file__).parents[2] / "memory_store"
ROOM = PACKAGE / "vault" / "storage"
EXECUTES = {"execute", "executemany", "executescript"}
ELSEWHERE = {
    "sqlite.py": "what every connection is opened with, and which SQLite it is",
    "doctor/installation.py": "whether sqlite-vec answers, in memory",
    "importing/readers/sqlite.py": "other programs' databases",
    "index/vec0_vectors.py": "vectors, in memory",
    "sql/functions.py": "where the connection that asks sorts",
    "sql/table_function.py": "whether a table function answers, in memory",
    "sqlite_utils_plugin.py": "the connection of sqlite-utils",
}
"""Modules that run statements on what is no vault's table."""
OF_TABLES = re.compile(r"(insert|select|update|delete|with)\b", re.IGNORECASE)
IN_MEMORY = re.compile(r"\bwindows\b|sqlite_source_id|vec_version")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if ROOM not in path.parents:
            name = path.relative_to(PACKAGE).as_posix()
            yield name, ast.parse(path.read_text("utf-8"))


def test_no_statement_is_run_outside_of_storage() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTES
    }
    assert found == set(ELSEWHERE)


def test_no_signature_above_storage_names_a_connection_of_sqlite() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sqlite3.Connection"
    }
    assert found <= {"sqlite.py", "importing/readers/sqlite.py"}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """Every statement that is run on the tables of a vault, as SQLite itself reports it."""
    statements: Said = []
    real = sqlite3.connect

    def note(statement: str) -> None:
        if OF_TABLES.match(statement.strip()) and not IN_MEMORY.search(statement):
            statements.append(statement)

    def connect(*arguments: object, **options: object) -> object:
        connection = real(*arguments, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(note)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    return statements


def drafts(first: int) -> list[MemoryDraft]:
    return [
        MemoryDraft(text=f"Heron {number} stands by the weir", topics=["birds", f"mill {number}"])
        for number in range(first, first + 64)
    ]


@pytest.mark.in_a_file  # the statements are SQLite's
def test_a_batch_an_unlock_and_a_search_take_few_statements(
    make_store: Make, key_file: Path, said: Said
) -> None:
    with make_store() as store:
        path = store.path
        store.add_many(drafts(0))
        store.search("heron", mode="keyword")  # reads what was written
        said.clear()
        store.add_many(drafts(100))
        assert len(said) <= 12  # two are for extra parts
    said.clear()
    with MemoryStore.open(path, key_file=key_file) as store:
        assert len(said) <= 11  # one of them looks for what is too old in the trash
        for options in ({"mode": "keyword"}, {"mode": "hybrid", "deep": True}):
            store.search("heron weir", **options)  # reads what it needs of the index
            said.clear()
            assert store.search("heron weir", **options).rows
            assert len(said) <= 2, said  # a moment's beginning, and what it found


def pages(store: MemoryStore) -> tuple[int, int]:
    """How many pages the vault's file has, and how many of them are free."""
    with closing(connect(store.path, read_only=True)) as connection:
        counts = "select page_count, freelist_count from pragma_page_count, pragma_freelist_count"
        all_, free = connection.execute(counts).fetchone()
    return all_, free


@pytest.mark.in_a_file
def test_what_is_erased_makes_the_file_smaller(store: MemoryStore) -> None:
    store.add_many(drafts(0))
    large = [MemoryDraft(text=f"{number} " + "by the weir " * 2_000) for number in range(64)]
    made = store.add_many(large)
    before, _ = pages(store)
    store.delete_many([one.id for one in made], now=True)
    after, free = pages(store)
    assert after < before / 2
    assert free <= after / 8
