"""Whether words occur, answered from keyed hashes, and which words begin with some letters."""

from __future__ import annotations

from time import perf_counter

import pytest
from typing_commands import run

from memory_store.errors import BadInputError
from memory_store.records import MemoryDraft
from memory_store.scopes import NOTHING, Scope
from memory_store.store import MemoryStore

NOTES = (
    MemoryDraft("The spare keys hang in the boathouse.", title="Spare keys"),
    MemoryDraft("Boathouses are built of larch, and number 4711 leaks."),
    MemoryDraft("def reconcile_ledger(rows):\n    return sorted(rows)\n", type="code"),
    MemoryDraft("Das Bootshaus hat einen Schlüssel.", collection="lake"),
)


@pytest.fixture(scope="module")
def filled(module_store: MemoryStore) -> MemoryStore:
    module_store.add_many(NOTES)
    return module_store


@pytest.mark.parametrize(
    ("term", "memories"),
    [
        ("boathouse", 2),  # by stems
        ("BOATHOUSES", 2),
        ("spare key", 1),
        ("key spare", 0),
        ("larch boathouse", 0),  # both are there, and not side by side
        ("reconcile_ledger", 1),
        ("ledger", 1),
        ("Schlüssel", 1),
        ("zeppelin", 0),
    ],
)
def test_a_term_exists_where_memories_hold_its_words_side_by_side(
    filled: MemoryStore, term: str, memories: int
) -> None:
    (found,) = filled.exists(term)
    assert (found.exists, found.memories, found.opened) == (memories > 0, memories, 0)


@pytest.mark.parametrize(
    ("term", "there", "opened"),
    [
        ("boathouses", True, 0),
        ("Boathouse", True, 0),
        ("boathoused", False, 0),  # its stem is there, and nobody spells it so
        ("reconcile_ledger", True, 1),
        ("spare key", False, 1),  # it says keys
        ("Spare Keys", True, 1),
        ("4711", True, 1),  # a lexicon has no numbers
        ("zeppelin", False, 0),
    ],
)
def test_exact_confirms_the_spelling_and_says_what_it_opened(
    filled: MemoryStore, term: str, there: bool, opened: int
) -> None:
    (found,) = filled.exists(term, exact=True)
    assert (found.exists, found.opened) == (there, opened)


def test_collections_narrow_it_and_a_member_asks_of_theirs_alone(filled: MemoryStore) -> None:
    assert not filled.exists("boathouse", collections=["lake"])[0].exists
    ids = {name: one for one, name in filled.collections.names().items()}
    lake = Scope.of([ids["lake"]])
    member = filled.limited_to(lake)
    assert [one.exists for one in member.exists("boathouse", "Bootshaus")] == [False, True]
    assert [one.word for one in member.words("bo")] == ["bootshaus"]
    searching = filled.limited_to(lake, readable=NOTHING)
    assert searching.exists("Bootshaus")[0].exists
    assert searching.words("bo") == []
    with pytest.raises(BadInputError, match="exact"):
        searching.exists("Bootshaus", exact=True)


def test_words_that_begin_so_come_with_how_many_memories_hold_them(filled: MemoryStore) -> None:
    assert [(one.word, one.memories) for one in filled.words("boat")] == [
        ("boathouse", 1),
        ("boathouses", 1),
    ]
    assert filled.words("SCHLÜ")[0].word == "schlüssel"
    assert len(filled.words(limit=1)) == 1
    assert filled.words("zzz") == []


@pytest.mark.parametrize("term", ["", "???", "  "])
def test_a_term_without_a_word_is_refused(filled: MemoryStore, term: str) -> None:
    with pytest.raises(BadInputError, match="term"):
        filled.exists(term)


def test_it_is_answered_at_once(filled: MemoryStore) -> None:
    """Within a millisecond on an idle machine; the median, with room for a busy one."""
    filled.exists("boathouse")
    taken = []
    for _ in range(21):
        begun = perf_counter()
        filled.exists("boathouse")
        taken.append(perf_counter() - begun)
    assert sorted(taken)[10] < 0.02


def test_the_command_answers_and_its_status_says_whether_all_are_there(
    filled: MemoryStore,
) -> None:
    key_file = filled.path.parents[1] / "keys" / "notes.key"
    asked = ["exists", str(filled.path), "boathouse", "--key-file", str(key_file)]
    found = run(*asked)
    assert found.exit_code == 0, found.output
    assert found.output == "yes  boathouse  2 memories hold its words\n"
    missing = run(*asked, "zeppelin", "--exact")
    assert missing.exit_code == 1
    assert "no  zeppelin  0 memories hold its words · opened 0" in missing.output
