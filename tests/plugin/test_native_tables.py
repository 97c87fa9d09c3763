"""Datasette's own pages of a vault's tables: searched, sorted, faceted, exported, described."""

from __future__ import annotations

import re
import sqlite3
from typing import Any
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from datasette.plugins import pm

from datasette_hybrid.requests import admission
from datasette_hybrid.tables import cells
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, plain_datasette

pytestmark = pytest.mark.in_a_file  # on a server they follow it every few seconds

ONE, TWO, HOSTILE = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
ON_1 = hasattr(pm.hook, "top_homepage") and pm.hook.top_homepage.has_spec()
only_1 = pytest.mark.skipif(not ON_1, reason="Datasette 0.65 has no such hook")


def soup(response: Any) -> BeautifulSoup:
    assert response.status_code == 200, response.text[:500]
    return BeautifulSoup(response.text, "html.parser")


async def at(served: Served, actor: str | None, path: str) -> Any:
    """One of Datasette's own pages."""
    return await served.datasette.client.get(path, cookies=served.by(actor).cookies)


async def found(served: Served, parameters: str, actor: str | None = "bob") -> list[str]:
    """Ids that the table's JSON has for these parameters, in its order."""
    response = await served.by(actor).get(f"/notes/memories.json?_shape=array&{parameters}")
    assert response.status_code == 200, response.text
    return [row["id"] for row in response.json()]


def path_of(url: str) -> str:
    """An address without its host."""
    address = urlsplit(url)
    return f"{address.path}?{address.query}"


# -- searching --------------------------------------------------------------------------


async def test_a_search_narrows_the_table_and_leaves_the_rest_to_datasette(served: Served) -> None:
    assert await found(served, "_hybrid=tomatoes&_hybrid_mode=keyword") == [ONE, HOSTILE]
    by_time = "_hybrid=tomatoes&_hybrid_mode=keyword&_sort_desc=created"
    assert await found(served, by_time) == [HOSTILE, ONE]
    assert await found(served, "_hybrid=tomatoes&_hybrid_mode=keyword&_sort=id") == [ONE, HOSTILE]
    assert await found(served, "_hybrid=tomatoes&type=decision&_hybrid_mode=keyword") == []
    assert await found(served, f"_hybrid=tomatoes&id={ONE}") == [ONE]
    assert await found(served, "_hybrid=tomatoes&_where=type+is+not+null&_size=1&_sort=id") == [ONE]
    page = await served.by("bob").get("/notes/memories?_hybrid=<b>tomatoes&_facet=collection")
    assert "found for “<b>tomatoes”" in soup(page).get_text()
    assert "<b>tomatoes" not in page.text
    assert "_facet=collection" in page.text


async def test_the_tables_own_search_box_searches_the_vault(served: Served) -> None:
    assert await found(served, "_search=watering&_hybrid_mode=keyword") == [ONE]
    page = soup(await served.by("bob").get("/notes/memories?_search=watering"))
    box = page.select_one("form.filters input[name=_search]")
    assert box["value"] == "watering"
    assert "found for “watering”" in page.get_text()
    for actor in (None, "mallory"):
        for path in ("/notes/memories", "/notes/memories.json?_search=watering"):
            assert (await served.by(actor).get(path)).status_code == 403


async def test_what_stands_in_the_box_counts_more_than_the_address(served: Served) -> None:
    both = "_hybrid=database&_search=watering&_hybrid_mode=keyword"
    assert await found(served, both) == [ONE]


async def test_csv_counts_facets_and_columns_are_those_of_the_found_rows(served: Served) -> None:
    search = "_hybrid=tomatoes&_hybrid_mode=keyword"
    lines = (await served.by("bob").get(f"/notes/memories.csv?{search}&_col=type")).text.split()
    assert lines[0] == "id,type"
    assert sorted(line[:36] for line in lines[1:]) == [ONE, HOSTILE]
    # 1.0a41 writes no CSV of binary columns
    wide = f"{search}&_stream=on&_size=max&_nocol=head"
    streamed = await served.by("bob").get(f"/notes/memories.csv?{wide}")
    assert len(streamed.text.strip().splitlines()) == 3
    extra = "&_extra=count,facet_results" if ON_1 else ""
    data = (await served.by("bob").get(f"/notes/memories.json?{search}&_facet=type{extra}")).json()
    assert data["count" if ON_1 else "filtered_table_rows_count"] == 2
    facets = data["facet_results"]["results" if ON_1 else "type"]
    facets = facets["type"]["results"] if ON_1 else facets["results"]
    assert {one["value"]: one["count"] for one in facets} == {"note": 2}


