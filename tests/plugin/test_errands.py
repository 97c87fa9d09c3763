"""What a person asked for is still there after unlocking: its options, its address, its secrecy."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from datasette_hybrid.unlock.errands import BELOW, POSTED

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served, soup, unmarked

BASE = "/notes/-/hybrid"
ONE = f"{BASE}/memories/00000000-0000-4000-8000-000000000001"


class Page:
    """A page as a person without scripts uses it: its one form, filled in and sent."""

    def __init__(self, served: Served, response: Any) -> None:
        self.served = served
        self.response = response
        self.cookies = {**served.cookies, **dict(response.cookies)}
        form = soup(response)
        self.form = form.select_one(".hy-card form") or form.select_one("form.hy-form")

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names and values of the form's hidden fields, the token apart."""
        found = self.form.select("input[type=hidden]")
        return [(one["name"], one["value"]) for one in found if one["name"] != "csrftoken"]

    async def send(self, **more: str) -> Page:
        """Press the button."""
        token = self.form.select_one("input[name=csrftoken]")
        data: dict[str, Any] = {"csrftoken": token["value"] if token else "", **more}
        for name, value in self.fields:
            data.setdefault(name, []).append(value)
        client = self.served.datasette.client
        response = await client.post(self.form["action"], data=data, cookies=self.cookies)
        cookies = {**self.cookies, **dict(response.cookies)}
        return Page(Served(self.served.datasette, self.served.database, cookies), response)


async def locked(filled: Filled, serve: Serve, address: str, **options: Any) -> Page:
    served = await serve(filled.path, options={"notes": options})
    return Page(served, await served.get(address))


async def test_every_option_of_a_question_comes_back(filled: Filled, serve: Serve) -> None:
    asked = "?q=tomatoes&mode=keyword&topic=garden&topic=water&since=2001-01-01&like=abc&explain=1"
    page = await locked(filled, serve, asked)
    assert page.response.status_code == 423
    wrong = await page.send(secret="not the passphrase")
    assert wrong.response.status_code == 403
    assert wrong.fields == page.fields  # nothing is lost to a typing error
    right = await wrong.send(secret=PASSPHRASE)
    assert right.response.status_code == 303
    target = urlsplit(right.response.headers["location"])
    assert target.path == "/notes/-/hybrid"
    assert parse_qsl(target.query) == parse_qsl(asked[1:])


async def test_the_address_of_a_memory_comes_back(filled: Filled, serve: Serve) -> None:
    page = await locked(filled, serve, f"{ONE}?q=tomatoes")
    right = await page.send(secret=PASSPHRASE)
    assert right.response.headers["location"] == f"{ONE}?q=tomatoes"
    shown = await right.served.datasette.client.get(
        right.response.headers["location"], cookies=right.cookies
    )
    assert "Watering the tomatoes" in shown.text


async def test_a_private_question_goes_on_by_a_form(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options={"notes": {"private-queries": True}})
    question = {"q": "tomatoes", "topic": "garden"}
    refused = await served.submit("", question, page="/unlock")
    assert refused.status_code == 423
    between = await Page(served, refused).send(secret=PASSPHRASE)
    assert between.response.status_code == 200
    assert "location" not in between.response.headers
    assert between.form["method"] == "post"
    assert between.form["action"] == "/notes/-/hybrid"
    assert PASSPHRASE not in between.response.text
    assert sorted(between.fields) == sorted(question.items())
    sent = await between.send()
    there = sent.response.headers["location"]
    assert (sent.response.status_code, "tomatoes" in there) == (303, False)
    answered = await served.datasette.client.get(there, cookies=sent.cookies)
    assert answered.status_code == 200
    assert "Watering the tomatoes" in unmarked(answered.text)


async def test_a_private_question_in_an_address_leaves_it(filled: Filled, serve: Serve) -> None:
    page = await locked(filled, serve, "?q=tomatoes", **{"private-queries": True})
    between = await page.send(secret=PASSPHRASE)
    assert between.response.status_code == 200
    memory = await locked(filled, serve, f"{ONE}?q=tomatoes", **{"private-queries": True})
    right = await memory.send(secret=PASSPHRASE)
    assert right.response.headers["location"] == ONE


async def test_a_bare_page_is_simply_shown_again(filled: Filled, serve: Serve) -> None:
    page = await locked(filled, serve, "", **{"private-queries": True})
    right = await page.send(secret=PASSPHRASE)
    assert right.response.headers["location"] == "/notes/-/hybrid"


