"""Members of collections: who they are, what closes a collection, and what opens it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_store.errors import BadInputError, NotFoundError, TamperedError
from memory_store.scopes import Scope
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.members import ROLES


def sealed_settings(store: MemoryStore) -> dict[str, object]:
    """What stands under the seal of the vault's settings."""
    keys = store._opened.vault.keyring.of(VAULT_SCOPE)
    with sqlite3.connect(store.path) as connection:
        revision, sealed = connection.execute(
            "select cast(value as integer), sealed from vault_settings where name = 'settings'"
        ).fetchone()
    place = keys.place("vault_settings", "sealed", "settings", revision)
    return dict(json.loads(bytes(keys.unseal("head", place, sealed))))


def test_a_new_collection_is_open_and_its_first_member_closes_it(store: MemoryStore) -> None:
    made = store.collections.create("work")
    assert store.collections.members("work") == store.collections.membership()[made.id] == {}
    store.collections.change_members("work", {"alice": "owner"})
    store.collections.change_members("work", {"bob": "reader"})
    assert store.collections.members("work") == {"alice": "owner", "bob": "reader"}
    assert store.collections.membership()[made.id] == {"alice": "owner", "bob": "reader"}


def test_a_collection_that_is_made_for_a_person_is_theirs(store: MemoryStore) -> None:
    made = store.collections.create("diary", owner="alice")
    assert store.collections.members(made.id) == {"alice": "owner"}


def test_the_first_member_of_a_collection_owns_it(store: MemoryStore) -> None:
    store.collections.create("work")
    with pytest.raises(BadInputError, match="owner") as refusal:
        store.collections.change_members("work", {"bob": "reader"})
    assert refusal.value.parameter == "role"
    together = store.collections.change_members("work", {"bob": "reader", "alice": "owner"})
    assert together == {"bob": "reader", "alice": "owner"}


def test_a_closed_collection_keeps_an_owner(store: MemoryStore) -> None:
    store.collections.create("work", owner="alice")
    store.collections.change_members("work", {"bob": "writer"})
    for change in (
        lambda: store.collections.change_members("work", remove=["alice"]),
        lambda: store.collections.change_members("work", {"alice": "reader"}),
    ):
        with pytest.raises(BadInputError, match="keeps an owner"):
            change()
    assert store.collections.change_members("work", {"bob": "owner"}, ["alice"]) == {"bob": "owner"}


def test_opening_a_collection_takes_all_its_members_away(store: MemoryStore) -> None:
    store.collections.create("work", owner="alice")
    store.collections.open("work")
    assert store.collections.members("work") == {}


@pytest.mark.parametrize("actor", ["", "x" * 201, "two\nlines", "bell\x07"])
def test_an_actor_is_a_few_printable_characters(store: MemoryStore, actor: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        store.collections.create("work", owner=actor)
    assert refusal.value.parameter == "actor"
    assert [info.name for info in store.collections.list()] == ["personal"]


def test_unknown_roles_members_and_collections_are_refused(store: MemoryStore) -> None:
    store.collections.create("work", owner="alice")
    with pytest.raises(BadInputError, match="owner, writer, reader, searcher"):
        store.collections.change_members("work", {"bob": "king"})
    with pytest.raises(NotFoundError, match="no member 'bob'"):
        store.collections.change_members("work", remove=["bob"])
    with pytest.raises(NotFoundError):
        store.collections.members("play")


def test_roles_grant_what_they_say() -> None:
    def granted(name: str) -> str:
        role = ROLES[name]
        kinds = ("search", "decrypt", "write", "manage")
        return " ".join(kind for kind in kinds if getattr(role, kind))

    assert {name: granted(name) for name in ROLES} == {
        "owner": "search decrypt write manage",
        "writer": "search decrypt write",
        "reader": "search decrypt",
        "searcher": "search",
    }


def test_another_process_follows_at_once(store: MemoryStore, key_file: Path) -> None:
    with MemoryStore.open(store.path, key_file=key_file) as other:
        made = store.collections.create("work", owner="alice")
        assert other.collections.membership()[made.id] == {"alice": "owner"}
        other.collections.change_members("work", {"bob": "reader"})
        assert store.collections.members("work") == {"alice": "owner", "bob": "reader"}
        known = store.collections.membership()
        assert store.collections.membership() is known, "made anew only when the settings changed"


def test_members_survive_rename_and_reopening(store: MemoryStore, key_file: Path) -> None:
    store.collections.create("work", owner="alice")
    store.collections.rename("work", "job")
    store.lock()
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert again.collections.members("job") == {"alice": "owner"}


@pytest.mark.in_a_file
def test_a_vault_without_members_is_written_as_before(store: MemoryStore) -> None:
    store.collections.create("work")
    assert "members" not in sealed_settings(store)
    store.collections.change_members("work", {"alice": "owner"})
    assert "members" in sealed_settings(store)
    store.collections.open("work")
    assert "members" not in sealed_settings(store)


@pytest.mark.in_a_file
def test_no_one_who_writes_the_file_puts_older_members_back(
    store: MemoryStore, key_file: Path
) -> None:
    store.collections.create("work", owner="mallory")
    with sqlite3.connect(store.path) as connection:
        (old,) = connection.execute(
            "select sealed from vault_settings where name = 'settings'"
        ).fetchall()
    store.collections.change_members("work", {"alice": "owner"}, ["mallory"])
    store.lock()
    with sqlite3.connect(store.path) as connection:
        connection.execute("update vault_settings set sealed = ? where name = 'settings'", old)
    connection.close()
    with pytest.raises(TamperedError):
        MemoryStore.open(store.path, key_file=key_file)


def test_the_index_is_not_made_anew_for_members(store: MemoryStore) -> None:
    store.collections.create("work")
    store.add("pump", collection="work")
    before = store.search_context().snapshot
    store.collections.change_members("work", {"alice": "owner"})
    assert store.search_context().snapshot is before


def test_in_a_limited_view_only_its_members_are_known(store: MemoryStore) -> None:
    work = store.collections.create("work", owner="alice")
    store.collections.create("diary", owner="bob")
    view = store.limited_to(Scope.of([work.id]))
    assert view.collections.membership() == {work.id: {"alice": "owner"}}
    view.collections.change_members("work", {"carol": "reader"})
    assert store.collections.members("work") == {"alice": "owner", "carol": "reader"}
