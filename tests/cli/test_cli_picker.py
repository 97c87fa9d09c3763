"""``search -i``: results while you type."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from typing_commands import run

from memory_store.cli.picker import Picked, pick
from memory_store.errors import BadInputError
from memory_store.records import SearchResponse
from memory_store.store import MemoryStore


@contextmanager
def typed(first: str, again: str = "") -> Iterator[None]:
    """Keys of a terminal: ``first``, then ``again`` and again until the picker is left."""
    left = threading.Event()
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        def press() -> None:
            keys.send_text(first)
            while again and not left.wait(0.1):
                keys.send_text(again)

        pressing = threading.Thread(target=press)
        pressing.start()
        try:
            yield
        finally:
            left.set()
            pressing.join()


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = make_store()
    store.add("The weir opens in March.", title="Weir")
    store.add("Bake rye at 240 degrees.", title="Bread")
    return store


def searched(store: MemoryStore) -> Callable[[str], SearchResponse]:
    return lambda query: store.search(query, mode="keyword")


def test_enter_picks_what_is_found_while_you_type(store: MemoryStore) -> None:
    (weir,) = (one.id for one in store.list() if one.title == "Weir")
    with typed("weir", "\r"):
        assert pick(searched(store), "") == Picked(weir, edit=False)
    with typed("", "\x05"):
        assert pick(searched(store), "weir") == Picked(weir, edit=True)


def test_escape_leaves_without_one(store: MemoryStore) -> None:
    with typed("weir", "\x04"):
        assert pick(searched(store), "") is None


def test_a_refused_query_can_be_mended(store: MemoryStore) -> None:
    asked: list[str] = []

    def refusing(query: str) -> Any:
        asked.append(query)
        if query.endswith("("):
            raise BadInputError("no such pattern", "query")
        return store.search(query, mode="keyword")

    with typed("weir(\x7f", "\r"):
        picked = pick(refusing, "")
    assert picked is not None
    assert asked[-1] == "weir"


def test_it_needs_a_terminal(store: MemoryStore, key_file: Any) -> None:
    answer = run("search", str(store.path), "--key-file", str(key_file), "-i")
    assert answer.exit_code == 2
    assert "-i needs a terminal" in answer.output
