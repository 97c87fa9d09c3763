"""The page of a file of source code in a real browser: lines that are linked to, and axe-core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .browsing import DESKTOP, MARKS, PHONE, expect, fits, opened, serving
from .conftest import Filled
from .test_browser_search import NOTES, configured, violations

pytestmark = MARKS

CODE: Any = {"type": "code", "metadata": {"language": "python"}}
FILE = "00000000-0000-4000-8000-00000000c0de"
LONG = "# " + "a comment that is wider than a phone " * 6
BOXES = f"{LONG}\n" + "\n" * 60 + "class Box:\n    def open_lid(self):\n        return 'ajar', 1\n"
USER = "from boxes import Box\n\n\ndef unpack(box: Box):\n    return box.open_lid()\n"


@pytest.fixture
def code_address(filled: Filled, tmp_path: Path) -> Iterator[str]:
    """A server whose vault holds two files of source code."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        drafts = [
            MemoryDraft(BOXES, ref="boxes.py", title="boxes.py", id=FILE, **CODE),
            MemoryDraft(USER, ref="unpack.py", title="unpack.py", **CODE),
        ]
        store.add_many(drafts, embed=False)
    with serving(*configured(filled, tmp_path)) as base:
        yield base


@pytest.mark.once
def test_a_result_leads_to_its_line(code_address: str, browser: Any) -> None:
    with opened(browser, DESKTOP) as page:
        page.goto(f"{code_address}{NOTES}?q=open_lid&mode=literal&type=code")
        page.get_by_role("link", name="boxes.py").click()
        assert page.url.endswith("#L63")
        line = page.locator("#L63")
        expect(line).to_be_in_viewport()
        assert line.inner_text().split() == ["63", "def", "open_lid(self):"]
        page.locator(".hy-outline").get_by_role("link", name="unpack.py").click()
        expect(page.locator("h1")).to_have_text("unpack.py")
        page.get_by_role("link", name="unpack", exact=True).click()
        assert page.url.endswith("#L4")


@pytest.mark.once
@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_a_file(
    code_address: str, browser: Any, size: tuple[int, int], scheme: str
) -> None:
    with opened(browser, size, color_scheme=scheme) as page:
        for end in ("", "#L63"):
            page.goto(f"{code_address}{NOTES}/memories/{FILE}{end}")
            expect(page.locator("#L1")).to_be_attached()
            assert violations(page) == []
            assert fits(page)