async def test_the_next_page_is_of_the_same_search(served: Served) -> None:
    first = soup(await served.by("bob").get("/notes/memories?_hybrid=tomatoes&_size=1"))
    (following,) = (a["href"] for a in first.select("a") if a.get_text() == "Next page")
    assert "_hybrid=tomatoes" in following
    page = soup(await served.by("bob").get(path_of(following)))
    shown = [cell.get_text() for cell in page.select("td.col-id a")]
    assert shown
    assert shown != [cell.get_text() for cell in first.select("td.col-id a")]


async def test_rows_stand_in_the_order_of_the_search_page_on_every_page(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add_many(
            [
                MemoryDraft(
                    text=f"Beans {'and peas ' * (number % 5)} {number}",
                    created=f"2024-01-{1 + number * 7 % 28:02}",
                    type="fact" if number % 3 else "note",
                )
                for number in range(12)
            ],
            embed=False,
        )
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    bob = served.by("bob")
    searched = (await bob.get(".json?q=peas+beans&mode=keyword&limit=32")).json()["rows"]
    ranked = [row["id"] for row in searched]
    asked = "_hybrid=peas+beans&_hybrid_mode=keyword"
    assert await found(served, asked) == ranked
    notes = [row["id"] for row in searched if row["type"] == "note"]
    assert await found(served, f"{asked}&type=note&_facet=type") == notes
    page = soup(await bob.get(f"/notes/memories?{asked}&type=fact&_size=3"))
    said = " ".join(page.get_text().split())
    assert 'found for “peas beans”, in order of relevance and type = "fact"' in said
    assert "sorted by" not in said
    extras = "_extra=human_description_en"
    asjson = (await bob.get(f"/notes/memories.json?{asked}&type=fact&{extras}")).json()
    assert asjson["human_description_en"] == (
        'where found for “peas beans”, in order of relevance and type = "fact"'
    )
    assert asjson.get("sort_desc") is None
    seen: list[str] = []
    while True:
        seen += [cell.get_text() for cell in page.select("td.col-id a") if cell.get_text()]
        following = [a["href"] for a in page.select("a") if a.get_text() == "Next page"]
        if not following:
            break
        page = soup(await bob.get(path_of(following[0])))
    assert [one for one in seen if one in ranked] == [one for one in ranked if one not in notes]
    by_column = soup(await bob.get(f"/notes/memories?{asked}&_size=3"))
    sort = next(a["href"] for a in by_column.select("th.col-id a") if "_sort" in a["href"])
    first = soup(await bob.get(path_of(sort)))
    assert first.select_one("td.col-id a").get_text() == min(ranked)
    (following,) = {a["href"] for a in first.select("a") if a.get_text() == "Next page"}
    second = soup(await bob.get(path_of(following)))
    assert second.select_one("td.col-id a").get_text() == sorted(ranked)[3]


async def test_facets_have_more_than_a_page_of_results_to_count(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add_many(
            [MemoryDraft(text=f"Peas and beans, row {number}.") for number in range(60)],
            embed=False,
        )
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    wide = "_hybrid_mode=keyword&_size=max"
    assert len(await found(served, f"_hybrid=peas+beans&{wide}")) == 60
    assert len(await found(served, f"_hybrid=peas&{wide}")) == 32
    assert len(await found(served, f"_hybrid=peas+beans&{wide}&_hybrid_limit=5")) == 5
    page = soup(await served.by("bob").get(f"/notes/memories?_hybrid=peas&{wide}"))
    assert "found for “peas” (the best 32)" in page.get_text()


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("_hybrid=-postgres", "not searched"),
        ("_hybrid=tomatoes&_hybrid_limit=1000", "limit"),
        ("_hybrid=tomatoes&_hybrid_colour=red", "colour: no such search option"),
        (f"_hybrid={'x' * 9000}", "not searched"),
    ],
)
async def test_what_cannot_be_searched_for_is_said_and_shows_nothing(
    served: Served, parameters: str, reason: str
) -> None:
    assert await found(served, parameters) == []
    page = soup(await served.by("bob").get(f"/notes/memories?{parameters}"))
    assert reason in page.get_text()
    assert not page.select("td.col-head")


