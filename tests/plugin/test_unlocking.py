"""Opening a vault at start or in the browser, and everything that locks it again."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid.permissions import sessions
from datasette_hybrid.requests import admission
from datasette_hybrid.unlock import attempts
from datasette_hybrid.unlock import pages as unlocking
from datasette_hybrid.vaults.hours import Moment
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served, soup, unmarked


async def unlocked(served: Served, secret: str = PASSPHRASE) -> Served:
    """A browser session that sent the secret."""
    response = await served.submit("/unlock", {"secret": secret})
    assert response.status_code == 303, response.text
    cookies = {name: response.cookies[name] for name in response.cookies}
    return Served(served.datasette, served.database, {**served.cookies, **cookies})


async def test_a_locked_vault_says_how_to_open_it(closed: Served) -> None:
    page = await closed.get("?q=tomatoes")
    assert page.status_code == 423
    assert "notes is locked" in page.text
    assert 'action="/notes/-/hybrid/unlock"' in page.text
    assert 'value="tomatoes"' in page.text  # the question is not lost
    card = soup(page).select_one(".hy-card")
    assert len(card.select("input:not([type=hidden])")) == 1
    assert len(card.find_all("p", recursive=False)) == 1, "one sentence; the rest is folded"
    secrets = [one.get_text() for one in card.select("details b")]
    assert secrets == ["passphrase", "recovery code", "key file"]
    data = await closed.get(".json?q=tomatoes")
    assert data.status_code == 423
    assert data.json()["ok"] is False
    assert "locked" in data.json()["error"]
    rows = await closed.by("root").sql("select hybrid_search('x') s, memory_text('y') t")
    assert rows == [{"s": "[]", "t": None}]


@pytest.mark.parametrize("kind", ["passphrase", "recovery code", "key file"])
async def test_each_secret_unlocks_for_this_browser_alone(
    filled: Filled, serve: Serve, kind: str
) -> None:
    secret = {
        "passphrase": PASSPHRASE,
        "recovery code": filled.recovery_code.lower(),
        "key file": filled.key_file.read_text(),
    }[kind]
    served = await serve(filled.path)
    session = await unlocked(served, secret)
    page = await session.get("?q=tomatoes")
    assert page.status_code == 200
    assert "Watering the tomatoes" in unmarked(page.text)
    row = (await session.sql("select hybrid_search('tomatoes', 1) found"))[0]
    assert "Watering the tomatoes" in row["found"]
    assert (await served.get("?q=tomatoes")).status_code == 403
    assert (await served.by("mallory").get(".json?q=tomatoes")).status_code == 403


async def test_the_session_cookie_is_guarded(closed: Served) -> None:
    response = await closed.submit("/unlock", {"secret": PASSPHRASE})
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("ds_hybrid_")
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert PASSPHRASE not in cookie
    forged = Served(closed.datasette, "notes", {re.split("=", cookie)[0]: "forged"})
    assert (await forged.get("?q=tomatoes")).status_code == 403


async def test_a_token_does_not_borrow_the_browser_session(closed: Served) -> None:
    session = await unlocked(closed)
    headers = {"Authorization": "Bearer something"}
    assert (await session.get(".json?q=tomatoes", headers=headers)).status_code == 403
    assert (await session.get(".json?q=tomatoes")).status_code == 200


async def test_a_wrong_secret_is_refused_and_never_repeated(closed: Served) -> None:
    response = await closed.submit("/unlock", {"secret": "five small grey herons"})
    assert response.status_code == 403
    assert "does not open this vault" in response.text
    assert "herons" not in response.text
    assert "set-cookie" not in response.headers or "ds_hybrid" not in response.headers["set-cookie"]
    assert (await closed.submit("/unlock", {"secret": " "})).status_code == 400
    assert (await closed.submit("/unlock", {"secret": "x" * 5000})).status_code == 400


@pytest.mark.parametrize("field", ["passphrase", "recovery_code"])
async def test_a_secret_in_a_field_of_another_name_is_not_repeated(
    closed: Served, field: str
) -> None:
    wrong = await closed.submit("/unlock", {field: "five small grey herons"})
    assert "herons" not in wrong.text
    right = await closed.submit("/unlock", {"secret": PASSPHRASE, field: PASSPHRASE, "q": "peas"})
    assert right.headers["location"].endswith("?q=peas")


async def test_guessing_is_slowed_down(closed: Served) -> None:
    for number in range(attempts.FREE):
        refused = await closed.submit("/unlock", {"secret": f"guess number {number}"})
        assert refused.status_code == 403
    began = time.monotonic()
    right = await closed.submit("/unlock", {"secret": PASSPHRASE})
    assert right.status_code == 303, "a delay, and no wall"
    assert time.monotonic() - began > attempts.FIRST_DELAY / 2
    assert (await closed.by("root").get("?q=tomatoes")).status_code == 200


async def test_locking_waits_for_no_one_who_tries_to_unlock(
    closed: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await unlocked(closed)
    queue = admission.WorkQueue(workers=1, waiting=1)
    monkeypatch.setattr(unlocking, "locksmith", queue)
    release = threading.Event()
    busy = [asyncio.ensure_future(queue.run(release.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    try:
        full = await session.submit("/unlock", {"secret": PASSPHRASE})
        assert full.status_code == 429
        locked = await session.submit("/lock", {}, page="?q=tomatoes")
        assert locked.status_code == 303
        assert session.vault.locked
    finally:
        release.set()
        await asyncio.gather(*busy)


ELSEWHERE = [
    {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://elsewhere.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://sub.localhost", "Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
async def test_another_site_cannot_lock_or_unlock(closed: Served, headers: dict[str, str]) -> None:
    secret = {"secret": PASSPHRASE}
    refused = await closed.datasette.client.post(
        closed.full("/unlock"), data=secret, headers=headers
    )
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    assert closed.vault.locked
    session = await unlocked(closed)
    response = await session.datasette.client.post(
        session.full("/lock"), data={}, cookies=session.cookies, headers=headers
    )
    assert response.status_code == 403
    assert (await session.get("?q=tomatoes")).status_code == 200


async def test_the_same_site_unlocks_with_the_headers_of_a_browser(closed: Served) -> None:
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    response = await closed.submit("/unlock", {"secret": PASSPHRASE}, headers=headers)
    assert response.status_code == 303


async def test_the_button_locks_for_everybody_and_ends_the_sessions(closed: Served) -> None:
    session = await unlocked(closed)
    assert (await closed.by("root").get("?q=tomatoes")).status_code == 200
    assert (await closed.submit("/lock", {}, page="/unlock")).status_code == 403
    assert (await session.submit("/lock", {}, page="?q=x")).status_code == 303
    assert (await session.get("?q=tomatoes")).status_code == 423
    assert (await closed.by("root").get(".json?q=tomatoes")).status_code == 423
    again = await unlocked(closed)
    assert (await again.get("?q=tomatoes")).status_code == 200
    assert (await session.get("?q=tomatoes")).status_code == 403  # the old cookie is worth nothing


class Clock:
    """Vaults' own clock, which a test puts forward."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def forward(self, *, minutes: float) -> None:
        self._ahead += 60 * minutes

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def time(self) -> float:
        return time.time() + self._ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("datasette_hybrid.vaults.hours.time", made)
    return made


