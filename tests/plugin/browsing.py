"""A real Chromium in front of a real server, for test_browser*.py.

In such a file: ``from .browsing import MARKS, …`` and ``pytestmark = MARKS``. The fixtures
``address`` (a server with the locked vault), ``browser`` and ``page`` (once wide, once a phone) are
in conftest.py. Such files hold no ``async`` tests: Playwright runs an event loop of its own.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DESKTOP, PHONE = (1280, 900), (360, 740)

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and "CI" not in os.environ, reason="no Chromium on this machine"
    ),
]
"""Of every module of browser tests."""


@contextmanager
def serving(*arguments: str | Path) -> Iterator[str]:
    """The address of ``datasette serve`` with these arguments, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", *map(str, arguments), "-p", str(port)]
    with tempfile.TemporaryFile("w+") as said:
        server = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        try:
            yield _awaited(f"http://127.0.0.1:{port}", server, said)
        finally:
            server.terminate()
            server.wait(10)


def _awaited(address: str, server: subprocess.Popen[bytes], said: IO[str]) -> str:
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{address}/-/versions.json", timeout=2).close()
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > until:
                said.seek(0)
                raise AssertionError(f"the server did not start:\n{said.read()}") from None
            time.sleep(0.2)
        else:
            return address


@contextmanager
def opened(browser: Any, size: tuple[int, int] = DESKTOP, **options: Any) -> Iterator[Any]:
    """A page in a context of its own; ``options`` as for ``browser.new_context``."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
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
