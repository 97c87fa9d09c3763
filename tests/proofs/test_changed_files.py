"""Any cell of a vault's file changed: refused, named by verification, or nothing else is read.

Each changed file goes through everything that opens, reads, searches and verifies it, as its owner
and as whom she shares with. The sealed cells alone, in every way, are in ``test_every_bit.py``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import pytest
from counts import FULL, a_share_of, counted
from whole_vault import IDENTITIES, RECOGNISING, UNSEALED, Whole, blob_columns, loosened

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
        ("vault_sources", "principal"),
    }
)
"""Clear columns that nothing authenticates, which docs/how-it-works/format.md lists, and that of a
row which counts for none under another memory's id. No text depends on them; of all that can be
read, ``collections.created`` is shown as it stands. (The account misses a change or a segment that
counts.)"""
ROWIDS = frozenset({("vault_principals", "id"), ("vault_identities", "principal")})
HOSTILE = {
    "INTEGER": (None, -1, 1, 2**62, -(2**63)),
    "TEXT": (None, "", "x", "é|\x00", "-1", "00000000-0000-0000-0000-000000000000"),
}
WAYS = ("taken away", "emptied", "cut", "exchanged")
ONCE = frozenset({("memory_bodies", "tag"), ("memory_topics", "topic"), ("vault_sync", "tag")})
"""Columns where an index refuses the content of another row, where that would be there twice."""

Answer = tuple[object, ...]
Place = tuple[str, str, int, bytes]


@dataclass(frozen=True)
class Change:
    """What is done to a cell, or to two at once: (place, what is written there) of each."""

    way: str
    cells: tuple[tuple[Place, bytes | None], ...]

    @property
    def place(self) -> tuple[str, str, int]:
        table, column, rowid, _ = self.cells[0][0]
        return table, column, rowid


def answer(store: MemoryStore) -> Answer:
    """Everything that can be read: memories, collections, what searches find."""
    found = [
        tuple(row.id for row in store.search(words, mode="keyword").rows)
        for words in ("key", "weir", "ledger fridays")
    ]
    memories = {memory.id: memory.as_dict() for memory in store.list(limit=1_000)}
    return memories, store.collections.list(), found


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


def places(whole: Whole) -> list[Place]:
    """Table, column, rowid and content of every blob in the file."""
    with closing(connect(whole.path, read_only=True)) as connection:
        return [
            (table, column, rowid, blob)
            for table, column in sorted(blob_columns(connection))
            for rowid, blob in connection.execute(
                f"select rowid, {column} from {table} where length({column}) > 0"
            ).fetchall()
        ]


def write(whole: Whole, *cells: tuple[str, str, int, object]) -> bool:
    """Put values into cells, all or none. False where another row has to be the only one of it."""
    if len(cells) == 1 and cells[0][3] is None:  # as a program that writes bytes, not rows, can
        with loosened(whole.path, cells[0][0]):
            return _written(whole, cells)
    return _written(whole, cells)


def _written(whole: Whole, cells: Sequence[tuple[str, str, int, object]]) -> bool:
    with closing(connect(whole.path)) as connection:
        connection.execute("begin immediate")
        try:
            if len(cells) > 1:  # first out of each other's way
                for table, column, rowid, _ in cells:
                    passing = f"update {table} set {column} = randomblob(20) where rowid = ?"
                    connection.execute(passing, (rowid,))
            for table, column, rowid, value in cells:
                connection.execute(
                    f"update {table} set {column} = ? where rowid = ?", (value, rowid)
                )
        except sqlite3.IntegrityError:
            connection.execute("rollback")
            return False
        connection.execute("commit")
    return True


def truths(whole: Whole) -> dict[str, Answer]:
    """What each opener reads of the vault as it is."""
    found = {opener: outcome(whole, opener) for opener in ("owner", "recovery", "member")}
    assert {said for said, _ in found.values()} == {"read"}
    return {opener: answered for opener, (_, answered) in found.items() if answered is not None}


def held_to_the_truth(whole: Whole, truth: dict[str, Answer], change: Change) -> str:
    """What becomes of a vault with that change. Its cells are as before afterwards."""
    openers = {
        opener: None for place, _ in change.cells for opener in whole.openers(place[0], place[2])
    }
    if not write(whole, *((*place[:3], blob) for place, blob in change.cells)):
        assert change.way in ("exchanged", "swapped")
        assert change.place[:2] in ONCE
        return "impossible"
    try:
        found = [(opener, *outcome(whole, opener)) for opener in openers]
    finally:
        assert write(whole, *(place for place, _ in change.cells))
    for opener, said, answered in found:
        assert answered in (None, truth[opener]), (change.way, change.place)
        if change.place[:2] in RECOGNISING:
            assert said != "refused", (change.way, change.place)
        elif change.place[:2] not in IDENTITIES:
            assert said != "read", (change.way, change.place)
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
        said[held_to_the_truth(whole, truth, Change("flipped", ((place, changed),)))] += 1
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
                change = Change("flipped", ((place, flipped(blob, bit)),))
                said[held_to_the_truth(whole, truth, change)] += 1
    print(f"flips of what is not sealed: {dict(said)}")
    assert said.total() >= counted(25_000)
    assert truths(whole) == truth


def changed_in_every_way(cells: list[Place], chance: random.Random) -> list[Change]:
    """Each cell taken away, emptied, cut somewhere, and with the content of every other."""
    return [
        Change(way, ((place, blob),))
        for place in cells
        for way, blobs in (
            ("taken away", {None}),
            ("emptied", {b""}),
            ("cut", {place[3][: chance.randrange(1, len(place[3]))]}),
            ("exchanged", sorted({cell[3] for cell in cells} - {place[3]})),
        )
        for blob in blobs
    ]


def cut_everywhere(cells: list[Place]) -> list[Change]:
    """Each cell without its end, and without its beginning, of every length."""
    return [
        Change("cut", ((place, blob),))
        for place in cells
        for length in range(len(place[3]))
        for blob in (place[3][:length], place[3][length + 1 :])
    ]


def swapped(whole: Whole) -> list[Change]:
    """Every two cells of a column that differ, each in the other's place.

    Not two topics of one memory: they are a set.
    """
    with closing(connect(whole.path, read_only=True)) as connection:
        memory = dict(connection.execute("select rowid, memory from memory_topics").fetchall())
    return [
        Change("swapped", ((one, other[3]), (other, one[3])))
        for one, other in combinations(places(whole), 2)
        if one[:2] == other[:2] and one[3] != other[3]
        if one[0] != "memory_topics" or memory[one[2]] != memory[other[2]]
    ]


def share(changes: list[Change], seed: str) -> list[Change]:
    """All of them with ``PROOFS=full``, else a hundredth and eight of each way, none twice."""
    chance = random.Random(seed)
    by_way = [[one for one in changes if one.way == way] for way in (*WAYS, "swapped")]
    return [
        one
        for some in by_way
        for one in chance.sample(some, min(len(some), max(8, counted(len(some)))))
    ]


def test_a_blob_exchanged_cut_or_taken_away_in_the_file_is_refused_or_noticed(
    whole: Whole,
) -> None:
    cells, said = places(whole), Counter[str]()
    truth, ways, impossible = truths(whole), Counter[str](), 0
    tried = share(changed_in_every_way(cells, random.Random("cuts")), "exchanges")
    for change in tried:
        ways[change.way] += 1
        outcome = held_to_the_truth(whole, truth, change)
        said[outcome] += 1
        of_an_index = change.place[:2] == ("vault_sync", "tag")  # it takes no tag twice
        impossible += outcome == "impossible" and not of_an_index
    print(f"{len(cells)} blobs in the file, {dict(ways)}: {dict(said)}")
    if FULL:
        reached = {(change.place, change.way) for change in tried}
        assert reached == {(place[:3], way) for place in cells for way in WAYS}
        assert impossible < 10
    assert truths(whole) == truth


def test_every_cut_of_what_is_not_sealed_is_refused_noticed_or_changes_no_answer(
    whole: Whole,
) -> None:
    cells = [place for place in places(whole) if place[:2] in UNSEALED]
    truth, said = truths(whole), Counter[str]()
    for change in share(cut_everywhere(cells), "cuts"):
        said[held_to_the_truth(whole, truth, change)] += 1
    print(f"cuts of what is not sealed: {dict(said)}")
    assert said.total() >= counted(6_000)
    assert truths(whole) == truth


def test_two_blobs_of_a_column_swapped_in_the_file_are_refused_or_noticed(whole: Whole) -> None:
    truth, said = truths(whole), Counter[str]()
    for change in share(swapped(whole), "swaps"):
        said[held_to_the_truth(whole, truth, change)] += 1
    print(f"swaps in the file: {dict(said)}")
    assert said.total() >= counted(40)
    assert said["impossible"] <= 1
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
        if hostile == value or not write(whole, (table, column, rowid, hostile)):
            continue
        try:
            reported, answered = outcome(whole, opener)
        finally:
            back = hostile if (table, column) in ROWIDS else rowid
            assert write(whole, (table, column, back, value))
        said[reported] += 1
        if reported == "read":
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
