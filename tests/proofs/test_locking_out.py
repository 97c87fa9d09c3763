"""Wrong secrets keep no one out: not a new browser, and not a browser that unlocked before.

A real server is flooded with wrong secrets from many addresses, and from this one with forged
``X-Forwarded-For``. Meanwhile the right one opens the vault. And guessing is slow: the rates of
docs/reference/configuration.md are counted.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from plugin.browsing import PATIENCE, running
from plugin.conftest import PASSPHRASE, Filled, private_environment
from servers import Server

from datasette_hybrid.unlock.attempts import FREE, LONGEST_DELAY, MANY, PACE

UNLOCK, SEARCH = "/notes/-/hybrid/unlock", "/notes/-/hybrid.json?q=tomatoes"
FLOODING = [f"127.0.0.{number}" for number in range(2, 10)]
FORGING, NEWCOMER = "127.0.0.1", "127.0.0.200"
ENOUGH = MANY + 5  # wrong secrets that were judged: the flood is at work


@dataclass
class Browser:
    """An address, and the cookies that it was given."""

    server: Server
    address: str
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
        host, port = self.server.place
        link = http.client.HTTPConnection(
            host, port, timeout=PATIENCE, source_address=(self.address, 0)
        )
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={one}" for name, one in self.cookies.items())
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            link.request(method, path, body, headers)
            answer = link.getresponse()
            for line in answer.headers.get_all("set-cookie") or ():
                name, _, value = line.partition(";")[0].partition("=")
                self.cookies[name] = value
            return answer.status, answer.read().decode()
        finally:
            link.close()

    def submit(self, path: str, page: str, fields: dict[str, str]) -> int:
        """A form, filled in as a browser does."""
        _, shown = self.send("GET", page)
        token = re.search(r'name="csrftoken" value="([^"]+)"', shown)
        sent = {**fields, "csrftoken": token[1] if token else ""}
        return self.send("POST", path, urlencode(sent))[0]

    def unlock(self) -> int:
        return self.submit(UNLOCK, UNLOCK, {"secret": PASSPHRASE})


class Flood:
    """Wrong secrets without end, from several addresses at once; what was answered to whom."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.answers: dict[str, Counter[int]] = {}
        self.began = time.monotonic()
        self._over = threading.Event()

    @property
    def judged(self) -> int:
        return sum(seen[403] for seen in [*self.answers.values()])

    def from_address(self, address: str) -> None:
        seen = self.answers.setdefault(address, Counter())
        number = 0
        while not self._over.is_set():
            number += 1
            forged = f"198.51.100.{number % 250}" if address == FORGING else ""
            headers = {"X-Forwarded-For": forged} if forged else {}
            body = urlencode({"secret": f"guess {number} of {address}"})
            try:
                status, _ = Browser(self.server, address).send("POST", UNLOCK, body, **headers)
            except OSError:
                continue  # the server stops, at the end of the test
            seen[status] += 1
            if status == 429:
                time.sleep(0.02)

    @contextmanager
    def at_work(self) -> Iterator[Flood]:
        """Several connections from each address, until many guesses were judged."""
        addresses = [*FLOODING, *[FORGING] * 4]
        threads = [
            threading.Thread(target=self.from_address, args=(one,), daemon=True)
            for one in addresses
        ]
        for thread in threads:
            thread.start()
        try:
            while self.judged < ENOUGH:
                assert time.monotonic() - self.began < PATIENCE, self.answers
                time.sleep(0.05)
            yield self
        finally:
            self._over.set()  # what waits for its turn ends with the server


@pytest.fixture
def server(filled: Filled, tmp_path: Path, tiny_model: Path) -> Iterator[Server]:
    environment = private_environment(tmp_path, tiny_model)
    with running(filled.path, environment=environment) as started:
        yield Server(started.address, started.process)


@pytest.mark.sampled(0)
def test_a_flood_of_wrong_secrets_keeps_no_one_out_and_guesses_slowly(server: Server) -> None:
    before = Browser(server, FORGING)
    assert before.unlock() == 303
    assert before.submit("/notes/-/hybrid/lock", "/notes/-/hybrid?q=x", {}) == 303
    with Flood(server).at_work() as flood:
        for who in (before, Browser(server, NEWCOMER)):
            judged = flood.judged
            assert who.unlock() == 303, flood.answers
            assert flood.judged - judged <= 4, "it waited for hardly any of them"
            assert who.send("GET", SEARCH)[0] == 200
            assert Browser(server, NEWCOMER).send("GET", SEARCH)[0] == 403
        span = time.monotonic() - flood.began
        answers = {name: Counter(seen) for name, seen in [*flood.answers.items()]}
    assert Browser(server, FLOODING[0]).unlock() == 303, "who was wrong is let in, too"
    assert {status for seen in answers.values() for status in seen} <= {403, 429}
    in_all = sum(seen[403] for seen in answers.values())
    assert in_all <= MANY + span / PACE + 2, (in_all, span)
    for address, seen in answers.items():  # forged ones are one client, whatever they say
        assert seen[403] <= FREE + 5 + span / LONGEST_DELAY, (address, seen, span)
