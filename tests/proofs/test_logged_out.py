"""After a logout an unlocked session reads nothing, even by a copy of its cookies.

A vault is unlocked in a browser, and the browser's cookies are copied. Then the session ends: by
Datasette's logout, by the loss of Datasette's own cookie, by another actor in the same browser, by
this plugin's buttons, or by a restart. The copy is sent again, alone and with every other cookie
that the browser had.
"""

from __future__ import annotations

import re

import pytest
from plugin.conftest import PASSPHRASE, Filled, Serve, Served
from plugin.test_unlocking import unlocked

from datasette_hybrid.permissions.sessions import MOST_SESSIONS, Session, Sessions
from datasette_hybrid.vaults.registry import vaults_of

QUESTION = ".json?q=tomatoes"
READ, REFUSED = 200, 403


async def asked(served: Served) -> int:
    return int((await served.get(QUESTION)).status_code)


def only(served: Served, *beginnings: str) -> Served:
    """The same browser with those of its cookies alone."""
    kept = {name: one for name, one in served.cookies.items() if name.startswith(beginnings)}
    return Served(served.datasette, served.database, kept)


async def logged_out(served: Served, **headers: str) -> tuple[int, list[str]]:
    """Datasette's own logout, by its form. Returns the status and the cookies that it took away."""
    shown = await served.datasette.client.get("/-/logout", cookies=served.cookies)
    token = re.search(r'name="csrftoken" value="([^"]+)"', shown.text)
    answer = await served.datasette.client.post(
        "/-/logout",
        data={"csrftoken": token[1] if token else ""},
        cookies={**served.cookies, **dict(shown.cookies)},
        headers=headers,
    )
    gone = re.findall(r"(\w+)=(?:\"\")?;[^,]*Max-Age=0", str(answer.headers.get("set-cookie", "")))
    return answer.status_code, gone


@pytest.mark.parametrize("actor", ["mallory", {"id": 7}, {"name": "without an id"}])
async def test_a_copied_cookie_is_refused_after_datasettes_logout(
    filled: Filled, serve: Serve, actor: object
) -> None:
    copied = await unlocked((await serve(filled.path)).by(actor))
    assert await asked(copied) == READ
    status, gone = await logged_out(copied)
    assert status == 302
    assert any(name.startswith("ds_hybrid") for name in gone)
    assert await asked(copied) == REFUSED, "with all that the browser had"
    assert await asked(only(copied, "ds_hybrid")) == REFUSED, "without Datasette's cookie"
    assert await copied.sql("select hybrid_search('tomatoes') s") == [{"s": "[]"}]


async def test_a_session_ends_where_datasettes_cookie_alone_goes(
    filled: Filled, serve: Serve
) -> None:
    copied = await unlocked((await serve(filled.path)).by("mallory"))
    assert await asked(only(copied, "ds_hybrid")) == REFUSED
    assert await asked(copied) == REFUSED, "for good, also where the cookie comes back"


async def test_a_session_ends_where_another_actor_signs_in(filled: Filled, serve: Serve) -> None:
    copied = await unlocked((await serve(filled.path)).by("mallory"))
    mine = only(copied, "ds_hybrid").cookies
    other = copied.by("eve")
    other.cookies |= mine
    assert await asked(other) == REFUSED
    assert await asked(copied) == REFUSED


async def test_an_anonymous_session_reads_until_it_is_ended(filled: Filled, serve: Serve) -> None:
    first = await unlocked(await serve(filled.path))
    second = await unlocked(first.by(None))
    assert [await asked(one) for one in (first, second)] == [READ, READ]
    shown = await first.get("?q=tomatoes")
    assert "End this session" in shown.text
    ended = await first.submit("/lock", {"only": "session"}, page="?q=tomatoes")
    assert ended.status_code == 303
    assert [await asked(one) for one in (first, second)] == [REFUSED, READ]


async def test_who_unlocks_and_then_signs_in_goes_on_until_the_logout(
    filled: Filled, serve: Serve
) -> None:
    """As with ``--root``, whose link is followed before or after."""
    anonymous = await unlocked(await serve(filled.path))
    signed_in = anonymous.by("mallory")
    signed_in.cookies |= anonymous.cookies
    assert await asked(signed_in) == READ
    await logged_out(signed_in)
    assert await asked(anonymous) == REFUSED
    assert await asked(signed_in) == REFUSED


async def test_the_lock_and_a_restart_end_every_session(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path)
    before = [await unlocked(served), await unlocked(served.by("mallory"))]
    vault = vaults_of(served.datasette).of("notes")
    vault.lock()
    again = await unlocked(served)
    assert [await asked(one) for one in before] == [REFUSED, REFUSED]
    assert await asked(again) == READ
    restarted = await serve(filled.path, options={"notes": {"key-file": str(filled.key_file)}})
    signed_anew = {
        name: restarted.datasette.sign(
            served.datasette.unsign(one, "hybrid-unlock"), "hybrid-unlock"
        )
        for name, one in only(again, "ds_hybrid").cookies.items()
        if "known" not in name
    }  # as where both have one DATASETTE_SECRET
    assert signed_anew
    assert await asked(Served(restarted.datasette, "notes", signed_anew)) == REFUSED


async def test_unlocking_again_ends_the_former_session_of_the_browser(
    filled: Filled, serve: Serve
) -> None:
    former = await unlocked(await serve(filled.path))
    latter = await unlocked(former)
    assert await asked(former) == REFUSED
    assert await asked(latter) == READ


async def test_another_site_logs_no_one_out(filled: Filled, serve: Serve) -> None:
    session = await unlocked((await serve(filled.path)).by("mallory"))
    headers = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
    answer = await session.datasette.client.post(
        "/-/logout", data={"csrftoken": "forged"}, cookies=session.cookies, headers=headers
    )
    assert answer.status_code == REFUSED
    assert await asked(session) == READ


async def test_the_names_of_sessions_are_not_kept(filled: Filled, serve: Serve) -> None:
    session = await unlocked(await serve(filled.path))
    vault = vaults_of(session.datasette).of("notes")
    values = [
        session.datasette.unsign(one, "hybrid-unlock")
        for name, one in only(session, "ds_hybrid").cookies.items()
        if "known" not in name
    ]
    assert values[0]["session"] not in repr(vars(vault.sessions))
    assert PASSPHRASE not in repr(values)


def test_so_many_sessions_are_kept_and_the_oldest_are_forgotten() -> None:
    sessions = Sessions()
    names = [sessions.begin(Session(None, "one", None)) for _ in range(MOST_SESSIONS + 10)]
    held = [sessions.holds(name, "one", None) for name in names]
    assert held == [False] * 10 + [True] * MOST_SESSIONS
    sessions.wipe()
    assert not sessions.holds(names[-1], "one", None)
