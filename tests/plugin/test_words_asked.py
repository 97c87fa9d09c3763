"""Whether words occur, which begin so, and which topics are near: who may know it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from bs4 import BeautifulSoup

from .conftest import Served, soup

ONE = "00000000-0000-4000-8000-000000000001"


async def exists(served: Served, actor: Any, **asked: Any) -> Any:
    query = urlencode(asked, doseq=True)
    return await served.by(actor).get(f"{served.base}/exists.json?{query}")


async def test_a_reader_learns_of_each_term_whether_it_is_there(served: Served) -> None:
    found = (await exists(served, "bob", term=["tomatoes", "zanzibar"])).json()
    assert [(one["term"], one["exists"]) for one in found["rows"]] == [
        ("tomatoes", True),
        ("zanzibar", False),
    ]
    spelled = (await exists(served, "bob", term="tomatoes", exact=1)).json()["rows"][0]
    assert (spelled["exists"], spelled["exact"]) == (True, True)


async def test_a_searcher_learns_what_a_search_in_quotes_says_and_no_more(served: Served) -> None:
    alice = served.by("alice")
    for term in ("tomatoes", "tomato", "every second day", "zanzibar"):
        (one,) = (await exists(served, "alice", term=term)).json()["rows"]
        query = urlencode({"q": f'"{term}"', "mode": "keyword"})
        searched = (await alice.get(f"{served.base}.json?{query}")).json()
        assert one["memories"] == searched["totals"]["matched"]
        assert one["exists"] == (searched["totals"]["matched"] > 0)
        assert (one["exact"], one["opened"]) == (False, 0)


@pytest.mark.parametrize(
    ("asked", "status"), [({"term": "tomatoes", "exact": 1}, 403), ({"term": ["a", "b"]}, 400)]
)
async def test_a_searcher_asks_no_spelling_and_one_term_at_a_time(
    served: Served, asked: dict[str, Any], status: int
) -> None:
    assert (await exists(served, "alice", **asked)).status_code == status


async def test_others_learn_nothing(served: Served) -> None:
    for actor in (None, "mallory"):
        assert (await exists(served, actor, term="tomatoes")).status_code == 403
        (row,) = await served.by(actor).sql("select hybrid_exists('tomatoes') one")
        assert row["one"] is None
    for actor in (None, "mallory", "alice"):
        for path in ("/words.json?prefix=to", f"/memories/{ONE}/topics.json"):
            assert (await served.by(actor).get(served.base + path)).status_code == 403


def said(answer: Any) -> list[str]:
    return [one.get_text(" ", strip=True) for one in soup(answer).select(".hy-existing li")]


@pytest.mark.usefixtures("no_watch")
async def test_the_page_says_of_each_word_what_the_json_says(served: Served) -> None:
    bob, page = served.by("bob"), f"{served.base}/exists"
    asked = 'tomatoes "every second day" zanzibar type:note'
    rows = (await exists(served, "bob", term=["every second day", "tomatoes", "zanzibar"])).json()
    phrase, word, nothing = (one["memories"] for one in rows["rows"])
    assert (phrase, nothing) == (1, 0)
    assert word > 1
    answer = await bob.get(f"{page}?{urlencode({'q': asked})}")
    assert said(answer) == [
        "every second day yes: may be in 1 memory",
        f"tomatoes yes: may be in {word} memories",
        "zanzibar no: certainly in no memory that you may search",
    ]
    mine = [one for one in served.vault.audit.waiting() if one.actor == "bob"]
    assert {(one.action, one.surface) for one in mine} == {("search", "json"), ("search", "page")}
    assert {one.opened for one in mine} == {0}
    links = [one["href"] for one in soup(answer).select(".hy-existing a")]
    assert links == [f"{served.base}?q=%22every%20second%20day%22", f"{served.base}?q=tomatoes"]
    for link in links:
        assert soup(await bob.get(link)).select(".hy-result")
    shown = soup(answer)
    assert shown.title.text.startswith("Is a word there? · ")
    assert shown.select_one("input[name=q]")["value"] == asked
    assert not said(await bob.get(page))


async def test_a_searcher_asks_the_page_one_word_and_others_none(served: Served) -> None:
    alice, page = served.by("alice"), f"{served.base}/exists"
    (row,) = (await exists(served, "alice", term="tomatoes")).json()["rows"]
    (line,) = said(await alice.get(f"{page}?q=tomatoes"))
    assert line == f"tomatoes yes: may be in {row['memories']} memories"
    for wrong in ("tomatoes+zanzibar", "-", "type:note"):
        refused = await alice.get(f"{page}?q={wrong}")
        assert refused.status_code == 400, wrong
        assert soup(refused).select_one("[role=alert]").text.strip()
        assert not said(refused)
    assert "1 to 100 words" in soup(refused).select_one("[role=alert]").text
    for actor in (None, "mallory"):
        assert (await served.by(actor).get(f"{page}?q=tomatoes")).status_code == 403


async def test_where_nothing_is_found_the_page_is_one_link_away(served: Served) -> None:
    for actor, end in (("bob", "?q=zanzibar"), ("alice", "")):
        found = soup(await served.by(actor).get(f"{served.base}?q=zanzibar&mode=keyword"))
        link = found.select_one(".hy-empty a[href*='/exists']")
        assert link["href"] == f"{served.base}/exists{end}"
        answer = await served.by(actor).get(link["href"])
        assert answer.status_code == 200
        assert bool(said(answer)) == bool(end)


async def test_with_private_queries_no_word_is_in_an_address(private: Served) -> None:
    page = f"{private.base}/exists"
    form = soup(await private.get(page)).select_one("form:has(#hy-words)")
    assert form["method"] == "post"
    away = await private.submit(page, {"q": "tomatoes"}, page=page)
    assert away.status_code == 303
    assert "tomatoes" not in away.headers["location"]
    (line,) = said(await private.get(away.headers["location"]))
    assert line.startswith("tomatoes yes: ")


async def test_sql_says_1_and_0(served: Served) -> None:
    sql = "select hybrid_exists('tomatoes') a, hybrid_exists('zanzibar') b, hybrid_exists('-') c"
    for actor in ("alice", "bob"):
        assert await served.by(actor).sql(sql) == [{"a": 1, "b": 0, "c": None}]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("", "term"),
        ("term=%2D", "term"),
        ("term=a&exact=perhaps", "exact"),
        ("term=a&colour=red", "colour"),
    ],
)
async def test_what_is_wrong_is_named(served: Served, query: str, parameter: str) -> None:
    answer = await served.by("bob").get(f"{served.base}/exists.json?{query}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, parameter)


@pytest.mark.parametrize("wrong", [{"exact": {}}, {"exact": [""]}, {"collection": {}}])
async def test_what_is_wrong_in_a_body_is_named(served: Served, wrong: dict[str, Any]) -> None:
    path = f"{served.base}/exists.json"
    answer = await served.by("bob").send("POST", path, {"term": ["boathouse"], **wrong})
    assert (answer.status_code, answer.json()["parameter"]) == (400, *wrong)
    for other in ({"prefix": ["t"]}, {"limit": ["3"]}):
        answer = await served.by("bob").send("POST", f"{served.base}/words.json", other)
        assert (answer.status_code, answer.json()["parameter"]) == (400, *other)


async def test_words_begin_so(served: Served) -> None:
    bob = served.by("bob")
    found = (await bob.get(f"{served.base}/words.json?prefix=TOM&limit=3")).json()
    assert 0 < len(found["rows"]) <= 3
    assert all(one["word"].startswith("tom") for one in found["rows"])
    posted = await bob.send("POST", f"{served.base}/words.json", {"prefix": "tom", "limit": 3})
    assert posted.json() == found
    for limit in ("0", "x", "1001"):
        wrong = await bob.get(f"{served.base}/words.json?prefix=t&limit={limit}")
        assert (wrong.status_code, wrong.json()["parameter"]) == (400, "limit")


async def test_the_page_offers_words_to_those_alone_who_may_know_them(served: Served) -> None:
    for actor, offered in (("bob", True), ("alice", False)):
        page = BeautifulSoup((await served.by(actor).get(served.base)).text, "html.parser")
        field = page.select_one("input[name=q]")
        assert field is not None
        assert (field.get("data-words") is not None) == offered
        assert (page.select_one("datalist#hy-words") is not None) == offered


async def test_topics_of_near_memories_are_suggested_and_added_by_a_button_alone(
    served: Served,
) -> None:
    for number in range(3):
        served.store.add(f"Varnish the hull of the dinghy, coat {number}", topics=["boat", "paint"])
    bare = served.store.add("Varnish the hull of the dinghy, coat 9", topics=["paint"]).id
    rows = (await served.by("bob").get(f"{served.base}/memories/{bare}/topics.json")).json()["rows"]
    assert {"topic": "boat", "neighbours": 3} in rows
    assert "paint" not in {one["topic"] for one in rows}
    assert served.store.get(bare).topics == ("paint",)
    root, here = served.by("root"), f"{served.base}/memories/{bare}"
    page = BeautifulSoup((await root.get(here)).text, "html.parser")
    assert page.select_one(".hy-suggested button[name=add][value=boat]") is not None
    reader = BeautifulSoup((await served.by("bob").get(here)).text, "html.parser")
    assert not reader.select(".hy-suggested")
    await root.submit(f"{here}/topics", {"add": "boat"}, page=here)
    assert set(served.store.get(bare).topics) == {"boat", "paint"}
