"""``topic:home`` finds ``home/attic`` over HTTP, in SQL, on the page, by tools and by commands."""

from __future__ import annotations

import json

from typing_commands import run

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.records import search_request
from memory_store.store import MemoryStore

from .conftest import Filled, Serve, Served, soup

TEXT = "The ladder stands under the roof."


def filled_attic(filled: Filled) -> str:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("The ladder of the homework.", topics=["homework"])
        attic = store.add(TEXT, topics=["home/attic"]).id
        store.searches.save("root", "ladders", search_request("ladder", topic="home"))
        found = call(Assistant(store, "read", "helper"), "memory_search", {"query": "topic:home"})
        assert TEXT in json.dumps(found)
        assert "homework" not in json.dumps(found)
    return attic


async def test_every_surface_finds_what_lies_below_a_topic(filled: Filled, serve: Serve) -> None:
    attic = filled_attic(filled)
    served: Served = await serve(filled.path, options=filled.options())
    root = served.by("root")
    for asked in ("?q=topic:home+ladder", "?q=ladder&topic=home", "?q=topic:home"):
        answer = (await root.get(f".json{asked}")).json()
        assert [row["id"] for row in answer["rows"]] == [attic], asked
        page = soup(await root.get(asked))
        assert len(page.select(".hy-result")) == 1, asked
    listed = (await root.get("/memories.json?topic=home")).json()
    assert [row["id"] for row in listed["rows"]] == [attic]
    for sql in (
        "select id from hybrid_search('topic:home ladder', 5)",
        "select value ->> 'id' id from json_each(hybrid_search('topic:home ladder', 5))",
    ):
        assert await root.sql(sql) == [{"id": attic}]
    key = ["--key-file", str(filled.key_file)]
    for words in (
        ["search", str(filled.path), "ladder", "--topic", "home", "--json"],
        ["searches", "run", str(filled.path), "ladders", "--json"],
    ):
        done = run(*words, *key)
        assert [row["id"] for row in json.loads(done.stdout)["rows"]] == [attic], done.output
