"""What storage promises to the rooms above it, on every engine."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from postgres_server import Server

from memory_store.addresses import vault_path
from memory_store.errors import StorageError
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import BodyRow, MemoryRow
from memory_store.vault.storage.segments import SegmentRow

Open = Callable[..., Storage]


class Stopped(Exception):
    """What ends a transaction here."""


HIDDEN = os.urandom(40)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where an empty vault is, in tables of the newest format."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        where = vault_path(server.address())
    else:
        where = tmp_path / "notes.db"
    with closing(Storage.open(where)) as made:
        assert not made.begin_file()
        made.create_tables()
    return where


@pytest.fixture
def opened(place: Path) -> Iterator[Open]:
    """Opens connections to it."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(closing(Storage.open(place, **options)))


def row(number: int, collection: str = "c", content: str = "") -> MemoryRow:
    name = f"{number:06x}"
    return MemoryRow(name, collection, "note", None, None, 1, content or f"b{name}", HIDDEN)


def fill(storage: Storage, count: int, first: int = 0) -> list[str]:
    rows = [row(number) for number in range(first, first + count)]
    bodies = [BodyRow(one.content, "c", os.urandom(16), HIDDEN) for one in rows]
    with storage.transaction():
        storage.memories.insert(rows, bodies)
    return [one.id for one in rows]


def test_what_fails_inside_a_transaction_leaves_nothing(opened: Open) -> None:
    storage, other = opened(), opened(read_only=True)
    fill(storage, 3)
    before = other.revision()
    with suppress(Stopped), storage.transaction():
        storage.memories.remove(["000000"])
        raise Stopped
    assert not storage.in_transaction
    assert (other.revision(), other.memories.count()) == (before, 3)


def test_a_moment_stays_as_it_was_and_the_revision_says_that_there_is_a_newer_one(
    opened: Open,
) -> None:
    writer, reader = opened(), opened(read_only=True)
    seen = reader.revision()
    with reader.reading():
        assert reader.memories.count() == 0
        fill(writer, 2)
        assert reader.memories.count() == 0
    assert reader.memories.count() == 2
    assert reader.revision() != seen
    assert reader.revision() == reader.revision()


def test_one_writer_waits_for_another_and_gives_up(opened: Open) -> None:
    first, second = opened(), opened(patience=0.2)
    with first.transaction():
        began = time.monotonic()
        with pytest.raises(Exception, match=r"lock|writing"), second.transaction():
            pytest.fail("two writers at once")
        assert 0.15 < time.monotonic() - began < 5
    fill(second, 1)


def test_writers_take_turns_and_none_is_lost(opened: Open, place: Path) -> None:
    def write(part: int) -> None:
        with closing(Storage.open(place)) as storage:
            for number in range(10):
                with storage.transaction():
                    counted = storage.settings.number("counter") or 0
                    storage.settings.write_clear({"counter": str(counted + 1)})
                    storage.memories.insert([row(1_000 * part + number)])

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    storage = opened()
    assert (storage.settings.number("counter"), storage.memories.count()) == (40, 40)


def test_rows_are_found_by_any_number_of_ids_with_their_bodies(opened: Open) -> None:
    storage = opened()
    ids = fill(storage, 1_200)
    found = storage.memories.with_bodies([*ids, "ffffff"])
    assert set(found) == set(ids)
    memory, body = found["000007"]
    assert (memory, body[1] if body else None) == (row(7), HIDDEN)
    assert set(storage.memories.rows(ids[:2])) == set(ids[:2])
    assert storage.memories.rows([]) == {}


def test_pages_go_from_the_newest_row_to_the_oldest(opened: Open) -> None:
    storage = opened()
    fill(storage, 5, first=10)
    fill(storage, 5, first=0)
    seen, place = [], 1 << 62
    while True:
        last, part = storage.memories.before(place, 3)
        if last is None:
            break
        seen, place = [*seen, *part], last
    assert seen == [f"{n:06x}" for n in (*range(4, -1, -1), *range(14, 9, -1))]


def test_ids_are_found_by_how_they_begin(opened: Open) -> None:
    storage = opened()
    fill(storage, 300)
    assert len(list(storage.memories.beginning("0000"))) == 256
    assert list(storage.memories.beginning("00012b")) == [("00012b", "c")]


def test_what_is_replaced_makes_room_for_each_key_that_is_its_own(opened: Open) -> None:
    storage = opened()
    with storage.transaction():
        storage.sources.write("one", "c", b"tag", b"head", 0)
        storage.sources.write("two", "c", b"tag", b"other", 0)  # of the same tag
        storage.sources.write("two", "d", b"new", b"newer", 0)  # of the same id
        storage.topics.insert([("000001", b"t"), ("000002", b"t")])
        storage.topics.insert([("000002", b"t"), ("000003", b"t")])
    assert storage.sources.of(0) == [("two", "d", b"newer")]
    assert storage.topics.count() == 3
    with storage.transaction():
        storage.sources.forget(0, "other")
        assert len(storage.sources.of(0)) == 1
        storage.sources.forget(0)
    assert storage.sources.of(0) == []


