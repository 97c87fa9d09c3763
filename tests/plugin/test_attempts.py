"""Whose turn it is to try a secret, and as whom an address is counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from datasette.utils import StartupError

from datasette_hybrid import configuration
from datasette_hybrid.requests.admission import TooManyAttemptsError
from datasette_hybrid.unlock import attempts
from datasette_hybrid.unlock.attempts import Attempts, Client
from datasette_hybrid.unlock.clients import FORWARDED, address_of
from memory_store.errors import WrongKeyError

from .conftest import plain_datasette

HONEST, FLOOD, ANOTHER = Client("10.0.0.1"), Client("10.0.0.2"), Client("10.0.0.3")


async def wrong() -> None:
    await asyncio.sleep(0)
    raise WrongKeyError("wrong")


async def right() -> None:
    await asyncio.sleep(0)


async def guess(tried: Attempts, client: Client, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(WrongKeyError):
            await tried.judge(client, wrong)


def noting(order: list[str], name: str) -> Callable[[], Awaitable[None]]:
    async def check() -> None:
        order.append(name)
        await asyncio.sleep(0.01)

    return check


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FIRST_DELAY": 0.05, "LONGEST_DELAY": 0.2, "PACE": 0.02}.items():
        monkeypatch.setattr(attempts, name, value)


async def test_each_wrong_secret_beyond_five_takes_longer_and_none_is_a_wall() -> None:
    """A wait is counted from the wrong secret before, not from when the next one is sent."""
    tried, judged = Attempts(), [time.monotonic()]

    async def wrong_again() -> None:
        judged.append(time.monotonic())
        await wrong()

    for _ in range(attempts.FREE + 4):
        with pytest.raises(WrongKeyError):
            await tried.judge(FLOOD, wrong_again)
    spans = [later - earlier for earlier, later in pairwise(judged)]
    assert max(spans[: attempts.FREE]) < 0.05 < min(spans[attempts.FREE :])
    assert spans[attempts.FREE + 2] >= 0.19
    began = time.monotonic()
    await tried.judge(FLOOD, right)
    assert time.monotonic() - began >= 0.19
    began = time.monotonic()
    await tried.judge(HONEST, right)
    assert time.monotonic() - began < 0.1, "others wait for nothing"


async def test_who_waits_longest_is_who_was_wrong_most() -> None:
    tried, order = Attempts(), []
    await guess(tried, FLOOD, 3)
    await guess(tried, ANOTHER, 1)
    known = Client("10.0.0.2", "browser")
    first = asyncio.ensure_future(tried.judge(HONEST, noting(order, "at work")))
    await asyncio.sleep(0)
    waiting = [
        asyncio.ensure_future(tried.judge(client, noting(order, name)))
        for client, name in (
            (FLOOD, "three"),
            (ANOTHER, "one"),
            (HONEST, "none"),
            (known, "unlocked before"),
        )
    ]
    await asyncio.gather(first, *waiting)
    assert order == ["at work", "unlocked before", "none", "one", "three"]


async def test_a_browser_that_guesses_is_known_no_more() -> None:
    tried, known = Attempts(), Client("10.0.0.2", "browser")
    await guess(tried, known, attempts.FREE)
    assert not tried._is_known(known)
    await guess(tried, known)
    assert tried._count_of("address 10.0.0.2") == 1


async def test_many_wrong_ones_from_many_addresses_come_one_at_a_time() -> None:
    tried = Attempts()
    await asyncio.gather(*(guess(tried, Client(f"10.1.0.{one}")) for one in range(attempts.MANY)))
    began = time.monotonic()
    await asyncio.gather(*(guess(tried, Client(f"10.2.0.{one}")) for one in range(10)))
    assert time.monotonic() - began >= 9 * 0.02
    began = time.monotonic()
    await tried.judge(Client("10.0.0.9", "browser"), right)
    assert time.monotonic() - began < 0.02, "known browsers are counted apart"


async def test_places_are_few_and_those_of_the_wrong_go_first() -> None:
    tried, order = Attempts(), []
    await guess(tried, FLOOD, attempts.FREE + 1)
    flood = [asyncio.ensure_future(tried.judge(FLOOD, right)) for _ in range(10)]
    await asyncio.sleep(0)
    assert sum(one.done() for one in flood) == 10 - attempts.PLACES_OF_CLIENT
    others = [
        asyncio.ensure_future(tried.judge(Client(f"10.3.0.{one}"), noting(order, "other")))
        for one in range(attempts.PLACES + 1)
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert all(one.done() for one in flood), "their places were given to others"
    known = asyncio.ensure_future(tried.judge(Client("x", "b"), noting(order, "unlocked before")))
    outcomes = await asyncio.gather(*flood, *others, known, return_exceptions=True)
    refused = [one for one in outcomes if one is not None]
    assert {type(one) for one in refused} == {TooManyAttemptsError}
    assert all(one.seconds > 0 for one in refused if isinstance(one, TooManyAttemptsError))
    assert order[1] == "unlocked before"


async def test_who_gives_up_keeps_no_place_and_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Attempts()
    await guess(tried, FLOOD, attempts.FREE + 1)
    waiting = [asyncio.ensure_future(tried.judge(FLOOD, right)) for _ in range(3)]
    await asyncio.sleep(0)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert not tried._waiting
    monkeypatch.setattr(attempts, "PATIENCE", 0.01)
    with pytest.raises(TooManyAttemptsError):
        await tried.judge(FLOOD, right)
    await tried.judge(HONEST, right)
    assert not tried._working
    turn = tried._place(HONEST)  # granted at once, and given up at the same moment
    assert turn.turn.done()
    tried._leave(turn)
    await tried.judge(HONEST, right)


async def test_what_was_wrong_is_forgotten_and_never_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "MOST_COUNTED", 50)
    monkeypatch.setattr(attempts, "PACE", 0.0)
    tried = Attempts()
    for number in range(200):
        await guess(tried, Client(f"10.0.1.{number}"))
    assert len(tried._wrong) == 50
    assert tried._count_of("address 10.0.1.199") == 1
    monkeypatch.setattr(attempts, "FORGOTTEN_AFTER", 0.0)
    assert tried._count_of("address 10.0.1.199") == 0


LOOPBACK = ("127.0.0.1", 5000)


@pytest.mark.parametrize(
    ("client", "forwarded", "proxies", "counted_as"),
    [
        (LOOPBACK, "", [], "127.0.0.1"),
        (("192.0.2.7", 5000), "203.0.113.9", [], "192.0.2.7"),
        (("203.0.113.9", 0), "203.0.113.9", [], FORWARDED),
        (("203.0.113.9", 80), "203.0.113.9:80", [], FORWARDED),
        (("203.0.113.9", 0), "203.0.113.9", ["127.0.0.1"], "203.0.113.9"),
        (("203.0.113.9", 0), "198.51.100.1, 203.0.113.9", ["127.0.0.1"], "203.0.113.9"),
        (("203.0.113.9", 0), "203.0.113.9", ["10.0.0.0/8"], FORWARDED),
        (("10.0.0.5", 5000), "198.51.100.1, 203.0.113.9", ["10.0.0.0/8"], "203.0.113.9"),
        (("10.0.0.5", 5000), "203.0.113.9, 10.0.0.7", ["10.0.0.0/8"], "203.0.113.9"),
        (("192.0.2.7", 5000), "203.0.113.9", ["10.0.0.0/8"], "192.0.2.7"),
        (("10.0.0.5", 5000), "", ["10.0.0.0/8"], "10.0.0.5"),
        (("10.0.0.5", 5000), "[2001:db8::1]:80", ["10.0.0.0/8"], "2001:db8::/64"),
        (("10.0.0.5", 5000), "203.0.113.9:4711", ["10.0.0.0/8"], "203.0.113.9"),
        (None, "203.0.113.9", [], "unix"),
        (None, "203.0.113.9", ["unix"], "203.0.113.9"),
        (None, "", ["unix"], "unix"),
        (("2001:db8::1", 5000), "", [], "2001:db8::/64"),
        (("2001:db8::ffff:2", 5000), "", [], "2001:db8::/64"),
        (("fe80::1%eth0", 5000), "", [], "fe80::/64"),
        (("::ffff:192.0.2.7", 5000), "", [], "192.0.2.7"),
        (("testclient", 5000), "", [], "testclient"),
    ],
)
def test_an_address_counts_as_what_cannot_be_chosen(
    client: tuple[str, int] | None, forwarded: str, proxies: list[str], counted_as: str
) -> None:
    datasette = plain_datasette((), {"plugins": {"datasette-hybrid": {"proxies": proxies}}})
    headers = [(b"X-Forwarded-For", forwarded.encode())] if forwarded else []
    scope = {"client": client, "headers": headers}
    assert address_of(scope, configuration.proxies(datasette)) == counted_as


def test_a_server_that_believes_more_than_is_configured_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    datasette = plain_datasette((), {"plugins": {"datasette-hybrid": {"proxies": "127.0.0.1"}}})
    scope = {"client": ("203.0.113.9", 0), "headers": [(b"x-forwarded-for", b"203.0.113.9")]}
    for trusted, counted_as in (("127.0.0.1", "203.0.113.9"), ("*", FORWARDED)):
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
        assert address_of(scope, configuration.proxies(datasette)) == counted_as


@pytest.mark.parametrize("wrong", [["nginx"], [7], {"a": 1}, [None], ["10.0.0.1/8"]])
async def test_proxies_that_are_no_addresses_stop_the_start(wrong: object) -> None:
    datasette = plain_datasette((), {"plugins": {"datasette-hybrid": {"proxies": wrong}}})
    with pytest.raises(StartupError, match="proxies: a list of addresses expected"):
        await datasette.invoke_startup()