async def test_a_quiet_while_locks(filled: Filled, serve: Serve, clock: Clock) -> None:
    served = await serve(filled.path, options={"notes": {"idle-minutes": 20}})
    session = await unlocked(served)
    for _ in range(2):  # each is a use
        clock.forward(minutes=19)
        assert (await session.get("?q=tomatoes")).status_code == 200
    clock.forward(minutes=20)
    assert (await session.get("?q=tomatoes")).status_code == 423
    assert not served.vault.is_open


async def test_an_absolute_time_locks_however_busy(
    filled: Filled, serve: Serve, clock: Clock
) -> None:
    settings = {"absolute-hours": 1, "idle-minutes": 0}
    served = await serve(filled.path, options={"notes": settings})
    session = await unlocked(served)
    for _ in range(3):
        clock.forward(minutes=19)
        assert (await session.get("?q=tomatoes")).status_code == 200
    clock.forward(minutes=3)
    assert (await session.get("?q=tomatoes")).status_code == 423


async def test_a_time_out_of_nothing_means_never_and_is_said(filled: Filled, serve: Serve) -> None:
    settings = {"idle-minutes": 0, "absolute-hours": 0}
    served = await serve(filled.path, options={"notes": settings})
    response = await served.submit("/unlock", {"secret": PASSPHRASE})
    session = re.split(r", ?(?=ds_)", response.headers["set-cookie"])[0]
    assert "max-age" not in session.lower()  # until the browser closes
    page = await (await unlocked(served)).get("?q=tomatoes")
    assert "Stays unlocked until it is locked." in page.text