async def test_without_a_grant_the_table_is_closed_and_leads_to_the_way_in(served: Served) -> None:
    assert (await served.get("/notes/memories.json?_hybrid=tomatoes")).status_code == 403
    page = await served.get("/notes/memories?_hybrid=tomatoes")
    assert page.status_code == 403
    assert BeautifulSoup(page.text, "html.parser").select("input#hy-secret")


async def test_who_may_read_but_not_search_finds_no_row(filled: Filled, serve: Serve) -> None:
    allow = {**ALLOW, "hybrid-search": {"id": "root"}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    assert await found(served, "_hybrid=tomatoes") == []
    page = soup(await served.by("bob").get("/notes/memories?_hybrid=tomatoes"))
    assert "this needs the permission hybrid-search" in page.get_text()


async def test_a_locked_vault_is_not_searched(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options={"notes": {"allow": ALLOW}})
    page = soup(await served.by("root").get("/notes/memories?_hybrid=tomatoes"))
    assert not page.select("td.col-head")
    assert not page.select("input[name=_search]")
    assert "notes is locked, unlock it at /notes/-/hybrid/unlock" in page.get_text()
    assert "hybrid-search" not in page.get_text()
    for actor in ("bob", None):
        shut = await served.by(actor).get("/notes/memories?_hybrid=tomatoes")
        assert shut.status_code == 403
        assert BeautifulSoup(shut.text, "html.parser").select("input#hy-secret")


@pytest.mark.parametrize("page", ["/notes"])
async def test_in_place_of_a_locked_vaults_box_is_the_way_to_unlock_it(
    filled: Filled, serve: Serve, page: str
) -> None:
    served = await serve(filled.path, options={"notes": {"allow": ALLOW}})
    for actor in ("bob", None):
        shown = soup(await at(served, actor, page))
        assert "notes is locked. Unlock" in shown.get_text()
        assert shown.select('a[href="/notes/-/hybrid/unlock"]')


async def test_a_vault_that_keeps_queries_private_takes_none_from_an_address(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW, private_queries=True))
    for name in ("_hybrid", "_search"):
        assert await found(served, f"{name}=tomatoes") == []
        page = soup(await served.by("bob").get(f"/notes/memories?{name}=tomatoes"))
        assert "keeps queries out of addresses" in page.get_text()
        assert not page.select("input[name=_search]")
    assert len(await found(served, "")) == 3


async def test_found_rows_link_to_the_search_page(served: Served) -> None:
    page = await served.by("bob").get("/notes/memories?_search=red+tomatoes&_hybrid_mode=keyword")
    (link,) = {a["href"] for a in soup(page).select("a") if a.get_text(" ").strip().startswith(
        "On the search page"
    )}  # fmt: skip
    assert link == "/notes/-/hybrid?q=red+tomatoes&mode=keyword"
    plain = await served.by("bob").get("/notes/memories")
    assert "On the search page" not in plain.text


# -- cells ------------------------------------------------------------------------------


async def test_readers_see_titles_texts_names_and_topics(served: Served) -> None:
    bob = served.by("bob")
    memories = soup(await bob.get("/notes/memories"))
    titles = {a.get_text(): a["href"] for a in memories.select("td.col-head a")}
    assert titles["Watering the tomatoes"] == f"/notes/-/hybrid/memories/{ONE}"
    assert {cell.get_text() for cell in memories.select("td.col-collection")} == {"personal"}
    bodies = soup(await bob.get("/notes/memory_bodies"))
    previews = [cell.get_text() for cell in bodies.select("td.col-body")]
    assert "The tomatoes want water every second day. - feed on Sundays" in previews
    assert soup(await bob.get("/notes/collections")).select_one("td.col-name").get_text() == (
        "personal"
    )
    topics = soup(await bob.get("/notes/memory_topics"))
    pairs = {
        (row.select_one("td.col-memory").get_text(), row.select_one("td.col-topic").get_text())
        for row in topics.select("tbody tr")
    }
    assert ("Watering the tomatoes", "garden") in pairs
    assert ("The database", "work") in pairs


