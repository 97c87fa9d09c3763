"""What a thief learns of topics: as much as the documents say, or, kept in memory, nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from own_process import python
from stopping import stopped

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks

from benchmarks import leakage, topic_attacks
from memory_store.records import MemoryDraft
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.text.canonical import normalise_topic
from memory_store.vault import topic_table

Make = Callable[..., MemoryStore]
ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "docs" / "figures" / "leakage.json").read_text("utf-8"))
CHANCE = 0.12  # by which a few draws may differ from the published mean of many
BATCH = 40
SUBJECTS = tuple(f"subject {number}" for number in range(30))

CHANGING = """
import os, signal, sys
from memory_store.store import MemoryStore
from memory_store.vault import topic_table

topic_table.CLEARED = topic_table.RESTORED = 40
path, key_file, where, after = sys.argv[1:]
steps = 0


def kill(name, done, total):
    global steps
    steps += 1
    if steps == int(after):
        os.kill(os.getpid(), signal.SIGKILL)


with MemoryStore.open(path, key_file=key_file) as store:
    store.set_topics(where, progress=kill)
"""
WRITING = """
import sys
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

path, key_file = sys.argv[1:]
with MemoryStore.open(path, key_file=key_file) as store:
    print("open", store.settings().topics, flush=True)
    for line in sys.stdin:
        draft = MemoryDraft(line.strip(), topics=("lanterns", "harbour"), collection="work")
        print(store.add_many([draft], embed=False)[0].id, flush=True)
