"""A served vault whose owner takes topics out of the file, while it is open there."""

from __future__ import annotations

import pytest

from memory_store.store import MemoryStore

from .conftest import Filled, Served

JOINED = """
    select memory from memory_topics
    where lower(hex(topic)) = topic_hash('garden')
"""


@pytest.mark.in_a_file
async def test_joins_find_nothing_pages_stay_and_what_is_written_leaves_no_hash(
    served: Served, filled: Filled
) -> None:
    root = served.by("root")
    before = await root.sql(JOINED)
    assert len(before) == 1
    with MemoryStore.open(filled.path, key_file=filled.key_file) as owner:
        owner.set_topics("memory")
        new = {"text": "Prune the pear in winter.", "topics": ["garden"]}
        sent = await root.send("POST", f"{served.base}/memories.json", new)
        assert sent.status_code == 201
        assert await root.sql(JOINED) == []
        assert await root.sql("select count(*) n from memory_topics") == [{"n": 0}]
        assert await root.sql("select length(topic_hash('garden')) n") == [{"n": 32}]
        assert (await root.get("/notes/memory_topics")).status_code == 200
        assert (await root.get("/notes/memories?_facet=type")).status_code == 200
        searched = (await root.get(".json?q=pear&topic=garden&mode=keyword")).json()
        assert [row["topics"] for row in searched["rows"]] == [["garden"]]
        owner.set_topics("table")
        assert len(await root.sql(JOINED)) == 2