@pytest.mark.parametrize("table", ["memories", "memory_bodies", "memory_topics", "collections"])
@pytest.mark.parametrize("actor", [None, "alice", "mallory"])
async def test_searchers_see_that_a_value_is_sealed_and_others_no_table(
    served: Served, table: str, actor: str | None
) -> None:
    page = await served.by(actor).get(f"/notes/{table}")
    for secret in ("Watering", "second day", "garden", "personal"):
        assert secret not in page.text
    if actor != "alice":
        assert page.status_code == 403
        return
    shown = soup(page)
    for cell in shown.select("td em"):
        assert cell.get_text() == "sealed"
        assert cell["title"] == "encrypted in the file"
    assert bool(shown.select("td em")) == (table != "memory_topics")


@pytest.mark.parametrize("table", ["memories", "memory_bodies", "collections"])
async def test_who_administers_a_locked_vault_sees_how_large_a_sealed_value_is(
    filled: Filled, serve: Serve, table: str
) -> None:
    served = await serve(filled.path)
    shown = soup(await served.by("root").get(f"/notes/{table}"))
    assert shown.select("td em")
    for cell in shown.select("td em"):
        assert re.fullmatch(r"sealed, (\d+ bytes|[\d.]+ KB)", cell.get_text())
        assert re.fullmatch(r"[\d,]+ bytes, encrypted in the file", cell["title"])


async def test_hostile_text_stays_text(served: Served) -> None:
    for path in ("memories", "memory_bodies", "memory_topics", f"memories/{HOSTILE}"):
        page = await served.by("bob").get(f"/notes/{path}")
        assert "<script>alert" not in page.text
        assert "<b>bold" not in page.text
        assert "onerror=alert(1)>" not in page.text.replace("&gt;", "")


