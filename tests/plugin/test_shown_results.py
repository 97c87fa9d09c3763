"""Results on the pages: their numbers, titles and previews."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup

from memory_store.store import MemoryStore

from .conftest import ALLOW, HOSTILE, Filled, Serve, Served, soup


def ranks(page: BeautifulSoup) -> list[str]:
    return [" ".join(rank.get_text().split()) for rank in page.select(".hy-rank")]


def store(served: Served) -> MemoryStore:
    return served.store


async def test_results_are_numbered_also_on_later_pages(served: Served) -> None:
    bob = served.by("bob")
    first = soup(await bob.get("?q=tomatoes&limit=1"))
    assert ranks(first) == ["Result 1"]
    assert first.select_one(".hy-range").get_text() == "Results 1–1 of 3"
    second = soup(await bob.get(first.select_one("a.hy-next")["href"]))
    assert ranks(second) == ["Result 2"]
    assert second.select_one(".hy-range").get_text() == "Results 2–2 of 3"
    back = soup(await bob.get(second.select_one(".hy-paging a")["href"]))
    assert ranks(back) == ["Result 1"]


async def test_who_wrote_a_memory_is_shown_to_those_who_may_read_it(served: Served) -> None:
    root = served.by("root")
    metadata = {"by": "<b>codex</b>"}
    id_ = store(served).add("A zeppelin", topics=["hangar"], metadata=metadata).id
    (row,) = soup(await root.get("?topic=hangar")).select(".hy-result .hy-meta")
    assert "by <b>codex</b>" in row.get_text()
    memory = soup(await root.get(f"/notes/-/hybrid/memories/{id_}"))
    written = memory.select_one(".hy-record a[href*='by=']")
    assert written.get_text() == "<b>codex</b>"
    (found,) = soup(await root.get(written["href"])).select(".hy-result")
    assert id_ in str(found)
    assert "codex" not in (await served.by("alice").get("?q=zeppelin")).text


async def test_what_is_certain_stands_apart_from_what_may_fit(served: Served) -> None:
    root = served.by("root")
    store(served).add(
        "The zeppelin hangar needs a key.", title="Zeppelin hangar", topics=["hangar"]
    )
    beside = "The boat lies beside an old hangar by the river, under a tarpaulin, until spring."
    store(served).add(beside, title="Laying up")
    answer = (await root.get(".json?q=hangar&rerank=0")).json()
    page = soup(await root.get("?q=hangar&rerank=0"))
    certain = answer["totals"]["certain"]
    assert 0 < certain < len(answer["rows"])
    assert page.select_one("[data-said]").get_text().startswith(f"{certain} certain; ")
    first, rest = page.select(".hy-main > ol.hy-results")
    assert len(first.select(".hy-result")) == certain
    assert rest["start"] == str(certain + 1)
    assert page.select_one(".hy-may-fit").get_text() == "These may fit"
    narrowed = (await root.get(".json?q=hangar&rerank=0&narrow=topic:nothing")).json()
    assert narrowed["totals"]["certain"] == 0
    none = soup(await root.get("?q=hangar&rerank=0&until=1900"))
    assert none.select_one("[data-said]").get_text() == "0 results"
    unsure = soup(await root.get("?q=hangar&recipe=gnosis"))
    assert "certain" not in unsure.select_one("[data-said]").get_text()
    assert unsure.select(".hy-may-fit") == []
    listed = soup(await root.get("?topic=hangar"))
    assert listed.select_one("[data-said]").get_text() == "1 result"
    assert listed.select_one(".hy-main > ol.hy-results .hy-result")
    assert listed.select(".hy-score, .hy-may-fit, .hy-far") == []
    nonsense = soup(await root.get("?q=xyzzy+plugh&rerank=0"))
    said = nonsense.select_one("[data-said]").get_text()
    assert re.fullmatch("Nothing (certain|seems to fit); [0-9]+ (may fit|comes? nearest)", said)
    assert nonsense.select(".hy-may-fit") == []


async def test_what_is_far_from_the_best_one_is_folded(served: Served) -> None:
    root = served.by("root")
    beside = "The boat lies beside an old hangar by the river, under a tarpaulin, until spring."
    store(served).add("A key to the hangar.", title="Zeppelin hangar", topics=["hangar"])
    store(served).add(beside, title="Laying up")
    rows = (await root.get(".json?q=zeppelin+hangar&rerank=0")).json()["rows"]
    least = rows[0]["score"] / 8
    far = [
        str(row["rank"])
        for row in rows
        if row["score"] < least and (row["keyword_rank"], row["topic_rank"]) == (None, None)
    ]
    assert rows[1]["score"] < least, "a word holds it"
    assert len(far) == len(rows) - 2 == 3
    page = soup(await root.get("?q=zeppelin+hangar&rerank=0"))
    fold = page.select_one("details.hy-far:not([open])")
    assert fold.summary.get_text() == "3 more, far less likely"
    assert [rank.removeprefix("Result ") for rank in ranks(fold)] == far
    assert len(page.select(".hy-main > .hy-results .hy-result")) == 2
    assert page.select_one("[data-said]").get_text() == "1 certain; 4 may fit"

    later = soup(await root.get("?q=zeppelin+hangar&rerank=0&limit=2"))
    later = soup(await root.get(later.select_one("a.hy-next")["href"]))
    assert ranks(later) == ["Result 3", "Result 4"]
    assert later.select(".hy-far") == [], "who goes on wants to see them"
    for unsure in ("recipe=gnosis", "mode=keyword"):
        assert soup(await root.get(f"?q=hangar&{unsure}")).select(".hy-far") == []


async def test_for_nonsense_no_preview_is_open(served: Served) -> None:
    root = served.by("root")
    for path, within in (("", ".hy-main"), ("/-/hybrid", ".hy-vault")):
        page = soup(await root.get(f"{path}?q=xyzzy+plugh&rerank=0"))
        assert page.select(f"{within} > .hy-results") == []
        fold = page.select_one(f"{within} > details.hy-far:not([open])")
        assert fold.summary.get_text() == "Show the 3 nearest"
        assert len(fold.select(".hy-preview")) == 3
        assert "Nothing seems to fit; 3 come nearest" in page.get_text()


async def test_the_words_looked_for_are_marked_in_titles(served: Served) -> None:
    page = soup(await served.by("bob").get("?q=water+tomato"))
    title = page.select_one(".hy-result h2")
    assert [mark.get_text() for mark in title.select("mark")] == ["Watering", "tomatoes"]
    assert HOSTILE in soup(await served.by("bob").get("?q=hostile+script")).get_text()


async def test_first_words_stand_in_for_a_title(served: Served) -> None:
    root = served.by("root")
    text = "Potatoes are chitting on the sill\n\nThe rest of it."
    store(served).add(text)
    page = soup(await root.get("?q=potatoes&explain=1"))
    link = page.select_one(".hy-result h2 a")
    assert link.get_text() == "Potatoes are chitting on the sill…"
    assert page.select_one(".hy-explain tbody th").get_text() == link.get_text()
    memory = soup(await root.get(link["href"]))
    assert memory.h1.get_text() == link.get_text()


async def test_a_preview_repeats_no_title_and_keeps_the_lines_of_code(served: Served) -> None:
    root = served.by("root")
    text = "# Standup on beets\n\nRun `beet --sow` then\n\n```python\ndef beets():\n    sow()\n```"
    store(served).add(text, title="Standup on beets")
    preview = soup(await root.get("?q=beets")).select_one(".hy-result .hy-preview")
    assert preview.get_text().startswith("Run beet --sow then")
    assert preview.select_one("code.hy-block").get_text() == "def beets():\n    sow()\n"
    assert [mark.get_text() for mark in preview.select("code mark")] == ["beet", "beets"]


@pytest.mark.parametrize("kind", [{"collection": "source"}, {"type": "code"}], ids=str)
async def test_source_code_keeps_its_lines(served: Served, kind: dict[str, str]) -> None:
    root = served.by("root")
    store(served).collections.create("source", analyser="code")
    text = (
        "def compost(heap):\n    return [layer for layer in heap if layer.is_quite_brown_by_now]\n"
    )
    store(served).add(text + "more = 1", title="compost.py", **kind)
    page = soup(await root.get("?q=compost"), blanks_in=("p",))
    preview = page.select_one(".hy-result .hy-preview")
    assert "hy-code" in preview["class"]
    assert preview.get_text() == text + "more = 1"


async def test_the_page_says_how_many_hold_a_word_where_that_is_more(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for number in range(70):
            store.add(f"Harvest number {number} of the orchard", title=f"Harvest {number}")
        store.collections.create("closed", owner="wanda")
        store.add("A harvest that nobody else knows of", collection="closed")
    settings = filled.options(allow=ALLOW)
    served = await serve(filled.path, options=settings)
    reported = "70 memories hold a word of it"
    asked = "?q=harvest&mode=keyword"
    assert reported in (await served.by("bob").get(asked)).text
    for actor, path in (
        ("alice", asked),
        ("bob", f"{asked}&narrow=type:note"),
        ("bob", "?q=%22harvest+number%22&mode=keyword"),
        ("bob", "?q=tomatoes&mode=keyword"),
    ):
        assert "hold a word" not in (await served.by(actor).get(path)).text, (actor, path)


async def test_a_preview_shows_words_and_marks_those_looked_for(served: Served) -> None:
    text = (
        "# Ferry notes\n\n## Out\n\n"
        "The **ferry to Hook** leaves from the old quay below the mill\nat six; "
        "the `ferry --early` at five.\n\n| ferry | when |\n|---|---|\n| early | five |"
    )
    store = served.store
    store.add(text, title="Ferry notes")
    bob = served.by("bob")
    preview = soup(await bob.get("?q=ferry+hook")).select_one(".hy-result .hy-preview")
    assert preview.get_text() == (
        "Out\nThe ferry to Hook leaves from the old quay below the mill at six; "
        "the ferry --early at five.\n"
        "\nferry · when\nearly · five"
    )
    marks = [mark.get_text() for mark in preview.select("mark")]
    assert marks == ["ferry", "Hook", "ferry", "ferry"]
    row = (await bob.get(".json?q=ferry+hook")).json()["rows"][0]
    assert "**ferry to Hook** leaves from the old quay below the mill\nat six" in row["preview"]


async def test_lists_and_tasks_have_signs_and_topics_stand_once(served: Served) -> None:
    text = "For the boat:\n\n- [x] sails to the loft\n- [ ] batteries home\n- rope\n\n#boat #winter"
    store(served).add(text, title="Laying up")
    first = soup(await served.by("root").get("?q=batteries&mode=keyword")).select_one(".hy-result")
    shown = first.select_one(".hy-preview").get_text()
    assert shown.splitlines()[-3:] == ["☑ sails to the loft", "☐ batteries home", "• rope"]
    assert {one.get_text() for one in first.select(".hy-topic")} == {"boat", "winter"}
