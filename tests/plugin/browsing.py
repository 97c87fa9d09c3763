"""A real Chromium in front of a real server, for test_browser*.py.

In such a file: ``from .browsing import MARKS, …`` and ``pytestmark = MARKS``. The fixtures
``address`` (a server with the locked vault), ``browser`` and ``page`` (once wide, once a phone) are
in conftest.py. Such files hold no ``async`` tests: Playwright runs an event loop of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESKTOP, PHONE = (1280, 900), (360, 740)
PATIENCE = 240.0  # seconds until something hangs, however slow and busy the machine is
SQL_TIME_LIMIT = 20_000  # milliseconds; Datasette's second by the clock is a matter of luck

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and not {"CI", "REQUIRE_BROWSER"} & set(os.environ),
        reason="no Chromium on this machine",
    ),
]
"""Of every module of browser tests."""
AT_ONE_SIZE = [*MARKS, pytest.mark.sampled(1)]
"""Of those whose tests are for a desktop and a phone: a usual run has each on one of them."""


@dataclass(frozen=True)
class Running:
    """A ``datasette serve`` that answers, and what it says."""

    address: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def said(self) -> str:
        """All that it has written so far."""
        return _written(self.log)


@contextmanager
def running(
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[Running]:
    """``datasette serve`` with these arguments, on a port that it finds free itself, in a folder
    (this one)."""
    usual = ("-p", "0", "--setting", "sql_time_limit_ms", str(SQL_TIME_LIMIT))
    command = [sys.executable, "-m", "datasette", "serve", *usual, *map(str, arguments)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder
        )
        try:
            yield Running(_address(server, log), server, log)
        finally:
            server.terminate()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


@contextmanager
def serving(*arguments: str | Path, **options: Any) -> Iterator[str]:
    """The address of :func:`running`."""
    with running(*arguments, **options) as server:
        yield server.address


def _address(server: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Where the server answers, as it says itself once it does."""
    until = time.monotonic() + PATIENCE
    while not (found := re.search(r"Uvicorn running on (http://[\w.:]+)", _written(log))):
        if server.poll() is not None or time.monotonic() > until:
            raise AssertionError(f"the server did not start:\n{_written(log)}")
        time.sleep(0.05)
    return found[1]


def _written(log: IO[bytes]) -> str:
    # by position: the server writes on where this descriptor, which it shares, points to
    return os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode("utf-8", "replace")


@contextmanager
def opened(browser: Any, size: tuple[int, int] = DESKTOP, **options: Any) -> Iterator[Any]:
    """A page in a context of its own; ``options`` as for ``browser.new_context``."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(PATIENCE * 1_000)
    page = context.new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on(
        "console",
        lambda line: (
            page.complaints.append(line.text)
            if line.type == "error" and "status of 4" not in line.text
            else None
        ),
    )
    yield page
    context.close()


def expect(what: Any) -> Any:
    """Playwright's assertions on a locator or a page, which wait until they hold."""
    from playwright.sync_api import expect

    expect.set_options(timeout=PATIENCE * 1_000)
    return expect(what)


@contextmanager
def another_page(page: Any) -> Iterator[None]:
    """Inside, something leads to another page; afterwards that one is here, all of it.

    A click alone may return while the page that it leaves is still there to be looked at.
    """
    with page.expect_event("domcontentloaded"):
        yield
    page.wait_for_load_state()


def fits(page: Any) -> bool:
    """Whether nothing sticks out to the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def answer(page: Any, secret: str) -> None:
    """Type into the unlock page's field, which has the focus by itself, and send it."""
    page.locator("#hy-secret:focus").wait_for()
    page.keyboard.type(secret)
    page.keyboard.press("Enter")


def unlocked(page: Any, address: str, secret: str, database: str = "notes") -> None:
    """Unlock a vault, so that its search page is shown."""
    page.goto(f"{address}/{database}/-/hybrid/unlock")
    answer(page, secret)
    page.wait_for_url(f"**/{database}/-/hybrid")
