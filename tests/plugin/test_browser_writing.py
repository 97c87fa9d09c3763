"""A real browser writes memories: by keyboard, on a phone, without scripts, in two tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_store.store import MemoryStore

from .browsing import AT_ONE_SIZE, DESKTOP, PHONE, another_page, expect, fits, opened, unlocked
from .conftest import PASSPHRASE, Filled, answering

pytestmark = AT_ONE_SIZE

ONE = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def shared(filled: Filled) -> Iterator[str]:
    """A server over a vault that has a second collection."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.collections.create("team")
    with answering(filled.path) as base:
        yield base


def kept(filled: Filled) -> list[Any]:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        return store.list()


def test_the_name_of_a_search_to_save_has_room(shared: str, page: Any) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid?q=tomatoes")
    page.locator(".hy-save summary").click()
    assert page.locator(".hy-save input[name=name]").bounding_box()["width"] >= 200


def test_a_memory_is_written_tagged_finished_published_deleted_and_put_back(
    shared: str, page: Any, filled: Filled
) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/new")
    assert fits(page)
    page.get_by_label("Text").fill("Oil the hinges.\n\n- *twice* a year")
    page.get_by_label("Topics").fill("house, to do")
    page.get_by_label("Type").select_option("task")
    page.get_by_role("button", name="Add").click()

    page.wait_for_url("**/memories/*")
    assert "Added." in page.locator(".message-info").inner_text()
    assert page.locator(".hy-text em").inner_text() == "twice"
    assert fits(page)
    page.get_by_label("Add topics").fill("garden")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".hy-topic", has_text="garden").wait_for()
    page.get_by_role("button", name="Remove the topic to do").click()
    page.locator(".message-info", has_text="Topic removed.").wait_for()
    expect(page.locator(".hy-topic")).to_have_text(["house", "garden"])
    page.get_by_role("button", name="Mark as done").click()
    page.locator(".hy-done").wait_for()
    page.get_by_role("button", name="Mark as open").click()
    page.locator(".message-info", has_text="Marked as open.").wait_for()

    page.locator("summary", has_text="Publish").click()
    assert fits(page)
    page.get_by_role("button", name="Publish").click()
    page.locator(".message-info", has_text="This is the copy.").wait_for()
    expect(page.locator(".hy-record").get_by_text("team", exact=True)).to_be_visible()
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("heading", name="Delete this memory?").wait_for()
    assert fits(page)
    page.get_by_role("button", name="Delete", exact=True).click()
    page.locator(".message-info", has_text="Deleted.").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.locator(".message-info", has_text="1 memory is as before.").wait_for()
    page.get_by_role("link", name="Trash").click()
    page.get_by_role("heading", name="Trash").wait_for()
    assert fits(page)
    # of what was changed; Datasette makes labels narrow
    wide = "one => one.offsetWidth == one.parentElement.clientWidth"
    page.wait_for_function(f"({wide})(document.querySelector('.hy-trash label'))")
    assert page.complaints == []
    assert sorted(memory.collection for memory in kept(filled)) == ["personal"] * 4 + ["team"]


def test_a_memory_is_edited_by_keyboard_alone(shared: str, page: Any, filled: Filled) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/memories/{ONE}")
    page.get_by_role("link", name="Edit").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/edit")
    page.get_by_label("Title").focus()
    page.keyboard.press("End")
    page.keyboard.type(", and beans")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+End")
    page.keyboard.type("\n- not on Mondays")
    page.keyboard.press("Tab")
    page.keyboard.type("summer")  # tabbing into a field selects what it holds
    page.keyboard.press("Enter")
    page.locator(".message-info", has_text="Saved.").wait_for()
    assert page.locator("h1").inner_text() == "Watering the tomatoes, and beans"
    assert "not on Mondays" in page.locator(".hy-text").inner_text()
    expect(page.locator(".hy-topic")).to_have_text(["summer"])
    assert page.complaints == []


