"""While a key is replaced, every topic is found whole by its hash in the file, at every moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stopping import stopped

from memory_store.errors import TamperedError
from memory_store.store import MemoryStore
from memory_store.vault import topic_hashes
from memory_store.vault.storage import Storage

Make = Callable[..., MemoryStore]
Rows = set[tuple[str, bytes]]
SUBJECTS = ("otters", "lanterns", "harbours")
BATCH = 4


@pytest.fixture
def filled(make_store: Make, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Two collections, three topics in each; a batch holds a few of their rows."""
    monkeypatch.setattr(topic_hashes, "BATCH", BATCH)
    store = make_store()
    for number in range(9):
        for collection in ("work", "personal"):
            topics = [SUBJECTS[number % 3], "all"]
            store.add(f"Note {number}.", topics=topics, collection=collection)
    return store


@pytest.fixture
def other(filled: MemoryStore, key_file: Path, tiny_model: Path) -> Iterator[MemoryStore]:
    with MemoryStore.open(filled.path, key_file=key_file, embedder=str(tiny_model)) as store:
        yield store


def rows(store: MemoryStore) -> Rows:
    with closing(Storage.open(store.path, read_only=True)) as storage:
        return set(storage.engine.execute("select memory, topic from memory_topics").fetchall())


def write(store: MemoryStore, statement: str, values: tuple[object, ...] = ()) -> None:
    """Change rows past the vault. No other program may have to be waited for."""
    with closing(Storage.open(store.path, patience=0)) as storage, storage.transaction():
        storage.engine.execute(statement, values)


def found(store: MemoryStore, topic: str, collection: str = "work") -> set[str]:
    """The memories that a person finds who asks the file for a topic."""
    asked = bytes.fromhex(store.topic_hash(topic, collection))
    return {memory for memory, topic in rows(store) if topic == asked}


def had(store: MemoryStore, topic: str) -> set[str]:
    """The memories that have a topic, as their heads say."""
    return {memory.id for memory in store.list(collection="work", topic=topic, limit=1_000)}


def test_each_topic_is_found_whole_at_every_moment_while_others_write(
    filled: MemoryStore, other: MemoryStore
) -> None:
    moments = 0

    def look(name: str, done: int, total: int | None) -> None:
        nonlocal moments
        moments += 1
        written = other.add(f"Moment {moments}.", topics=["all", "new"], collection="work")
        if moments % 3 == 0:
            other.delete(other.list(collection="work", limit=1)[0].id)
        elif moments % 3 == 1:
            other.edit(written.id, topics=["all", "lanterns"])
        for store, topic in ((filled, "all"), (other, "lanterns"), (other, "new")):
            assert found(store, topic) == had(store, topic), f"{topic} at moment {moments}"
        assert moments % 5 or other.verify()["failures"] == []

    filled.keys.rotate("work", progress=look)
    assert moments > 8
    assert len(found(filled, "all")) == len(had(filled, "all")) > 9
    assert filled.verify()["failures"] == []
    hashes = {topic for _, topic in rows(filled)}
    assert len(hashes) == 4 + 5, "and nothing of the former hashes is left"


def test_each_transaction_changes_a_few_rows_and_lets_others_write(filled: MemoryStore) -> None:
    before, changed = rows(filled), []

    def look(name: str, done: int, total: int | None) -> None:
        nonlocal before
        now = rows(filled)
        changed.append(len(before ^ now))
        before = now
        write(filled, "delete from memory_topics where memory = 'none'")

    filled.keys.rotate("work", progress=look)
    assert max(changed) <= BATCH
    assert sum(changed) == 2 * 18, "each row was added once, and deleted once"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("moment", [2, 10, 11, 20])
def test_stopped_anywhere_it_goes_on_when_run_again(
    filled: MemoryStore, other: MemoryStore, moment: int
) -> None:
    with stopped(after=moment) as stop:
        filled.keys.rotate("work", progress=stop)
    other.add("Written in between.", topics=["otters", "all"], collection="work")
    for store in (filled, other):
        assert len(found(store, "otters")) == 4
        assert found(store, "all") == had(store, "all")
    other.keys.rotate("work")
    assert len(found(filled, "otters")) == len(found(other, "otters")) == 4
    assert len(rows(filled)) == 2 * 18 + 2
    assert filled.verify()["failures"] == []
    with closing(Storage.open(filled.path, read_only=True)) as storage:
        settings = storage.engine.execute("select name from vault_settings")
        names = {name for (name,) in settings.fetchall()}
    assert not [name for name in names if name.startswith(topic_hashes.FILLING)]


def test_a_note_of_it_that_was_tampered_with_breaks_nothing_and_is_said(
    filled: MemoryStore, other: MemoryStore
) -> None:
    statements = iter(
        [
            "update vault_settings set value = '77' where name like 'topics %'",
            "update vault_settings set value = 'soon' where name like 'topics %'",
            "update vault_settings set value = null where name like 'topics %'",
        ]
    )

    def tamper(name: str, done: int, total: int | None) -> None:
        for statement in statements:
            write(filled, statement)
            break
        other.add("Written in between.", topics=["all"], collection="work")
        assert other.topic_hash("all", "work")

    filled.keys.rotate("work", progress=tamper)
    assert any("topic hashes" in failure for failure in filled.verify()["failures"])


def test_a_note_of_it_has_no_topic_hashed_with_a_key_that_was_replaced(
    filled: MemoryStore,
) -> None:
    """Who had the former key, and holds the file, could hold guesses against it."""
    (work,) = (one for one, name in filled.collections.names().items() if name == "work")
    former = bytes.fromhex(filled.topic_hash("all", "work") or "")
    assert former in {topic for _, topic in rows(filled)}
    filled.keys.rotate("work")
    write(filled, "insert into vault_settings (name, value) values (?, '0')", (f"topics {work}",))
    filled.add("Written afterwards.", topics=["all"], collection="work")
    assert former not in {topic for _, topic in rows(filled)}


@pytest.mark.parametrize("value", [b"", b"short"])
def test_what_is_no_hash_stops_the_change_of_keys_and_is_named(
    filled: MemoryStore, value: bytes
) -> None:
    memory = next(iter(had(filled, "otters")))
    write(filled, "insert into memory_topics (memory, topic) values (?, ?)", (memory, value))
    with pytest.raises(TamperedError, match=memory):
        filled.keys.rotate("work")
