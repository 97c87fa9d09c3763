"""Changing memories: all of a request or none, twice the same once, and no update is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.errors import BadInputError, BadRowsError, ConflictError, NotFoundError
from memory_store.importing.drafts import METADATA_DEPTH
from memory_store.records import TYPES, MemoryChange, MemoryDraft
from memory_store.scopes import Scope
from memory_store.store import MemoryStore
from memory_store.text.canonical import canonical_text

ROUNDS = 12  # additions by each of several writers at once


def test_several_memories_are_changed_together(store: MemoryStore) -> None:
    first, second = store.add("One"), store.add("Two", topics=("old", "kept"))
    edits = [
        MemoryChange(first.id, text="Uno", valid_from="2024-05-01"),
        MemoryChange(second.id, add_topics=("#New",), remove_topics=("OLD",)),
    ]
    one, two = store.edit_many(edits)
    assert (one.text, one.version, one.valid_from) == ("Uno", 2, "2024-05-01T00:00:00Z")
    assert two.topics == ("kept", "New")
    assert store.edit(one.id, valid_from="").valid_from is None


@pytest.mark.parametrize(
    ("edit", "refusal"),
    [
        ({"expected_version": 7}, ConflictError),
        ({"type": "opinion"}, BadRowsError),
        ({"text": " "}, BadRowsError),
        ({"title": "x" * 1_001}, BadRowsError),
        ({"valid_to": "someday"}, BadRowsError),
        ({"id": str(uuid.uuid4())}, NotFoundError),
    ],
)
def test_one_wrong_change_stops_all_of_them(
    store: MemoryStore, edit: dict[str, object], refusal: type[Exception]
) -> None:
    first, second = store.add("One"), store.add("Two")
    wrong = MemoryChange(**{"id": second.id, "title": "Changed", **edit})  # type: ignore[arg-type]
    with pytest.raises(refusal) as raised:
        store.edit_many([MemoryChange(first.id, title="Changed", collection="brand new"), wrong])
    assert store.get(first.id) == first
    assert store.get(second.id) == second
    assert "brand new" not in [info.name for info in store.collections.list()]
    if isinstance(raised.value, ConflictError):
        assert raised.value.ids == (second.id,)
    if isinstance(raised.value, BadRowsError):
        assert [problem.row for problem in raised.value.problems] == [1]


def test_what_would_end_before_it_begins_is_refused_by_both_names(store: MemoryStore) -> None:
    backwards = {"valid_from": "2024-06-01T00:00:00.5Z", "valid_to": "2024-06-01"}
    said = "valid_to: 2024-06-01T00:00:00Z is before valid_from, 2024-06-01T00:00:00.500000Z"
    one = store.add("One", valid_from=backwards["valid_from"])
    for write in (
        lambda: store.add("Two", **backwards),
        lambda: store.add_many([MemoryDraft("Two", **backwards)]),
        lambda: store.add_once([MemoryDraft("Two", **backwards)]),
        lambda: store.edit(one.id, valid_to=backwards["valid_to"]),
    ):
        with pytest.raises(BadInputError) as raised:
            write()
        assert (str(raised.value), raised.value.parameter) == (said, "valid_to")
    assert store.list() == [one]
    moment = store.edit(one.id, valid_to=backwards["valid_from"])
    assert moment.valid_to == moment.valid_from


def test_what_a_successor_ended_before_it_began_can_still_be_changed(store: MemoryStore) -> None:
    old = store.add("From next year on", valid_from="2100-01-01")
    store.supersede(old.id, "From now on")
    again = store.edit(old.id, text="From then on", topics=("plans",))
    assert again.valid_to is not None
    assert again.valid_from is not None
    assert again.valid_to < again.valid_from
    assert store.edit(old.id, valid_to="2101-01-01").valid_to == "2101-01-01T00:00:00Z"


def test_every_wrong_row_is_named(store: MemoryStore) -> None:
    drafts = [MemoryDraft("x", type="opinion"), MemoryDraft("fine"), MemoryDraft("", id="no")]
    with pytest.raises(BadRowsError) as raised:
        store.add_once(drafts)
    named = [(one.row, one.parameter) for one in raised.value.problems]
    assert named == [(0, "type"), (2, "id"), (2, "text")]
    assert store.list() == []


def test_a_refused_change_names_all_that_is_wrong_with_it(store: MemoryStore) -> None:
    one = store.add("One", title="First")
    with pytest.raises(BadInputError, match=r"^type: no type 'opinion'.*; valid_to: 'someday' is"):
        store.edit(one.id, type="opinion", valid_to="someday")
    with pytest.raises(BadInputError, match="no memory without text: delete it instead"):
        store.edit(one.id, text=" ")
    assert store.get(one.id) == one


def nested(levels: int) -> dict[str, Any]:
    value: Any = "bottom"
    for _ in range(levels - 1):
        value = [value]
    return {"deep": value}


def deeper(calls: int, then: Callable[[], Any]) -> Any:
    """What ``then`` gives, so many calls further down, as in a server."""
    return deeper(calls - 1, then) if calls else then()


def test_metadata_is_nested_as_deep_as_it_can_be_read_wherever_that_is(store: MemoryStore) -> None:
    kept = store.add("A heron", metadata=nested(METADATA_DEPTH))
    (row,) = deeper(350, lambda: store.search("heron", mode="keyword")).rows
    assert row.id == kept.id
    assert deeper(350, lambda: store.get(kept.id)).metadata == nested(METADATA_DEPTH)
    for levels in (METADATA_DEPTH + 1, 480, 900, 2_000, 100_000):
        for write in (
            lambda deep: store.add("A bittern", metadata=deep),
            lambda deep: store.edit(kept.id, metadata=deep),
        ):
            with pytest.raises(BadInputError) as refused:
                write(nested(levels))
            assert refused.value.parameter == "metadata"
    assert store.get(kept.id) == kept


def test_memories_are_deleted_together_or_not_at_all(store: MemoryStore) -> None:
    first, second = store.add("One"), store.add("Two")
    with pytest.raises(NotFoundError):
        store.delete_many([first.id, str(uuid.uuid4())])
    assert store.get(first.id) == first
    store.delete_many([first.id, second.id])
    assert store.list() == []


def test_a_memory_of_another_content_is_not_overwritten(store: MemoryStore) -> None:
    kept = store.add("The first")
    drafts = [MemoryDraft("A new one"), MemoryDraft("Another", id=kept.id)]
    with pytest.raises(ConflictError) as raised:
        store.add_once(drafts)
    assert raised.value.ids == (kept.id,)
    assert store.list() == [kept]


def test_an_id_twice_in_one_request_is_refused(store: MemoryStore) -> None:
    same = str(uuid.uuid4())
    with pytest.raises(BadInputError, match="row 0 has the same id"):
        store.add_once([MemoryDraft("One", id=same), MemoryDraft("Two", id=same)])


def test_a_memory_is_published_once(store: MemoryStore) -> None:
    store.collections.create("team")
    draft = {"title": "Lease", "topics": ("home",), "metadata": {"page": 3}, "ref": "private/a.md"}
    original = store.add("Signed in May", created="2024-05-01", source="/home/ada", **draft)
    copy = store.publish(original.id, "team")
    assert (copy.collection, copy.version) == ("team", 1)
    assert copy.id != original.id
    for name in ("text", "title", "topics", "metadata", "created", "type"):
        assert getattr(copy, name) == getattr(original, name)
    assert (copy.ref, copy.source) == (None, None)
    assert store.get(original.id) == original
    store.edit(original.id, text="Signed in June")
    assert store.publish(original.id, "team") == copy
    with pytest.raises(BadInputError, match="in that collection itself"):
        store.publish(copy.id, "team")
    with pytest.raises(NotFoundError):
        store.publish(original.id, "nowhere")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda text: bool(canonical_text(text).strip())
)
DRAFTS = st.builds(
    MemoryDraft,
    text=TEXTS,
    title=st.none() | TEXTS,
    type=st.none() | st.sampled_from(TYPES),
    topics=st.lists(TEXTS, max_size=3).map(tuple),
    created=st.none() | st.dates().map(str),
    valid_to=st.none() | st.dates().map(str),
    metadata=st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=5), max_size=2),
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(DRAFTS, min_size=1, max_size=4))
def test_what_is_sent_twice_is_added_once(store: MemoryStore, drafts: list[MemoryDraft]) -> None:
    drafts = [replace(draft, id=str(uuid.uuid4())) for draft in drafts]
    first = store.add_once(drafts)
    again = store.add_once(drafts)
    assert not any(addition.unchanged for addition in first)
    assert all(addition.unchanged for addition in again)
    assert [addition.memory for addition in again] == [addition.memory for addition in first]


def test_two_threads_that_add_at_once_lose_nothing(store: MemoryStore) -> None:
    """Without a version a change is made again on top of the one that came first."""
    memory = store.add("A list of tags")
    failures: list[Exception] = []

    def tag(name: str) -> None:
        try:
            for number in range(ROUNDS):
                store.edit(memory.id, add_topics=(f"{name}{number}",))
        except Exception as error:  # noqa: BLE001 - shown below
            failures.append(error)

    writers = [threading.Thread(target=tag, args=(name,)) for name in ("left", "right")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert len(store.get(memory.id).topics) == 2 * ROUNDS


WRITING = """
import sys
from memory_store.errors import ConflictError
from memory_store.store import MemoryStore

