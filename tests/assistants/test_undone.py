"""What an assistant did is taken back as a whole, and nothing that a person did on top of it."""

from __future__ import annotations

from typing import Any

import pytest
from typing_commands import run

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.errors import NotFoundError
from memory_store.records import Undone
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore


@pytest.fixture
def helper(store: MemoryStore) -> Assistant:
    return Assistant(store.limited_to(EVERYTHING), "write", "helper")


def added(helper: Assistant, text: str) -> str:
    (one,) = call(helper, "memory_add", {"memories": [{"text": text}]})["memories"]
    return str(one["id"])


def update(helper: Assistant, id_: str, **change: Any) -> str:
    return str(call(helper, "memory_update", {"id": id_, **change})["id"])


def texts(store: MemoryStore) -> dict[str, str]:
    return {one.id: one.text for one in store.list(superseded=True)}


def undone(store: MemoryStore) -> Undone:
    return store.undo_all_of("helper")


def test_everything_that_it_did_is_taken_back_at_once(
    store: MemoryStore, helper: Assistant
) -> None:
    edited, done, replaced, deleted = (
        store.add(text, type="task", topics=["home"]).id
        for text in ("The rent is 900", "Call", "Bins on Monday", "The keel is cracked")
    )
    before = {one.id: one for one in store.list()}
    update(helper, edited, text="The rent is 950")
    update(helper, edited, text="The rent is 1,000", add_topics=["money"])
    update(helper, done, done=True)
    successor = update(helper, replaced, supersede="Bins on Tuesday")
    update(helper, deleted, delete=True, version=1)
    new = added(helper, "A new note")
    update(helper, new, title="Of its own")
    gone = added(helper, "Added and deleted again")
    update(helper, gone, delete=True, version=1)

    told = undone(store)
    assert texts(store) == {id_: one.text for id_, one in before.items()}
    for one in store.list():
        was = before[one.id]
        assert (one.type, one.topics, one.valid_to) == (was.type, was.topics, None)
        assert one.superseded_by is None
    assert {one.id for one in told.memories} == {*before}
    assert {*told.removed} == {successor, new}
    assert told.left == ()
    with pytest.raises(NotFoundError, match="'helper' wrote, changed or deleted nothing"):
        undone(store)
    assert store.trash.restore(new)[0].text == "A new note", "what was taken back is in the trash"


def test_what_others_did_stays(store: MemoryStore, helper: Assistant) -> None:
    other = Assistant(store.limited_to(EVERYTHING), "write", "other")
    mine, theirs = store.add("Mine").id, added(other, "Theirs")
    store.edit(mine, text="Mine, edited")
    update(other, theirs, text="Theirs, edited")
    own = added(helper, "Its own")
    told = undone(store)
    assert (told.memories, told.removed, told.left) == ((), (own,), ())
    assert texts(store) == {mine: "Mine, edited", theirs: "Theirs, edited"}


@pytest.mark.parametrize("last", ["edit", "delete"])
def test_what_a_person_changed_afterwards_is_left_and_named(
    store: MemoryStore, helper: Assistant, last: str
) -> None:
    old, new = store.add("The rent is 900").id, added(helper, "Bins on Tuesday")
    update(helper, old, text="The rent is 950")
    if last == "edit":
        store.edit(old, text="The rent is 975")
        store.edit(new, text="Bins on Wednesday")
    else:
        store.delete(old)
        store.delete(new)
    before = texts(store)
    other = added(helper, "And one more")
    told = undone(store)
    assert texts(store) == before
    assert told.removed == (other,)
    assert {*told.left} == ({old, new} if last == "edit" else {old})


def test_of_two_edits_around_a_persons_only_the_last_is_taken_back_and_that_is_told(
    store: MemoryStore, helper: Assistant
) -> None:
    id_ = store.add("One").id
    update(helper, id_, text="Two")
    store.edit(id_, text="Three")
    update(helper, id_, text="Four")
    told = undone(store)
    assert texts(store) == {id_: "Three"}
    assert told.left == (id_,)


def test_what_a_person_wrote_comes_back_where_the_assistant_deleted_it(
    store: MemoryStore, helper: Assistant
) -> None:
    id_ = added(helper, "Bins on Tuesday")
    store.edit(id_, text="Bins on Wednesday")
    update(helper, id_, delete=True, version=2)
    assert undone(store).left == (id_,)
    assert texts(store) == {id_: "Bins on Wednesday"}


def test_a_successor_that_a_person_changed_keeps_its_place(
    store: MemoryStore, helper: Assistant
) -> None:
    old = store.add("The rent is 900").id
    new = update(helper, old, supersede="The rent is 950")
    store.edit(new, text="The rent is 955")
    told = undone(store)
    assert {*told.left} == {old, new}
    assert store.get(old).superseded_by == new


def test_an_edit_that_the_trash_knows_nothing_of_counts_as_a_persons(
    store: MemoryStore, helper: Assistant
) -> None:
    id_ = added(helper, "The rent is 900")
    store.edit(id_, text="The rent is 975")
    store.trash.empty()
    assert undone(store).left == (id_,)
    assert texts(store) == {id_: "The rent is 975"}


def test_commands_list_and_undo_it(store: MemoryStore, helper: Assistant, key_file: Any) -> None:
    def typed(*words: str) -> str:
        result = run(*words, "--key-file", str(key_file))
        assert result.exit_code == 0, result.output
        return result.output

    old, both = store.add("The rent is 900").id, store.add("Bins on Monday").id
    new = added(helper, "A new note")
    update(helper, old, text="The rent is 950")
    update(helper, both, text="Bins on Tuesday")
    store.edit(both, text="Bins on Wednesday")
    listed = typed("trash", "list", str(store.path), "--by", "helper").splitlines()
    assert [line.split()[0] for line in listed] == [both[:8], old[:8]]
    assert "edited by helper" in listed[0]
    said = typed("undo", str(store.path), "--by", "helper").splitlines()
    assert said == [
        f"{old[:8]} The rent is 900 is back, as version 3",
        f"{new[:8]} is in the trash: helper had added it",
        f"{both[:8]} is left as it is, for it was changed again afterwards: memory-store "
        f"trash list {both[:8]}",
    ]
