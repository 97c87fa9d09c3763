"""Links on a memory's page, in JSON and in SQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasette_hybrid.memories.markdown import Notes, readable

from .conftest import Served, soup
from .test_markdown import parsed

NEW = {
    "home": {"title": "Home", "text": "See [[Flat|the flat]] and [[Nowhere]].\n\n![[Flat]]"},
    "flat": {"title": "Flat", "text": "# Flat\n\nIt has two rooms. Back [[home]]."},
}


@pytest.fixture
async def linked(served: Served) -> tuple[Served, dict[str, str]]:
    """Two notes that link to each other, written by root; their ids."""
    root, ids = served.by("root"), {}
    for name, values in NEW.items():
        answer = await root.send("POST", "/notes/-/hybrid/memories.json", values)
        ids[name] = answer.json()["rows"][0]["id"]
    return served, ids


async def test_the_page_leads_both_ways(linked: tuple[Served, dict[str, str]]) -> None:
    served, ids = linked
    page = soup(await served.by("bob").get(f"{served.base}/memories/{ids['home']}"))
    text = page.select_one(".hy-text")
    assert text.select_one("p a").get_text() == "the flat"
    assert text.select_one("p a")["href"] == f"{served.base}/memories/{ids['flat']}"
    assert text.select_one(".missing").get_text() == "Nowhere"
    box = text.select_one(".embed")
    assert box.select_one(".title a").get_text() == "Flat"
    assert "It has two rooms." in box.get_text()
    assert [one.get_text() for one in box.select("h2")] == []  # the title stands there already
    lists = page.select_one(".hy-linked")
    assert "It has two rooms" not in lists.get_text()
    assert "Back home." in lists.get_text()
    assert {one.get_text() for one in lists.select("h2")} >= {"Linked from", "Links to", "Related"}


async def test_of_two_notes_of_one_title_the_list_says_which(served: Served) -> None:
    root = served.by("root")
    for values in (
        {"title": "Twin", "text": "One.", "ref": "Twin.md"},
        {"title": "Twin", "text": "Two.", "ref": "sub/Twin.md"},
        {"title": "Inn", "text": "A room.", "ref": "Inn.md"},
        {"title": "All", "text": "[[Twin]], [[sub/Twin]] and [[Inn]]", "ref": "All.md"},
    ):
        answer = await root.send("POST", "/notes/-/hybrid/memories.json", values)
    page = soup(await root.get(f"{served.base}/memories/{answer.json()['rows'][0]['id']}"))
    heading = next(one for one in page.select("h2") if one.get_text() == "Links to")
    shown = [" ".join(one.get_text(" ").split()) for one in heading.find_next("ul").select("li")]
    assert sorted(shown) == ["Inn", "Twin Twin", "Twin sub/Twin"]


async def test_links_and_related_memories_as_json(linked: tuple[Served, dict[str, str]]) -> None:
    served, ids = linked
    answer = await served.by("bob").get(f"{served.base}/memories/{ids['home'][:8]}/links.json")
    assert answer.headers["cache-control"] == "no-store"
    found = answer.json()
    assert found["ok"] is True
    assert [(one["title"], one["kind"], one["target"]) for one in found["out"]] == [
        ("Flat", "wiki", "Flat")
    ]
    assert [(one["id"], one["around"]) for one in found["back"]] == [(ids["flat"], "Back home.")]
    assert found["unresolved"] == [{"target": "Nowhere", "kind": "wiki"}]
    rows = (
        await served.by("bob").get(f"{served.base}/memories/{ids['home']}/related.json?limit=2")
    ).json()
    assert rows["rows"][0]["id"] == ids["flat"]
    assert "links to it" in rows["rows"][0]["why"]
    assert len(rows["rows"]) <= 2
    for limit in ("99", "9" * 5_000):  # more digits than Python turns into a number
        wrong = await served.by("bob").get(
            f"{served.base}/memories/{ids['home']}/related.json?limit={limit}"
        )
        assert (wrong.status_code, wrong.json()["error"]) == (400, "limit: 1 to 50 expected")
    for actor, status in (("alice", 403), (None, 403)):
        for end in ("links", "related"):
            refused = await served.by(actor).get(f"{served.base}/memories/{ids['home']}/{end}.json")
            assert refused.status_code == status
    nowhere = "00000000-0000-4000-8000-00000000ffff"
    assert (
        await served.by("bob").get(f"{served.base}/memories/{nowhere}/links.json")
    ).status_code == 404


async def test_links_in_sql(linked: tuple[Served, dict[str, str]]) -> None:
    served, ids = linked
    sql = f"select memory_links('{ids['home']}') links, memory_links('none') none"
    for actor, sees in (("bob", True), ("alice", False)):
        (row,) = await served.by(actor).sql(sql)
        assert row["none"] is None
        assert (row["links"] is not None) == sees
    (row,) = await served.by("bob").sql(sql)
    assert [one["title"] for one in json.loads(row["links"])["out"]] == ["Flat"]


def notes(**targets: str) -> Notes:
    known: Any = {("wiki", name): one for name, one in targets.items()}
    known |= {("markdown", f"{name}.md"): one for name, one in targets.items()}
    return Notes(lambda one: f"/notes/-/hybrid/memories/{one}", known)


ID = "00000000-0000-4000-8000-000000000001"


def test_relative_links_lead_to_memories_or_look_like_links_to_nothing() -> None:
    text = "[a *b*](A.md) [c](gone.md) ![d](plan.png) [e](https://x.org)"
    page = parsed(readable(text, notes=notes(A=ID)))
    assert [(one.get_text(), one["href"]) for one in page.select("a")] == [
        ("a b", f"/notes/-/hybrid/memories/{ID}"),
        ("e", "https://x.org"),
    ]
    assert [one.get_text() for one in page.select(".missing")] == ["c", "d"]


@pytest.mark.parametrize(
    "text",
    [
        "[x](/notes/-/hybrid/lock)",
        f"[x](/notes/-/hybrid/memories/{ID})",
        "[x](//evil.example)",
        "[x](javascript:alert(1))",
        "[[javascript:alert(1)]]",
        '[[x" onclick="alert(1)]]',
        "`[[A]]`",
        "[[#Here]]",
    ],
)
def test_no_text_makes_an_address_of_its_own(text: str) -> None:
    page = parsed(readable(text, notes=notes(A=ID)))
    assert page.select("a") == []


def test_a_link_to_a_heading_of_the_same_note_leads_there() -> None:
    text = "[[#The Plan|see]] [[#Gone]] [[#^a1]]\n\n## The *plan*\n\n## Else\n\n[[#the plan]]"
    page = parsed(readable(text, notes=notes(A=ID)))
    assert [(one.get_text(), one["href"]) for one in page.select("a")] == [
        ("see", "#heading-1"),
        ("the plan", "#heading-1"),
    ]
    assert [one.get_text() for one in page.select("[id]")] == ["The plan"]
    assert page.select("p")[0].get_text() == "see Gone a1"


@pytest.mark.parametrize("text", ["[[#]]", "[[##]]", "[[#!]]\n\n# !"])
def test_a_link_to_no_word_of_a_heading_stays_text(text: str) -> None:
    page = parsed(readable(text, notes=notes(A=ID)))
    assert page.select("a, [id]") == []
    assert page.select("p")[0].get_text() == text.partition("\n")[0]


def test_an_embed_is_one_deep_and_of_the_part_that_it_names() -> None:
    other = "00000000-0000-4000-8000-000000000002"
    inside = notes(A=ID, B=other)
    text = "# B\n\nAll.\n\n## Part\n\nThis. ![[A]]\n\n![[A]]\n\n## End\n\nNot this.[^1]\n\n[^1]: f"
    outside = Notes(inside.address, inside.targets, {other: ("B", text, inside)})
    page = parsed(readable("![[B#Part]]\n\nIn a line: ![[B]]", notes=outside))
    (box,) = page.select(".embed")
    assert "This." in box.get_text()
    assert "Not this." not in box.get_text()
    assert len(box.select(".embed")) == 0
    assert page.select("p")[-1].select_one("a").get_text() == "B"
    whole = parsed(readable("![[B]] \n\nNote.[^1]\n\n[^1]: mine", notes=outside))
    assert [one["id"] for one in whole.select("li[id]")] == ["fn-note-1"]
