"""Saved searches are few for a vault: a few actors do not take the places of all."""

from __future__ import annotations

import pytest

from memory_store.errors import BadInputError
from memory_store.records import search_request
from memory_store.store import MemoryStore

ASKED = search_request("weir")


def kept_by(store: MemoryStore, actor: str) -> int:
    """How many the actor has once they may keep no more."""
    for number in range(1_000):
        try:
            store.searches.save(actor, f"number {number}", ASKED)
        except BadInputError:
            return number
    raise AssertionError(f"{actor} keeps as many as they like")


@pytest.mark.once
def test_the_more_are_taken_the_fewer_another_actor_may_have_but_the_key_holder(
    store: MemoryStore,
) -> None:
    kept = [kept_by(store, f"actor {number}") for number in range(3)]
    assert kept[0] == 50 > kept[1] > kept[2]
    assert kept_by(store, "root") == 50
    store.searches.save("a fourth", "first", ASKED)
