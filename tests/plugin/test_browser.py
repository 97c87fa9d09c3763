"""A real browser against a real server: unlock, search, open a memory, lock."""

from __future__ import annotations

from typing import Any

from .browsing import AT_ONE_SIZE, another_page, answer, expect, fits, unlocked
from .conftest import PASSPHRASE

ONE = "00000000-0000-4000-8000-000000000001"

pytestmark = AT_ONE_SIZE


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

    with another_page(page):
        page.get_by_role("link", name="Back to the results").click()
    page.get_by_role("button", name="Lock").click()
    page.wait_for_url("**/unlock")
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes")
    assert page.locator("h1").inner_text() == "notes is locked"
    assert page.complaints == []


def test_the_footer_is_of_one_colour_under_its_words(address: str, page: Any) -> None:
    """Datasette 1.0 begins it in a lighter one."""
    unlocked(page, address, PASSPHRASE)
    box = page.locator("body > footer").bounding_box()
    top, bottom = (
        page.screenshot(full_page=True, clip={"x": 0, "y": y, "width": 4, "height": 2})
        for y in (box["y"] + 2, box["y"] + box["height"] - 4)
    )
    assert top == bottom


def test_hostile_memories_run_nothing(address: str, page: Any) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    unlocked(page, address, PASSPHRASE)
    page.goto(f"{address}/notes/-/hybrid?q=hostile&explain=1")
    link = page.locator(".hy-result h2 a", has_text="Hostile")
    assert "<script>" in link.inner_text()
    link.click()
    page.wait_for_url("**/memories/*")
    assert "onerror" in page.locator(".hy-text").inner_text()
    assert dialogs == []
    assert page.complaints == []


def test_a_new_query_keeps_the_options_and_leaves_empty_fields_out(address: str, page: Any) -> None:
    unlocked(page, address, PASSPHRASE)
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes&recipe=gno&budget=900&explain=1")
    assert fits(page)
    page.locator("#hy-q").fill("postgres")
    page.keyboard.press("Enter")
    page.wait_for_url("**/notes/-/hybrid?q=postgres&recipe=gno&explain=1&budget=900")
    expect(page.locator("[name=since]")).to_be_enabled()
    assert page.complaints == []
