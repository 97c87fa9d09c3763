"""The search page before a question: right after every change, and for every actor."""

from __future__ import annotations

import re
from typing import Any

import pytest
from bs4 import BeautifulSoup

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .conftest import Filled, Served, soup
from .uploads import BEARER


async def welcomed(served: Served) -> BeautifulSoup:
    """The page as a person sees it."""
    page = await served.get("")
    assert page.status_code == 200, page.text
    return soup(page)


def number(page: BeautifulSoup) -> int:
    """How many memories it says there are."""
    reported = page.select_one(".hy-lead strong")
    return int(re.sub(r"\D", "", reported.get_text()))


def ways(page: BeautifulSoup) -> dict[str, str]:
    """The ways in: words and numbers."""
    found = page.select(".hy-start .hy-chips li a")
    return {one.bdi.get_text(): one.b.get_text() for one in found}


def newest(page: BeautifulSoup) -> list[str]:
    return [one.get_text() for one in page.select(".hy-newest a")]


async def add(served: Served, title: str, **more: Any) -> str:
    memory = {"text": f"About {title}.", "title": title, **more}
    added = await served.send("POST", f"{served.base}/memories.json", memory, headers=BEARER)
    assert added.status_code == 201, added.text
    return str(added.json()["rows"][0]["id"])


async def test_it_is_right_after_every_change(served: Served) -> None:
    root = served.by("root")
    assert number(await welcomed(root)) == number(await welcomed(root)) == 3
    id_ = await add(root, "Quinces", topics=["garden"], type="task")
    page = await welcomed(root)
    assert (number(page), newest(page)[0], ways(page)["task"]) == (4, "Quinces", "1")
    address = f"{served.base}/memories/{id_}"
    renamed = {"title": "Medlars", "type": "fact"}
    assert (await root.send("PATCH", f"{address}.json", renamed, headers=BEARER)).status_code == 200
    page = await welcomed(root)
    assert (newest(page)[0], ways(page)["fact"], "task" in ways(page)) == ("Medlars", "1", False)
    gone = await root.send("DELETE", f"{address}.json", None, headers=BEARER)
    assert gone.status_code == 200
    page = await welcomed(root)
    assert (number(page), "Medlars" in newest(page)) == (3, False)


@pytest.mark.in_a_file
async def test_it_is_right_after_another_program_wrote(served: Served, filled: Filled) -> None:
    root = served.by("root")
    assert number(await welcomed(root)) == 3
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Written in a terminal.", title="From a terminal", collection="work")
    page = await welcomed(root)
    assert (number(page), newest(page)[0], ways(page)["work"]) == (4, "From a terminal", "1")
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.collections.rename("work", "office")
    assert "office" in ways(await welcomed(root))


async def test_each_sees_what_is_theirs_a_caller_who_looked_before(served: Served) -> None:
    root, bob, alice = (served.by(name) for name in ("root", "bob", "alice"))
    made = await root.send(
        "POST",
        f"{served.base}/collections.json",
        {"name": "diary", "private": True},
        headers=BEARER,
    )
    assert made.status_code == 201, made.text
    await add(root, "Heartache", collection="diary")
    for _ in range(2):  # made for each, and kept for each
        mine, his, hers = [await welcomed(one) for one in (root, bob, alice)]
        assert [number(page) for page in (mine, his, hers)] == [4, 3, 3]
        assert newest(mine)[0] == "Heartache"
        assert newest(his)[0] != "Heartache"
        assert newest(hers) == []
        assert "diary" in ways(mine)
        assert "diary" not in ways(his)
        assert "Heartache" not in his.get_text() + hers.get_text()


async def test_it_is_kept_until_the_lock_and_written_to_the_trail(served: Served) -> None:
    root = served.by("root")
    vault = served.vault
    for _ in range(3):
        await welcomed(root)
    assert len(vault.views) == 1
    vault.write_audit()
    reported = (await root.get("/notes/-/hybrid/audit.json?action=search")).json()["rows"]
    assert sum(event["times"] for event in reported) == 3
    assert sum(event["opened"] for event in reported) == 3  # once
    assert sum(event["returned"] for event in reported) == 9
    vault.lock()
    assert len(vault.views) == 0
    assert (await root.get("")).status_code == 423


async def test_its_topics_are_those_of_all_memories_and_their_numbers_come_true(
    served: Served,
) -> None:
    """Those of the newest only, under that heading, were what a vault happened to end with."""
    store = served.store
    old = [MemoryDraft(f"At the harbour, {n}", topics=("harbour",)) for n in range(6)]
    twice = [MemoryDraft("The same words", topics=("twice",), collection=c) for c in ("a", "b")]
    new = [MemoryDraft(f"Newer note {n}", topics=("news",) * (n % 2)) for n in range(40)]
    one = store.add("Deleted at once", topics=["harbour", "gone"])
    store.add_many([*old, *twice, MemoryDraft("Other words", topics=("twice",)), *new])
    store.delete(one.id)
    root, alice = served.by("root"), served.by("alice")
    page = await welcomed(root)
    shown = ways(page)
    assert (shown["harbour"], shown["news"], shown["twice"]) == ("6", "20", "3")
    assert "gone" not in shown
    assert "of the newest" not in page.get_text()
    for topic in ("harbour", "news", "twice"):
        (link,) = [one for one in page.select(".hy-chips a") if one.bdi.get_text() == topic]
        led = await root.get(link["href"].replace("/-/hybrid?", "/-/hybrid.json?") + "&limit=32")
        assert str(len(led.json()["rows"])) == shown[topic]
    assert "harbour" not in (await welcomed(alice)).get_text()


@pytest.mark.in_a_file
async def test_an_empty_vault_offers_to_import_and_to_write(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in served.store.list():
        served.store.delete(one.id)
    page = await welcomed(served.by("root"))
    assert page.select_one("pre.hy-command").text == "memory-store import notes.db ~/notes"
    monkeypatch.setenv("MEMORY_STORE_DB", str(served.vault.path))
    page = await welcomed(served.by("root"))
    assert page.select_one("pre.hy-command").text == "memory-store import ~/notes"
    offered = [one["href"] for one in page.select(".hy-first a")]
    assert offered == [f"{served.base}/import", f"{served.base}/new"]
    assert not (await welcomed(served.by("alice"))).select(".hy-first"), "who may not write"


async def test_a_search_without_words_that_finds_nothing_speaks_of_none(served: Served) -> None:
    root = served.by("root")
    for query, speaks in (("zeppelin", True), ("topic:nothere", False)):
        nothing = soup(await root.get(f"?q={query}&mode=keyword")).select_one(".hy-empty")
        assert ("plainer words" in nothing.get_text()) is speaks, query
    pattern = soup(await root.get("?q=zeppelin&mode=literal")).select_one(".hy-empty")
    assert "plainer words" not in pattern.get_text()


async def test_a_search_of_an_empty_vault_leads_to_import_and_not_to_other_words(
    served: Served,
) -> None:
    for one in [memory.id for memory in served.store.every()]:
        served.store.delete(one, now=True)
    for actor, ways in (("root", ["import", "new"]), ("bob", [])):
        nothing = soup(await served.by(actor).get("?q=quinces")).select_one(".hy-empty")
        assert "There is no memory here yet" in nothing.get_text()
        assert "plainer words" not in nothing.get_text()
        assert [link["href"] for link in nothing.select("a")] == [
            f"{served.base}/{way}" for way in ways
        ]