def test_a_body_goes_with_the_last_memory_that_holds_it(opened: Open) -> None:
    storage = opened()
    with storage.transaction():
        storage.memories.insert(
            [row(1, content="shared"), row(2, content="shared")],
            [BodyRow("shared", "c", b"0" * 16, HIDDEN)],
        )
    for number, left in ((1, {b"0" * 16: "shared"}), (2, {})):
        with storage.transaction():
            storage.memories.remove([f"{number:06x}"])
        assert storage.memories.bodies_tagged("c", [b"0" * 16]) == left


def test_changes_are_numbered_without_gaps_by_those_that_were_committed(opened: Open) -> None:
    storage = opened()
    with storage.transaction():
        storage.segments.log("c", ["a", "b"], "gone")
    with suppress(Stopped), storage.transaction():
        storage.segments.log("c", ["lost"], "gone")
        raise Stopped
    with storage.transaction():
        storage.segments.log("c", ["c"], "gone")
    changes = storage.segments.changes_since(0)
    assert [(one.sequence, one.memory) for one in changes] == [(1, "a"), (2, "b"), (3, "c")]
    assert storage.segments.newest_change() == 3


def test_segments_come_with_their_parts(opened: Open) -> None:
    storage = opened()
    sealed = {"main": os.urandom(2_000_000), "vectors": b"v", "pairs": b"p"}
    with storage.transaction():
        storage.segments.insert(SegmentRow("s", "c", 1, 3, 0, "m"), sealed, {"words": b"w"})
        storage.segments.replace("s", 2, {"vectors": b"w"})
    assert dict(storage.segments.parts(["s", "none"])) == {"s": {**sealed, "vectors": b"w"}}
    assert storage.segments.rows()[0].epoch == 2
    assert storage.segments.extras("s") == {"words": b"w"}
    with storage.transaction():
        storage.segments.delete(["s"])
    assert (storage.segments.rows(), storage.segments.extra_kinds()) == ([], set())


def test_a_slot_that_is_too_large_is_not_read(opened: Open) -> None:
    storage = opened()
    slot = {"id": "x", "principal": 0, "kind": "key", "parameters": "{}", "created": "2026"}
    slot |= {"salt": b"s" * 5_000, "commitment": b"c", "wrapped": b"w"}
    with storage.transaction():
        storage.slots.insert([slot])
    (cells,) = storage.slots.cells(10, 100)
    assert cells[:4] == (b"x", b"key", b"{}", b"2026")
    assert cells[4] == bytes(101)
    assert cells[-1] == 0


def test_the_trash_knows_the_oldest_of_each_collection(opened: Open) -> None:
    storage = opened()
    with storage.transaction():
        assert storage.trash.next_number() == 1
        storage.trash.insert([(1, "c", b"1", b""), (2, "d", b"2", b""), (3, "c", b"3", b"")])
    assert sorted(storage.trash.oldest()) == [(1, "c", b"1"), (2, "d", b"2")]
    with storage.transaction():
        assert storage.trash.delete([1, 9]) == 1
        assert storage.trash.next_number() == 4


def test_two_vaults_in_one_database_do_not_see_each_other(postgres: Server) -> None:
    places = [vault_path(postgres.address()) for _ in range(2)]
    with closing(Storage.open(places[0])) as one, closing(Storage.open(places[1])) as two:
        for storage in (one, two):
            storage.create_tables()
        fill(one, 3)
        fill(two, 1)  # the same ids
        assert (one.memories.count(), two.memories.count()) == (3, 1)
        with two.transaction():
            two.memories.remove(["000000"])
        assert (one.memories.count(), two.memories.count()) == (3, 0)


def test_two_who_make_the_first_vaults_at_once_both_succeed(postgres: Server) -> None:
    postgres.sql("create database empty", database="postgres")
    places = [vault_path(postgres.address(database="empty")) for _ in range(4)]

    def make(place: Path) -> None:
        with closing(Storage.open(place)) as storage:
            storage.create_tables()

    threads = [threading.Thread(target=make, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in places:
        with closing(Storage.open(place)) as storage:
            assert storage.exists


def test_a_write_outside_of_a_transaction_is_a_fault(postgres: Server) -> None:
    with closing(Storage.open(vault_path(postgres.address()))) as storage:
        storage.create_tables()
        with pytest.raises(AssertionError):
            storage.settings.delete("format")


def test_the_server_s_words_do_not_quote_values(postgres: Server) -> None:
    with closing(Storage.open(vault_path(postgres.address()))) as storage:
        storage.create_tables()
        with pytest.raises(StorageError) as refused, storage.transaction():
            storage.memories.insert([row(1, "kestrel"), row(1, "kestrel")])
        assert "kestrel" not in str(refused.value) + repr(refused.value.__cause__)
        assert refused.value.__suppress_context__


@pytest.mark.parametrize("said", ["many", "9" * 30])
def test_a_revision_that_is_no_number_is_taken_for_none(opened: Open, said: str) -> None:
    storage = opened()
    with storage.transaction():
        storage.settings.write_clear({"settings": said})
        assert storage.keys.of(0).revision == storage.settings.revision() == 0
