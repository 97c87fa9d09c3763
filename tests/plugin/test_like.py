"""More like this over HTTP and in SQL: by id alone, and within what the asker may search."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served

TOMATOES = "00000000-0000-4000-8000-000000000001"
DIARY = "00000000-0000-4000-8000-00000000000d"
MISSING = "00000000-0000-4000-8000-0000000000ff"


@pytest.fixture
async def shared(filled: Filled, serve: Serve) -> Served:
    """Beside the open collection a closed one, which carol alone may read."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Tomatoes want water, she said", title="A call", ref="call.md")
        store.collections.create("diary", owner="dora")
        store.collections.change_members("diary", {"carol": "reader"})
        store.add("The tomatoes want water", title="Diary", collection="diary", id=DIARY)
    options = filled.options(allow=ALLOW)
    return await serve(filled.path, options=options)


async def rows(asked: Served, address: str) -> list[dict[str, Any]]:
    response = await asked.get(address)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["rows"]
    return found


async def test_the_api_finds_memories_like_one(shared: Served) -> None:
    bob = shared.by("bob")
    found = await rows(bob, f".json?like={TOMATOES}")
    assert found[0]["title"] == "A call"
    assert TOMATOES not in {row["id"] for row in found}
    both = await rows(bob, f".json?like={TOMATOES}&q=archive&limit=2")
    assert {row["title"] for row in both} == {"A call", "The database"}
    assert (await bob.get(f".csv?like={TOMATOES}")).text.count("A call") == 1


async def test_the_page_lists_them_without_a_query(shared: Served) -> None:
    page = await shared.by("bob").get(f"?like={TOMATOES}")
    assert page.status_code == 200
    assert "A call" in page.text


async def test_a_searcher_gets_ids_and_ranks(shared: Served) -> None:
    found = await rows(shared.by("alice"), f".json?like={TOMATOES}")
    whole = await rows(shared.by("bob"), f".json?like={TOMATOES}")
    assert found[0]["id"] == whole[0]["id"]
    assert not any(row["title"] or row["preview"] or row["topics"] for row in found)


@pytest.mark.parametrize("actor", ["alice", "bob"])
async def test_what_the_asker_may_not_search_is_as_unknown_as_what_is_not_there(
    shared: Served, actor: str
) -> None:
    asked = shared.by(actor)
    answers = [await asked.get(f".json?like={name}") for name in (DIARY, MISSING)]
    reported = [answer.json() for answer in answers]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert reported[0]["error"] == reported[1]["error"].replace(MISSING, DIARY)
    assert reported[0]["parameter"] == "like"
    assert DIARY not in {row["id"] for row in await rows(asked, f".json?like={TOMATOES}")}
    page = await asked.get(f"?like={DIARY}")
    assert page.status_code == 400
    assert "Diary" not in page.text


async def test_a_member_finds_across_collections(shared: Served) -> None:
    found = await rows(shared.by("carol"), f".json?like={DIARY}")
    assert DIARY not in {row["id"] for row in found}


async def test_a_ref_names_no_memory_here(shared: Served) -> None:
    refused = await shared.by("bob").get(".json?like=call.md")
    assert refused.status_code == 400
    assert "like: there is no memory" in refused.json()["error"]


async def test_sql_takes_it_with_an_empty_query(shared: Served) -> None:
    options = json.dumps({"like": TOMATOES, "limit": 1})
    (row,) = await shared.by("bob").sql("select hybrid_search('', :o) found", o=options)
    assert [one["title"] for one in json.loads(row["found"])] == ["A call"]


@pytest.mark.parametrize(
    "options", [{"like": TOMATOES, "limit": 1}, {"type": ["note"]}, {"limit": 3}]
)
async def test_the_table_of_an_empty_query_has_the_rows_of_its_json(
    shared: Served, options: dict[str, Any]
) -> None:
    bob, given = shared.by("bob"), json.dumps(options)
    (row,) = await bob.sql("select hybrid_search('', :o) found", o=given)
    ids = [one.get("id") for one in json.loads(row["found"]) if "error" not in one]
    assert bool(ids) == (options != {"limit": 3})
    table = await bob.sql("select id from hybrid_search('', :o)", o=given)
    assert [one["id"] for one in table] == ids


async def test_the_next_page_belongs_to_this_memory(shared: Served) -> None:
    bob = shared.by("bob")
    first = (await bob.get(f".json?like={TOMATOES}&limit=1")).json()
    rest = await rows(bob, f".json?like={TOMATOES}&limit=1&continue={first['next']}")
    assert rest[0]["id"] != first["rows"][0]["id"]
    other = await bob.get(f".json?like={first['rows'][0]['id']}&continue={first['next']}")
    assert other.status_code == 400
