"""A memory that a search led to, without a script: its marks, and the results beside it."""

from __future__ import annotations

from typing import Any

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, soup

QUERY = "?q=quinces&limit=2"


@pytest.fixture
def quinces(filled: Filled) -> Filled:
    texts = ["Quinces. " * 5, "A quince, and `quince.jelly`.", "One quince of [[many]].", "Quince?"]
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        drafts = [MemoryDraft(text, title=f"Quince {n}") for n, text in enumerate(texts)]
        store.add_many(drafts, embed=False)
        code: Any = {"type": "code", "metadata": {"language": "python"}}
        text = "def peel_quince():\n    '''Peel it,\n    the quince.'''\n"
        store.add_many([MemoryDraft(text, ref="q.py", title="q.py", **code)], embed=False)
    return filled


@pytest.fixture
async def served(quinces: Filled, serve: Serve) -> Served:
    return (await serve(quinces.path, options=quinces.options(allow=ALLOW))).by("root")


def results(response: Any) -> list[tuple[str, str]]:
    """The titles of a page of results, and where they lead."""
    return [(one.text.strip(), one["href"]) for one in soup(response).select(".hy-result h2 a")]


def beside(response: Any) -> dict[str, str]:
    """The links of a memory's page to the results before and after it."""
    return {one["rel"][0]: one["href"] for one in soup(response).select(".hy-back a[rel]")}


def marks(response: Any) -> list[str]:
    return [one.text for one in soup(response).select("article mark")]


async def test_results_lead_from_one_to_the_next_and_nothing_is_searched(served: Served) -> None:
    (one, first), (two, second) = results(await served.get(QUERY))
    heard: list[str] = []
    served.store.report_to(lambda event, *_: heard.append(event))
    page = await served.get(first)
    assert beside(page) == {"next": second}
    assert soup(page).h1.text == one
    assert beside(await served.get(second))["prev"] == first
    assert soup(await served.get(second)).h1.text == two
    assert "search" not in heard


async def test_the_last_of_a_page_leads_to_the_first_of_the_next(served: Served) -> None:
    shown = results(await served.get(QUERY))
    further = beside(await served.get(shown[-1][1]))["next"]
    assert further.startswith(f"{served.base}/first?")
    third = await served.get(further, follow_redirects=True)
    assert soup(third).h1.text not in dict(shown)
    fourth = await served.get(beside(third)["next"], follow_redirects=True)
    assert beside(fourth)["prev"] == str(third.url).removeprefix("http://localhost")
    back = await served.get(soup(third).select_one(".hy-back a")["href"])
    assert soup(third).h1.text in dict(results(back))


async def test_the_words_of_the_query_are_marked_in_whatever_form(served: Served) -> None:
    pages = [await served.get(href) for _, href in results(await served.get("?q=quince&limit=9"))]
    found = {soup(page).h1.text: marks(page) for page in pages}
    assert found["Quince 0"] == ["Quince"] + ["Quinces"] * 5
    assert found["Quince 1"] == ["Quince", "quince", "quince"]
    assert marks(await served.get(results(await served.get("?q=quince"))[0][1].split("?")[0])) == []
    (_, typo), *_ = results(await served.get("?q=quinnce+type:note"))
    assert "Quince" in marks(await served.get(typo))


async def test_patterns_are_marked_too(served: Served) -> None:
    ((_, href),) = results(await served.get("?q=quince%5C.j%5Cw%2B&mode=literal"))
    assert marks(await served.get(href)) == ["quince.jelly"]


async def test_source_code_is_marked_in_its_lines(served: Served) -> None:
    ((_, href),) = results(await served.get("?q=peel+quince&type=code"))
    shown = soup(await served.get(href))
    lines = [[mark.text for mark in one.select("mark")] for one in shown.select(".hy-line")]
    assert lines == [["peel_quince"], ["Peel"], ["quince"]]
    assert "def peel_quince():" in shown.select_one(".hy-line code").text


async def test_what_was_edited_keeps_its_neighbours_and_what_is_gone_is_passed_over(
    served: Served,
) -> None:
    (_, first), (_, second), (_, third) = results(
        await served.get("?q=quinces&status=open&limit=3")
    )
    await served.submit(f"{second.split('?')[0]}/done?{second.split('?')[1]}", {}, second)
    assert beside(await served.get(second)) == {"prev": first, "next": third}
    served.store.delete(second.split("/")[-1].split("?")[0])
    assert beside(await served.get(first)) == {"next": third}
    assert beside(await served.get(third))["prev"] == first


async def test_after_a_rest_the_search_is_made_again(served: Served) -> None:
    (_, first), (_, second) = results(await served.get(QUERY))
    served.vault.rest()
    assert not served.vault.is_open
    assert beside(await served.get(first)) == {"next": second}


async def test_others_have_results_of_their_own(served: Served) -> None:
    (_, first), (_, second) = results(await served.get(QUERY))
    assert beside(await served.by("bob").get(first)) == {"next": second}  # who may read as much
    for path in (first, f"{served.base}/first{QUERY}"):
        assert (await served.by("alice").get(path)).status_code == 403
        assert (await served.by(None).get(path)).status_code == 403


async def test_a_search_that_cannot_be_made_leaves_the_memory_to_be_read(served: Served) -> None:
    page = results(await served.get(QUERY))[0][1].split("?")[0]
    for query in (
        "?q=quince&since=never",
        "?q=quince&collection=nowhere",
        "?limit=900",
        "?like=zz",
    ):
        shown = await served.get(page + query)
        assert (shown.status_code, beside(shown)) == (200, {}), query


async def test_there_is_no_first_of_nothing(served: Served) -> None:
    for query in ("", "?q=type:bookmark"):
        led = await served.get(f"{served.base}/first{query}")
        assert (led.status_code, led.headers["location"]) == (
            303,
            served.base + query.replace(":", "%3A"),
        )


async def test_in_a_private_search_no_address_holds_the_query(
    quinces: Filled, serve: Serve
) -> None:
    options = quinces.options(private_queries=True, allow=ALLOW)
    served = (await serve(quinces.path, options=options)).by("root")
    asked = {"q": "quinces", "limit": "2"}
    shown = await served.submit(served.base, asked, follow_redirects=True)
    buttons = soup(shown).select(".hy-result h2 button")
    titles, seen = [], []
    page = await served.submit(buttons[0]["formaction"], asked, served.base, follow_redirects=True)
    for _ in range(4):
        titles.append(soup(page).h1.text)
        seen += [str(page.url), *beside(page).values()]
        assert "Quince" in marks(page)
        page = await served.get(beside(page)["next"], follow_redirects=True)
    assert len({*titles}) == 4
    assert not [one for one in seen if "quince" in one.lower()]