def test_two_tabs_that_change_the_same_see_both_and_choose(
    shared: str, page: Any, filled: Filled
) -> None:
    unlocked(page, shared, PASSPHRASE)
    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(f"{shared}/notes/-/hybrid/memories/{ONE}/edit")
    other.get_by_label("Text").fill("The tomatoes want water daily.\n\n- feed on Sundays")
    other.get_by_role("button", name="Save").click()
    other.wait_for_url(f"**/memories/{ONE}")
    page.get_by_label("Text").press("Control+End")
    page.keyboard.type("\n- prune in July")
    with another_page(page):
        page.get_by_role("button", name="Save").click()

    assert page.locator("h1").inner_text() == "This was changed meanwhile"
    assert fits(page)
    assert page.locator("textarea:visible").count() == 1
    marks = page.locator(".hy-diff mark").all_inner_texts()
    assert "daily" in marks
    assert "- prune in July" in marks
    both = page.get_by_label("Text")
    assert both.input_value().splitlines()[-1] == "- prune in July"
    lines = both.input_value().splitlines()
    lines.remove("The tomatoes want water every second day.")
    both.fill("\n".join(lines))
    page.get_by_role("button", name="Save both together").click()
    page.wait_for_url(f"**/memories/{ONE}")
    text = next(memory.text for memory in kept(filled) if memory.id == ONE)
    expected = "The tomatoes want water daily.\n\n- feed on Sundays\n- prune in July"
    assert text == expected

    other.get_by_role("link", name="Edit").click()
    other.get_by_label("Title").fill("First")
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Second")
    other.get_by_role("button", name="Save").click()
    other.wait_for_url(f"**/memories/{ONE}")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Keep theirs").click()
    page.wait_for_url(f"**/memories/{ONE}")
    assert page.locator("h1").inner_text() == "First"
    assert page.complaints == []


def test_what_was_typed_survives_a_lock_in_another_tab(
    shared: str, page: Any, filled: Filled
) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/new")
    page.get_by_label("Text").fill("A long thought, nearly lost.")
    other = page.context.new_page()
    other.goto(f"{shared}/notes/-/hybrid")
    other.get_by_role("button", name="Lock").click()
    other.wait_for_url("**/unlock")
    with another_page(page):
        page.get_by_role("button", name="Add").click()
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("Text").input_value() == "A long thought, nearly lost."
    assert fits(page)
    assert "thought" not in page.url
    with page.context.expect_page() as unlocking:
        page.get_by_role("link", name="Unlock notes in another tab").click()
    unlocking.value.locator("#hy-secret").fill(PASSPHRASE)
    unlocking.value.keyboard.press("Enter")
    unlocking.value.wait_for_url("**/notes/-/hybrid")
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/memories/*")
    assert "A long thought, nearly lost." in [memory.text for memory in kept(filled)]
    assert page.complaints == []


def test_leaving_what_was_typed_asks_first(shared: str, page: Any) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/new")
    page.get_by_label("Text").press_sequentially("Not yet saved")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.goto(f"{shared}/notes/-/hybrid")
    assert asked == ["beforeunload"]


def test_topics_are_suggested_after_each_comma(shared: str, page: Any) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/new")
    field = page.get_by_label("Topics")
    offered = "document.querySelector('[name=topics]').list.options"
    assert page.evaluate(f"[...{offered}].some(one => one.value === 'garden')")
    field.press_sequentially("work, ga")
    assert page.evaluate(f"[...{offered}].some(one => one.value === 'work, garden')")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everything_works_without_scripts(
    shared: str, browser: Any, filled: Filled, size: tuple[int, int]
) -> None:
    with opened(browser, size, java_script_enabled=False) as page:
        page.goto(f"{shared}/notes/-/hybrid/unlock")
        page.locator("#hy-secret").fill(PASSPHRASE)
        page.keyboard.press("Enter")
        page.wait_for_url("**/notes/-/hybrid")
        page.goto(f"{shared}/notes/-/hybrid/new")
        page.get_by_label("Title").fill("x" * 1_001)
        page.get_by_label("Text").fill("Written without a script")
        page.get_by_role("button", name="Add").click()
        page.locator("#hy-title-wrong").wait_for()
        page.get_by_label("Title").fill("Short")
        page.get_by_role("button", name="Add").click()
        page.wait_for_url("**/memories/*")
        page.get_by_role("link", name="Delete").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        page.locator(".message-info", has_text="Deleted.").wait_for()
    assert len(kept(filled)) == 3


def test_the_forms_show_a_screen_reader_what_is_what(
    shared: str, page: Any, tmp_path: Path
) -> None:
    unlocked(page, shared, PASSPHRASE)
    page.goto(f"{shared}/notes/-/hybrid/new")
    page.get_by_label("Title").fill("x" * 1_001)
    page.get_by_label("Text").fill("Something")
    with another_page(page):
        page.get_by_role("button", name="Add").click()
    wrong = page.get_by_label("Title")
    assert wrong.get_attribute("aria-invalid") == "true"
    described = wrong.get_attribute("aria-describedby")
    assert "1,000 at most" in page.locator(f"#{described}").inner_text()
    assert page.get_by_role("alert").count() == 1
