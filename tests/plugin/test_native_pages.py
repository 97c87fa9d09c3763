"""Menus, search boxes and descriptions on Datasette's own pages."""

from __future__ import annotations

import sqlite3
from typing import Any
from urllib.parse import quote

import pytest

from .conftest import ALLOW, Filled, Serve, Served, plain_datasette
from .test_native_tables import ON_1, ONE, at, only_1, soup

pytestmark = pytest.mark.in_a_file  # on a server they follow it every few seconds

OPEN, EDIT, DONE = "Open memory", "Edit memory", "Mark as done"
DELETE, LIKE = "Delete memory", "More like this"


@pytest.mark.parametrize(
    ("actor", "offered"),
    [
        ("root", {OPEN, EDIT, DONE, DELETE, LIKE}),
        ("bob", {OPEN, LIKE}),
        ("alice", {LIKE}),
        ("wanda", {DELETE, LIKE}),
    ],
)
async def test_a_row_offers_what_its_reader_may_do(
    served: Served, actor: str | None, offered: set[str]
) -> None:
    page = soup(await served.by(actor).get(f"/notes/memories/{ONE}"))
    links = {a.find(string=True).strip(): a["href"] for a in page.select("a")}
    known = {OPEN, EDIT, DONE, DELETE, LIKE} & set(links)
    assert "For good" not in page.get_text()  # it goes to the trash, and the page behind says so
    if ON_1:
        assert known == offered
    elif actor in ("root", "bob"):  # 0.65: behind the title, which opens the memory
        assert known == offered - {OPEN}
        assert "Watering the tomatoes" in links
    if LIKE in known:
        assert links[LIKE] == f"/notes/-/hybrid?like={ONE}"


@pytest.mark.parametrize("page", ["/notes", "/notes/memories"])
async def test_databases_and_tables_lead_to_the_search(served: Served, page: str) -> None:
    async def links(actor: str | None) -> set[str]:
        shown = soup(await at(served, actor, page))
        return {a["href"] for a in shown.select("a") if "/-/hybrid" in a["href"]}

    assert {"/-/hybrid", "/notes/-/hybrid"} <= await links("bob")
    assert "/notes/-/hybrid/new" not in await links("bob")
    assert "/notes/-/hybrid/new" in await links("root")
    if page == "/notes":
        assert "/-/hybrid" in await links(None)
        return
    closed = await at(served, None, page)
    assert closed.status_code == 403
    assert "hy-secret" in closed.text  # the way to unlock the vault


@pytest.mark.parametrize(
    "page", ["/", "/notes", pytest.param("/notes/memory_bodies", marks=only_1)]
)
async def test_pages_carry_a_search_box_for_those_who_may_search(served: Served, page: str) -> None:
    for actor, shown in (("bob", True), ("alice", True), ("mallory", False), (None, False)):
        if not shown and page == "/notes/memory_bodies":
            assert (await at(served, actor, page)).status_code == 403
            continue
        boxes = soup(await at(served, actor, page)).select("form.hybrid-box")
        assert bool(boxes) == shown, actor
        for box in boxes:
            assert box["method"] == "get"
            assert box["action"] == ("/-/hybrid" if page == "/" else "/notes/-/hybrid")
            assert (await at(served, actor, f"{box['action']}?q=tomatoes")).status_code == 200


async def test_boxes_post_where_queries_are_private(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW, private_queries=True))
    for page in ("/", "/notes", "/notes/memories") if ON_1 else ("/", "/notes"):
        (box,) = soup(await at(served, "bob", page)).select("form.hybrid-box")
        assert box["method"] == "post"
    fields = {"q": "watering"}
    answer = await served.by("bob").submit("", fields, "/notes/memories", follow_redirects=True)
    assert "Watering" in answer.text


@only_1
async def test_the_jump_menu_searches_vaults(served: Served) -> None:
    async def matches(actor: str | None, typed: str) -> dict[str, str]:
        data = (await served.by(actor).get(f"/-/jump.json?q={quote(typed)}")).json()
        return {one["name"]: one["url"] for one in data["matches"]}

    offered = await matches("bob", "red tomatoes")
    assert offered["Search notes for “red tomatoes”"] == "/notes/-/hybrid?q=red+tomatoes"
    assert await matches("mallory", "red tomatoes") == {}


async def test_tables_and_columns_are_described_without_configuration(served: Served) -> None:
    page = await served.by("bob").get("/notes/memories")
    assert "Titles, topics and texts are sealed" in page.text
    assert "How often it was written" in page.text
    assert "Their names are sealed" in (await served.by("bob").get("/notes/collections")).text


async def test_only_a_vaults_tables_have_its_style_sheet(filled: Filled, serve: Serve) -> None:
    other = filled.path.with_name("other.db")
    with sqlite3.connect(other) as connection:
        connection.execute("create table memories (id)")
    served = await serve(filled.path, other)
    sheet = "/-/static-plugins/datasette-hybrid/tables.css"
    for path, styled in (
        ("/notes/memories", True),
        ("/notes/memory_bodies", True),
        ("/notes/vault_settings", False),
        ("/notes", False),
        ("/", False),
        ("/other/memories", False),
    ):
        assert (sheet in (await at(served, "root", path)).text) == styled, path
    assert (await at(served, None, sheet)).status_code == 200


async def test_what_a_configuration_says_of_a_table_counts_more(filled: Filled, model: Any) -> None:
    said = {"description": "My own words", "sort": "id", "columns": {"version": "Counted"}}
    datasette = plain_datasette(
        (filled.path,), {"databases": {"notes": {"tables": {"memories": dict(said)}}}}
    )
    if ON_1:
        datasette._metadata_local = {"databases": {"notes": {"tables": {"memories": said}}}}
    await datasette.invoke_startup()
    page = await Served(datasette).by("root").get("/notes/memories")
    assert "My own words" in page.text
    assert "Titles, topics and texts" not in page.text
    assert "Counted" in page.text
    assert "Random id of the collection" in page.text
    first = soup(page).select_one("td.col-id").get_text()
    assert first == ONE


async def test_memories_are_shown_newest_first_with_their_types_counted(served: Served) -> None:
    page = soup(await served.by("bob").get("/notes/memories"))
    created = [cell.get_text() for cell in page.select("td.col-created")]
    assert created == sorted(created, reverse=True)
    facet = page.select_one('[data-column="type"] .facet-info-total, .facet-info[data-column=type]')
    assert facet is not None
    assert {li.get_text(" ").split()[0] for li in page.select(".facet-info li")} >= {"note"}
