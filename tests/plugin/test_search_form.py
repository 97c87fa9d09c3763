"""The search form: what of an address it carries along, offers and leaves out."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from bs4 import BeautifulSoup

from memory_store.access import UNREAD_MODES
from memory_store.records import MODES

from .conftest import Served, soup

ONE = "00000000-0000-4000-8000-000000000001"


def submitted(page: BeautifulSoup) -> list[tuple[str, str]]:
    """What a browser would send for the form as it stands, without its token and empty fields."""
    fields = page.select(".hy-form [name]") + page.select("input[form=hy-form]")
    pairs = []
    for field in fields:
        if field.get("type") == "checkbox" and not field.has_attr("checked"):
            continue
        chosen = field.select_one("option[selected]") if field.name == "select" else field
        pairs.append((field["name"], chosen.get("value", "") if chosen else ""))
    return [(name, value) for name, value in pairs if value and name != "csrftoken"]


async def test_the_form_carries_every_option_of_the_address_along(served: Served) -> None:
    asked = (
        "budget=900&budget_ms=4000&meta=a%3Db&min_score=0.01&rerank=0&expand=0&type=note"
        "&topic=garden&topic=water&recipe=gno&deep=1&sealed=1&limit=7&status=open&since=2000-01-01"
        f"&until=2100-01-01&collection=personal&mode=keyword&why={ONE}&explain=1"
    )
    page = soup(await served.by("bob").get(f"?q=tomatoes&{asked}"))
    assert page.select_one("details.hy-options").has_attr("open")
    assert sorted(submitted(page)) == sorted([("q", "tomatoes"), *parse_qsl(asked)])


async def test_a_refused_option_stays_in_the_form_to_be_mended(served: Served) -> None:
    for asked in ("recipe=nosuch&budget=900", "budget=lots", "since=someday"):
        response = await served.by("bob").get(f"?q=tomatoes&{asked}")
        assert response.status_code == 400
        expected = [pair for pair in parse_qsl(asked) if pair[0] != "recipe"]
        assert set(expected) <= set(submitted(soup(response)))


async def test_a_private_search_carries_its_options_and_each_filter_once(private: Served) -> None:
    asked = {"q": "tomatoes", "topic": "garden", "budget": "900"}
    page = soup(await private.submit("", asked, follow_redirects=True))
    fields = submitted(page)
    assert ("budget", "900") in fields
    assert fields.count(("topic", "garden")) == 1


async def test_collections_are_offered_by_name_to_readers_only(served: Served) -> None:
    offered = soup(await served.by("bob").get("")).select("select[name=collection] option")
    assert [option.get_text() for option in offered] == ["All", "personal"]
    other = soup(await served.by("alice").get(""))
    assert other.select_one("select[name=collection]") is None
    assert other.select_one("input[name=collection]")["type"] == "text"


async def test_parameters_that_mean_nothing_are_ignored_and_in_no_link(served: Served) -> None:
    bob = served.by("bob")
    page = soup(await bob.get("?q=tomatoes&utm_source=post&limit="))
    assert page.select(".hy-result")
    links = [link["href"] for link in page.select(".hy-page a[href*='?']")]
    assert not [link for link in links if "utm_source" in link or "limit" in link]
    assert (await bob.get(page.find("a", string="JSON")["href"])).status_code == 200


async def test_the_page_across_databases_carries_options_too(served: Served) -> None:
    page = soup(await served.by("bob").get("/-/hybrid?q=tomatoes&recipe=gno&continue=x"))
    assert sorted(submitted(page)) == [("q", "tomatoes"), ("recipe", "gno")]


@pytest.mark.parametrize(
    "filters", ["type=note", "topic=garden", "topic=garden&since=2000", "q=&type=note&mode="]
)
async def test_filters_alone_make_the_list_that_they_make_in_a_query(
    served: Served, filters: str
) -> None:
    page = soup(await served.by("bob").get(f"?{filters}&status=open"))
    assert [title.get_text(strip=True) for title in page.select(".hy-result h2")]
    assert page.select(".hy-chips")
    assert not page.select(".hy-welcome")
    prefixes = (
        filters.replace("=", ":").replace("&", " ").removeprefix("q: ").removesuffix(" mode:")
    )
    typed = await served.by("bob").get(".json", params={"q": prefixes, "status": "open"})
    chosen = await served.by("bob").get(f".json?{filters}&status=open")
    assert [row["id"] for row in chosen.json()["rows"]] == [
        row["id"] for row in typed.json()["rows"]
    ]
    assert chosen.json()["facets"] == typed.json()["facets"]


async def test_without_a_query_and_without_a_filter_there_is_nothing_to_list(
    served: Served,
) -> None:
    for address in (".json?q=", ".json?mode=keyword", ".json?mode=literal&type=note"):
        refused = await served.by("bob").get(address)
        assert (refused.status_code, refused.json()["parameter"]) == (400, "q")
    assert soup(await served.by("bob").get("?mode=keyword")).select(".hy-welcome")


async def test_a_memory_leads_back_to_a_list_by_filters(served: Served) -> None:
    listed = soup(await served.by("bob").get("?type=note"))
    opened = soup(await served.by("bob").get(listed.select_one(".hy-result h2 a")["href"]))
    back = opened.select_one(".hy-back a")
    assert (back.get_text(), back["href"]) == ("Back to the results", f"{served.base}?type=note")


async def test_each_offered_mode_says_what_it_is_best_for_with_a_search_to_try(
    served: Served,
) -> None:
    for actor, modes in (("bob", MODES), ("alice", UNREAD_MODES)):
        page = soup(await served.by(actor).get(""))
        offered = [option["value"] for option in page.select("select[name=mode] option")]
        shown = page.select(".hy-help .hy-modes div")
        assert len(shown) == len(offered) == len(modes)
        for one, mode in zip(shown, offered, strict=True):
            way = dict(parse_qsl(urlsplit(one.select_one("a")["href"]).query))
            assert way.get("mode", "") == mode
            assert way["q"] == one.select_one("code").get_text()
            answer = await served.by(actor).get(f"?{urlencode(way)}")
            assert answer.status_code == 200


async def test_a_private_vault_shows_examples_of_modes_without_an_address(private: Served) -> None:
    shown = soup(await private.by("root").get("")).select(".hy-help .hy-modes div")
    assert shown
    assert not [one for one in shown if one.select_one("a")]
