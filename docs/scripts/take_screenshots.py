"""Takes the screenshots of the documentation: the demo notes in a real browser.

make screenshots
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from memory_store.store import MemoryStore

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 860
PHONE = {"width": 390, "height": 844}
OTHER_PAGES = {"write": "new", "collections": "collections"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str) -> None:
    for _ in range(150):
        try:
            urllib.request.urlopen(url)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{url} did not answer")


def unlock(page: Page, base: str, passphrase: str) -> None:
    page.goto(f"{base}/notes/-/hybrid/unlock")
    page.get_by_label("Passphrase").fill(passphrase)
    page.get_by_role("button", name="Unlock").click()
    page.locator("input[name=q]").wait_for()


def take(base: str, passphrase: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=1)
        unlock(page, base, passphrase)
        page.screenshot(path=IMAGES / "screenshot-start.png")
        page.goto(f"{base}/notes/-/hybrid?q=ducks")  # the first search waits for the model
        page.goto(f"{base}/notes/-/hybrid?q=who+has+the+spare+key")
        page.screenshot(path=IMAGES / "screenshot-search.png")
        page.emulate_media(color_scheme="dark")
        page.goto(f"{base}/notes/-/hybrid?q=who+has+the+spare+key&narrow=topic:house")
        page.screenshot(path=IMAGES / "screenshot-dark.png")
        page.emulate_media(color_scheme="light")
        page.goto(f"{base}/notes/-/hybrid?q=when+is+the+last+frost+in+spring&limit=6&explain=1")
        page.get_by_text("Why here").first.click()
        page.screenshot(path=IMAGES / "screenshot-explain.png", full_page=True)
        for name, path in OTHER_PAGES.items():
            page.goto(f"{base}/notes/-/hybrid/{path}")
            page.screenshot(path=IMAGES / f"screenshot-{name}.png")
        page.goto(f"{base}/notes/-/hybrid?q=Harper")
        page.locator(".hy-result h2 a").first.click()
        page.wait_for_load_state()
        page.screenshot(path=IMAGES / "screenshot-memory.png")
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        page.goto(f"{base}/notes/-/hybrid?q=Harper")
        page.screenshot(path=IMAGES / "screenshot-phone.png")
        browser.close()


def main() -> None:
    passphrase = secrets.token_urlsafe(16)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "notes.db"
        store, _ = MemoryStore.create(database, passphrase=passphrase, device_key=False)
        with store:
            store.import_paths([ROOT / "demo" / "notes"])
        port = free_port()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MEMORY_STORE_KEY")}
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "datasette", "serve", str(database)),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            base = f"http://127.0.0.1:{port}"
            wait_for(base)
            take(base, passphrase)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
