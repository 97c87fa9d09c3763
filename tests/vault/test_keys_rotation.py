"""A collection's key is replaced while others search and write, and no answer changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stopping import stopped

from memory_store.crypto.sealing import SealingKey, unseal
from memory_store.errors import NotFoundError, TamperedError
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent
from memory_store.vault.collection_keys import PURPOSES

Make = Callable[..., MemoryStore]
SUBJECTS = ("otters", "lanterns", "harbours")
MEMORIES = 24


@pytest.fixture
def filled(make_store: Make, tmp_path: Path) -> MemoryStore:
    """A vault with two collections, edits, equal texts, an imported folder and an audit trail."""
    store = make_store()
    for number in range(MEMORIES):
        subject = SUBJECTS[number % len(SUBJECTS)]
        collection = "work" if number % 2 else "personal"
        store.add(f"Note {number} on {subject}.", topics=[subject], collection=collection)
    store.add("Note 0 on otters.", topics=["copies"])
    store.edit(store.list(limit=1)[0].id, title="Edited")
    (tmp_path / "folder").mkdir()
    for number in range(3):
        (tmp_path / "folder" / f"{number}.md").write_text(f"# File {number}\n\nOn quays.")
    store.import_paths([tmp_path / "folder"], collection="work")
    event = AuditEvent("2026-01-01T00:00:00+00:00", "alice", False, "page", "search", 3, 2)
    store.trail.keep([event], days=0, most=100)
    return store


def reopened(store: MemoryStore, key_file: Path, tiny_model: Path) -> MemoryStore:
    return MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model))


def answers(store: MemoryStore) -> list[Any]:
    """What searches, lists and topics say."""
    rows = [
        [(row.id, round(row.score, 9), row.preview) for row in store.search(query, **options).rows]
        for query in (*SUBJECTS, '"note 7 on"', "quays")
        for options in ({"mode": "keyword"}, {}, {"topic": "otters"})
    ]
    listed = [memory.as_dict() for memory in store.list(limit=1_000)]
    return [rows, listed, store.topics(), store.trail.events()]


def epochs(store: MemoryStore) -> set[int]:
    connection = connect(store.path)
    try:
        return {row[0] for row in connection.execute("select epoch from vault_collection_keys")}
    finally:
        connection.close()


@pytest.mark.in_a_file
def test_everything_is_answered_as_before_and_verifies(
    filled: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    before = answers(filled)
    with reopened(filled, key_file, tiny_model) as other:
        assert answers(other) == before
        done = filled.keys.rotate()
        assert [one.name for one in done] == [None, "personal", "work"]
        assert {one.epoch for one in done} == epochs(filled) == {1}
        for store in (filled, other):
            assert answers(store) == before
            assert store.verify()["failures"] == []
    with reopened(filled, key_file, tiny_model) as again:
        assert answers(again) == before


@pytest.mark.in_a_file
def test_topics_are_found_by_their_new_hashes_and_not_by_the_old(filled: MemoryStore) -> None:
    old = filled.topic_hash("otters")
    filled.keys.rotate()
    connection = connect(filled.path)
    count = "select count(*) from memory_topics where topic = ?"
    found = {
        one: connection.execute(count, (bytes.fromhex(one),)).fetchone()[0]
        for one in (old, filled.topic_hash("otters"))
    }
    connection.close()
    assert found[old] == 0
    assert found[filled.topic_hash("otters")] == MEMORIES // len(SUBJECTS) // 2


@pytest.mark.in_a_file
def test_one_collection_can_be_done_alone_and_again(filled: MemoryStore) -> None:
    assert [one.epoch for one in filled.keys.rotate("work")] == [1]
    assert [one.epoch for one in filled.keys.rotate("work")] == [2]
    assert epochs(filled) == {0, 2}
    assert filled.verify()["failures"] == []
    with pytest.raises(NotFoundError):
        filled.keys.rotate("nowhere")


def test_an_import_knows_its_files_afterwards_and_equal_texts_still_share_a_body(
    filled: MemoryStore, tmp_path: Path
) -> None:
    filled.keys.rotate()
    report = filled.import_paths([tmp_path / "folder"], collection="work")
    assert (report.imported, report.unchanged) == (0, 3)
    bodies = filled.stats()["contents"]
    filled.add("Note 0 on otters.")
    assert filled.stats()["contents"] == bodies


@pytest.mark.sampled(2)
@pytest.mark.parametrize("steps", [1, 2, 4, 7])
def test_stopped_anywhere_it_is_whole_and_goes_on_when_run_again(
    filled: MemoryStore, key_file: Path, tiny_model: Path, steps: int
) -> None:
    before = answers(filled)
    with stopped(after=steps) as stop:
        filled.keys.rotate("work", progress=stop)
    with reopened(filled, key_file, tiny_model) as again:
        assert again.keys.unfinished() == ["work"]
        assert again.verify()["failures"] == []
        assert answers(again) == before
        again.add("Written in between, on otters.", collection="work")
        (done,) = again.keys.rotate("work")
        assert (done.resumed, done.epoch) == (True, 1)
        assert again.keys.unfinished() == []
        assert again.verify()["failures"] == []
    assert len(filled.list(limit=1_000)) == len(before[1]) + 1


@pytest.mark.in_a_file
def test_readers_and_writers_are_right_all_the_time(
    filled: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    errors: list[str] = []
    written: list[str] = []
    over = threading.Event()
    wanted = {row.id for row in filled.search("harbours", mode="keyword", limit=32).rows}

    def read() -> None:
        with reopened(filled, key_file, tiny_model) as other:
            while not over.is_set():
                found = other.search("harbours", mode="keyword", limit=32).rows
                if {row.id for row in found} != wanted:
                    errors.append(f"found {len(found)} of {len(wanted)}")
                if any("harbours" not in row.preview for row in found):
                    errors.append("another text")
                other.list(topic="otters", limit=5)

    def write() -> None:
        with reopened(filled, key_file, tiny_model) as other:
            while not over.is_set():
                memory = other.add(f"Written {len(written)} meanwhile.", collection="work")
                written.append(memory.id)
                other.edit(memory.id, text=f"Edited {len(written)} meanwhile.")

    threads = [threading.Thread(target=recording(work, errors)) for work in (read, write)]
    for thread in threads:
        thread.start()
    while not (written or errors):
        time.sleep(0.01)  # opening takes a while, the first time
    for _ in range(3):
        filled.keys.rotate()
    over.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert written
    assert set(written) <= {memory.id for memory in filled.list(limit=10_000)}
    assert filled.verify()["failures"] == []
    assert epochs(filled) == {3}


def recording(work: Callable[[], None], errors: list[str]) -> Callable[[], None]:
    """``work``, with its errors added to ``errors``."""

    def recorded() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the test reads it
            errors.append(f"{type(error).__name__}: {error}")

    return recorded


@pytest.mark.in_a_file
def test_the_old_key_opens_nothing_in_the_file_any_more(filled: MemoryStore) -> None:
    collection = next(i for i, name in filled.collections.names().items() if name == "work")
    secret = filled._opened.vault.keyring.of(collection).bundle.secret
    old = {purpose: SealingKey(secret.derive(purpose)) for purpose in PURPOSES}
    connection = connect(filled.path)
    account = "select counter, sealed from vault_manifests where collection = ?"

    def opened() -> bytes:
        counter, sealed = connection.execute(account, (collection,)).fetchone()
        keys = filled._opened.vault.keyring.of(collection)
        place = keys.place("vault_manifests", "sealed", collection, counter)
        return bytes(unseal(old["manifest"], place, sealed))

    assert b'"count"' in opened()
    filled.keys.rotate()
    with pytest.raises(TamperedError):
        opened()
    sealed = [
        row
        for table, column in (
            ("memories", "head"),
            ("memory_bodies", "body"),
            ("vault_segments", "main"),
            ("vault_segments", "pairs"),
            ("vault_segment_parts", "sealed"),
            ("vault_manifests", "sealed"),
            ("vault_audit", "sealed"),
            ("vault_sources", "head"),
        )
        for (row,) in connection.execute(f"select {column} from {table}")
    ]
    assert len(sealed) > 2 * MEMORIES
    assert {row[2:6] for row in sealed} == {(1).to_bytes(4, "big")}
    connection.close()


@pytest.mark.in_a_file
def test_the_wrapped_old_key_leaves_no_trace_in_the_file(filled: MemoryStore) -> None:
    connection = connect(filled.path)
    wrapped = [row[0] for row in connection.execute("select wrapped from vault_collection_keys")]
    connection.close()
    filled.keys.rotate()
    files = list(filled.path.parent.glob(f"{filled.path.name}*"))
    assert not [f.name for f in files for key in wrapped if key in f.read_bytes()]


@pytest.mark.in_a_file
def test_an_old_key_that_was_put_back_is_refused(
    filled: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    connection = connect(filled.path)
    rows = connection.execute("select * from vault_collection_keys").fetchall()
    filled.keys.rotate()
    connection.execute("insert into vault_collection_keys values (?, ?, ?, ?)", rows[-1])
    connection.close()
    with pytest.raises(TamperedError, match="put back"):
        reopened(filled, key_file, tiny_model)


@pytest.mark.in_a_file
def test_keys_of_two_collections_that_were_swapped_are_refused(
    filled: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    filled.keys.rotate()
    connection = connect(filled.path)
    (a, first), (b, second) = connection.execute(
        "select collection, wrapped from vault_collection_keys where collection != 'vault'"
    ).fetchall()
    swap = "update vault_collection_keys set wrapped = ? where collection = ?"
    connection.executemany(swap, [(second, a), (first, b)])
    connection.close()
    with pytest.raises(TamperedError):
        reopened(filled, key_file, tiny_model)


@pytest.mark.in_a_file
def test_a_row_of_before_that_was_put_back_is_refused(
    filled: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    connection = connect(filled.path)
    memory, head = connection.execute("select id, head from memories limit 1").fetchone()
    filled.keys.rotate()
    connection.execute("update memories set head = ? where id = ?", (head, memory))
    connection.close()
    with reopened(filled, key_file, tiny_model) as again:
        assert any(memory in failure for failure in again.verify()["failures"])
        with pytest.raises(TamperedError, match=memory):
            again.get(memory)


@pytest.mark.in_a_file
def test_who_had_the_old_key_in_memory_refuses_it_too_once_no_one_can_be_reading_by_it(
    filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connect(filled.path)
    memory, head = connection.execute("select id, head from memories limit 1").fetchone()
    filled.keys.rotate()
    connection.execute("update memories set head = ? where id = ?", (head, memory))
    connection.close()
    monkeypatch.setattr("memory_store.vault.collection_keys.LEFT_SECONDS", -1.0)
    with pytest.raises(TamperedError, match="replaced"):
        filled.get(memory)
    assert len(filled.search('"note 7 on"', mode="keyword").rows) == 1  # its pairs: sealed anew


@pytest.mark.in_a_file
def test_a_rotation_names_what_was_tampered_with_and_seals_nothing_of_it_anew(
    filled: MemoryStore,
) -> None:
    connection = connect(filled.path)
    memory, head = connection.execute("select id, head from memories limit 1").fetchone()
    broken = head[:-1] + bytes([head[-1] ^ 1])
    connection.execute("update memories set head = ? where id = ?", (broken, memory))
    with pytest.raises(TamperedError, match=memory):
        filled.keys.rotate()
    assert one(connection, "select head from memories where id = ?", memory) == broken
    connection.close()


@pytest.mark.in_a_file
@pytest.mark.parametrize("table", ["vault_audit", "vault_sources"])
def test_what_was_tampered_with_keeps_no_other_key_from_being_replaced(
    filled: MemoryStore, table: str
) -> None:
    """Or one byte of the audit trail, which comes first, would keep the former keys of all."""
    cell = "head" if table == "vault_sources" else "sealed"
    connection = connect(filled.path)
    sealed = bytes(connection.execute(f"select {cell} from {table}").fetchone()[0])
    broken = (sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed)
    connection.execute(f"update {table} set {cell} = ? where {cell} = ?", broken)
    connection.close()
    with pytest.raises(TamperedError, match=table):
        filled.keys.rotate()
    epochs = {one.collection: one for one in filled._opened.vault.settings.epochs}
    for collection in filled.collections.names():
        assert (epochs[collection].epoch, epochs[collection].before) == (1, None)
    assert filled.keys.unfinished() == ["settings"]
    assert len(filled.verify()["failures"]) == 1


def test_a_strict_vault_is_done_too(make_store: Make) -> None:
    store = make_store(profile="strict")
    store.add("Nothing of this stands in clear.", topics=["secret"])
    store.keys.rotate()
    assert store.verify()["failures"] == []
    assert len(store.search("clear", mode="keyword").rows) == 1


def one(connection: sqlite3.Connection, query: str, value: str) -> bytes:
    return bytes(connection.execute(query, (value,)).fetchone()[0])
