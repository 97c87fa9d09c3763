"""Importing in a real browser: choosing files, watching the bar, reading what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .browsing import AT_ONE_SIZE, another_page, expect, fits, unlocked
from .conftest import PASSPHRASE

pytestmark = AT_ONE_SIZE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of notes, as a person has one."""
    made = tmp_path / "autumn"
    (made / "deep").mkdir(parents=True)
    (made / "quinces.md").write_text("# Quinces\n\nA crate of quinces in the cellar.")
    (made / "deep" / "medlars.txt").write_text("Medlars want a frost.")
    (made / "photo.jpg").write_bytes(b"\xff\xd8")
    return made


def test_files_and_a_folder_are_imported_and_found(address: str, page: Any, folder: Path) -> None:
    unlocked(page, address, PASSPHRASE)
    page.goto(f"{address}/notes/-/hybrid")
    with another_page(page):
        page.get_by_role("navigation", name="notes").get_by_role("link", name="Import").click()
    assert page.locator("h1").inner_text() == "Import"
    assert fits(page)
    page.get_by_label("Or a folder").set_input_files(folder)
    page.get_by_label("Topics for all of them").fill("autumn")
    page.get_by_role("button", name="Import").click()
    # a page that asks how far it is, and comes again by itself at the end
    page.get_by_role("heading", name="What was imported").wait_for()
    page.wait_for_load_state()
    assert page.locator(".hy-counts div").first.inner_text().split() == ["new", "2"]
    assert "photo.jpg" in page.locator(".hy-named").inner_text()
    assert fits(page)
    expect(page.locator(".hy-imported a")).to_have_count(2)
    with another_page(page):
        page.get_by_role("link", name="Quinces").click()
    assert page.locator("h1").inner_text() == "Quinces"
    page.goto(f"{address}/notes/-/hybrid?q=medlars")
    assert page.locator(".hy-result").first.inner_text().count("autumn") == 1

    page.goto(f"{address}/notes/-/hybrid/import")
    page.get_by_label("Files", exact=True).set_input_files(folder / "quinces.md")
    page.get_by_label("Only say what would happen").check()
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Nothing was written.").wait_for()
    assert page.complaints == []


def test_the_bar_says_that_no_server_answers_and_goes_on_when_one_does(
    address: str, page: Any, tmp_path: Path
) -> None:
    many = [tmp_path / f"note {number}.md" for number in range(1_500)]
    for one in many:
        one.write_text(f"# {one.stem}\n\nQuinces of the year {one.stem}.")
    unlocked(page, address, PASSPHRASE)
    page.goto(f"{address}/notes/-/hybrid/import")
    page.get_by_label("Files", exact=True).set_input_files(many)
    page.route("**/import/*.json", lambda route: route.abort())
    page.get_by_role("button", name="Import").click()
    page.get_by_text("The server does not answer. Asking again …").wait_for()
    page.unroute("**/import/*.json")
    page.get_by_role("heading", name="What was imported").wait_for()


def test_the_audit_trail_reads_well(address: str, page: Any) -> None:
    unlocked(page, address, PASSPHRASE)
    page.goto(f"{address}/notes/-/hybrid?q=tomatoes")
    with another_page(page):
        page.get_by_role("link", name="Audit trail").click()
    assert page.locator("h1").inner_text() == "Audit trail"
    assert "unlocked session" in page.locator(".hy-table").first.inner_text()
    page.get_by_label("Action").select_option("search")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**action=search**")
    assert fits(page)
    assert page.complaints == []
