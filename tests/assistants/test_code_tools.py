"""The tools that read repositories: offered where there is source code, within their budgets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from injections import INJECTIONS, fields_with
from msgspec.structs import replace

from memory_store.access import Grants
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call, tools_of
from memory_store.errors import MemoryStoreError, NotFoundError
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore

BOXES = (
    "from keys import turn\n\n\nclass QuixoticBox:\n    def open(self, key):\n"
    "        first = turn(key)\n        return first\n"
)
NAMES = {"code_context", "code_outline", "code_symbols", "code_impact", "code_read"}


@pytest.fixture
def shop(store: MemoryStore) -> MemoryStore:
    """A vault with two files of source code, and a note."""
    files = {"boxes.py": BOXES, "keys.py": "def turn(key):\n    return key\n" + "# more\n" * 400}
    drafts = [
        MemoryDraft(text, type="code", ref=name, metadata={"language": "python"}, collection="shop")
        for name, text in files.items()
    ]
    store.add_many([*drafts, MemoryDraft("A note.", collection="notes")], embed=False)
    return store


def offered(assistant: Assistant) -> set[str]:
    return {tool.name for tool in tools_of(assistant)}


def test_they_are_offered_where_there_is_source_code_to_read(
    shop: MemoryStore, make_store: Any
) -> None:
    assert offered(Assistant(shop)) >= NAMES
    assert not offered(Assistant(make_store("other.db"))) & NAMES
    searcher = Assistant(shop, grants=Grants(search=EVERYTHING))
    assert not offered(searcher) & NAMES
    for name, given in {
        "code_context": {},
        "code_outline": {"file": "boxes.py"},
        "code_symbols": {"name": "turn"},
        "code_impact": {"of": "turn"},
        "code_read": {"file": "boxes.py"},
    }.items():
        with pytest.raises(NotFoundError, match="no source code in here"):
            call(searcher, name, given)
    shop.lock()
    assert not offered(Assistant(shop)) & NAMES


def test_a_repository_is_read_by_an_assistant(shop: MemoryStore) -> None:
    helper = Assistant(shop)
    assert "2 files" in call(helper, "code_context", {})["lines"][0]
    assert call(helper, "code_outline", {"file": "boxes.py"})["lines"] == [
        "boxes.py: python, 7 lines",
        "4-7 class QuixoticBox",
        "5-7   def open(self, key)",
        "imports keys.py",
    ]
    assert call(helper, "code_symbols", {"name": "turn"})["lines"] == [
        "keys.py:1-2 function turn: def turn(key)",
        "used in boxes.py:1,6 QuixoticBox.open",
    ]
    assert call(helper, "code_impact", {"of": "keys.py"})["lines"] == ["1 boxes.py"]
    found = call(helper, "code_read", {"file": "boxes.py:6", "whole": True})
    where = (found["file"], found["line"], found["end_line"], found["opened"])
    assert where == ("boxes.py", 5, 7, 1)
    assert found["text"].startswith("    def open(self, key):\n")
    again = call(helper, "code_read", {"file": "boxes.py", "if_changed": found["hash"]})
    assert (again["unchanged"], "text" in again) == (True, False)


@pytest.mark.parametrize("budget", [150, 300])
def test_an_answer_keeps_its_budget_and_says_where_to_go_on(shop: MemoryStore, budget: int) -> None:
    helper, place, lines = Assistant(shop), "keys.py", 0
    while place:
        found = call(helper, "code_read", {"file": place, "budget": budget})
        assert len(json.dumps(found, separators=(",", ":"))) <= 4 * budget
        lines, place = lines + len(found["text"].splitlines()), found.get("next", "")
    assert lines == 402
    for name, given in {"code_context": {}, "code_outline": {"file": "keys.py"}}.items():
        found = call(helper, name, {**given, "budget": budget})
        assert len(json.dumps(found, separators=(",", ":"))) <= 4 * budget


def test_code_that_instructs_is_data_like_any_other(shop: MemoryStore) -> None:
    before = [(one.name, one.description, one.schema()) for one in tools_of(Assistant(shop))]
    lines = [f"# {line}" for text in INJECTIONS for line in text.splitlines()]
    text = "\n".join(["from keys import turn", *lines, "def lift(key):", *lines, "    turn(key)"])
    draft = MemoryDraft(text, type="code", ref="lift.py", metadata={"language": "python"})
    shop.add_many([replace(draft, collection="shop")], embed=False)
    helper = Assistant(shop)
    answers = [
        call(helper, name, given)
        for name, given in {
            "code_context": {},
            "code_outline": {"file": "lift.py"},
            "code_symbols": {"name": "lift"},
            "code_impact": {"of": "keys.py"},
            "code_read": {"file": "lift.py"},
        }.items()
    ]
    for text in INJECTIONS:
        words = text.splitlines()[0]
        assert {name for one in answers for name in fields_with(words, one)} <= {"lines", "text"}
        assert fields_with(words, answers[-1])
    assert before == [(one.name, one.description, one.schema()) for one in tools_of(helper)]


def test_a_pattern_finds_code_and_says_where_it_stands(shop: MemoryStore) -> None:
    helper = Assistant(shop)
    for given in (
        {"query": "turn($KEY)", "mode": "structural", "language": "python"},
        {"query": "/turn\\(k.y\\)/", "mode": "literal"},
    ):
        (first, *_) = call(helper, "memory_search", {**given, "format": "json"})["results"]
        place, _, symbol = first["place"].partition(" ")
        assert (place, symbol) == ("boxes.py:1-7", "QuixoticBox.open")
        assert "first = turn(key)" in first["preview"]
        assert call(helper, "code_read", {"file": place})["text"] == BOXES.rstrip()


REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("code_symbols", {"name": "QuixoticBocks"}, "there is: QuixoticBox"),
    ("code_symbols", {"name": "Locker.open"}, "there is: QuixoticBox.open"),
    ("code_impact", {"of": "turn", "hops": 99}, "hops"),
    ("code_impact", {"of": "boxs.py"}, "there is: boxes.py"),
    ("code_outline", {"file": "/etc/passwd"}, "there is: boxes.py, keys.py .*was imported"),
    ("code_read", {"file": "boxes.py:70"}, "boxes.py has 7 lines"),
    ("code_read", {"file": "boxes.py:last"}, "keys.py:40-80 would|boxes.py:40-80 would"),
    ("code_read", {"file": "boxes.py", "budget": 3}, "budget: a whole number of at least 150"),
    (
        "code_context",
        {"collection": ["attic"]},
        "there is none named 'attic'; memory_start lists them",
    ),
    (
        "memory_search",
        {"query": "fn main() {}", "mode": "structural", "language": "python"},
        "cannot be read as python; it can be as",
    ),
    (
        "memory_search",
        {"query": "turn($KEY)", "mode": "structural", "language": "vim"},
        "no patterns in 'vim'; there is: .*python.* a literal search finds text",
    ),
    ("memory_search", {"query": "/turn(/", "mode": "literal"}, r"put \\ before it"),
    (
        "memory_search",
        {"query": "turn", "mode": "structure"},
        "mode: 'structure' is not one of hybrid, keyword, vector, literal, structural",
    ),
    ("memory_search", {"q": "turn"}, "q: no such field; there are query, "),
    ("memory_search", {"query": 7}, "query: text expected"),
    ("memory_search", {"status": "o'er"}, "status: .*o'er.* is not one of open, done, all"),
    ("memory_read", {}, "ids: needed"),
    ("memory_read", {"ids": []}, "ids: needed, not empty"),
]


def test_a_refusal_names_what_is_called_alike_of_what_it_may_read_alone(
    shop: MemoryStore,
) -> None:
    shop.add_many(
        [
            MemoryDraft(
                "class HiddenSafe:\n    pass\n",
                type="code",
                ref="hidden.py",
                metadata={"language": "python"},
                collection="hidden",
            )
        ],
        embed=False,
    )
    readable = Scope.of(one.id for one in shop.collections.list() if one.name != "hidden")
    searcher = Assistant(shop, grants=Grants(search=EVERYTHING, decrypt=readable))
    for name, given in (
        ("code_outline", {"file": "hiden.py"}),
        ("code_symbols", {"name": "HiddenSave"}),
        ("code_impact", {"of": "hiden.py"}),
        ("code_read", {"file": "hiddn.py:1"}),
    ):
        for asker, names in ((Assistant(shop), True), (searcher, False)):
            with pytest.raises(NotFoundError) as raised:
                call(asker, name, given)
            said = set(re.findall(r"[\w.]+", str(raised.value)))
            assert bool(said & {"hidden.py", "HiddenSafe"}) is names, (name, said)


def test_a_refusal_names_what_would_work(shop: MemoryStore) -> None:
    for name, given, advice in REFUSALS:
        with pytest.raises(MemoryStoreError, match=advice):
            call(Assistant(shop), name, given)
