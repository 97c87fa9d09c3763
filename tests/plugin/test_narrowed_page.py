"""Facets, chips and ways out: every link leads to as many results as it says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag

from memory_store.scopes import EVERYTHING

from .conftest import Served, soup


@pytest.fixture
async def garden(served: Served) -> Served:
    """A vault in which each facet has several values, asked by an actor who may read."""
    store = served.vault.use(EVERYTHING, creating=True)
    for number in range(1, 8):
        memory = store.add(
            f"Tomato plant number {number} wants a cane",
            title=f"Cane {number}",
            type="task" if number % 2 else "fact",
            topics=("garden", "canes") if number % 3 else ("greenhouse glass",),
            created=f"202{number % 4}-0{number}-01",
            collection="allotment" if number > 4 else None,
        )
        if number == 1:
            store.done(memory.id)
    return served.by("bob")


def count(page: BeautifulSoup) -> int:
    """How many results a page says there are: those that are certain, and those that may fit."""
    return sum(map(int, re.findall(r"\d+", page.select_one(".hy-opened strong").get_text())))


def links(page: BeautifulSoup, facet: str) -> dict[str, Tag]:
    values = page.select(f"section[aria-labelledby=facet-{facet}] .hy-value")
    return {value.span.find(string=True): value for value in values}


async def test_every_number_comes_true(garden: Served) -> None:
    page = soup(await garden.get("?q=tomato+cane&limit=32"))
    assert {one.get_text() for one in page.select(".hy-facet h2")} == {
        "Topics",
        "Type",
        "Collection",
        "Written",
        "Status",
    }
    for link in page.select("a.hy-value"):
        narrowed = soup(await garden.get(link["href"]))
        assert count(narrowed) == int(link.b.get_text()) == len(narrowed.select(".hy-result"))


async def test_several_values_of_a_facet_add_up_and_each_goes_again(garden: Served) -> None:
    page = soup(await garden.get("?q=tomato+cane&limit=32"))
    task = soup(await garden.get(links(page, "type")["task"]["href"]))
    fact = links(task, "type")["fact"]
    assert fact.b.get_text().startswith("+")
    both = soup(await garden.get(fact["href"]))
    assert count(both) == count(task) + int(fact.b.get_text())
    chips = both.select("a.hy-chip")
    assert [chip.get_text(" ", strip=True) for chip in chips] == ["type task ×", "type fact ×"]
    assert chips[0]["aria-label"] == "Remove type task"
    fewer = soup(await garden.get(chips[0]["href"]))
    assert count(fewer) == int(fact.b.get_text())
    cleared = soup(await garden.get(both.select_one("a.hy-clear")["href"]))
    assert count(cleared) == count(page)


async def test_a_topic_of_a_result_narrows_to_it(garden: Served) -> None:
    page = soup(await garden.get("?q=tomato+cane&limit=32"))
    topic = page.find("a", class_="hy-topic", string="greenhouse glass")
    narrowed = soup(await garden.get(topic["href"]))
    assert count(narrowed) == 2
    assert narrowed.select_one(".hy-chip").get_text(" ", strip=True) == "topic greenhouse glass ×"


async def test_a_narrowed_result_leads_to_all_that_is_like_it(garden: Served) -> None:
    page = soup(await garden.get("?q=tomato&narrow=type:task&narrow=created:2021&limit=32"))
    wide = page.select_one(".hy-widen a")["href"]
    assert wide.endswith("?q=tomato&limit=32&type=task&since=2021&until=2021")
    assert count(soup(await garden.get(wide))) >= count(page)


async def test_nothing_found_says_what_to_leave_out(garden: Served) -> None:
    page = soup(await garden.get("?q=cane&mode=keyword&type=fact&topic=nosuch"))
    (way,) = page.select(".hy-ways li")
    assert "Search without topic nosuch" in way.get_text()
    assert count(soup(await garden.get(way.a["href"]))) == int(way.span.get_text().split()[0]) > 0


async def test_what_was_understood_is_spelled_out(garden: Served) -> None:
    page = soup(await garden.get('?q=tomato "wants a" -glass topic:garden'))
    reported = page.select_one(".hy-understood").get_text()
    assert reported == (
        "Understood: 1 word, must hold “wants a”, must not hold “glass”, topic garden."
    )
    assert soup(await garden.get("?q=tomato+cane")).select_one(".hy-understood") is None


async def test_more_like_this_names_the_memory_in_a_chip(garden: Served) -> None:
    page = soup(await garden.get("?q=watering+tomatoes"))
    like = soup(await garden.get(page.select_one("a.hy-like")["href"]))
    chip = like.select_one(".hy-chip")
    assert chip.get_text(" ", strip=True) == "like Watering the tomatoes ×"
    assert like.select(".hy-result")
    assert soup(await garden.get(chip["href"])).select_one(".hy-welcome")
    other = soup(await garden.by("alice").get(page.select_one("a.hy-like")["href"]))
    assert other.select_one(".hy-chip bdi").get_text() == "00000000"


async def test_a_searcher_sees_facets_without_names(garden: Served) -> None:
    page = soup(await garden.by("alice").get("?q=tomato+cane"))
    assert {one.get_text() for one in page.select(".hy-facet h2")} == {"Type", "Written", "Status"}
    for link in page.select("a.hy-value"):
        narrowed = soup(await garden.by("alice").get(link["href"]))
        assert count(narrowed) == int(link.b.get_text())


async def test_before_a_question_there_are_ways_in(garden: Served) -> None:
    page = soup(await garden.get(""))
    assert page.select_one(".hy-lead strong").get_text() == "10 memories"
    for way in page.select(".hy-start a.hy-chip"):
        assert count(soup(await garden.get(way["href"]))) == int(way.b.get_text())
    newest = page.select(".hy-newest a")
    assert len(newest) == 5
    searcher = soup(await garden.by("alice").get(""))
    assert searcher.select_one(".hy-lead strong").get_text() == "10 memories"
    assert not searcher.select(".hy-newest, section[aria-label=Topics]")


async def test_examples_of_the_query_language_are_searches(garden: Served) -> None:
    for example in soup(await garden.get("")).select("a.hy-example"):
        assert (await garden.get(example["href"])).status_code == 200, example.get_text()


async def test_the_explanation_draws_every_way(garden: Served) -> None:
    page = soup(await garden.get("?q=tomato+cane&explain=1"))
    drawn = page.select_one(".hy-slopes svg")
    titles = [title.get_text().strip() for title in page.select(".hy-result h2")]
    labels = [label.get_text() for label in drawn.select(".way > text")]
    assert all(
        title.startswith(label.removesuffix("…"))
        for title, label in zip(titles, labels, strict=True)
    )
    rows = [int(row.get_text().removesuffix("+")) for row in drawn.select(".rows text")]
    reported = drawn.find("desc").get_text()
    ranks = {int(rank) for rank in re.findall(r" (\d+)(?=[,.])", reported)}
    assert rows == sorted(rank for rank in ranks if rank <= rows[-1])  # none without a result
    assert f"{titles[0]}: words " in reported
    assert reported.count("final") == len(titles)


async def test_a_private_search_keeps_every_control(private: Served) -> None:

    async def asked(fields: dict[str, str]) -> Any:
        return soup(await private.submit("", fields, follow_redirects=True))

    page = await asked({"q": "tomatoes", "explain": "1", "limit": "1"})
    assert not [link for link in page.select("a[href]") if "tomatoes" in link["href"]]
    assert page.select_one(".hy-slopes") is None  # one result is no comparison
    narrow = next(one for one in page.select("button.hy-value") if one.span.string == "garden")
    assert (narrow["name"], narrow["value"]) == ("narrow", "topic:garden")
    narrowed = await asked({"q": "tomatoes", "narrow": "topic:garden"})
    assert count(narrowed) == int(narrow.b.get_text())
    chip = narrowed.select_one("button.hy-chip")
    fields = {"q": "tomatoes", "narrow": "topic:garden", chip["name"]: chip["value"]}
    assert count(await asked(fields)) == count(page)
    following = page.select_one("button.hy-next")
    fields = {"q": "tomatoes", "explain": "1", "limit": "1", following["name"]: following["value"]}
    second = await asked(fields)
    assert second.select_one(".hy-rank").get_text(" ", strip=True) == "Result 2"
    like = soup(await private.get(page.select_one("a.hy-like")["href"]))
    assert like.select_one("button.hy-chip")["value"].startswith("like=")
    data = await private.submit(".json", {"q": "tomatoes"}, page="?")
    assert data.json()["query"] == "tomatoes"
    rows = await private.submit(".csv", {"q": "tomatoes", "topic": ""}, page="?")
    assert rows.text.startswith("rank,id,")
