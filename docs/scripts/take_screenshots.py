"""Takes the screenshots of the documentation: the demo notes in a real browser.

make screenshots

``docs/images/pages`` has each page four times in one picture: at a desktop's width and a phone's,
light and dark.
"""

from __future__ import annotations

import base64
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
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from memory_store.store import MemoryStore

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SHEETS = IMAGES / "pages"
WIDTH, HEIGHT = 1280, 860
PHONE = {"width": 390, "height": 844}
SIZES = {"desktop": {"width": WIDTH, "height": HEIGHT}, "phone": PHONE}
THEMES = ("light", "dark")
SHOWN = 640  # pixels: how high each of the four is in a sheet
OTHER_PAGES = {"write": "new", "collections": "collections"}
PAGES = {
    "start": "",
    "search": "?q=who+has+the+spare+key",
    "import": "/import",
}


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


@contextmanager
def browser_of_the_machine() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def served(database: Path) -> Iterator[str]:
    """A Datasette with a vault that is locked; its address."""
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
        yield base
    finally:
        server.terminate()
        server.wait()


def sheet(page: Page, name: str, address: str) -> None:
    """A page in both themes and at both widths, in one picture."""
    taken = []
    for theme, size in product(THEMES, SIZES):
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_load_state("networkidle")
        taken.append(base64.b64encode(page.screenshot()).decode())
    page.emulate_media(color_scheme="light")
    beside = page.context.new_page()
    pictures = "".join(f'<img height={SHOWN} src="data:image/png;base64,{one}">' for one in taken)
    beside.set_content(
        "<body style='margin:0;background:#999;display:inline-grid;gap:12px;padding:12px;"
        f"grid-template-columns:auto auto'>{pictures}"
    )
    beside.locator("body").screenshot(path=SHEETS / f"{name}.png")
    beside.close()


def take_sheets(page: Page, base: str) -> None:
    """Sheets of the pages of an unlocked vault."""
    for name, way in PAGES.items():
        sheet(page, name, f"{base}/notes/-/hybrid{way}")
    page.set_viewport_size(SIZES["desktop"])  # type: ignore[arg-type]
    page.goto(f"{base}/notes/-/hybrid?q=Harper")
    page.locator(".hy-result h2 a").first.click()
    page.wait_for_load_state()
    sheet(page, "memory", page.url)


def take(page: Page, base: str) -> None:
    """The pictures of single pages."""
    page.set_viewport_size(SIZES["desktop"])  # type: ignore[arg-type]
    page.goto(f"{base}/notes/-/hybrid")
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


def source_code(folder: Path) -> Path:
    """A work tree of the store's own source."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "memory_store", folder / "tree" / "memory_store", ignore=ignored)
    (folder / "tree" / ".git").mkdir()
    return folder / "tree"


def take_code(page: Page, base: str) -> None:
    """A search of source code, and the page of a file."""
    page.set_viewport_size(SIZES["desktop"])  # type: ignore[arg-type]
    page.goto(f"{base}/notes/-/hybrid?q=how+is+a+key+derived+from+a+passphrase")
    page.screenshot(path=IMAGES / "screenshot-code.png")
    page.locator(".hy-result h2 a").first.click()
    page.wait_for_load_state()
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT + 300})  # down to the first lines
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=IMAGES / "screenshot-file.png")


def main() -> None:
    SHEETS.mkdir(exist_ok=True)
    passphrase = secrets.token_urlsafe(16)
    with tempfile.TemporaryDirectory() as folder, browser_of_the_machine() as browser:
        for name in ("notes", "code", "empty"):
            database = Path(folder, name, "notes.db")
            database.parent.mkdir()
            store, _ = MemoryStore.create(database, passphrase=passphrase, device_key=False)
            with store:
                if name == "notes":
                    store.import_paths([ROOT / "demo" / "notes"])
                if name == "code":
                    store.import_paths([source_code(database.parent)], embed=False)
            with served(database) as base:
                page = browser.new_context(device_scale_factor=1).new_page()
                if name == "notes":
                    sheet(page, "unlock", f"{base}/notes/-/hybrid/unlock")
                unlock(page, base, passphrase)
                if name == "empty":
                    sheet(page, "empty", f"{base}/notes/-/hybrid")
                elif name == "code":
                    take_code(page, base)
                else:
                    take(page, base)
                    take_sheets(page, base)


if __name__ == "__main__":
    main()
