"""The next page over HTTP and in SQL: no row twice and none lost while others write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bs4 import BeautifulSoup

from memory_store.records import MemoryDraft

from .conftest import Served, soup


def write(served: Served, count: int, text: str = "tomatoes in row {}") -> None:
    """Another writer adds memories to the served vault."""
    store = served.store
    store.add_many(MemoryDraft(text.format(n), topics=("garden",)) for n in range(count))


def shown(page: BeautifulSoup) -> list[str]:
    """The addresses of the memories on a page."""
    ways = page.select(".hy-result h2 a, .hy-result h2 button")
    return [str(way.get("href", way.get("formaction"))).split("?")[0] for way in ways]


def path_of(url: str) -> str:
    return "/" + url.split("/", 3)[3]


async def test_next_url_is_short_and_leads_through_all_rows(served: Served) -> None:
    bob = served.by("bob")
    write(served, 20)
    whole = (await bob.get(".json?q=tomatoes&limit=32")).json()
    seen: list[str] = []
    url = f"{bob.base}.json?q=tomatoes&limit=5"
    while url:
        assert len(url) < 250
        page = (await bob.get(path_of(url) if url.startswith("http") else url)).json()
        seen += [row["id"] for row in page["rows"]]
        assert page["rows"][0]["rank"] == len(seen) - len(page["rows"]) + 1
        assert page["degraded"] == whole["degraded"]
        url = page["next_url"]
    assert seen == [row["id"] for row in whole["rows"]]


async def test_it_is_said_that_memories_were_added_between_two_pages(served: Served) -> None:
    bob = served.by("bob")
    write(served, 20)
    whole = (await bob.get(".json?q=tomatoes&limit=32")).json()
    first = (await bob.get(".json?q=tomatoes&limit=5")).json()
    write(served, 2, "many more tomatoes {}")
    second = (await bob.get(path_of(first["next_url"]) + "&limit=5")).json()
    assert second["degraded"][0].startswith("continue: the vault, or what ranks it, changed")
    assert second["rows"][0]["rank"] == 6
    page = soup(await bob.get(f"?q=tomatoes&limit=5&continue={first['next']}"))
    assert "changed since the page before" in page.text
    rest = (await bob.get(f".json?q=tomatoes&limit=32&continue={first['next']}")).json()
    shown_ids = {row["id"] for row in (*first["rows"], *rest["rows"])}
    assert shown_ids >= {row["id"] for row in whole["rows"]}


async def test_posted_queries_go_on_by_next(served: Served) -> None:
    bob = served.by("bob")
    write(served, 6)
    fields: dict[str, Any] = {"q": "tomatoes", "limit": 4}
    token = {"Authorization": "Bearer nothing"}
    seen: list[str] = []
    for _ in range(9):
        page = (await bob.send("POST", ".json", fields, headers=token)).json()
        assert page["next_url"] is None
        seen += [row["id"] for row in page["rows"]]
        fields["continue"] = page["next"]
        if page["next"] is None:
            break
    assert len(seen) == len(set(seen)) == 9


async def test_a_page_without_rows_leads_on_too(served: Served) -> None:
    bob = served.by("bob")
    write(served, 12, "tomatoes at great length " * 6 + "{}")
    empty = soup(await bob.get("?q=great+length&limit=5&budget=1"))
    assert not empty.select(".hy-result")
    assert "Nothing found" not in empty.text
    assert empty.select_one("a.hy-next") is not None


async def test_private_queries_are_leafed_through_by_posting(private: Served) -> None:
    write(private, 12)

    async def asked(path: str, fields: dict[str, str]) -> BeautifulSoup:
        answer = await private.submit(path, fields, follow_redirects=True)
        assert "tomatoes" not in str(answer.url)
        return soup(answer)

    first = await asked("", {"q": "tomatoes", "limit": "5"})
    button = first.select_one("button.hy-next")
    assert button["name"] == "continue"
    fields = {"q": "tomatoes", "limit": "5", "continue": button["value"]}
    second = await asked("", fields)
    assert len(shown(first)) == len(shown(second)) == 5
    assert not set(shown(first)) & set(shown(second))
    way = second.select_one(".hy-result h2 button")
    fields[way["name"]] = way["value"]
    opened = await asked(way["formaction"], fields)
    again = await private.get(opened.select_one(".hy-back a")["href"])
    assert shown(soup(again)) == shown(second)


@pytest.mark.parametrize("token", ["AQAAAAFNBZvi", "rubbish", "%F0%9F%8D%85", "A" * 9_000])
async def test_a_damaged_token_is_a_400_that_names_continue(served: Served, token: str) -> None:
    bob = served.by("bob")
    answer = await bob.get(f".json?q=tomatoes&continue={token}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "continue")
    assert (await bob.get(f"?q=tomatoes&continue={token}")).status_code == 400


async def test_sql_goes_on_by_the_same_token(served: Served) -> None:
    bob = served.by("bob")
    write(served, 8)
    first = (await bob.get(".json?q=tomatoes&limit=4")).json()
    sql = "select value ->> 'id' as id from json_each(hybrid_search('tomatoes', :options))"
    rows = await bob.sql(sql, options=json.dumps({"limit": 4, "continue": first["next"]}))
    assert len(rows) == 4
    assert not {row["id"] for row in rows} & {row["id"] for row in first["rows"]}


async def test_a_budget_and_facets_are_in_the_answer(served: Served) -> None:
    bob = served.by("bob")
    write(served, 12)
    page = (await bob.get(".json?q=tomatoes&limit=5&budget=30")).json()
    assert page["budget"]["limit"] == 30
    assert page["budget"]["spent"] <= 30
    assert {"counted_with", "skipped", "too_large"} < set(page["budget"])
    plain = (await bob.get(".json?q=tomatoes&limit=5")).json()
    assert "budget" not in plain
    assert sum(plain["facets"]["type"].values()) == 15
    assert plain["facets"]["topic"]["garden"] == 13


async def test_without_decrypt_facets_name_neither_topics_nor_collections(served: Served) -> None:
    page = (await served.by("alice").get(".json?q=tomatoes")).json()
    assert {name for name, counts in page["facets"].items() if counts} == {
        "type",
        "status",
        "created",
    }