path, key_file, model, memory, name, rounds = sys.argv[1:]
with MemoryStore.open(path, key_file=key_file, embedder=model) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(rounds)):
"""
TAGGING = """
        store.edit(memory, add_topics=(f"{name}{number}",))
"""
APPENDING = """
        while True:
            read = store.get(memory)
            text = f"{read.text}\\n{name} {number}"
            try:
                store.edit(memory, text=text, expected_version=read.version)
            except ConflictError:
                continue
            break
"""


def processes_at_once(writing: str, names: Sequence[str], *arguments: str) -> list[int]:
    """How processes ended that wrote so, again and again, from the same moment on."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITING + writing, *arguments, name, str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return [writer.wait(300) for writer in writers]


def test_processes_that_tag_at_once_all_get_their_turn(
    store: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    memory, names = store.add("A list of tags"), ("left", "right", "middle")
    where = (str(store.path), str(key_file), str(tiny_model), memory.id)
    assert processes_at_once(TAGGING, names, *where) == [0, 0, 0]
    assert len(store.get(memory.id).topics) == 3 * ROUNDS


@pytest.mark.sampled(0)
def test_two_processes_that_append_at_once_lose_no_line(
    store: MemoryStore, key_file: Path, tiny_model: Path
) -> None:
    """Each reads, appends and writes, and begins again where the version has moved on."""
    memory = store.add("A diary")
    where = (str(store.path), str(key_file), str(tiny_model), memory.id)
    assert processes_at_once(APPENDING, ("left", "right"), *where) == [0, 0]
    kept = store.get(memory.id)
    lines = kept.text.splitlines()
    assert sorted(lines[1:]) == sorted(f"{n} {i}" for n in ("left", "right") for i in range(ROUNDS))
    assert kept.version == 1 + 2 * ROUNDS


def test_two_that_add_the_same_at_once_add_it_once(
    store: MemoryStore, make_store: Callable[..., MemoryStore], key_file: Path, tiny_model: Path
) -> None:
    other = MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model))
    drafts = [MemoryDraft(f"Number {number}", id=str(uuid.uuid4())) for number in range(20)]
    reported: list[bool] = []

    def add(through: MemoryStore) -> None:
        for draft in drafts:
            reported.append(through.add_once([draft])[0].unchanged)

    threads = [threading.Thread(target=add, args=(one,)) for one in (store, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert sorted(reported) == [False] * 20 + [True] * 20
    assert len(store.list()) == 20


def test_a_copy_that_was_moved_where_one_sees_nothing_is_published_anew(
    store: MemoryStore,
) -> None:
    store.collections.create("team")
    hidden = store.collections.create("diary").id
    original = store.add("Signed in May")
    first = store.publish(original.id, "team")
    store.edit(first.id, collection="diary")
    mine = store.limited_to(Scope.of({info.id for info in store.collections.list()} - {hidden}))
    second = mine.publish(original.id, "team")
    assert second.id != first.id
    assert mine.publish(original.id, "team") == second


def test_a_deleted_copy_can_be_published_again(store: MemoryStore) -> None:
    store.collections.create("team")
    original = store.add("Signed in May")
    store.delete(store.publish(original.id, "team").id)
    assert store.publish(original.id, "team").text == "Signed in May"


def test_nothing_is_published_where_one_sees_nothing(store: MemoryStore) -> None:
    store.collections.create("team")
    original = store.add("Signed in May")
    personal = store.limited_to(Scope.of([store.collections.list()[0].id]))
    with pytest.raises(NotFoundError, match=r"no collection 'team'$"):
        personal.publish(original.id, "team")
