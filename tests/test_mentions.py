"""Unlinked mentions: what names a memory by its title without a link to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.actions.mentions import MOST_OPENED
from memory_store.records import MemoryDraft
from memory_store.scopes import Scope
from memory_store.store import MemoryStore


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = make_store()
    store.add("All about it", title="Heat pump", metadata={"aliases": ["the big blower"]})
    return store


def about(store: MemoryStore) -> str:
    return next(one.id for one in store.list(limit=500) if one.title == "Heat pump")


def named_by(store: MemoryStore) -> dict[str, str]:
    """Title of each memory that names it → the sentence."""
    return {one.title: one.around for one in store.links(about(store)).unlinked}


def test_a_text_that_names_it_is_a_mention_with_its_sentence(store: MemoryStore) -> None:
    store.add("It was cold. The **heat\npump** had stopped again. We rang.", title="Winter")
    store.add("The Big Blower is loud.", title="Noise")
    found = named_by(store)
    assert found.keys() == {"Winter", "Noise"}
    assert "heat" in found["Winter"]
    assert "It was cold" not in found["Winter"]
    assert found["Noise"] == "The Big Blower is loud."


@pytest.mark.parametrize(
    "text",
    [
        "We need [[Heat pump]] and the heat pump",
        "The [[heat pump manual]] is lost",
        "Heat pumps are heated pumps",
        "The pump gives heat",
        "Preheat pumping",
    ],
)
def test_links_other_words_and_other_names_are_none(store: MemoryStore, text: str) -> None:
    store.add(text, title="Other")
    assert named_by(store) == {}


def test_a_name_that_says_too_little_is_not_looked_for(store: MemoryStore) -> None:
    short = store.add("Words", title="Ox").id
    common = store.add("Words", title="This").id
    store.add("This ox is tired", title="Field")
    for one in (short, common):
        found = store.links(one)
        assert (found.unlinked, found.unlinked_opened) == ((), 0)


def test_a_bounded_number_is_opened_and_the_rest_is_counted(store: MemoryStore) -> None:
    drafts = [MemoryDraft(f"heat pump, day {n}") for n in range(MOST_OPENED + 3)]
    store.add_many(drafts, embed=False)
    found = store.links(about(store))
    assert (len(found.unlinked), found.unlinked_opened) == (MOST_OPENED, MOST_OPENED)
    assert found.unlinked_left == 3


def test_what_may_not_be_read_names_nothing(store: MemoryStore) -> None:
    store.collections.create("sealed")
    store.add("The heat pump of the neighbour", title="Gossip", collection="sealed")
    assert "Gossip" in named_by(store)
    ids = {one.name: one.id for one in store.collections.list()}
    seen = store.limited_to(Scope.of(one for name, one in ids.items() if name != "sealed"))
    found = seen.links(about(store))
    assert (found.unlinked, found.unlinked_opened, found.unlinked_left) == ((), 0, 0)


def test_the_command_lists_them(store: MemoryStore, key_file: Path) -> None:
    store.add("The heat pump had stopped.", title="Winter")
    given = ["links", str(store.path), about(store), "--key-file", str(key_file)]
    shown = run(*given)
    assert "Named without a link" in shown.output
    assert "The heat pump had stopped." in shown.output


def test_names_and_texts_made_to_be_slow_take_no_longer_than_others(
    make_store: Callable[..., MemoryStore],
) -> None:
    """Any writer may have made them; meanwhile the interpreter would do nothing else."""
    store = make_store()
    size = 80_000  # words of each text
    names = [f"{'eeee ' * 195}ffff", f"{'aaaa ' * 16_000}bbbb"]  # of which some are too long
    made = {"slow": "eeee " * 194 + "ffff ", "slower": "aaaa " * 15_999 + "bbbb "}
    said = {title: text * (5 * size // len(text)) for title, text in made.items()}
    said["as long"] = "cccc dddd " * (size // 2)
    store.add_many([MemoryDraft(text, title=title) for title, text in said.items()], embed=False)
    hostile = store.add("x", title=names[0], metadata={"aliases": [names[1]]}).id
    plain = store.add("x", title="dddd cccc dddd dddd").id

    def seconds(memory: str) -> float:
        began = time.process_time()
        assert not store.links(memory).unlinked
        return time.process_time() - began

    seconds(plain)
    assert seconds(hostile) < 10 * seconds(plain) + 0.5