async def test_a_session_ends_absolutely_though_the_vault_stays_open(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(filled.path, options={"notes": {"absolute-hours": 1}})
    session = await unlocked(served)
    assert (await session.get("?q=tomatoes")).status_code == 200
    now = sessions.time.time()
    monkeypatch.setattr(sessions.time, "time", lambda: now + 3_601)
    monkeypatch.setattr(Moment, "elapsed", lambda moment: 0.0)  # used all the time
    assert (await session.get("?q=tomatoes")).status_code == 403
    assert served.vault.is_open


async def test_only_granted_requests_count_as_use(
    filled: Filled, serve: Serve, clock: Clock
) -> None:
    served = await serve(filled.path, options={"notes": {"idle-minutes": 20}})
    session = await unlocked(served)
    for _ in range(4):
        clock.forward(minutes=6)
        assert (await served.by("mallory").get("?q=tomatoes")).status_code in (403, 423)
        await served.by("mallory").sql("select hybrid_search('tomatoes')")
        await served.submit("/unlock", {"secret": "not the passphrase"})
    assert (await session.get("?q=tomatoes")).status_code == 423


async def test_a_configured_vault_rests_and_comes_back_for_those_with_a_grant(
    filled: Filled, serve: Serve, clock: Clock
) -> None:
    served = await serve(filled.path, options=filled.options(idle_minutes=20, allow=ALLOW))
    vault = served.vault
    assert (await served.by("bob").get("?q=tomatoes")).status_code == 200
    clock.forward(minutes=20)
    assert (await served.by("mallory").get("?q=tomatoes")).status_code == 403
    assert not vault.is_open  # a stranger's request wakes nothing
    rows = await served.by("bob").sql("select hybrid_search('tomatoes', 1) found")
    assert "Watering" in rows[0]["found"]
    assert vault.is_open


async def test_stopping_the_server_wipes_the_keys(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options())
    vault = served.vault
    store = vault.use(EVERYTHING)
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        pass

    await served.datasette.app()({"type": "lifespan"}, receive, send)
    assert store.locked
    assert vault.locked


@pytest.mark.parametrize(
    ("actor", "page", "missing", "offered"),
    [
        ("bob", "/new", "hybrid-write", {"Search": "", "Landscape": "/landscape"}),
        ("bob", "/audit", "hybrid-audit", {"Search": "", "Landscape": "/landscape"}),
        (
            "alice",
            "/memories/00000000-0000-4000-8000-000000000001",
            "hybrid-decrypt",
            {"Search": ""},
        ),
        ("wim", "", "hybrid-search", {"New memory": "/new"}),
        ("wanda", "/unlock", None, {"Search": "", "New memory": "/new"}),
        ("mallory", "", "hybrid-search", {}),
        (None, "/new", "hybrid-write", {}),
    ],
)
async def test_who_is_refused_reads_what_is_missing_and_where_they_may_go(
    filled: Filled,
    serve: Serve,
    actor: str | None,
    page: str,
    missing: str | None,
    offered: dict[str, str],
) -> None:
    allow = {**ALLOW, "hybrid-write": {"id": ["wanda", "wim"]}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    shown = await served.by(actor).get(served.base + page)
    card = soup(shown).select_one(".hy-card")
    said = card.get_text(" ", strip=True)
    assert re.findall(r"hybrid-\w+", said) == ([missing] if missing else [])
    assert {a.get_text(): a["href"] for a in card.select("a")} == {
        label: f"{served.base}{below}" for label, below in offered.items()
    }
    assert ("It is open for you already." in said) == (missing is None)
    assert card.select("input[name=secret]")
    for address in offered.values():
        assert (await served.by(actor).get(served.base + address)).status_code == 200


@pytest.fixture
def another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's machine is not the one that the vault was made on."""
    monkeypatch.setenv("MEMORY_STORE_STATE", str(tmp_path / "server" / "state"))


@pytest.mark.usefixtures("private_folders", "another_machine")
async def test_the_page_uses_the_server_s_device_key_or_says_that_it_has_none(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path)
    refused = await served.submit("/unlock", {"secret": PASSPHRASE})
    assert (refused.status_code, "device key" in refused.text) == (403, True)
    with MemoryStore.open(filled.path, recovery_code=filled.recovery_code) as store:
        store.keys.restore_device()
    opened = await served.submit("/unlock", {"secret": PASSPHRASE})
    assert opened.status_code == 303


@pytest.mark.usefixtures("private_folders", "another_machine")
async def test_a_configured_passphrase_without_the_device_key_leaves_the_vault_locked_and_says_why(
    filled: Filled,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NOTES_SECRET", PASSPHRASE)
    served = await serve(filled.path, options={"notes": {"passphrase": {"$env": "NOTES_SECRET"}}})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 423
    assert "keys device import" in capsys.readouterr().err
