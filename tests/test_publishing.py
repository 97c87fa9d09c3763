"""Publishing: once, whoever moved the copy away or took it to another vault."""

from __future__ import annotations

import pytest

from memory_store.errors import NotFoundError
from memory_store.scopes import Scope
from memory_store.store import MemoryStore


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
