"""Every bit of every blob of a vault changed, every cut, every exchange: refused, never misread.

Two layers. Every sealed cell, with the key and the place that an independent reader finds for it,
goes to the function that opens all of them, changed in every way: hundreds of thousands of times.
And a file that was changed goes through everything that opens, reads, searches and verifies it.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kit"))

from counts import FULL, SHARE, counted
from independent_reader import Cell, open_vault

from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import Place, SealingKey, unseal
from memory_store.errors import FormatError, MemoryStoreError, TamperedError
from memory_store.records import MemoryDraft
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.audit import AuditEvent

KEYED_HASHES = frozenset(
    {
        ("memory_bodies", "tag"),
        ("memory_topics", "topic"),
        ("memory_sources", "origin"),
        ("memory_sources", "draft"),
        ("memory_sources", "file"),
        ("vault_sources", "tag"),
        ("vault_source_files", "tag"),
        ("vault_source_files", "content"),
        ("vault_expansions", "tag"),
    }
)
PUBLIC = frozenset({("vault_slots", "salt"), ("vault_slots", "commitment")})
IDENTITIES = frozenset({("vault_identities", "public")})
SLOTS = frozenset({*PUBLIC, ("vault_slots", "wrapped")})
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
    store.create_collection("mill")
    first, second = store.add_many(
        [
            MemoryDraft("The spare key hangs in the boathouse.", title="Key", topics=("keys",)),
            MemoryDraft("The ledger is reconciled on Fridays.", collection="mill"),
        ]
    )
    store.edit(first.id, add_topics=["lake"], text="The spare key hangs in the mill.")
    store.delete(store.add("Regretted at once.").id)
    store.rotate_keys("mill")
    store._vault.expansions.keep(b"oar, paddle", "oar", "a model")
    store.keep_audit([EVENT], days=0, most=100)
    assert second.collection != first.collection


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
            store.share("mill", MemoryStore.introduce(path, "Grace", key_file=mine)[0])
        return Whole(path, key_file, code, tiny_model)

    return make


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Folders of these tests alone, for as long as the vault lives."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CACHE", "CONFIG", "STATE"):
            folder = tmp_path_factory.mktemp(name.lower())
            patch.setenv(f"MEMORY_STORE_{name}", str(folder))
        patch.setenv("MEMORY_STORE_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def whole(make_whole: Callable[[str], Whole], state: None) -> Whole:
    return make_whole("whole")


# -- every sealed cell ----------------------------------------------------------------------


def refused(cell: Cell, blob: bytes) -> bool:
    """Whether the function that opens every sealed value refuses ``blob`` in a cell's place."""
    key = SealingKey(SecretKey(cell.key), epoch=cell.epoch)
    ours = cell.place
    place = Place(ours.vault, ours.collection, ours.table, ours.column, ours.row, ours.version)
    try:
        unseal(key, place, blob)
    except (TamperedError, FormatError):
        return True
    return False


def some(numbers: range, cell: Cell) -> range:
    """Every one of some numbers where the proof is whole, else every so many-th."""
    if FULL:
        return numbers
    return numbers[random.Random(str(cell.place)).randrange(SHARE) :: SHARE]


def blob_columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(
        connection.execute(
            """
            select t.name, c.name from sqlite_master t, pragma_table_info(t.name) c
            where t.type = 'table' and upper(c.type) = 'BLOB'
            """
        )
    )


def test_every_blob_column_is_sealed_hashed_or_public_and_is_tried_here(whole: Whole) -> None:
    with closing(connect(whole.path, read_only=True)) as connection:
        used = {
            (table, column)
            for table, column in blob_columns(connection)
            if connection.execute(
                f"select 1 from {table} where {column} is not null limit 1"
            ).fetchone()
        }
        unused = blob_columns(connection) - used
    sealed = {(cell.table, cell.column) for cell in whole.cells()}
    assert sealed | KEYED_HASHES | SLOTS | IDENTITIES == used
    assert unused <= {("vault_principals", "sealed")}  # nothing writes it


def test_every_sealed_cell_opens_at_its_place(whole: Whole) -> None:
    cells = whole.cells()
    assert len(cells) > 20
    assert not any(refused(cell, cell.blob) for cell in cells)


def test_every_flipped_bit_of_every_sealed_cell_is_refused(whole: Whole) -> None:
    tried: Counter[str] = Counter()
    for cell in whole.cells():
        changed = bytearray(cell.blob)
        for bit in some(range(len(cell.blob) * 8), cell):
            changed[bit // 8] ^= 1 << bit % 8
            assert refused(cell, bytes(changed)), (cell.place, bit)
            changed[bit // 8] ^= 1 << bit % 8
            tried[f"{cell.table}.{cell.column}"] += 1
    print(f"{tried.total()} flipped bits: {dict(tried)}")
    assert tried.total() >= counted(100_000)


def test_every_cut_of_every_sealed_cell_is_refused(whole: Whole) -> None:
    tried = 0
    for cell in whole.cells():
        for length in some(range(len(cell.blob)), cell):
            assert refused(cell, cell.blob[:length]), (cell.place, length)
            assert refused(cell, cell.blob[length + 1 :]), (cell.place, -length)
            tried += 2
        assert refused(cell, cell.blob + b"\x00")
        assert refused(cell, b"\x00" + cell.blob)
    print(f"{tried} cuts")
    assert tried >= counted(20_000)


def test_every_exchange_of_two_sealed_cells_is_refused(
    whole: Whole, make_whole: Callable[[str], Whole]
) -> None:
    """Within the vault, with another vault of the same content, with the same one before."""
    other = make_whole("other").cells()
    cells, before = whole.cells(), []
    with whole.open() as store:
        key = next(memory for memory in store.list() if memory.title == "Key")
        before = whole.cells()
        store.edit(key.id, text="The spare key hangs by the sluice.")
    tried = 0
    for cell in whole.cells():
        for stranger in (*cells, *other, *before):
            if stranger.place != cell.place or stranger.key != cell.key:
                assert refused(cell, stranger.blob), (cell.place, stranger.place)
                tried += 1
    print(f"{tried} exchanges")
    assert tried > 2_000


def test_a_place_that_differs_in_one_part_is_refused(whole: Whole) -> None:
    for cell in whole.cells():
        place = cell.place
        for elsewhere in (
            replace(place, vault=bytes(16)),
            replace(place, collection=place.collection + "x"),
            replace(place, table=place.column, column=place.table),
            replace(place, row=place.row + "|"),
            replace(place, version=place.version + 1),
            replace(place, version=-1 - place.version),
        ):
            assert refused(replace(cell, place=elsewhere), cell.blob)


# -- a changed file -------------------------------------------------------------------------

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


def flipped(blob: bytes, chance: random.Random) -> bytes:
    bit = chance.randrange(len(blob) * 8)
    changed = bytearray(blob)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_flipped_bit_in_the_file_is_refused_or_noticed(whole: Whole) -> None:
    chance = random.Random("flips")
    cells, said = places(whole), Counter[str]()
    truth = truths(whole)
    for turn in range(counted(2_500)):
        place = cells[turn] if turn < len(cells) else chance.choice(cells)
        said[held_to_the_truth(whole, truth, place, flipped(place[3], chance))] += 1
    print(f"flips in the file: {dict(said)}")
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


# -- what stands in clear -------------------------------------------------------------------

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