async def test_a_memory_without_a_title_is_called_by_its_first_words(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Blue herons by the pond.\nThey came back.")
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    page = soup(await served.by("bob").get("/notes/memories"))
    assert "Blue herons by the pond.…" in [a.get_text() for a in page.select("td.col-head a")]


class CountingQueue(admission.WorkQueue):
    """Counts how often a page visits the vault."""

    visits = 0

    async def run(self, call: Any) -> Any:
        CountingQueue.visits += 1
        return await super().run(call)


async def test_a_page_visits_the_vault_once_however_many_rows_it_has(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "work", CountingQueue())
    for path in ("memories", "memory_bodies", "memory_topics", "collections", f"memories/{ONE}"):
        CountingQueue.visits = 0
        await served.by("bob").get(f"/notes/{path}")
        assert CountingQueue.visits == 1, path
    CountingQueue.visits = 0
    await served.by("alice").get("/notes/memories")
    await served.by("bob").get("/notes/memories.json")
    assert CountingQueue.visits == 0


async def test_when_there_is_too_much_to_do_the_seals_stay(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(admission.WorkQueue):
        async def run(self, call: Any) -> Any:
            raise admission.QueueFullError

    monkeypatch.setattr(cells, "work", Full())
    page = soup(await served.by("bob").get("/notes/memories"))
    assert all("sealed" in cell.get_text() for cell in page.select("td.col-head"))


async def test_one_damaged_row_leaves_the_others_readable(filled: Filled, serve: Serve) -> None:
    connection = sqlite3.connect(filled.path)
    connection.execute("update memories set type = 'code' where id = ?", (TWO,))
    connection.commit()
    connection.close()
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    page = soup(await served.by("bob").get("/notes/memories?_sort=id"))
    heads = [cell.get_text() for cell in page.select("td.col-head")]
    assert heads[0] == "Watering the tomatoes"
    assert heads[1] == "sealed"


@only_1
async def test_cells_in_json_are_filled_in_too(served: Served) -> None:
    path = f"/notes/memories.json?id={ONE}&_extra=render_cell"
    (cell,) = (await served.by("bob").get(path)).json()["render_cell"]
    assert "Watering the tomatoes" in cell["head"]
    (other,) = (await served.by("alice").get(path)).json()["render_cell"]
    assert "sealed</em>" in other["head"]


async def test_labels_of_rows_that_point_into_a_vault_never_show_sealed_bytes(
    filled: Filled, serve: Serve
) -> None:
    connection = sqlite3.connect(filled.path)
    connection.executescript(
        """
        create table marks (
            id integer primary key, memory text references memories(id),
            collection text references collections(id), body text references memory_bodies(id)
        );
        insert into marks (memory, collection, body)
            select memories.id, collections.id, content from memories, collections;
        """
    )
    connection.close()
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    for actor in (None, "bob"):
        for path in (
            "marks",
            "marks/1",
            "collections",
            "marks.json?_labels=on",
            "marks.csv?_labels=on",
        ):
            page = await served.by(actor).get(f"/notes/{path}")
            closed = (actor, path) == (None, "collections")
            assert page.status_code == (403 if closed else 200), page.text
            assert "b&#39;" not in page.text
            assert "b'\\x" not in page.text
            assert '"$base64"' not in page.text


# -- members ----------------------------------------------------------------------------


@pytest.fixture
async def shared(filled: Filled, serve: Serve) -> Served:
    """Beside the open collection a closed one, whose only reader is carol."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.collections.create("diary", owner="dora")
        store.collections.change_members("diary", {"carol": "reader"})
        store.add("Tomatoes at the fair.", title="The fair", topics=("fair",), collection="diary")
    return await serve(filled.path, options=filled.options(allow=ALLOW))


@pytest.mark.parametrize(
    ("actor", "readable"), [("carol", {"The fair"}), ("bob", {"Watering the tomatoes"})]
)
async def test_members_of_a_collection_find_and_read_its_rows_alone(
    shared: Served, actor: str, readable: set[str]
) -> None:
    search = "_search=tomatoes&_hybrid_mode=keyword"
    page = soup(await shared.by(actor).get(f"/notes/memories?{search}"))
    titles = {cell.get_text() for cell in page.select("td.col-head")}
    assert titles >= readable
    assert not titles & ({"The fair", "Watering the tomatoes"} - readable)
    whole = soup(await shared.by(actor).get("/notes/memories"))
    assert len(whole.select("td.col-head em")) == (3 if actor == "carol" else 1)
    names = soup(await shared.by(actor).get("/notes/collections"))
    shown = {cell.get_text() for cell in names.select("td.col-name") if "sealed" not in cell.text}
    assert shown == ({"diary"} if actor == "carol" else {"personal"})


async def test_a_row_of_another_persons_collection_offers_nothing(shared: Served) -> None:
    (mine,) = await found(shared, "_search=fair&_hybrid_mode=keyword", "carol")
    for actor, some in (("carol", True), ("bob", False), ("root", False)):
        page = await shared.by(actor).get(f"/notes/memories/{mine}")
        assert ("More like this" in page.text) == some, actor
        assert ("The fair" in page.text) == some, actor


async def test_addresses_on_datasettes_pages_keep_a_base_url(filled: Filled, serve: Serve) -> None:
    served = await serve(
        filled.path, options=filled.options(allow=ALLOW), settings={"base_url": "/prefix/"}
    )
    for path in ("/", "/notes", "/notes/memories?_search=tomatoes", f"/notes/memories/{ONE}"):
        page = soup(await at(served, "root", path))
        own = [tag["href"] for tag in page.select("a[href*='/-/hybrid']")]
        own += [tag["action"] for tag in page.select("form.hybrid-box")]
        assert own
        assert all(address.startswith("/prefix/") for address in own), own


@only_1
async def test_the_configuration_names_no_database_that_is_hidden(
    filled: Filled, model: Any
) -> None:
    public = plain_datasette((filled.path,), {})
    await public.invoke_startup()
    assert "notes" in (await public.client.get("/-/config.json")).text
    hidden = plain_datasette(
        (filled.path,), {"permissions": {"view-instance": True}}, default_deny=True
    )
    await hidden.invoke_startup()
    shown = await hidden.client.get("/-/config.json")
    assert shown.status_code == 200
    assert "notes" not in shown.text
