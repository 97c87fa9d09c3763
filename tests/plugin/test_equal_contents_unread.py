"""Who may search and not read cannot confirm a guess of a whole text by writing it elsewhere.

What says the same is found once, and no memory is like its own copy. If that held of what is sealed
to the asker, their own memory would say whether a sealed one says the same to the last comma.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memory_store import access
from memory_store.access import Grants
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.scopes import Scope
from memory_store.search.recipes import RECIPES
from memory_store.store import MemoryStore

from .conftest import BEARER, Filled, Serve

SECRET, COPY, GUESS = (f"00000000-0000-4000-8000-00000000040{number}" for number in range(3))
TEXT = "The PIN of the vault is 4821."
GUESSES = (TEXT, "the pin of the Vault, is 4821")
"""Both have the same words in the same order; one is the text."""
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "keyword"},
    {"mode": "vector"},
    {"deep": True},
    {"rerank": False},
    {"explain": True},
    {"why": SECRET},
    {"q": "", "like": GUESS},
    {"q": "", "like": SECRET},
    {"q": "", "like": GUESS, "why": SECRET},
    {"q": "", "type": ["fact"]},
    {"limit": 1},
)
CLOCKS = {"milliseconds", "cpu_milliseconds", "leg_milliseconds", "next", "next_url"}


@pytest.mark.parametrize("where", ["elsewhere", "there"])
async def test_a_copy_of_a_sealed_text_is_found_as_any_other(
    filled: Filled, serve: Serve, tmp_path: Path, where: str
) -> None:
    answers = []
    for guess in GUESSES:
        path = tmp_path / f"{len(answers)}.db"
        new = {"key_file": filled.key_file, "embedder": os.environ["MEMORY_STORE_MODEL"]}
        with MemoryStore.create(path, **new)[0] as store:
            diary = store.collections.create("diary").id
            team = store.collections.create("team").id
            for one in (SECRET, COPY):
                store.add(TEXT, id=one, collection=diary, type="fact", created="2026-01-01")
        # in a collection of her own, which she reads; or in that one, where she may write
        allowed = {diary: ["hybrid-search"], team: ["hybrid-search", "hybrid-decrypt"]}
        allowed[diary if where == "there" else team].append("hybrid-write")
        settings = {"key-file": str(filled.key_file)}
        served = await serve(path, options={path.stem: settings})
        served.database = path.stem
        eve = served.by({"id": "root", "_r": {"a": ["view-instance"], "r": {path.stem: allowed}}})
        target = diary if where == "there" else team
        draft = {"id": GUESS, "text": guess, "type": "fact", "created": "2026-01-02"}
        added = await eve.send("POST", "/memories.json", {**draft, "collection": target})
        assert added.status_code == 201
        said = []
        for options in OPTIONS:
            found = await eve.send("POST", ".json", {"q": "pin vault", **options}, headers=BEARER)
            assert found.status_code == 200, found.text
            rows = found.json()["rows"]
            assert options.get("limit") or {row["id"] for row in rows} >= {SECRET, COPY, GUESS} - {
                options.get("like")
            }
            said.append(_without_clocks(found.json(), guess, diary, team))
        answers.append(said)
    assert answers[0] == answers[1]


def _without_clocks(found: Any, *random: str) -> Any:
    """An answer without times, names of files, and what the asker wrote."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {name: one for name, one in value.items() if name not in CLOCKS}
            return {name: cleaned(one) for name, one in kept.items()}
        return [cleaned(one) for one in value] if isinstance(value, list) else value

    rows = [{**row, "title": "", "preview": "", "passages": []} for row in found["rows"]]
    text = json.dumps(cleaned({**found, "rows": rows, "query_ms": None}), sort_keys=True)
    for number, one in enumerate(random):
        text = text.replace(one, f"random {number}")
    return text


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_no_ranking_counts_equal_sealed_texts_once(store: MemoryStore, recipe: str) -> None:
    """And a reader finds one of them, as ever."""
    secret, own = (store.collections.create(name).id for name in ("diary", "team"))
    for collection in (secret, secret, own, own):
        store.add(TEXT, collection=collection)
    asked = SearchRequest(query="pin vault", recipe=recipe)
    both, reader = Scope.of([secret, own]), Scope.of([own])
    found = access.search(store, Grants(search=both, decrypt=reader), asked)
    assert sorted(row.collection for row in found.rows) == ["", "", "team"]
    assert len(access.search(store, Grants(search=both, decrypt=both), asked).rows) == 1


def test_a_text_that_is_not_embedded_yet_shows_no_equal_one_elsewhere(store: MemoryStore) -> None:
    """A vector that it had from that one would: it would be near in meaning before the others."""
    secret, own = (store.collections.create(name).id for name in ("diary", "team"))
    store.add(TEXT, collection=own)
    store.add_many([MemoryDraft(one, collection=secret) for one in GUESSES], embed=False)
    asker = Grants(search=Scope.of([secret, own]), decrypt=Scope.of([own]))
    found = access.search(store, asker, SearchRequest(query="pin vault"))
    assert [row.vector_rank for row in found.rows if not row.collection] == [None, None]
