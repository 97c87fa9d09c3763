"""The HTML pages: what they show, what they never let through, what they say when stuck."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid.requests import admission

from .conftest import HOSTILE, Filled, Serve, Served, soup

ONE = "00000000-0000-4000-8000-000000000001"
HOSTILE_ID = "00000000-0000-4000-8000-000000000003"


async def test_the_page_shows_ranked_results_and_how_many_were_opened(served: Served) -> None:
    response = await served.by("bob").get("?q=tomatoes")
    page = soup(response)
    titles = [title.get_text().strip() for title in page.select(".hy-result h2")]
    assert titles[0] == "Watering the tomatoes"
    assert "of 3 memories opened for this search" in page.select_one(".hy-opened").get_text(
        " ", strip=True
    )
    assert page.select_one(".hy-preview mark").get_text() == "tomatoes"
    assert page.select_one(".hy-result h2 a")["href"].startswith(f"{served.base}/memories/{ONE}")
    bar = page.select_one(".hy-score rect.fill")
    assert 0 < int(bar["width"]) <= 100


async def test_the_explanation_has_every_stage_and_the_rank_in_every_list(served: Served) -> None:
    page = soup(await served.by("bob").get("?q=tomatoes&explain=1"))
    stages = [stage.get_text() for stage in page.select(".hy-stages h3")]
    assert {"analyse", "fetch", "fuse", "open"} <= {name.split()[0] for name in stages}
    first = page.select_one(".hy-explain tbody tr")
    assert first.th.get_text().strip() == "Watering the tomatoes"
    assert first.td.get_text(strip=True) == "1"


async def test_each_result_says_why_it_stands_where_it_does(served: Served) -> None:
    page = soup(await served.by("bob").get("?q=tomatoes&explain=1"))
    first = page.select_one(".hy-result .hy-why")
    assert first.summary.get_text(strip=True) == "Why here"
    assert first.select_one(".hy-way li").get_text(" ", strip=True).startswith("fusion 1")
    shares = [float(cell.get_text()) for cell in first.select("tbody .hy-adds")]
    total = float(first.caption.get_text().split()[1].rstrip(","))
    assert sum(shares) == pytest.approx(total, abs=1.5)  # each is rounded
    assert not soup(await served.by("bob").get("?q=tomatoes")).select(".hy-why")


async def test_the_page_says_why_a_memory_is_not_here(served: Served) -> None:
    bob = served.by("bob")
    page = soup(await bob.get(f"?q=zebra+-tomatoes&why={ONE}"))
    answer = page.select_one("#why")
    assert answer.h2.get_text() == f"Why {ONE[:8]} is not here"
    assert "-tomatoes leaves it out" in answer.p.get_text()
    assert page.select_one("input[name=why]")["value"] == ONE
    here = soup(await bob.get(f"?q=tomatoes&why={ONE}")).select_one("#why")
    assert here.h2.get_text() == f"Why {ONE[:8]} is here"
    assert here.select(".hy-way li")
    unknown = soup(await bob.get("?q=tomatoes&why=no-such-id")).select_one("#why")
    assert unknown.h2.get_text() == "Why no-such-id is not here"
    assert "Ids only here" in unknown.get_text()


async def test_why_shows_a_searcher_ranks_and_no_reason(served: Served) -> None:
    answer = soup(await served.by("alice").get(f"?q=zebra+-tomatoes&why={ONE}")).select_one("#why")
    assert "It is not among the results." in answer.p.get_text()
    assert "leaves it out" not in answer.get_text()


async def test_hostile_text_is_shown_and_never_run(served: Served) -> None:
    bob = served.by("bob")
    plain = soup(await bob.get("?q=zebra"))
    for path in ("?q=hostile", "?q=hostile&explain=1", f"{served.base}/memories/{HOSTILE_ID}"):
        response = await bob.get(path)
        page = soup(response)
        assert response.status_code == 200
        assert HOSTILE in page.get_text()
        assert not page.select("img, iframe, b b, i i, [onerror]")
        assert len(page.select("script")) == len(plain.select("script"))
        assert "49" not in page.select_one(".hy-page h1").get_text()


async def test_a_hostile_query_is_shown_and_never_run(served: Served) -> None:
    response = await served.by("bob").get('?q="><script>alert(1)</script>&topic="><svg onload=x>')
    assert "<script>alert(1)" not in response.text
    assert "<svg onload" not in response.text


@pytest.mark.parametrize(
    "path", ["", "?q=tomatoes", f"/memories/{ONE}", "/unlock", ".json?q=tomatoes", "?q=x&limit=999"]
)
async def test_every_page_is_kept_from_caches_frames_and_referrers(
    served: Served, path: str
) -> None:
    full = served.base + path if path.startswith("/") else path
    headers = (await served.by("bob").get(full)).headers
    assert "no-store" in headers["cache-control"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    if ".json" not in path:
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        scripts = policy.split("script-src")[1].split(";")[0]
        assert "'unsafe-inline'" not in scripts
        assert "frame-ancestors 'none'" in policy


async def test_the_memory_page_shows_the_whole_memory(served: Served) -> None:
    response = await served.by("bob").get(f"{served.base}/memories/{ONE}?q=tomatoes")
    page = soup(response)
    assert page.h1.text == "Watering the tomatoes"
    assert [item.get_text() for item in page.select(".hy-text li")] == ["feed on Sundays"]
    assert page.select_one(".hy-back a")["href"].endswith("/notes/-/hybrid?q=tomatoes")
    assert "garden" in page.select_one("header.hy-title").get_text()


async def test_a_bad_option_keeps_the_form_and_names_the_culprit(served: Served) -> None:
    response = await served.by("bob").get("?q=tomatoes&since=someday")
    page = soup(response)
    assert response.status_code == 400
    said = page.select_one(".hy-form .hy-query + [role=alert]").get_text()
    assert "since" in said
    assert said.endswith(".")
    assert not said.endswith("..")
    assert page.select_one("input[name=q]")["value"] == "tomatoes"
    long = await served.by("bob").get("?q=" + "tomato+" * 2000)
    assert long.status_code == 400


async def test_a_refusal_calls_a_field_as_the_form_does(served: Served) -> None:
    for name, wrong, label in (("limit", "999", "Results"), ("as_of", "never", "As of")):
        page = soup(await served.by("root").get(f"?q=tomatoes&{name}={wrong}"))
        said = page.select_one(".hy-form .hy-query + [role=alert]").get_text()
        assert f"{label}: " in said
        assert f"{name}: " not in said


async def test_where_there_is_no_such_memory_the_search_is_a_click_away(served: Served) -> None:
    nothing = "/memories/00000000-0000-4000-8000-00000000000f"
    for actor, linked in (("bob", True), (None, False)):
        response = await served.by(actor).get(served.base + nothing)
        page = soup(response)
        assert response.status_code == (404 if linked else 403)
        assert bool(page.select(f'.hy-card a[href="{served.base}"]')) == linked


async def test_nothing_found_is_an_answer(served: Served) -> None:
    response = await served.by("bob").get("?q=xylophone&mode=keyword")
    assert response.status_code == 200
    assert "Nothing found" in response.text
    assert "0 of 3" in soup(response).select_one(".hy-opened").get_text()


async def test_what_is_missing_is_said_with_the_command_that_mends_it(served: Served) -> None:
    asked = "q=water+tomatoes&deep=1"  # deep: few are read by a reranker, too
    page = soup(await served.by("root").get(f"?{asked}"))
    (line,) = (await served.by("root").get(f".json?{asked}")).json()["degraded"]
    assert not page.select(".hy-degraded")  # to have no reranker is a usual state
    (fold,) = page.select("details.hy-unranked")
    assert fold.summary.get_text() == "No reranker"
    assert fold.code.get_text() == line.rpartition("Try: ")[2]
    assert not soup(await served.by("alice").get(f"?{asked}")).select(".hy-unranked")


async def test_only_the_owner_sees_commands_and_paths_of_the_machine(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "a reranker"
    folder.mkdir()
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(folder))
    asked = "q=water+tomatoes&deep=1"
    (owners,) = (await served.by("root").get(f".json?{asked}")).json()["degraded"]
    assert str(folder) in owners
    assert "Try: " in owners
    (bobs,) = (await served.by("bob").get(f".json?{asked}")).json()["degraded"]
    assert bobs == "no reranker, results keep the order of fusion: The reranker folder …"
    assert "Try: " not in bobs
    for path in (f"?{asked}", f".json?{asked}"):
        assert str(tmp_path) not in (await served.by("bob").get(path)).text


async def test_what_a_search_goes_without_otherwise_stays_in_sight(served: Served) -> None:
    page = soup(await served.by("bob").get('?q="tomatoes want"&sealed=1'))
    assert "stems" in page.select_one(".hy-degraded").get_text()


async def test_the_page_across_databases_says_once_that_there_is_no_reranker(
    filled: Filled, serve: Serve
) -> None:
    other = filled.path.with_name("other.db")
    shutil.copy(filled.path, other)
    settings = {"key-file": str(filled.key_file)}
    served = await serve(filled.path, other, options={"notes": settings, "other": settings})
    page = soup(await served.by("root").get("/-/hybrid?q=water+tomatoes&deep=1"))
    assert len(page.select(".hy-vault > .hy-results")) == 2
    assert len(page.select(".hy-unranked")) == 1
    assert not page.select(".hy-degraded")


async def test_an_unknown_memory_database_or_vault_says_so(served: Served) -> None:
    bob = served.by("bob")
    missing = await bob.get(f"{served.base}/memories/00000000-0000-4000-8000-00000000ffff")
    assert missing.status_code == 404
    assert "No such memory" in missing.text
    assert (await bob.get("/nowhere/-/hybrid")).status_code == 404


@pytest.mark.parametrize("rest", ["/newer", "/new/one", "/", ".xml", "/memories", "/memories/"])
async def test_an_address_that_leads_nowhere_is_a_404(served: Served, rest: str) -> None:
    for actor in ("bob", None):
        response = await served.by(actor).get(served.base + rest)
        assert response.status_code == 404
        assert "Nothing here" in response.text


@pytest.mark.parametrize("rest", ["/new.json", "/memories/a/b/c.json", "/new/json.json"])
async def test_an_address_of_json_that_leads_nowhere_is_a_404_in_json(
    served: Served, rest: str
) -> None:
    response = await served.by("bob").get(served.base + rest)
    assert response.status_code == 404
    assert response.json()["ok"] is False


async def test_a_database_without_a_vault_says_how_to_make_one(serve: Serve, tmp_path: Any) -> None:
    path = tmp_path / "plain.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (x)")
    served = await serve(path)
    response = await served.by("root").get("")
    assert response.status_code == 404
    assert "memory-store init" in response.text
    answer = (await served.by("root").sql("select hybrid_search('x') answer"))[0]["answer"]
    assert "holds no vault" in answer


async def test_private_queries_stand_in_no_address(private: Served) -> None:
    form = soup(await private.get("")).select_one("form.hy-form")
    assert form["method"] == "post"
    response = await private.submit("", {"q": "tomatoes"}, follow_redirects=True)
    page = soup(response)
    assert response.status_code == 200
    assert "tomatoes" not in str(response.url)
    assert page.select_one(".hy-result h2").get_text().strip() == "Watering the tomatoes"
    assert not [link for link in page.select("a[href]") if "tomatoes" in link["href"]]
    narrowed = await private.submit("", {"q": "tomatoes", "topic": "garden"}, follow_redirects=True)
    narrowed = soup(narrowed)
    assert len(narrowed.select(".hy-result")) == 1
    across = await private.submit("/-/hybrid", {"q": "tomatoes"}, follow_redirects=True)
    assert "tomatoes" not in str(across.url)
    across = soup(across)
    assert across.select_one("form.hy-form")["method"] == "post"
    assert across.select_one(".hy-result h2").get_text().strip() == "Watering the tomatoes"
    assert not [link for link in across.select("a[href]") if "tomatoes" in link["href"]]
    assert not across.select("button[name=narrow]")  # the form there has no results of one database


async def test_the_page_across_databases_asks_each_vault_the_asker_may_search(
    served: Served,
) -> None:
    page = await served.by("bob").get("/-/hybrid?q=tomatoes")
    assert "Watering the tomatoes" in soup(page).get_text()
    stranger = await served.get("/-/hybrid?q=tomatoes")
    assert stranger.status_code == 200
    assert "Watering" not in stranger.text
    assert "not open to you" in stranger.text


async def test_the_machinery_of_a_vault_is_hidden_without_configuration(
    served: Served, serve: Serve, tmp_path: Path
) -> None:
    hidden = set(await served.datasette.get_database("notes").hidden_table_names())
    shown = set(await served.datasette.get_database("notes").table_names()) - hidden
    assert not [name for name in shown if name.startswith("vault_")]
    assert "memories" in shown
    with sqlite3.connect(tmp_path / "plain.db") as connection:
        connection.execute("create table vault_slots (x)")
    other = await serve(tmp_path / "plain.db")
    assert await other.datasette.get_database("plain").hidden_table_names() == []


async def test_addresses_keep_a_base_url(filled: Filled, serve: Serve) -> None:
    settings = {"key-file": str(filled.key_file)}
    served = await serve(
        filled.path, options={"notes": settings}, settings={"base_url": "/prefix/"}
    )
    page = soup(await served.by("root").get("?q=tomatoes"))
    own = [tag["href"] for tag in page.select(".hy-page a[href]")]
    assert own
    assert all(href.startswith(("/prefix/", "#")) for href in own)
    assert page.select_one("form.hy-form")["action"] == "/prefix/notes/-/hybrid"


async def test_a_full_queue_is_said_at_once_and_other_pages_go_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datasette_hybrid.requests import questions

    queue = admission.WorkQueue(workers=1, waiting=1)
    monkeypatch.setattr(questions, "work", queue)
    release = threading.Event()
    busy = [asyncio.ensure_future(queue.run(release.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    try:
        response = await served.by("bob").get(".json?q=tomatoes")
        assert response.status_code == 429
        assert response.headers["retry-after"] == "1"
        page = await served.by("bob").get("?q=tomatoes")
        assert page.status_code == 429
        assert soup(page).find("a", string="Try again")["href"] == "?q=tomatoes"
        assert (await served.by("bob").get("/notes/memories")).status_code == 200
    finally:
        release.set()
        await asyncio.gather(*busy)
    assert (await served.by("bob").get(".json?q=tomatoes")).status_code == 200
