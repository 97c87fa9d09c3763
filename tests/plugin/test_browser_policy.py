"""A real browser on Datasette's own pages that show opened text: only their own scripts run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datasette.app import Datasette

from .browsing import DESKTOP, MARKS, expect, opened, unlocked
from .conftest import PASSPHRASE

ON_1 = hasattr(Datasette, "get_internal_database")
SQL = "select memory_text(id) as text from memories order by id"
EDITOR = ".cm-editor" if ON_1 else ".CodeMirror"
PAGES = [
    "/notes/memories",
    "/notes/memories?_search=tomatoes&_facet=type",
    "/notes/memories/00000000-0000-4000-8000-000000000001",
    "/notes/memory_bodies",
    f"/notes/-/query?sql={SQL}" if ON_1 else f"/notes?sql={SQL}",
]

pytestmark = MARKS


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of one size: what a policy allows does not hang on it."""
    with opened(browser, DESKTOP) as page:
        yield page


@pytest.mark.parametrize("path", PAGES)
def test_pages_with_opened_text_run_their_own_scripts_alone(
    address: str, page: Any, path: str
) -> None:
    unlocked(page, address, PASSPHRASE)
    answer = page.goto(f"{address}{path}")
    assert "tomatoes" in page.content()
    headers = answer.headers
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    page.wait_for_load_state("networkidle")
    assert page.complaints == []
    page.evaluate(
        """document.body.insertAdjacentHTML('beforeend', `<img src=x onerror="window.ran = 1">
            <form onsubmit="window.ran = 1"><button id=b onclick="window.ran = 1">b</button></form>
        `);
        const script = document.createElement('div');
        document.body.append(script);
        script.append(document.createRange().createContextualFragment(
            '<script>window.ran = 1</' + 'script>'
        ));"""
    )
    page.evaluate("document.getElementById('b').click()")
    expect(page.locator("body")).to_be_visible()
    assert page.evaluate("window.ran") is None
    assert page.complaints  # the browser says that it refused each of them


def test_menus_and_the_editor_of_datasette_work(address: str, browser: Any) -> None:
    with opened(browser, DESKTOP) as page:
        unlocked(page, address, PASSPHRASE)
        page.goto(f"{address}/notes/memories")
        page.locator("th.col-type .dropdown-menu-icon, th[data-column=type] svg").first.click()
        expect(page.locator(".dropdown-menu a", has_text="Sort ascending").first).to_be_visible()
        page.locator("details.actions-menu-links summary").first.click()
        expect(page.get_by_text("New memory").first).to_be_visible()
        page.goto(f"{address}{PAGES[-1]}")
        editor = page.locator(EDITOR)
        expect(editor).to_be_visible()
        expect(editor).to_contain_text("memory_text")
        if ON_1:
            page.goto(f"{address}/notes/memories")
            page.locator("body").press("/")
            expect(
                page.locator("navigation-search dialog, navigation-search input").first
            ).to_be_visible()
        assert page.complaints == []


@pytest.mark.skipif(not ON_1, reason="Datasette 0.65 has no such button")
def test_the_button_with_a_handler_of_its_own_works(address: str, browser: Any) -> None:
    with opened(browser, (360, 740)) as page:
        unlocked(page, address, PASSPHRASE)
        page.goto(f"{address}/notes/memories")
        page.locator("button.choose-columns-mobile").click()
        expect(page.locator("column-chooser, dialog[open]").first).to_be_attached()
        assert page.complaints == []


@pytest.mark.sampled(0)
def test_no_other_page_puts_these_into_a_frame(address: str, page: Any) -> None:
    unlocked(page, address, PASSPHRASE)
    for path in (PAGES[0], PAGES[-1]):
        page.goto(f"{address}/-/static/app.css")
        page.evaluate(
            """path => { document.body.insertAdjacentHTML('beforeend', '<iframe></iframe>');
            document.querySelector('iframe').src = path; }""",
            path,
        )
        page.wait_for_load_state("networkidle")
        framed = next(frame for frame in page.frames if frame.parent_frame)
        assert "tomatoes" not in framed.content()
