"""The review in a real browser: one key decides, and one undoes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_store.store import MemoryStore

from .browsing import AT_ONE_SIZE, serving
from .conftest import Filled
from .test_browser_search import NOTES, configured

pytestmark = AT_ONE_SIZE

KEY = "The spare key of the boat hangs behind the pump in the engine room"
HERE = "document.activeElement.closest('.hy-case')?.id"


def test_keys_go_from_case_to_case_decide_and_undo(
    filled: Filled, tmp_path: Path, page: Any
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add(KEY, created="2024-01-01", title="Older")
        store.add(KEY, created="2025-01-01", title="Newer")
    with serving(*configured(filled, tmp_path)) as base:
        page.goto(f"{base}{NOTES}/review")
        page.locator("[data-keys-said]").first.wait_for()
        page.keyboard.press("n")
        assert page.evaluate(HERE) == "case-1"
        page.keyboard.press("n")
        assert page.evaluate(HERE) == "case-2"
        page.keyboard.press("p")
        page.keyboard.press("m")
        page.get_by_text("Merged; the older is in the trash.").wait_for()
        page.locator("[data-keys-said]").first.wait_for()  # the script is there, too
        assert page.locator(".hy-case", has_text="Older").count() == 0
        page.keyboard.press("u")
        page.locator(".hy-case", has_text="Older").first.wait_for()
        page.locator("input[name=topics]").first.fill("keys, mud")  # no key while one types
        assert "undo" not in page.url
