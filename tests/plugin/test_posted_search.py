"""A search that belongs in no address, on its way through a memory's page and its buttons."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup

from .conftest import Filled, Serve, Served

ONE = "00000000-0000-4000-8000-000000000001"
PAGE = f"/notes/-/hybrid/memories/{ONE}"
SEARCH = {"q": "tomatoes", "type": "note"}


@pytest.fixture
async def private(filled: Filled, serve: Serve) -> Served:
    """The vault, whose queries stand in no address."""
    settings = {"key-file": str(filled.key_file), "private-queries": True}
    return (await serve(filled.path, options={"notes": settings})).by("root")


def form(response: Any, action: str) -> dict[str, str]:
    """The hidden fields of the form that is sent to ``action``."""
    assert response.status_code == 200, response.text
    found = BeautifulSoup(response.text, "html.parser").select_one(f'form[action="{action}"]')
    assert found is not None, response.text
    fields = {one["name"]: one["value"] for one in found.select("input[type=hidden]")}
    del fields["csrftoken"]
    return fields


async def pressed(served: Served, below: str, fields: dict[str, str]) -> Any:
    """What a button leads to, redirections included, which must take nothing into an address."""
    done = await served.submit(PAGE + below, fields, PAGE, follow_redirects=True)
    assert "tomatoes" not in str(done.url)
    assert [step.status_code for step in done.history] in ([], [307])
    return done


@pytest.mark.parametrize(
    ("below", "more"),
    [
        ("/done", {}),
        ("/reopen", {}),
        ("/topics", {"add": "ripe"}),
        ("/topics", {"remove": "garden"}),
    ],
)
async def test_the_way_back_stays_after_a_button(
    private: Served, below: str, more: dict[str, str]
) -> None:
    shown = await pressed(private, "", SEARCH)
    sent = form(shown, PAGE + ("/done" if below == "/reopen" else below))
    assert sent == SEARCH
    after = await pressed(private, below, {**sent, **more})
    assert form(after, "/notes/-/hybrid") == SEARCH


async def test_a_copy_is_published_with_the_way_back(private: Served) -> None:
    made = await private.send(
        "POST", "/collections.json", {"name": "team"}, headers={"Authorization": "Bearer nothing"}
    )
    assert made.status_code == 201, made.text
    search = {**SEARCH, "collection": "personal"}
    sent = form(await pressed(private, "", search), f"{PAGE}/publish")
    after = await pressed(private, "/publish", {**sent, "target": made.json()["rows"][0]["id"]})
    assert "This is the copy." in after.text
    assert form(after, "/notes/-/hybrid") == search


async def test_what_is_left_is_searched_again_after_a_deletion(private: Served) -> None:
    sent = form(await pressed(private, "", SEARCH), f"{PAGE}/delete")
    asked = await pressed(private, "/delete", sent)
    assert "Delete this memory?" in asked.text
    sure = form(asked, f"{PAGE}/delete")
    assert {name: sure[name] for name in SEARCH} == SEARCH
    after = await pressed(private, "/delete", sure)
    assert "Deleted for good." in after.text
    assert 'value="tomatoes"' in after.text
    assert ONE not in after.text


async def test_elsewhere_the_address_has_the_search(served: Served) -> None:
    shown = await served.by("root").get(f"{PAGE}?q=tomatoes")
    assert form(shown, f"{PAGE}/done?q=tomatoes") == {}
    done = await served.by("root").submit(f"{PAGE}/done?q=tomatoes", {}, PAGE)
    assert (done.status_code, done.headers["location"]) == (303, f"{PAGE}?q=tomatoes")
