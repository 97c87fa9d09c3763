"""The page of collections in a real browser, without scripts, on a desk and on a phone."""

from __future__ import annotations

from typing import Any

import pytest

from .browsing import DESKTOP, MARKS, PHONE, another_page, expect, fits, opened, unlocked
from .conftest import PASSPHRASE
from .test_browser_search import violations

pytestmark = MARKS


def test_collections_are_made_and_shared_without_scripts(address: str, browser: Any) -> None:
    with opened(browser, PHONE, java_script_enabled=False) as page:
        unlocked(page, address, PASSPHRASE)
        page.goto(f"{address}/notes/-/hybrid/collections")
        page.locator("#hy-name").fill("A long name for the diary of a whole family")
        page.get_by_role("button", name="Create").click()
        diary = page.locator(".hy-collections > section", has_text="A long name")
        expect(page.locator(".message-info")).to_contain_text("The collection is made.")
        diary.get_by_label("First owner").fill("wanda.with-a-long-name@example.org")
        diary.get_by_role("button", name="Close to all but members").click()
        expect(diary).to_contain_text("members only")
        diary.get_by_label("Let in", exact=True).fill("bob")
        diary.get_by_role("button", name="Let in", exact=True).click()
        expect(diary.locator(".hy-members").get_by_text("bob").first).to_be_visible()  # unfolded
        diary.get_by_role("button", name="Remove wanda.with").click()
        expect(page.get_by_role("alert")).to_contain_text("keeps an owner")
        with another_page(page):
            diary.get_by_role("button", name="Open to everybody…").click()
        assert "0 memories" in page.locator(".hy-card").inner_text()
        assert fits(page)
        with another_page(page):
            page.get_by_role("button", name="Open to everybody").click()
        assert "members only" not in diary.inner_text()
        assert not page.complaints


@pytest.mark.once
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_the_page_is_right_for_everybody(
    address: str, browser: Any, size: tuple[int, int], scheme: str
) -> None:
    with opened(browser, size, color_scheme=scheme) as page:
        unlocked(page, address, PASSPHRASE)
        page.goto(f"{address}/notes/-/hybrid/collections")
        page.get_by_text("Manage").first.click()
        page.get_by_label("First owner").fill("wanda")
        with another_page(page):
            page.get_by_role("button", name="Close to all but members").click()
        page.reload()  # without Datasette's message, which stands outside of every landmark
        page.get_by_label("Let in", exact=True).wait_for()
        assert fits(page)
        assert violations(page) == []
