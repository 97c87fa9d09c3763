"""A real browser against a real server: unlock, search, open a memory, lock."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import PASSPHRASE, Filled

ONE = "00000000-0000-4000-8000-000000000001"

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None and "CI" not in os.environ, reason="no Chromium on this machine"
    ),
]


@pytest.fixture
def address(filled: Filled) -> Iterator[str]:
    """A Datasette that serves the vault, locked, on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", str(filled.path), "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield _awaited(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(10)


def _awaited(address: str) -> str:
    until = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(f"{address}/-/versions.json", timeout=2).close()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return address


@pytest.fixture(params=[(1280, 900), (360, 740)], ids=["desktop", "phone"])
def page(request: Any) -> Iterator[Any]:
    """A page of a new browser, with everything its console complained about."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        width, height = request.param
        page = browser.new_context(viewport={"width": width, "height": height}).new_page()
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
        browser.close()


def fits(page: Any) -> bool:
    """Whether nothing sticks out to the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def answer(page: Any, secret: str) -> None:
    """Type into the field that has the focus by itself."""
    page.locator("#hy-secret:focus").wait_for()
    page.keyboard.type(secret)
    page.keyboard.press("Enter")


def test_unlock_search_read_and_lock_by_keyboard(address: str, page: Any) -> None:
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes")
    assert page.locator("h1").inner_text() == "notes is locked"
    assert fits(page)
    answer(page, "not the passphrase")
    page.get_by_role("alert").wait_for()
    answer(page, PASSPHRASE)

    page.wait_for_url("**/notes/-/hybrid?q=tomatoes")  # the question was kept
    first = page.locator(".hy-result").first
    assert first.locator("h2").inner_text() == "Watering the tomatoes"
    assert first.locator("mark").first.inner_text() == "tomatoes"
    assert "of 3 memories opened for this search" in page.locator(".hy-opened").inner_text()
    assert fits(page)

    first.locator("h2 a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memories/{ONE}*")
    assert page.locator("h1").inner_text() == "Watering the tomatoes"
    assert "every second day" in page.locator(".hy-text").inner_text()
    assert fits(page)

    page.get_by_role("link", name="Back to the results").click()
    page.get_by_role("button", name="Lock").click()
    page.wait_for_url("**/unlock")
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes")
    assert page.locator("h1").inner_text() == "notes is locked"
    assert page.complaints == []


def test_hostile_memories_run_nothing(address: str, page: Any) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}/notes/-/hybrid/unlock")
    answer(page, PASSPHRASE)
    page.wait_for_url("**/notes/-/hybrid")
    page.goto(f"{address}/notes/-/hybrid?q=hostile&explain=1")
    link = page.locator(".hy-result h2 a", has_text="Hostile")
    assert "<script>" in link.inner_text()
    link.click()
    page.wait_for_url("**/memories/*")
    assert "onerror" in page.locator(".hy-text").inner_text()
    assert dialogs == []
    assert page.complaints == []


def test_a_new_query_keeps_the_options_and_leaves_empty_fields_out(address: str, page: Any) -> None:
    page.goto(f"{address}/notes/-/hybrid/unlock")
    answer(page, PASSPHRASE)
    page.wait_for_url("**/notes/-/hybrid")
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes&recipe=gno&budget=900&explain=1")
    assert fits(page)
    page.locator("#hy-q").fill("postgres")
    page.keyboard.press("Enter")
    page.wait_for_url("**/notes/-/hybrid?q=postgres&recipe=gno&explain=1&budget=900")
    assert page.locator("[name=since]").is_enabled()
    assert page.complaints == []
