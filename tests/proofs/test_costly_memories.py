"""A memory that a member wrote to harm makes no search and no assistant wait.

It is read whenever it is found or listed, by everybody, in one process with all other requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

LONG = 300_000
SECONDS = 5  # of CPU for what takes well below one; each was minutes, and grew with the square
TEXTS = {
    "a heading that does not end": f"# {' ' * LONG}zebra",
    "a sender that does not end": f"From: zebra {'a' * LONG}",
    "a sender without an address": f"From: zebra {'a' * LONG}\nTo: a\nno more",
    "blank lines before a step": f"zebra\n{chr(10) * LONG}- [ ] gallop",
    "blank lines and no step": f"zebra\n{chr(10) * LONG}no more",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "asked",
    [
        lambda store: store.search("zebra", mode="keyword").rows,
        lambda store: call(Assistant(store), "tasks", {})["tasks"],
        lambda store: call(Assistant(store), "memory_start", {})["open_tasks"],
    ],
    ids=["searched", "listed", "begun with"],
)
def test_a_hostile_memory_is_shown_at_once(
    store: MemoryStore, text: str, asked: Callable[[MemoryStore], object]
) -> None:
    store.add_many([MemoryDraft(text, title="Zebra", type="task")], embed=False)
    started = time.process_time()
    assert asked(store)
    assert time.process_time() - started < SECONDS


def test_steps_are_found_after_blank_lines_and_in_lists(store: MemoryStore) -> None:
    text = "Move\n\n- [x] pack\n\n  * [ ] lift\n\t+ [X] carry\n-[ ] none\nword - [ ] none"
    moved = store.add(text, type="task")
    (task,) = call(Assistant(store), "tasks", {})["tasks"]
    assert task["steps"] == "2/3"
    allowed = Assistant(store, access="write")
    call(allowed, "memory_update", {"id": moved.id, "version": 1, "tick": [2]})
    assert store.get(moved.id).text == text.replace("* [ ] lift", "* [x] lift")