async def test_a_link_from_elsewhere_can_have_nothing_sent(filled: Filled, serve: Serve) -> None:
    page = await locked(filled, serve, f"{BASE}/unlock?_to=/memories/x/delete&_posted=1&sure=1")
    assert ("_posted", "1") not in page.fields
    right = await page.send(secret=PASSPHRASE)
    assert right.response.status_code == 303  # an address to look at, and no form that is sent


FORGED = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@pytest.mark.parametrize(
    ("below", "fields"),
    [
        ("", {"q": "planted"}),
        ("/collections", {"do": "create", "name": "planted", "access": "open"}),
        (ONE.removeprefix(BASE) + "/delete", {"version": "1", "planted": "1"}),
        ("/new", {"text": "planted"}),
        ("/unlock", {"_to": "/new", "_posted": "1", "text": "planted"}),
    ],
)
@pytest.mark.parametrize("headers", [FORGED, {"Origin": "https://evil.example"}])
async def test_nothing_that_another_site_sends_is_carried_or_shown(
    closed: Served, below: str, fields: dict[str, str], headers: dict[str, str]
) -> None:
    """Without cookies, as a browser sends it: Datasette 0.65 lets such a form pass."""
    refused = await closed.datasette.client.post(BASE + below, data=fields, headers=headers)
    assert refused.status_code == 403
    assert "planted" not in refused.text
    assert "secret" not in refused.text  # no form to unlock with, which would carry it


@pytest.mark.parametrize(
    ("below", "fields", "reported"),
    [
        (ONE.removeprefix(BASE) + "/delete", {"version": "1"}, ["Delete memory 00000000"]),
        ("/collections", {"do": "create", "name": "Boats"}, ["collections", "name: Boats"]),
        ("/new", {"text": "Plums <b>\n", "title": "Fruit"}, ["Add a memory", "title: Fruit"]),
    ],
)
async def test_what_is_to_be_sent_is_named_before_it_is_sent(
    closed: Served, below: str, fields: dict[str, str], reported: list[str]
) -> None:
    data = [(BELOW, below), (POSTED, "1"), *fields.items()]
    page = Page(closed, await closed.get("/unlock"))
    between = await page.send(secret=PASSPHRASE, **dict(data))
    assert between.response.status_code == 200
    text = soup(between.response).select_one(".hy-card").text
    assert "Send it now" in text
    for words in reported:
        assert words in text
    assert "<b>" not in between.response.text.partition('class="hy-card"')[2]
    assert dict(between.fields) == fields
    assert between.form["action"] == BASE + below


async def test_only_who_writes_audits_or_unlocked_may_lock_for_everybody(
    filled: Filled, serve: Serve
) -> None:
    allow = {**ALLOW, "hybrid-search": True, "hybrid-audit": {"id": "bob"}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    vault = served.vault
    for who, may in ((None, False), ("alice", False), ("bob", True), ("wanda", True)):
        vault.unlock(PASSPHRASE)
        asked = served.by(who)
        page = soup(await asked.get("?q=tomatoes"))
        assert "notes is unlocked" in page.select_one(".hy-lock").text
        assert bool(page.select(".hy-lock button")) is may
        answer = await asked.submit("/lock", {}, page="?q=tomatoes")
        assert answer.status_code == (303 if may else 403)
        assert vault.locked is may


@pytest.mark.parametrize(
    "target",
    [
        "//elsewhere.example/",
        "/..//elsewhere.example",
        "/../../-/logout",
        "https://elsewhere.example",
        "/\\elsewhere.example",
        "@elsewhere.example/",
        "/lock",
        "/memories/%0d%0aSet-Cookie:a=b",
        ".elsewhere.example/",
    ],
)
async def test_no_address_leads_elsewhere(closed: Served, target: str) -> None:
    page = Page(closed, await closed.get("/unlock", params={"_to": target}))
    right = await page.send(secret=PASSPHRASE, _to=target)
    assert right.response.headers["location"] == "/notes/-/hybrid"


async def test_every_page_of_an_open_vault_has_the_lock_and_says_when(closed: Served) -> None:
    unlocked = await Page(closed, await closed.get("/unlock")).send(secret=PASSPHRASE)
    session = Served(closed.datasette, "notes", unlocked.cookies)
    for address in (
        "",
        "?q=tomatoes",
        ONE,
        f"{BASE}/memories/nothing-of-that-name",
        "?q=a&since=never",
    ):
        page = soup(await session.get(address))
        bar = page.select_one("form.hy-lock")
        assert bar["action"] == "/notes/-/hybrid/lock"
        assert len(page.select("form.hy-lock")) == 1
        assert bar.select_one("button").text == "Lock"
        assert "Locks in 15 minutes of no use, and in 12 hours in any case." in bar.text
    assert "hy-lock" not in (await closed.get("?q=tomatoes")).text  # nothing to lock for strangers
