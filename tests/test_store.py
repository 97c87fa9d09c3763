"""What a store keeps, forgets and shares, through its public methods."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memory_store.actions import searches
from memory_store.actions.action import Opened
from memory_store.doctor.vault import vault as vault_checks
from memory_store.errors import BadInputError, ConflictError, NotFoundError, StorageError
from memory_store.records import Memory, MemoryDraft
from memory_store.search.context import SearchContext
from memory_store.session.extras import lexicons
from memory_store.sqlite import sqlite3  # two libraries on one file undo each other's locks
from memory_store.store import MemoryStore


def test_a_memory_comes_back_as_it_went_in(store: MemoryStore) -> None:
    added = store.add(
        "Grüße aus Łódź, 北京 and نص.\nSecond line.",
        title="Postcards",
        type="fact",
        topics=["#Travel", "travel", "Old Letters"],
        created="2021-03-04",
        metadata={"box": 3},
    )
    got = store.get(added.id)
    assert got == added
    assert got.topics == ("Travel", "Old Letters")
    assert got.created == "2021-03-04T00:00:00Z"
    assert got.metadata == {"box": 3}
    assert got.collection == "personal"
    assert store.get(added.id[:8]).id == added.id


def test_everything_survives_lock_and_unlock(store: MemoryStore, key_file: Path) -> None:
    ids = [store.add(f"Entry {n} about barley.", topics=["farm"]).id for n in range(12)]
    store.lock()
    with MemoryStore.open(store.path, key_file=key_file) as opened:
        assert {m.id for m in opened.list()} == set(ids)
        assert opened.topics() == {"farm": 12}
        assert opened.search("barley", mode="keyword").total == 12


def test_an_edit_makes_a_new_version_and_forgets_the_old_words(store: MemoryStore) -> None:
    memory = store.add("We moor at the granary quay.", topics=["boat"])
    after = store.edit(memory.id, text="We moor at the fish pier.", topics=["boat", "harbour"])
    assert (after.version, after.created) == (2, memory.created)
    assert store.get(memory.id).text == "We moor at the fish pier."
    assert store.search("granary", mode="keyword").rows == ()
    assert [r.id for r in store.search("pier", mode="keyword").rows] == [memory.id]
    assert store.topics() == {"boat": 1, "harbour": 1}
    assert store.verify()["failures"] == []


def test_what_was_deleted_is_found_nowhere(store: MemoryStore) -> None:
    memory = store.add("Forget the walnut cabinet.", topics=["furniture"])
    store.add("Keep the oak table.", topics=["furniture"])
    store.delete(memory.id)
    with pytest.raises(NotFoundError):
        store.get(memory.id)
    assert store.search("walnut", mode="keyword").rows == ()
    assert store.topics() == {"furniture": 1}


@pytest.mark.parametrize(
    ("draft", "parameter"),
    [
        ({"text": "  "}, "text"),
        ({"text": "x", "type": "poem"}, "type"),
        ({"text": "x", "created": "the day before"}, "created"),
        ({"text": "x", "id": "seven"}, "id"),
        ({"text": "x", "colour": "red"}, "colour"),
        ({"text": "x", "topics": ["t" * 300]}, "topics"),
        ({"text": "x", "metadata": {"m": "x" * 200_000}}, "metadata"),
    ],
)
def test_bad_drafts_are_refused_by_field(
    store: MemoryStore, draft: dict[str, object], parameter: str
) -> None:
    text = str(draft.pop("text"))
    with pytest.raises(BadInputError) as refusal:
        store.add(text, **draft)
    assert refusal.value.parameter == parameter
    assert store.list() == []


def test_collections_have_names_and_keys_of_their_own(store: MemoryStore) -> None:
    store.add("Mine.", topics=["garden"])
    store.add("Ours.", collection="allotment", topics=["garden"])
    assert {c.name: c.memories for c in store.collections.list()} == {"personal": 1, "allotment": 1}
    assert store.topic_hash("garden") != store.topic_hash("garden", "allotment")
    assert [m.text for m in store.list(collection="allotment")] == ["Ours."]
    store.collections.rename("allotment", "plot 14")
    assert [m.collection for m in store.list(collection="plot 14")] == ["plot 14"]
    with pytest.raises(BadInputError, match="already"):
        store.collections.create("personal")
    with pytest.raises(NotFoundError, match="there is: personal, plot 14"):
        store.list(collection="allotment")


def test_the_vectors_of_the_dead_are_not_counted(store: MemoryStore) -> None:
    kept, deleted = store.add("The weir froze over."), store.add("The mill is for sale.")
    store.edit(kept.id, text="The weir thawed.")
    store.delete(deleted.id)
    store.add("The pump is primed by hand.")
    assert store.stats()["vectors"] == 2
    reported = {check.name: check for check in vault_checks(store.path, store)}
    assert reported["vectors"].detail.startswith("2, made with")


def test_another_process_sees_what_was_committed_before_its_search(
    store: MemoryStore, key_file: Path
) -> None:
    with MemoryStore.open(store.path, key_file=key_file) as reader:
        for n in range(30):  # enough small segments that some are merged on the way
            memory = store.add(f"Entry {n} on lighthouses.", topics=["sea"])
            assert reader.search("lighthouses", mode="keyword").total == n + 1
        store.delete(memory.id)
        assert reader.search("lighthouses", mode="keyword").total == 29
        store.edit(reader.list()[0].id, text="Now about windmills.")
        assert len(reader.search("windmills", mode="keyword").rows) == 1
        assert reader.stats()["segments"] < 20


def test_a_phrase_is_found_though_its_segment_is_rewritten_while_it_is_searched(
    store: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store.add("The spare key is under the stone.")
    gone = [store.add(f"Note {n} on some spare key.").id for n in range(3)]
    begun = searches.context
    with MemoryStore.open(store.path, key_file=key_file) as other:

        def then_rewritten(opened: Opened) -> SearchContext:
            """What a search begins on, out of date before it goes on."""
            context = begun(opened)
            if gone:
                other.delete(gone.pop(0), now=True)
            return context

        monkeypatch.setattr(searches, "context", then_rewritten)
        found = store.search('"spare key"', mode="keyword")
    assert (gone, [row.id for row in found.rows]) == ([], [kept.id])


def test_a_phrase_is_found_though_its_segments_are_rewritten_without_end(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, begun = store.add("The spare key is under the stone."), searches.context

    def then_rewritten(opened: Opened) -> SearchContext:
        passing = store.add("Another spare key.")
        context = begun(opened)
        store.delete(passing.id, now=True)
        return context

    monkeypatch.setattr(searches, "context", then_rewritten)
    found = store.search('"spare key"', mode="keyword")
    assert [row.id for row in found.rows] == [kept.id]


def test_words_are_counted_though_their_segment_is_rewritten_meanwhile(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add("A heron at the weir.")
    passing = [store.add("A herring.").id]

    def rewritten(*given: Any) -> Any:
        if passing:
            store.delete(passing.pop(), now=True)
        return lexicons(*given)

    monkeypatch.setattr("memory_store.actions.words.lexicons", rewritten)
    assert [(one.word, one.memories) for one in store.words("her")] == [("heron", 1)]


def test_writers_and_readers_in_many_threads_agree_in_the_end(store: MemoryStore) -> None:
    errors: list[BaseException] = []

    def writer(name: str) -> None:
        for n in range(10):
            store.add(f"{name} wrote entry {n} about otters.")

    def reader() -> None:
        for _ in range(20):
            rows = store.search("otters", mode="keyword", limit=32).rows
            assert all("otters" in row.preview for row in rows)

    def guarded(work: Callable[..., None], *arguments: str) -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - the test reads it below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(writer, f"w{n}")) for n in range(3)]
    threads += [threading.Thread(target=guarded, args=(reader,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(store.list(limit=100)) == 30
    assert store.verify()["failures"] == []


def test_add_many_adds_all_or_names_the_culprit(store: MemoryStore) -> None:
    with pytest.raises(BadInputError, match="'poem'"):
        store.add_many([MemoryDraft("Fine."), MemoryDraft("Bad.", type="poem")])
    assert store.list() == []
    first = store.add("One.", id="7d1f5d9a-2b9d-4c3e-9f4e-0d8f6f0a1b2c")
    with pytest.raises(ConflictError, match=first.id):
        store.add("Two.", id=first.id)


def test_a_model_change_is_refused_until_reindex(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    from tiny_embedder import build

    store.add("The weir froze over.")
    store.lock()
    other = tmp_path / "other-model"
    build(other, words=["weir", "windmill"])
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(other)) as opened:
        (line,) = opened.model_state().degraded
        assert "memory-store reindex" in line
        answer = opened.search("weir")
        assert answer.rows
        assert any("reindex" in note for note in answer.degraded)
        assert opened.reindex() == 1
        assert opened.model_state().degraded == ()
        assert opened.search("weir froze", mode="vector").rows


@pytest.mark.in_a_file
def test_the_change_log_stays_short_and_its_numbers_never_come_back(store: MemoryStore) -> None:
    memory = store.add("Version 0.")
    newest = 0
    for n in range(1, 40):
        store.edit(memory.id, text=f"Version {n}.")
        with sqlite3.connect(store.path) as connection:
            count, last = connection.execute(
                "select count(*), max(sequence) from vault_changes"
            ).fetchone()
        connection.close()
        assert last > newest
        newest = last
    assert count < 10
    assert store.get(memory.id).text == "Version 39."
    assert store.search("version", mode="keyword").total == 1
    assert store.verify()["failures"] == []


def test_a_type_means_the_completed_ones_too_and_status_separates_them(
    store: MemoryStore,
) -> None:
    open_one = store.add("Paint the hinge.", type="task")
    done = store.done(store.add("Oil the hinge.", type="task").id)
    assert (done.type, done.version) == ("task_done", 2)
    assert len(store.list(type="task")) == 2
    assert [m.id for m in store.list(type="task", status="done")] == [done.id]
    assert [m.id for m in store.list(status="open")] == [open_one.id]
    found = store.search("hinge", type="task", status="open", mode="keyword").rows
    assert [row.id for row in found] == [open_one.id]
    again = store.reopen(done.id)
    assert (again.type, again.version) == ("task", 3)
    assert store.reopen(done.id) == again


def test_search_options_are_taken_in_the_command_s_spelling(store: MemoryStore) -> None:
    store.add("Words.", metadata={"box": "3"})
    assert store.search("words", no_rerank=True, meta=["box=3"]).rows
    with pytest.raises(BadInputError, match="meta"):
        store.search("words", meta=["box"])
    with pytest.raises(BadInputError, match="neither a folder nor one of"):
        store.search("words", reranker="minsim")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system lists no open files")
def test_threads_that_ended_leave_no_file_open(store: MemoryStore) -> None:
    store.add("One herring in the barrel.")

    def opened() -> int:
        reading = threading.Thread(target=store.list)
        reading.start()
        reading.join()
        return len(os.listdir("/proc/self/fd"))

    first = opened()
    assert max(opened() for _ in range(20)) <= first + 2


@pytest.mark.in_a_file
@pytest.mark.skipif(os.name == "nt", reason="Windows moves no file that is open")
@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced", "put back"])
def test_nothing_is_written_to_a_file_that_lies_there_no_more(
    store: MemoryStore, tmp_path: Path, fate: str
) -> None:
    kept = store.add("One herring in the barrel.").id
    if fate == "replaced":
        other, _ = MemoryStore.create(tmp_path / "other.db", key_file=tmp_path / "keys" / "other")
        other.lock()
        os.replace(other.path, store.path)
    elif fate == "put back":  # as the page about backups says, which is for a vault that is closed
        store.path.write_bytes(store.path.read_bytes())
        store.path.with_name(f"{store.path.name}-wal").unlink()
    elif fate == "moved":
        store.path.rename(tmp_path / "moved.db")
    else:
        store.path.unlink()
    before = store.path.read_bytes() if store.path.exists() else None
    for write in (lambda: store.add("Another one."), lambda: store.delete(kept)):
        with pytest.raises(StorageError, match="moved, deleted or replaced since this program"):
            write()
    assert [one.text for one in store.list()] == ["One herring in the barrel."]
    with ThreadPoolExecutor() as pool, pytest.raises(StorageError, match="moved, deleted or"):
        pool.submit(store.list).result()  # a thread that has not read from it yet
    assert (store.path.read_bytes() if store.path.exists() else None) == before


def pages(store: MemoryStore, size: int) -> list[list[Memory]]:
    """Every page of a list, each begun behind the last memory of the one before."""
    found = [store.list(limit=size)]
    while found[-1]:
        last = found[-1][-1]
        found.append(store.list(limit=size, after=(last.created, last.id)))
    return found[:-1]


def test_pages_hold_everything_once_also_what_came_at_one_moment(store: MemoryStore) -> None:
    for number in range(7):
        day = "2024-05-01" if number % 3 else "2024-05-02"
        store.add(f"Number {number}", created=day)
    whole = store.list()
    found = pages(store, 2)
    assert [len(page) for page in found] == [2, 2, 2, 1]
    assert [memory for page in found for memory in page] == whole
    assert [memory.created[:10] for memory in whole] == ["2024-05-02"] * 3 + ["2024-05-01"] * 4


def test_a_page_goes_on_although_the_memory_it_begins_behind_is_gone(store: MemoryStore) -> None:
    for number in range(5):
        store.add(f"Number {number}", created=f"2024-05-0{number + 1}")
    first = store.list(limit=2)
    store.delete(first[-1].id)
    store.add("Newer than all", created="2024-06-01")
    rest = store.list(after=(first[-1].created, first[-1].id))
    assert [memory.text for memory in rest] == ["Number 2", "Number 1", "Number 0"]
