"""A search is read once, whichever surface asks it."""

from __future__ import annotations

from typing import Any

import pytest
from typing_commands import run

from memory_store.errors import BadInputError
from memory_store.records import OPTION_NAMES, OPTIONS, read_request, request, search_request
from memory_store.search.query import language

from .conftest import Filled, Served


class Counted(dict[str, Any]):
    """The options of a request, of which each reading looks up the query once."""

    read = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.read += name == "q"
        return super().get(name, default)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """How many requests were read."""
    counted = Counted(OPTIONS)
    monkeypatch.setattr(request, "OPTIONS", counted)
    return counted


@pytest.mark.parametrize("actor", ["root", "alice"])
@pytest.mark.parametrize(
    "path", [".json?q=tomatoes&limit=3", ".csv?q=tomatoes", "?q=tomatoes&type=note&deep="]
)
async def test_a_server_reads_a_search_once(
    served: Served, readings: Counted, actor: str, path: str
) -> None:
    assert (await served.by(actor).get(path)).status_code == 200
    assert readings.read == 1


@pytest.mark.parametrize("actor", ["root", "alice"])
@pytest.mark.parametrize("options", ["3", '{"limit": 3, "type": "note"}'])
async def test_sql_reads_a_search_once(
    served: Served, readings: Counted, actor: str, options: str
) -> None:
    await served.by(actor).sql("select hybrid_search('tomatoes', :options) found", options=options)
    assert readings.read == 1


def test_the_command_reads_a_search_once(filled: Filled, readings: Counted) -> None:
    words = ["search", str(filled.path), "tomatoes", "--type", "note", "--json"]
    done = run(*words, "--key-file", str(filled.key_file))
    assert done.exit_code == 0, done.output
    assert readings.read == 1


@pytest.mark.parametrize("actor", ["root", "alice"])
async def test_a_query_is_taken_apart_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, actor: str
) -> None:
    items: list[str] = []
    whole = language._items
    monkeypatch.setattr(language, "_items", lambda plain: items.append(plain) or whole(plain))
    assert (await served.by(actor).get(".json?q=tomatoes")).status_code == 200
    assert len(items) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": "many"}, "limit: must be a whole number of at least 1 and at most 32"),
        ({"limit": 33}, r"at most 32 \(deep: 100\)"),
        ({"deep": "1", "limit": "101"}, "limit: must be"),
        ({"limit": True}, "limit: must be"),
        ({"min_score": "nan"}, "min_score: must be a number between 0 and 1"),
        ({"budget_ms": 0}, "budget_ms: must be a whole number of at least 1"),
        ({"mode": "fuzzy"}, "mode: 'fuzzy' is not one of hybrid, keyword"),
        ({"rerank": "maybe"}, "rerank: 1 or 0 expected"),
        ({"topic": 3}, "topic: text or a list of texts expected"),
        ({"continue": 3}, "continue: text expected"),
        ({"meta": "colour"}, "meta: 'colour': expected KEY=VALUE"),
        ({"meta": "colour=red", "sealed": "yes"}, "meta: metadata is sealed"),
        ({"limti": 3}, "limti: no such search option; did you mean limit?"),
        ({"q": None}, "q: text expected"),
        ({"q": "x" * 8193}, "q: the query has 8,193 characters; at most 8,192"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_right(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message) as refusal:
        read_request(given)
    assert refusal.value.parameter in given


def test_every_spelling_of_a_search_makes_the_same_request() -> None:
    asked = search_request(
        "spare key", type="note", meta={"box": "3"}, rerank=False, continue_="t", limit=5
    )
    loose = {"q": "spare key", "type": ["note", ""], "meta": ["box=3"], "rerank": ["1", "off"]}
    assert read_request({**loose, "continue": "t", "limit": " 5 ", "topic": None}) == asked
    assert search_request("spare key", type=("note",), meta=[("box", "3")], no_rerank=True) == (
        search_request("spare key", type=["note"], meta=["box=3"], rerank=0)
    )


def test_every_option_says_what_it_is() -> None:
    assert all(OPTIONS[name].description for name in OPTION_NAMES)
