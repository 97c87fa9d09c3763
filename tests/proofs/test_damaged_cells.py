"""A cell of a kind that no vault holds, in any column: a typed error or the right answer.

A changed byte of a page makes a number of an id, or nothing at all, and SQLite hands it out as it
stands, though the table is ``strict``. So here a schema without kinds stands in the file while a
cell is written, and the true one again when the vault is opened.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from counts import counted
from private import private_below
from whole_vault import EVENT, KINDS, Whole, fill, set_schema

from memory_store.errors import MemoryStoreError
from memory_store.records import Memory
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore

CELLS = 1_500
VALUES = (None, 0, -1, 2**63 - 1, 1.5, "", "text", "é\x00", b"", b"\xff\xfe", b"x" * 40)


@dataclass(frozen=True)
class Loose:
    """A vault, the same file with a schema that lets every cell hold anything, and its texts."""

    whole: Whole
    notes: Path
    file: bytes
    schema: list[tuple[str, str]]
    texts: dict[str, str]

    @property
    def path(self) -> Path:
        return self.whole.path

    def columns(self) -> list[tuple[str, str]]:
        self.path.write_bytes(self.file)
        with closing(connect(self.path, read_only=True)) as connection:
            return [
                (table, column)
                for table, _ in self.schema
                for (column,) in connection.execute(
                    "select name from pragma_table_info(?)", (table,)
                )
            ]

    def damaged(self, table: str, column: str, value: object, chance: random.Random) -> bool:
        """The vault with ``value`` in a cell of that column. False where there is none."""
        self.path.write_bytes(self.file)
        with closing(connect(self.path)) as connection:
            rows = [row for (row,) in connection.execute(f"select rowid from {table}")]
            try:
                connection.execute(
                    f"update {table} set {column} = ? where rowid = ?",
                    (value, chance.choice(rows) if rows else None),
                )
            except sqlite3.Error:  # a row's number stays a number, a key stays the only one
                return False
            set_schema(connection, self.schema)
        return bool(rows)


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Loose]:
    folder = tmp_path_factory.mktemp("damaged-cells")
    with private_below(folder):
        yield made(folder, tiny_model)


def made(folder: Path, model: Path) -> Loose:
    path, key_file, notes = folder / "vault" / "notes.db", folder / "keys" / "o.key", folder / "n"
    path.parent.mkdir()
    key_file.parent.mkdir(mode=0o700)
    store, code = MemoryStore.create(path, key_file=key_file, embedder=str(model))
    with store:
        fill(store, notes)
        greeting = MemoryStore.introduce(path, "Grace", key_file=key_file.with_suffix(".member"))[0]
        store.keys.share("mill", greeting)
        texts = {memory.id: memory.text for memory in store.list(limit=100)}
    with closing(connect(path)) as connection:
        schema = connection.execute(
            r"""
            select name, sql from sqlite_master
            where type = 'table' and name not like '%sqlite\_%' escape '\'
            """
        ).fetchall()
        set_schema(connection, [(table, KINDS.sub("", sql)) for table, sql in schema])
    return Loose(Whole(path, key_file, code, model), notes, path.read_bytes(), schema, texts)


def reading(store: MemoryStore, loose: Loose) -> list[Callable[[], Any]]:
    first, *_ = loose.texts
    return [
        store.verify,
        lambda: store.list(limit=100),
        lambda: [*store.every()],
        lambda: [store.get(memory) for memory in loose.texts],
        lambda: store.get("weir.md"),
        *(lambda q=q: store.search(q, mode="literal") for q in ("key", "ledger")),  # type: ignore[misc]
        lambda: store.search('"spare key"'),
        lambda: store.search("the key", topic="lake", since="2020-01-01"),
        lambda: store.search(like=first),
        *(store.collections.list, store.topics, store.recent_topics, store.stats),
        *(store.collections.membership, store.collections.stale, store.trail.events),
        *(store.keys.list, store.keys.holders, store.keys.identity),
        *(store.keys.unfinished, store.keys.superseded),
    ]


def writing(store: MemoryStore, loose: Loose) -> list[Callable[[], Any]]:
    first, second, *_ = loose.texts
    return [
        lambda: store.import_paths([loose.notes]),
        lambda: store.import_paths(prune=True),
        lambda: store.sync_with_folder(loose.notes.with_name("exchanged")),
        lambda: store.trail.keep([EVENT], days=0, most=100),
        lambda: store.add("A new one about the weir."),
        lambda: store.edit(second, title="Other", topics=["another"]),
        lambda: store.publish(first, "mill"),
        lambda: store.collections.create("third"),
        lambda: store.collections.rename("mill", "meal"),
        lambda: store.collections.change_members("personal", {"ada": "owner"}),
        lambda: store.delete(first),
        *(store.keys.add_recovery_code, store.reindex, store.keys.rotate),
        lambda: store.keys.revoke("Grace"),
        lambda: store.collections.delete("meal"),
        store.keys.rotate_root,
    ]


def reported(given: Any) -> Iterator[tuple[str, str]]:
    """Every text of a memory in what a method returned."""
    for one in given if isinstance(given, list) else [given]:
        if isinstance(one, Memory):
            yield one.id, one.text


def test_a_cell_of_any_kind_gives_an_error_or_the_right_answer(loose: Loose) -> None:
    chance, said = random.Random("cells"), Counter[str]()
    columns = loose.columns()
    chance.shuffle(columns)
    for turn in range(counted(CELLS)):
        table, column = columns[turn % len(columns)]
        value = VALUES[turn // len(columns)] if turn < len(columns) * 11 else chance.choice(VALUES)
        if not loose.damaged(table, column, value, chance):
            continue
        opener = "member" if turn % 4 == 3 else "owner"
        try:
            store = loose.whole.open(opener)
        except MemoryStoreError as error:
            said[type(error).__name__] += 1
            continue
        with store:
            check_reading(store, loose, (table, column, value), said)
            for work in writing(store, loose):
                attempted(work, (table, column, value), said)
    print(f"{said.total()} refusals: {dict(said)}")
    assert said


def check_reading(
    store: MemoryStore, loose: Loose, place: tuple[str, str, object], said: Counter[str]
) -> None:
    for work in reading(store, loose):
        for memory, text in reported(attempted(work, place, said)):
            assert text == loose.texts[memory], place


def attempted(work: Callable[[], Any], place: tuple[str, str, object], said: Counter[str]) -> Any:
    """What a method returns; ``None`` where it refuses by a typed error. Others are defects."""
    try:
        return work()
    except MemoryStoreError as error:
        said[type(error).__name__] += 1
    except Exception as error:
        raise AssertionError(f"{place} ended in {error!r}") from error
    return None
