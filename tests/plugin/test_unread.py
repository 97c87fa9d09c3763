"""What a searcher is answered rests on the index alone: nothing that only opened text says.

Two vaults hold the same memories under the same ids. Their indexes say the same; their folders,
sources, metadata, lengths and spellings do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_reranker import build as build_tiny_reranker

from memory_store import access
from memory_store.access import ALL_GRANTS, Grants
from memory_store.records import MemoryDraft, search_request
from memory_store.scopes import EVERYTHING
from memory_store.search.recipes import RECIPES
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

from .conftest import ALLOW, Serve, Served

SEARCHER = Grants(search=EVERYTHING)
OWN_WAY = {
    "milliseconds",
    "cpu_milliseconds",
    "leg_milliseconds",
    "next",
    "next_url",
}  # of every answer: a clock's and a key's
QUERIES = ("pump ledger", "pump", '"pump repair"', "ledger -water")
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"deep": True},
    {"reranker": "maxsim"},
    {"rerank": False},
    {"mode": "keyword"},
    {"min_score": 0.5},
)

Pair = tuple[MemoryStore, MemoryStore]


def memory(number: int, *, plain: bool) -> MemoryDraft:
    """The same stems in another spelling, of a file in another folder and with other metadata."""
    said = ("pump repair in the ledger", "pumps, repairs: in the Ledgers!")[plain or number % 2]
    odd = ("ledger-pump.md", "tests/pump_ledger.md", "ledger.pumps.md")[number % 3]
    name = "Pumps Ledger.md" if plain else odd
    return MemoryDraft(
        f"{said} number{number}{' and' * (0 if plain else 200)}",
        title="Pumps" if plain else "pump",
        id=f"00000000-0000-4000-8000-0000000000{number:02}",
        ref=f"{number}/{name}" if plain else name if number % 3 else f"pump/{number}/{name}",
        source="one" if plain else "pump",
        type="note",
        topics=("pump",),
        created="2024-05-06T00:00:00Z",
        updated="2024-05-06T00:00:00Z",
        metadata={} if plain else {"pump": "ledger"},
    )


@pytest.fixture(params=["default", "strict"])
def pair(
    request: pytest.FixtureRequest,
    make_store: Callable[..., MemoryStore],
    model: Path,
    private_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Pair:
    """Two vaults whose indexes say the same, on a machine with a calibrated reranker."""
    folder = private_folders / "reranker" / "ms-marco-TinyBERT-L-2-v2"
    build_tiny_reranker(folder)
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(folder))
    stores = []
    for plain in (True, False):
        store = make_store(f"{'one' if plain else 'two'}.db", profile=request.param)
        store.add_many([memory(n, plain=plain) for n in range(12)], embed=False)
        stores.append(store)
    return stores[0], stores[1]


def reported(value: Any) -> Any:
    """An answer without what differs from one search to the next."""
    if isinstance(value, dict):
        return {name: reported(item) for name, item in value.items() if name not in OWN_WAY}
    return [reported(item) for item in value] if isinstance(value, list) else value


def answered(store: MemoryStore, grants: Grants, query: str, options: dict[str, Any]) -> Any:
    about = {"explain": True, "why": "00000000-0000-4000-8000-000000000003"}
    response = access.search(store, grants, search_request(query, **{**options, **about}))
    return reported(
        json.loads(json.dumps(response.as_dict(), default=str).replace(str(store.path), ""))
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_answer_to_a_searcher_follows_from_opened_text(pair: Pair, recipe: str) -> None:

    found = differ = 0
    for query in QUERIES:
        for options in OPTIONS:
            if options.get("deep") and query != "pump ledger":
                continue  # a deep search needs two words
            asked = {"recipe": recipe, **options}
            same = [answered(store, SEARCHER, query, asked) for store in pair]
            assert same[0] == same[1], (query, options)
            read = [answered(store, ALL_GRANTS, query, asked) for store in pair]
            found += len(same[0]["rows"])
            differ += scores(read[0]) != scores(read[1])
    assert found
    assert differ, "the vaults differ for those who read"


def scores(answer: Any) -> list[Any]:
    return [(row["id"], row["score"]) for row in answer["rows"]]


@pytest.mark.in_a_file
@pytest.mark.parametrize("recipe", RECIPES)
def test_sql_shows_a_searcher_no_more(pair: Pair, recipe: str) -> None:
    found = []
    for store in pair:
        connection = sqlite3.connect(store.path)
        register(connection, lambda _, store=store: StoreAndGrants(store, SEARCHER))
        sql = "select hybrid_search(?, ?), hybrid_explain(?, ?)"
        options = json.dumps({"recipe": recipe})
        (row,) = connection.execute(sql, (QUERIES[0], options) * 2).fetchall()
        connection.close()
        found.append([reported(json.loads(text.replace(str(store.path), ""))) for text in row])
    assert found[0] == found[1]
    assert len(found[0][0]) == 10


@pytest.mark.in_a_file
async def test_pages_and_json_show_a_searcher_no_more(
    pair: Pair, serve: Serve, key_file: Path
) -> None:
    settings = {"key-file": str(key_file), "allow": ALLOW}
    served = await serve(
        *(store.path for store in pair), options={store.path.stem: settings for store in pair}
    )
    for recipe in RECIPES:
        query = f"q=pump+ledger&explain=1&recipe={recipe}"
        answers = []
        for store in pair:
            alice = Served(served.datasette, store.path.stem).by("alice")
            response = await alice.get(f".json?{query}")
            assert response.status_code == 200
            answers.append(reported(json.loads(response.text.replace(str(store.path), ""))))
            assert (await alice.get(f"?{query}")).status_code == 200
        assert own_words(answers[0]) == own_words(answers[1])


def own_words(answer: Any) -> Any:
    """What an endpoint answered, less the database's own name in it."""
    return json.loads(json.dumps(answer).replace("/two", "/one").replace('"two', '"one'))


def test_what_a_searcher_goes_without_is_said(pair: Pair) -> None:
    def said(grants: Grants, **options: Any) -> str:
        return " ".join(
            access.search(pair[0], grants, search_request('"pump repair"', **options)).degraded
        )

    for recipe in RECIPES:
        lines = said(SEARCHER, recipe=recipe)
        assert ("rules for files" in lines) is (recipe in {"qmd", "prx"})
        assert ("a reranker reads texts" in lines) is (recipe not in {"code", "prx"})
        assert "matched by their stems" in lines
        assert "hybrid-decrypt" in lines
        assert "without sealed" not in lines
        assert "hybrid-decrypt" not in said(ALL_GRANTS, recipe=recipe)
    assert "reranker reads" not in said(SEARCHER, rerank=False)
    assert "reranker reads" not in said(SEARCHER, mode="keyword")