"""


@pytest.fixture
def filled(make_store: Make, monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """Some hundred rows in two collections, on several pages; a batch holds a part of them."""
    monkeypatch.setattr(topic_table, "CLEARED", BATCH)
    monkeypatch.setattr(topic_table, "RESTORED", BATCH)
    store = make_store()
    fill(store)
    return store


def fill(store: MemoryStore) -> None:
    drafts = [
        MemoryDraft(
            f"Note {number}.",
            topics=tuple(SUBJECTS[(number * step) % len(SUBJECTS)] for step in (1, 2, 3)),
            collection=("personal", "work")[number % 2],
        )
        for number in range(200)
    ]
    kept = store.add_many(drafts, embed=False)
    store.edit(kept[0].id, topics=["lanterns"])
    store.delete(kept[1].id)


def rows(path: Path) -> set[tuple[str, bytes]]:
    with closing(connect(path, read_only=True)) as connection:
        return set(connection.execute("select memory, topic from memory_topics"))


def hashes(path: Path) -> set[bytes]:
    return {topic for _, topic in rows(path)}


def traces(path: Path, wanted: set[bytes]) -> set[bytes]:
    """Those hashes that stand in any byte of the file or its write-ahead log."""
    bytes_of = b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*"))
    return {one for one in wanted if one in bytes_of}


def found(store: MemoryStore, topic: str, collection: str = "work") -> set[str]:
    """The memories that SQL finds which compares with ``topic_hash``."""
    asked = store.topic_hash(topic, collection)
    return {memory for memory, topic in rows(store.path) if topic.hex() == asked}


def had(store: MemoryStore, topic: str, collection: str = "work") -> set[str]:
    """The memories that have a topic, as a search of the opened vault says."""
    return {one.id for one in store.list(collection=collection, topic=topic, limit=1_000)}


def killed(store: MemoryStore, key_file: Path, where: str, after: int) -> None:
    """Change where topics are kept in a process that is killed on the way."""
    changed = python("-c", CHANGING, store.path, key_file, where, str(after))
    assert changed.returncode == -9, changed.stderr


@contextmanager
def writer(path: Path, key_file: Path) -> Iterator[Callable[[str], str]]:
    """Another process with the vault open, which adds the texts it is given: their ids."""
    command = [sys.executable, "-c", WRITING, str(path), str(key_file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open table\n"

        def write(text: str) -> str:
            print(text, file=process.stdin, flush=True)
            written = process.stdout.readline().strip()  # type: ignore[union-attr]
            assert written
            return written

        yield write
        process.stdin.close()


# -- the thief who knows a part of the notes ------------------------------------------------


def played(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Both attacks on the file of a store, with fewer draws than the documents."""
    monkeypatch.setattr(leakage, "DRAWS", 4)
    held = store.list(limit=10_000)
    topics = {normalise_topic(topic) for one in held for topic in one.topics}
    truth = {bytes.fromhex(store.topic_hash(one) or ""): one for one in topics}
    given = (store.path, held, truth)
    return {
        "half": leakage.named(topic_attacks.by_statistics, *given, len(held) // 2, texts=False),
        "few": leakage.named(topic_attacks.by_both, *given, leakage.FEW, texts=True),
    }


def test_a_thief_who_knows_some_notes_names_what_the_documents_say_and_in_memory_nothing(
    make_store: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    store.import_paths([ROOT / "demo" / "notes"], embed=False)
    table, memory = PUBLISHED[:2]
    for part, stolen in played(store, monkeypatch).items():
        for share in ("hashes", "all_tags", "other_tags"):
            assert getattr(stolen, share) == pytest.approx(table[part][share], abs=CHANCE)
            assert getattr(stolen, share) > 0.02, "the attack is one"
            assert memory[part][share] == 0
    store.set_topics("memory")
    for stolen in played(store, monkeypatch).values():
        assert (stolen.hashes, stolen.all_tags, stolen.other_tags) == (0, 0, 0)


# -- the thief who reads bytes ---------------------------------------------------------------


def test_topics_taken_out_of_the_file_leave_no_byte_of_a_hash_in_file_or_log(
    filled: MemoryStore,
) -> None:
    before = hashes(filled.path)
    assert len(before) > 40
    assert traces(filled.path, before) == before, "the scan finds hashes"
    assert filled.set_topics("memory")
    assert traces(filled.path, before) == set()
    assert rows(filled.path) == set()
    assert filled.verify()["failures"] == []


@pytest.mark.parametrize("options", [{"topics": "memory"}, {"profile": "strict"}])
def test_a_vault_that_is_made_so_never_holds_a_hash(
    make_store: Make, options: dict[str, str]
) -> None:
    store = make_store(**options)
    fill(store)
    reported = {
        bytes.fromhex(store.topic_hash(topic, collection) or "")
        for topic in SUBJECTS
        for collection in ("work", "personal")
    }
    assert len(reported) == 60
    assert traces(store.path, reported) == set()
    assert store.settings().topics == "memory"
    assert len(had(store, "lanterns", "personal")) == 1, "and is searched by topics as any other"
    assert found(store, "lanterns", "personal") == set()


def test_searches_lists_and_topics_are_the_same_in_both(filled: MemoryStore) -> None:
    def reported() -> tuple[object, ...]:
        searched = filled.search("note", topic=("subject 4",), limit=8, rerank=False)
        listed = [one.id for one in filled.list(topic="subject 3", limit=100)]
        return filled.topics(), listed, {row.id for row in searched.rows}, searched.topics

    before = reported()
    filled.set_topics("memory")
    assert reported() == before
    table = rows(filled.path)
    filled.set_topics("table")
    assert table == set()
    assert reported() == before


# -- changing it, and being stopped -----------------------------------------------------------


def test_back_in_the_table_are_the_rows_that_were_there(filled: MemoryStore) -> None:
    before = rows(filled.path)
    filled.set_topics("memory")
    filled.set_topics("table")
    assert rows(filled.path) == before
    assert filled.verify()["failures"] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("after", [1, 3, 9])
def test_killed_on_the_way_out_it_says_so_adds_nothing_and_goes_on(
    filled: MemoryStore, key_file: Path, after: int
) -> None:
    before = hashes(filled.path)
    killed(filled, key_file, "memory", after)
    left = rows(filled.path)
    assert left
    assert filled.settings().topics_unfinished
    assert any("memory_topics" in one for one in filled.verify()["failures"])
    filled.add_many([MemoryDraft("Written in between.", topics=("subject 1",))], embed=False)
    assert rows(filled.path) == left
    filled.set_topics("memory")
    assert traces(filled.path, before) == set()
    assert not filled.settings().topics_unfinished
    assert filled.verify()["failures"] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("after", [1, 4])
def test_killed_on_the_way_back_no_topic_is_found_by_half_and_it_goes_on(
    filled: MemoryStore, key_file: Path, after: int
) -> None:
    before = rows(filled.path)
    filled.set_topics("memory")
    killed(filled, key_file, "table", after)
    assert 0 < len(rows(filled.path)) < len(before)
    assert filled.settings().topics_unfinished
    assert filled.topic_hash("subject 1") is None
    assert found(filled, "subject 2") == set()
    assert filled.verify()["failures"] == []
    filled.set_topics("table")
    assert rows(filled.path) == before
    assert found(filled, "subject 2") == had(filled, "subject 2") != set()


def test_stopped_on_the_way_back_it_can_be_taken_out_again(filled: MemoryStore) -> None:
    before = hashes(filled.path)
    filled.set_topics("memory")
    with stopped(after=2) as stop:
        filled.set_topics("table", progress=stop)
    filled.set_topics("memory")
    assert traces(filled.path, before) == set()
    assert filled.verify()["failures"] == []


def test_each_transaction_changes_a_few_rows_and_lets_others_write(filled: MemoryStore) -> None:
    before, most, moments = rows(filled.path), 0, 0

    def look(name: str, done: int, total: int | None) -> None:
        nonlocal before, most, moments
        now = rows(filled.path)
        most, before, moments = max(most, len(before ^ now)), now, moments + 1
        with closing(connect(filled.path)) as connection:
            connection.execute("pragma busy_timeout = 0")
            connection.execute("begin immediate")
            connection.execute("rollback")

    filled.set_topics("memory", progress=look)
    assert most <= BATCH
    filled.set_topics("table", progress=look)
    assert most <= 3 * BATCH
    assert moments > 16


# -- others who have the vault open -----------------------------------------------------------


@pytest.mark.sampled(0)
def test_another_process_and_a_member_with_the_vault_open_follow_the_setting(
    filled: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    hers = tmp_path / "keys" / "hers.key"
    filled.keys.share("work", MemoryStore.introduce(filled.path, "Alice", key_file=hers)[0])
    reported = {
        bytes.fromhex(filled.topic_hash(topic, "work") or "") for topic in ("lanterns", "harbour")
    }
    with writer(filled.path, key_file) as his, writer(filled.path, hers) as alice:
        both = {his("Before."), alice("Before, too.")}
        assert found(filled, "harbour") == both
        filled.set_topics("memory", progress=lambda *_: both.add(his("Meanwhile.")))
        both |= {his("After."), alice("After, too.")}
        assert rows(filled.path) == set()
        assert filled.set_topics("memory")
        assert traces(filled.path, reported) == set()
        assert had(filled, "harbour") == both

        def look(name: str, done: int, total: int | None) -> None:
            both.update({his("On the way back."), alice("On the way back, too.")})
            assert found(filled, "harbour") == set(), "all or nothing"

        filled.set_topics("table", progress=look)
        both |= {his("Back."), alice("Back, too.")}
        assert found(filled, "harbour") == had(filled, "harbour") == both
    assert filled.verify()["failures"] == []


def test_a_new_key_and_a_change_of_the_setting_at_once_end_as_each_alone(
    filled: MemoryStore, key_file: Path
) -> None:
    with MemoryStore.open(filled.path, key_file=key_file) as other:
        moments = iter(range(1_000))

        def rotate(name: str, done: int, total: int | None) -> None:
            if next(moments) == 1:
                other.keys.rotate("work")

        filled.set_topics("memory")
        filled.set_topics("table", progress=rotate)
        assert found(filled, "subject 3") == had(filled, "subject 3") != set()
        assert filled.verify()["failures"] == []
        before, moments = hashes(filled.path), iter(range(1_000))

        def clear(name: str, done: int, total: int | None) -> None:
            if next(moments) == 3:
                other.set_topics("memory")

        filled.keys.rotate("work", progress=clear)
        assert rows(filled.path) == set()
        assert filled.verify()["failures"] == []
        filled.set_topics("memory")
        assert traces(filled.path, before) == set()


def test_an_import_that_began_before_writes_no_hash_after(
    filled: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    notes, changed = tmp_path / "notes", []
    notes.mkdir()
    for number in range(150):
        (notes / f"{number}.md").write_text(f"---\ntags: [harbour]\n---\nBoat {number}.\n")

    def change(name: str, done: int, total: int | None) -> None:
        if done > 1 and not changed:
            changed.append(filled.set_topics("memory"))

    with MemoryStore.open(filled.path, key_file=key_file) as other:
        report = other.import_paths([notes], embed=False, progress=change)
    assert changed == [True]
    assert report.imported == 150
    assert rows(filled.path) == set()
    assert filled.verify()["failures"] == []
