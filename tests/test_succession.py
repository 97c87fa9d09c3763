"""What was replaced, or is over, is found when it is asked for, and names what took its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_store import MemoryStore
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import MemoryDraft
from memory_store.scopes import Scope

OLD = "The gate code is 4711 at the boathouse"
NEW = "The gate code is 2205 at the boathouse"


@pytest.fixture
def store(tmp_path: Path, tiny_model: Path, private_folders: Path) -> Iterator[MemoryStore]:
    opened, _ = MemoryStore.create(
        tmp_path / "notes.db", key_file=tmp_path / "keys" / "k", embedder=str(tiny_model)
    )
    with opened:
        yield opened


def found(store: MemoryStore, query: str = "gate code", **options: object) -> set[str]:
    ids = {row.id for row in store.search(query, **options).rows}
    listed = {one.id for one in store.list(**options)}
    assert ids == listed, "a list by the same filters has the same memories"
    return ids


def test_a_superseded_memory_is_found_only_when_it_is_asked_for(store: MemoryStore) -> None:
    old = store.add(OLD, created="2024-02-01", topics=["boat"])
    new = store.supersede(old.id, NEW)

    assert found(store) == {new.id}
    assert found(store, superseded=True) == {old.id, new.id}
    assert found(store, as_of="2024-06-01") == {old.id}
    assert found(store, as_of="2023") == set()
    assert found(store, as_of="2024-06-01", superseded=True) == {old.id}


def test_it_names_its_successor_wherever_it_is_shown(store: MemoryStore) -> None:
    old = store.add(OLD, created="2024-02-01")
    new = store.supersede(old.id, NEW)

    row = store.search("gate code 4711", as_of="2024-06").rows[0]
    assert (row.id, row.superseded_by) == (old.id, new.id)
    assert store.get(old.id).superseded_by == new.id
    assert store.get(old.id).valid_to == new.created
    assert store.get(new.id).supersedes == old.id
    store.delete(new.id)
    assert store.get(old.id).superseded_by is None, "there is no such memory any more"


def test_what_stood_in_its_place_is_read_as_of_a_day(store: MemoryStore) -> None:
    first = store.add(OLD, created="2024-02-01")
    second = store.add(NEW, created="2024-05-01", valid_from="2024-05-01", supersedes=first.id)
    store.edit(first.id, valid_to="2024-05-01")
    third = store.add("The gate code is 9", created="2024-09-01", supersedes=second.id)
    store.edit(second.id, valid_to="2024-08-01")

    def stood(one: str, as_of: str) -> str:
        return store.succession(one, as_of)[-1].id

    for one in (first.id, second.id, third.id):
        assert stood(one, "2024-03") == first.id
        assert stood(one, "2024-06-01") == second.id
        assert stood(one, "now") == third.id
        for nothing in ("2023", "2024-08-15"):
            with pytest.raises(NotFoundError, match=f"as_of: nothing stood .* on {nothing}"):
                store.succession(one, nothing)
    with pytest.raises(BadInputError, match="as_of"):
        store.succession(first.id, "soon")


def test_adding_what_supersedes_another_ends_it_in_the_same_write(store: MemoryStore) -> None:
    old = store.add(OLD, created="2024-02-01")
    new = store.add(NEW, supersedes=old.id, valid_from="2025-01-01")

    assert store.get(old.id).valid_to == "2025-01-01T00:00:00Z"
    assert found(store, as_of="2024-12-31") == {old.id}
    assert found(store, as_of="2025-01-01") == {new.id}


def test_both_may_come_in_one_request_and_the_request_twice(store: MemoryStore) -> None:
    ids = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]
    drafts = [
        MemoryDraft(OLD, id=ids[0], created="2024-02-01"),
        MemoryDraft(NEW, id=ids[1], created="2025-02-01", supersedes=ids[0]),
    ]
    first = store.add_once(drafts)
    assert [one.unchanged for one in first] == [False, False]
    assert [one.unchanged for one in store.add_once(drafts)] == [True, True]
    assert found(store) == {ids[1]}
    assert store.get(ids[0]).superseded_by == ids[1]


def test_what_ended_may_be_valid_again(store: MemoryStore) -> None:
    old = store.add(OLD, created="2024-02-01")
    new = store.supersede(old.id, NEW)
    store.edit(old.id, valid_to="")

    assert found(store) == {old.id, new.id}
    assert store.get(old.id).superseded_by is None


def test_what_holds_from_a_day_on_is_found_as_of_that_day(store: MemoryStore) -> None:
    """Also if it was written later: it was valid then."""
    one = store.add(OLD, valid_from="2020-01-01", valid_to="2021-01-01")

    assert found(store) == set()
    assert found(store, as_of="2020-06-01") == {one.id}
    assert found(store, as_of="2019-06-01") == set()
    assert found(store, as_of="2021-06-01") == set()


def test_why_says_that_it_is_no_longer_valid(store: MemoryStore) -> None:
    old = store.add(OLD, created="2024-02-01", valid_to="2024-05-01")
    store.add(NEW)

    now = store.search("gate code", why=old.id).why
    assert now is not None
    assert "superseded:0 leaves it out: it was valid until 2024-05-01" in now.reason
    then = store.search("gate code", as_of="2024-01", why=old.id).why
    assert then is not None
    assert "as_of:2024-01 leaves it out: it was written on 2024-02-01" in then.reason


def test_a_moment_that_is_none_is_refused(store: MemoryStore) -> None:
    with pytest.raises(BadInputError, match="as_of"):
        store.search("gate", as_of="yesteryear")


def test_no_memory_of_a_collection_that_the_writer_may_not_use_is_ended(
    store: MemoryStore,
) -> None:
    store.collections.create("work")
    names = {one.name: one.id for one in store.collections.list()}
    old = store.add(OLD, collection="work")
    limited = store.limited_to(Scope.of([names["personal"]]))
    unread = store.limited_to(
        Scope.of(names.values()), disclosed=Scope.of([names["personal"]]), writer="one"
    )

    limited.add("Forged", supersedes=old.id)
    unread.add("Forged too", supersedes=old.id, collection=names["personal"])
    assert store.get(old.id).valid_to is None
    assert store.get(old.id).version == 1


def test_a_successor_in_a_hidden_collection_is_not_named(store: MemoryStore) -> None:
    store.collections.create("work")
    names = {one.name: one.id for one in store.collections.list()}
    old = store.add(OLD, collection="work")
    store.add(NEW, collection="personal", supersedes=old.id)

    seen = store.limited_to(Scope.of([names["work"]]))
    assert store.get(old.id).superseded_by is not None
    assert seen.get(old.id).superseded_by is None
    (row,) = seen.search("gate code", superseded=True).rows
    assert row.superseded_by is None


def test_what_an_assistant_wrote_can_be_listed(store: MemoryStore) -> None:
    mine = store.add("The gate squeaks", metadata={"by": "claude-code"})
    store.add("The gate is green", metadata={"by": "codex"})
    store.add("The gate is heavy")

    assert found(store, "gate", by="claude-code") == {mine.id}
