"""Every public action says which event of the audit trail it is, or that it is none."""

from __future__ import annotations

from typing import Any

import pytest

from memory_store.actions.action import Declared, action
from memory_store.errors import MemoryStoreError
from memory_store.store import Collections, Keys, MemoryStore, Trail
from memory_store.vault.audit_events import ACTIONS, FAILED_UNLOCK, IMPORT, LOCK, UNLOCK

PARTS = (MemoryStore, Collections, Keys, Trail)

NO_ACTIONS = {
    *("create", "open", "lock", "close"),  # the caller's events: it knows why
    *("introduce", "device_keys", "import_device_key"),  # need no key of the vault
    *("limited_to", "report_to", "search_through"),  # make no use of the vault
    "lend",  # to a process of our own, which is asked in the name of a search
    *("ask", "answer"),  # made of a search, and of `found_again` for what it found
}
"""Methods of the store that are no actions, each for its reason."""

BY_ITS_CALLER = {UNLOCK, FAILED_UNLOCK, LOCK, IMPORT}


def methods(part: type) -> dict[str, Any]:
    public = [name for name in dir(part) if not name.startswith("_")]
    found = {name: getattr(part, name) for name in public}
    return {name: one for name, one in found.items() if callable(one)}


def declarations(part: type) -> dict[str, Declared]:
    kept = {name: one for name, one in methods(part).items() if name not in _exempt(part)}
    return {name: one.declared for name, one in kept.items()}


def _exempt(part: type) -> set[str]:
    return NO_ACTIONS if part is MemoryStore else set()


@pytest.mark.parametrize("part", PARTS)
def test_every_public_action_names_its_event_or_says_that_it_has_none(part: type) -> None:
    undeclared = {name for name, one in methods(part).items() if not hasattr(one, "declared")}
    assert undeclared == _exempt(part)
    assert {one.event for one in declarations(part).values()} <= {None, *ACTIONS}


def test_every_event_comes_from_an_action_or_from_a_caller_who_knows_more() -> None:
    named = {one.event for part in PARTS for one in declarations(part).values()}
    assert named - {None} == set(ACTIONS) - BY_ITS_CALLER


def test_what_writes_memories_or_members_has_an_event() -> None:
    silent = {
        name
        for part in (MemoryStore, Collections)
        for name, one in declarations(part).items()
        if one.writes and one.event is None
    }
    assert silent == {"import_paths", "run_import", "reindex", "set_topics"}


def test_an_action_says_both() -> None:
    for missing in ({}, {"event": None}, {"writes": True}):
        with pytest.raises(TypeError):
            action(**missing)  # type: ignore[arg-type]


def test_the_trail_learns_of_an_action_under_any_name(store: MemoryStore) -> None:
    heard: list[tuple[str, int, int]] = []

    class Renamed(MemoryStore):
        fetch = MemoryStore.get

    kept = store.add("The spare key is under the stone.")
    renamed = Renamed.__new__(Renamed)
    renamed._opened = store._opened
    store.report_to(lambda *event: heard.append(event))
    assert renamed.fetch(kept.id) == store.get(kept.id)
    assert heard == [("read", 1, 1)] * 2


def test_a_refused_action_is_no_event(store: MemoryStore) -> None:
    heard: list[object] = []
    store.report_to(lambda *event: heard.append(event))
    with pytest.raises(MemoryStoreError):
        store.get("no such memory")
    assert heard == []
