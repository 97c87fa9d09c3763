"""Any cell of a vault's file changed: refused, told by verification, or nothing else is read.

Each changed file goes through everything that opens, reads, searches and verifies it, as its owner
and as whom she shares with. The sealed cells alone, in every way, are in ``test_every_bit.py``.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from counts import a_share_of, counted
from whole_vault import IDENTITIES, RECOGNISING, UNSEALED, Whole, blob_columns

from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore

UNBOUND = frozenset(
    {
        ("collections", "created"),
        ("memory_bodies", "collection"),
        ("memory_sources", "memory"),
        ("vault_changes", "collection"),
        ("vault_changes", "memory"),
        ("vault_changes", "operation"),
        ("vault_identities", "principal"),
        ("vault_principals", "id"),
        ("vault_principals", "created"),
        ("vault_segments", "collection"),
        ("vault_segments", "epoch"),
        ("vault_settings", "name"),
        ("vault_settings", "value"),
        ("vault_slots", "created"),
        ("vault_source_files", "source"),
        ("vault_sources", "collection"),
    }
)
"""Clear columns that nothing authenticates: docs/format.md lists them. No text depends on them;
of all that can be read, ``collections.created`` is shown as it stands. (A change or a
segment that counts is missed by the account.)"""
ROWIDS = frozenset({("vault_principals", "id"), ("vault_identities", "principal")})
HOSTILE = {
    "INTEGER": (None, -1, 1, 2**62, -(2**63)),
    "TEXT": (None, "", "x", "é|\x00", "-1", "00000000-0000-0000-0000-000000000000"),
}


Answer = tuple[object, ...]


def answer(store: MemoryStore) -> Answer:
    """Everything that can be read: memories, collections, what searches find."""
    found = [
        tuple(row.id for row in store.search(words, mode="keyword").rows)
        for words in ("key", "weir", "ledger fridays")
    ]
    memories = {memory.id: memory.as_dict() for memory in store.list(limit=1_000)}
    return memories, store.collections(), found


def outcome(whole: Whole, opener: str = "owner") -> tuple[str, Answer | None]:
    """``refused`` by a typed error, ``noticed`` by verification, or ``read`` with the answer."""
    try:
        with whole.open(opener) as store:
            noticed = store.verify()["failures"]
            try:
                return ("noticed" if noticed else "read"), answer(store)
            except MemoryStoreError:
                return "refused", None
    except MemoryStoreError:
        return "refused", None


def places(whole: Whole) -> list[tuple[str, str, int, bytes]]:
    """Table, column, rowid and content of every blob in the file."""
    with closing(connect(whole.path, read_only=True)) as connection:
        return [
            (table, column, rowid, blob)
            for table, column in sorted(blob_columns(connection))
            for rowid, blob in connection.execute(
                f"select rowid, {column} from {table} where {column} is not null"
            ).fetchall()
        ]


def write(whole: Whole, table: str, column: str, rowid: int, blob: object) -> bool:
    """Put a value into a cell. False where the table's own constraints refuse it."""
    with closing(connect(whole.path)) as connection:
        try:
            connection.execute(f"update {table} set {column} = ? where rowid = ?", (blob, rowid))
        except sqlite3.IntegrityError:
            return False
    return True


def truths(whole: Whole) -> dict[str, Answer]:
    """What each opener reads of the vault as it is."""
    found = {opener: outcome(whole, opener) for opener in ("owner", "recovery", "member")}
    assert {said for said, _ in found.values()} == {"read"}
    return {opener: answered for opener, (_, answered) in found.items() if answered is not None}


def held_to_the_truth(
    whole: Whole, truth: dict[str, Answer], place: tuple[str, str, int, bytes], blob: bytes | None
) -> str:
    """What becomes of a vault with ``blob`` in a cell. The cell is as before afterwards."""
    table, column, rowid, before = place
    openers = whole.openers(table, rowid)
    if not write(whole, table, column, rowid, blob):
        return "impossible"
    try:
        found = [(opener, *outcome(whole, opener)) for opener in openers]
    finally:
        assert write(whole, table, column, rowid, before)
    for opener, said, answered in found:
        assert answered in (None, truth[opener]), place[:3]
        if (table, column) in RECOGNISING:
            assert said == "read", place[:3]
        elif (table, column) not in IDENTITIES:
            assert said != "read", place[:3]
    return found[0][1]


