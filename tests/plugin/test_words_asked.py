"""Whether words occur, which begin so, and which topics are near: who may know it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from bs4 import BeautifulSoup

from .conftest import Served

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