def flipped(blob: bytes, bit: int) -> bytes:
    changed = bytearray(blob)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_flipped_bit_in_the_file_is_refused_or_noticed(whole: Whole) -> None:
    chance = random.Random("flips")
    cells, said = places(whole), Counter[str]()
    truth = truths(whole)
    for turn in range(counted(2_500)):
        place = cells[turn] if turn < len(cells) else chance.choice(cells)
        changed = flipped(place[3], chance.randrange(len(place[3]) * 8))
        said[held_to_the_truth(whole, truth, place, changed)] += 1
    print(f"flips in the file: {dict(said)}")
    assert truths(whole) == truth


def test_every_flipped_bit_of_what_is_not_sealed_is_refused_noticed_or_changes_no_answer(
    whole: Whole,
) -> None:
    """Keyed hashes, slots, public keys: sealed cells are tried bit by bit in ``test_every_bit``."""
    truth, said = truths(whole), Counter[str]()
    for place in places(whole):
        table, column, rowid, blob = place
        if (table, column) in UNSEALED:
            for bit in a_share_of(range(len(blob) * 8), f"{table}.{column} {rowid}"):
                said[held_to_the_truth(whole, truth, place, flipped(blob, bit))] += 1
    print(f"flips of what is not sealed: {dict(said)}")
    assert said.total() >= counted(25_000)
    assert truths(whole) == truth


def test_a_blob_exchanged_cut_or_taken_away_in_the_file_is_refused_or_noticed(
    whole: Whole,
) -> None:
    chance = random.Random("exchanges")
    cells, said = places(whole), Counter[str]()
    truth = truths(whole)
    for turn in range(counted(1_500)):
        place = cells[turn * 7 % len(cells)]
        others = [cell[3] for cell in cells if cell[3] != place[3]]
        blob = (
            None,
            b"",
            place[3][: chance.randrange(1, len(place[3]))],
            chance.choice(others),
        )[turn % 4]
        said[held_to_the_truth(whole, truth, place, blob)] += 1
    print(f"exchanges in the file: {dict(said)}")
    assert truths(whole) == truth


def clear_cells(whole: Whole) -> list[tuple[str, str, int, object, str]]:
    with closing(connect(whole.path, read_only=True)) as connection:
        columns = connection.execute(
            """
            select t.name, c.name, upper(c.type) from sqlite_master t, pragma_table_info(t.name) c
            where t.type = 'table' and upper(c.type) in ('INTEGER', 'TEXT')
              and t.name not like '%sqlite%' and not (c.name = 'sequence' and c.pk)
            """
        ).fetchall()
        return [
            (table, column, rowid, value, kind)
            for table, column, kind in columns
            for rowid, value in connection.execute(f"select rowid, {column} from {table}")
        ]


def test_any_value_in_a_clear_column_is_refused_or_changes_no_memory(whole: Whole) -> None:
    chance = random.Random("clear")
    said: Counter[str] = Counter()
    truth, cells = truths(whole), clear_cells(whole)
    chance.shuffle(cells)
    for turn in range(counted(800)):
        table, column, rowid, value, kind = cells[turn % len(cells)]
        there = [cell[3] for cell in cells if cell[:2] == (table, column) and cell[3] != value]
        hostile = chance.choice((*HOSTILE[kind], *there[:2]))
        opener = whole.openers(table, rowid)[0]
        if hostile == value or not write(whole, table, column, rowid, hostile):
            continue
        try:
            told, answered = outcome(whole, opener)
        finally:
            back = hostile if (table, column) in ROWIDS else rowid
            assert write(whole, table, column, back, value)
        said[told] += 1
        if told == "read":
            assert (table, column) in UNBOUND, (table, column, hostile)
        if answered is not None and (table, column) != ("collections", "created"):
            assert answered == truth[opener], (table, column, hostile)
    print(f"values in clear columns: {dict(said)}")
    assert truths(whole) == truth


@pytest.mark.parametrize(
    "statement",
    [
        "delete from memories where rowid = 1",
        "update memories set id = '00000000-0000-0000-0000-000000000000' where rowid = 1",
        "update memories set collection = 'elsewhere' where rowid = 1",
        "update memories set version = null where rowid = 1",
        "update memories set version = -1 where rowid = 1",
        "delete from collections where rowid = 1",
        "update vault_slots set salt = null",
        "update vault_manifests set counter = null",
        "update memory_bodies set tag = null where rowid = 1",
    ],
)
def test_a_row_that_is_gone_is_missed_before_anything_is_read(
    whole: Whole, tmp_path: Path, statement: str
) -> None:
    """Not only by verification: a list without it would be taken for the whole."""
    damaged = replace(whole, path=tmp_path / "damaged.db")
    with closing(connect(whole.path)) as source, closing(connect(damaged.path)) as copy:
        source.backup(copy)
        assert copy.execute(statement).rowcount >= 1
    with pytest.raises(TamperedError), damaged.open() as store:
        answer(store)
