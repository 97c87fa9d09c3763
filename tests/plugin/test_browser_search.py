"""The search page in a real browser: results while one types, keys, and what axe-core says."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_store.store import MemoryStore

from .browsing import AT_ONE_SIZE, DESKTOP, PHONE, another_page, expect, fits, opened, serving
from .conftest import Filled, copied, private_environment

pytestmark = AT_ONE_SIZE

NOTES = "/notes/-/hybrid"


def configured(filled: Filled, tmp_path: Path, **options: Any) -> list[Any]:
    """Arguments of ``datasette serve``: the vault opened at start, and everybody may read it."""
    everybody = {f"hybrid-{action}": True for action in ("search", "decrypt", "write")}
    where = tmp_path / "key-file"
    where.write_text(str(filled.key_file))
    vault = {"key-file": {"$file": str(where)}, "allow": everybody, **options}
    metadata = tmp_path / "metadata.json"
    plugin = {"databases": {"notes": vault}}
    metadata.write_text(json.dumps({"plugins": {"datasette-hybrid": plugin}}))
    return [filled.path, "--metadata", metadata]


@contextmanager
def serving_all(original: Filled, folder: Path, model: Path, **options: Any) -> Iterator[str]:
    """A server for several tests, none of which writes or locks."""
    arguments = configured(copied(original, folder), folder, **options)
    with serving(*arguments, environment=private_environment(folder, model)) as base:
        yield base


@pytest.fixture(scope="module")
def open_address(
    original: Filled, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A server whose vault everybody may read."""
    with serving_all(original, tmp_path_factory.mktemp("open"), tiny_model) as base:
        yield base


@pytest.fixture(scope="module")
def private_address(
    original: Filled, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The same, with queries that stay out of addresses."""
    folder = tmp_path_factory.mktemp("private")
    with serving_all(original, folder, tiny_model, **{"private-queries": True}) as base:
        yield base


@pytest.fixture
def lockable_address(filled: Filled, tmp_path: Path) -> Iterator[str]:
    """A server of one test alone."""
    with serving(*configured(filled, tmp_path)) as base:
        yield base


def titles(page: Any) -> list[str]:
    # not by a locator: Datasette 1.0's jump menu is an element whose `matches` is no function
    headings = "[...document.querySelectorAll('.hy-result h2')].map((one) => one.innerText.trim())"
    return page.evaluate(headings)


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.textContent.trim()")


def test_results_come_while_one_types(open_address: str, page: Any) -> None:
    page.goto(open_address + NOTES)
    field = page.locator("#hy-q")
    field.press_sequentially("tomatoes")
    page.get_by_role("heading", name="Watering the tomatoes").wait_for()
    # not for fewer letters, if they came so slowly that those were looked for, too
    page.locator("#hy-live", has_text="Nothing certain; 3 may fit: tomatoes").wait_for(
        state="attached"
    )
    assert page.url == f"{open_address}{NOTES}?q=tomatoes"
    assert page.title() == "tomatoes · Search notes"
    assert page.evaluate("document.activeElement.id") == "hy-q"
    assert fits(page)
    field.press_sequentially(" -hostile")
    page.wait_for_url("**q=tomatoes+-hostile")
    page.get_by_role("heading", name="Hostile").wait_for(state="detached")
    page.locator("[name=mode]").select_option("keyword")
    page.wait_for_url("**mode=keyword")
    page.locator("#hy-live", has_text="1 result").wait_for(state="attached")
    assert titles(page) == ["Watering the tomatoes"]
    field.fill("")
    page.wait_for_url(lambda url: url.endswith(NOTES))
    page.locator(".hy-welcome").wait_for()
    assert page.complaints == []


@pytest.mark.parametrize("path", [NOTES, "/-/hybrid"])
def test_what_is_merely_near_is_said_aloud_once_and_behind_the_query(
    open_address: str, page: Any, path: str
) -> None:
    page.goto(open_address + path)
    page.locator("#hy-q").fill("xyzzy plugh")
    page.get_by_role("note").get_by_text("nearest in meaning").wait_for()
    said = page.locator("#hy-live").text_content()
    assert said.endswith(
        "xyzzy plugh. No memory holds any of these words; these are the nearest in meaning."
    )
    assert not said.startswith((":", "No memory"))


def test_words_that_begin_as_the_last_one_does_are_offered(open_address: str, page: Any) -> None:
    page.goto(open_address + NOTES)
    offered = page.locator("#hy-words option")
    page.locator("#hy-q").press_sequentially("ripe tom")
    offered.first.wait_for(state="attached")
    values = "all => all.map((one) => one.value)"
    assert "ripe tomatoes" in offered.evaluate_all(values)
    page.locator("#hy-q").fill("ripe ")
    expect(offered).to_have_count(0)


def test_the_arrow_leads_to_the_results_from_a_word_that_begins_others(
    open_address: str, page: Any
) -> None:
    page.goto(open_address + NOTES)
    offered = page.locator("#hy-words option")
    page.locator("#hy-q").press_sequentially("water tom")
    offered.first.wait_for(state="attached")
    page.locator("#hy-q").press_sequentially("ato")  # "tomatoes" is there, too
    page.locator("#hy-live", has_text=": water tomato").wait_for(state="attached")
    expect(offered).to_have_count(0)
    page.keyboard.press("ArrowDown")
    assert focused(page) == titles(page)[0]


def test_half_a_query_keeps_what_was_found(open_address: str, page: Any) -> None:
    page.goto(f"{open_address}{NOTES}?q=tomatoes")
    before = titles(page)
    with page.expect_response("**/hybrid?q=-topic*") as answered:
        page.locator("#hy-q").fill("-topic:garden")
    assert answered.value.status == 400
    assert titles(page) == before
    page.locator("#hy-q").press("Enter")
    assert "minus" in page.get_by_role("alert").inner_text()


def test_only_the_last_of_several_questions_is_shown(open_address: str, page: Any) -> None:
    page.goto(open_address + NOTES)
    held: list[Any] = []
    page.route("**/hybrid?q=postgres", lambda route: held.append(route))
    with page.expect_request("**/hybrid?q=postgres"):
        page.locator("#hy-q").fill("postgres")
    page.locator("#hy-q").fill("tomatoes")
    page.get_by_role("heading", name="Watering the tomatoes").wait_for()
    assert len(held) == 1
    assert page.url.endswith("q=tomatoes")
    assert page.complaints == []


NOTE_WHAT_IS_SAID = """
() => {
  window.said = [];
  const live = document.getElementById('hy-live');
  new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true });
}
"""


def test_a_full_queue_is_asked_again_when_it_says_so(open_address: str, page: Any) -> None:
    page.goto(open_address + NOTES)
    page.evaluate(NOTE_WHAT_IS_SAID)
    refused: list[str] = []

    def first_refused(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=429, headers={"Retry-After": "1"}, body="")

    page.route("**/hybrid?q=tomatoes", first_refused)
    page.locator("#hy-q").fill("tomatoes")
    page.get_by_role("heading", name="Watering the tomatoes").wait_for()
    assert "Trying again in 1 s" in page.evaluate("said.join()")  # it stands there for a second


def test_a_vault_locked_meanwhile_shows_the_way_to_unlock(lockable_address: str, page: Any) -> None:
    page.goto(lockable_address + NOTES)
    locked = page.context.new_page()
    locked.goto(lockable_address + NOTES)
    locked.get_by_role("button", name="Lock").click()
    locked.wait_for_url("**/unlock*")
    page.locator("#hy-q").fill("tomatoes")
    page.get_by_role("heading", name="notes is locked").wait_for()
    assert "q=tomatoes" in page.url


def test_a_private_search_is_sent_by_hand(private_address: str, page: Any) -> None:
    page.goto(private_address + NOTES)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#hy-q").press_sequentially("tomatoes")
    page.wait_for_timeout(500)
    assert asked == []
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Watering the tomatoes").wait_for()
    assert not [url for url in asked if "tomatoes" in url]
    with another_page(page):
        page.locator("button.hy-value", has_text="garden").click()
    with another_page(page):
        page.locator("button.hy-chip", has_text="garden").click()
    assert page.locator("button.hy-chip").count() == 0
    assert len(titles(page)) == 3
    assert page.complaints == []


def test_a_private_question_leads_to_a_memory_and_back(private_address: str, page: Any) -> None:
    page.goto(private_address + NOTES)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#hy-q").fill("tomatoes")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Watering the tomatoes").click()
    page.get_by_role("heading", name="Watering the tomatoes", level=1).wait_for()
    with another_page(page):
        page.get_by_role("link", name="Back to the results").click()
    page.get_by_role("button", name="Watering the tomatoes").wait_for()
    assert page.locator("#hy-q").input_value() == "tomatoes"
    with page.context.expect_page() as other:
        page.get_by_role("button", name="JSON").click()
    expect(other.value.locator("body")).to_contain_text('"rows"')
    assert page.get_by_role("button", name="Watering the tomatoes").is_visible()
    assert not [url for url in asked if "tomatoes" in url]
    assert fits(page)
    assert page.complaints == []


def test_back_after_a_private_question_asks_nothing_but_the_question(
    private_address: str, page: Any
) -> None:
    """A browser asks before it sends a form a second time; here it has none to send."""
    page.goto(private_address + NOTES)
    page.locator("#hy-q").fill("tomatoes")
    page.keyboard.press("Enter")
    found, memory = (
        page.get_by_role("button", name="Watering the tomatoes"),
        page.get_by_role("heading", name="Watering the tomatoes", level=1),
    )
    found.click()
    memory.wait_for()
    for way, seen in ((page.go_back, found), (page.go_forward, memory), (page.go_back, found)):
        way()
        seen.wait_for()
    page.reload()
    found.wait_for()
    assert page.locator("#hy-q").input_value() == "tomatoes"
    page.go_back()
    page.get_by_text("memories, sealed on disk").wait_for()
    assert page.complaints == []


def test_without_a_script_everything_works(open_address: str, browser: Any) -> None:
    with opened(browser, java_script_enabled=False) as page:
        page.goto(open_address + NOTES)
        page.locator("#hy-q").fill("tomatoes")
        with another_page(page):
            page.get_by_role("button", name="Search").click()
        assert titles(page)[0] == "Watering the tomatoes"
        with another_page(page):
            page.locator("a.hy-value", has_text="garden").click()
        assert page.locator(".hy-opened strong").inner_text() == "Nothing certain; 1 may fit"
        assert page.get_by_role("button", name="Keyboard").count() == 0
        page.goto(f"{open_address}{NOTES}?q=tomatoes")
        folded = page.locator(".hy-far .hy-preview")
        assert not folded.first.is_visible()
        page.locator(".hy-far > summary").click()
        folded.first.wait_for()


def test_keys_move_through_the_results(open_address: str, page: Any) -> None:
    page.goto(f"{open_address}{NOTES}?q=tomatoes&limit=2")
    names = titles(page)
    page.keyboard.press("j")
    assert focused(page) == names[0]
    page.keyboard.press("ArrowDown")
    assert focused(page) == names[1]
    page.keyboard.press("j")  # the last one stays
    assert focused(page) == names[1]
    page.keyboard.press("k")
    assert focused(page) == names[0]
    page.keyboard.press("Control+j")
    assert focused(page) == names[0]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "hy-q"
    page.keyboard.type("jkm?/")  # while one types, keys are letters
    assert page.locator("#hy-q").input_value().endswith("jkm?/")
    page.goto(f"{open_address}{NOTES}?q=tomatoes")
    page.keyboard.press("/")
    assert page.evaluate("getSelection().toString()") == "tomatoes"
    assert page.get_by_role("dialog").count() == 0  # 1.0 opens a menu by this key elsewhere
    page.locator("h1 a").focus()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.keyboard.press("j")
    page.keyboard.press("m")
    page.wait_for_url("**like=*")
    assert "Watering the tomatoes" in page.locator(".hy-chip").inner_text()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*")
    assert page.complaints == []


def test_four_keys_lead_from_the_query_to_the_third_result(open_address: str, page: Any) -> None:
    page.goto(open_address + NOTES)
    page.locator("#hy-q:focus").wait_for()  # the page opens in the query
    page.keyboard.type("tomatoes database hostile")
    page.locator("#hy-live", has_text=": tomatoes database hostile").wait_for(state="attached")
    third = titles(page)[2]
    page.keyboard.press("Enter")  # they are answered: to the first, as by the arrow
    assert focused(page) == titles(page)[0]
    page.keyboard.press("Escape")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    assert focused(page) == third
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/*")
    assert page.locator("h1").inner_text() == third
    assert page.complaints == []


def test_keys_open_what_is_folded_and_go_on_in_it(open_address: str, page: Any) -> None:
    page.goto(f"{open_address}{NOTES}?q=tomatoes")
    fold = page.locator(".hy-far")
    near = page.locator(".hy-main > .hy-results .hy-result").count()
    assert near < len(titles(page))
    hidden = fold.get_by_role("link").first
    assert not hidden.is_visible()
    page.locator("#hy-q").focus()
    page.keyboard.press("ArrowDown")
    for _ in range(near):
        page.keyboard.press("j")
    assert focused(page) == fold.locator("summary").inner_text()
    page.keyboard.press("j")  # nothing that is hidden is walked
    assert focused(page) == fold.locator("summary").inner_text()
    page.keyboard.press("Enter")
    hidden.wait_for()
    page.keyboard.press("j")
    assert focused(page) == titles(page)[near]
    page.keyboard.press("k")
    assert focused(page) == fold.locator("summary").inner_text()
    assert violations(page) == []
    assert page.complaints == []


def test_a_memory_leads_to_the_next_result_and_shows_what_was_found(
    open_address: str, page: Any
) -> None:
    page.goto(f"{open_address}{NOTES}?q=tomatoes&limit=2")
    names = titles(page)
    with another_page(page):
        page.locator(".hy-result h2 a").first.click()
    following = page.get_by_role("link", name="Next result")
    assert page.get_by_role("link", name="Previous result").count() == 0
    found = [one.lower() for one in page.locator("article mark").all_inner_texts()]
    assert "tomatoes" in found
    with another_page(page):
        page.keyboard.press("j")
    page.get_by_role("heading", name=names[1], level=1).wait_for()
    with another_page(page):
        following.click()  # the first of the next page
    assert page.get_by_role("link", name="Previous result").count() == 0
    third = page.locator("h1").inner_text()
    assert third not in names
    page.go_back()
    page.get_by_role("link", name="Previous result").wait_for()
    with another_page(page):
        page.keyboard.press("k")
    page.get_by_role("heading", name=names[0], level=1).wait_for()
    page.keyboard.press("Escape")
    page.locator("#hy-answer").wait_for()
    assert titles(page) == names
    assert fits(page)
    assert page.complaints == []


def test_the_page_across_databases_answers_while_one_types_too(
    open_address: str, page: Any
) -> None:
    page.goto(f"{open_address}/-/hybrid?type=note")
    assert "of 3 memories" in page.locator(".hy-vault").inner_text()
    page.locator("#hy-q").press_sequentially("tomatoes")
    page.wait_for_url("**q=tomatoes**")
    with another_page(page):
        page.locator(".hy-chip", has_text="note").click()
    assert page.locator(".hy-chip").count() == 0
    assert page.url == f"{open_address}/-/hybrid?q=tomatoes"
    assert fits(page)
    assert page.complaints == []


def test_where_data_is_to_be_saved_nothing_is_asked_ahead(open_address: str, browser: Any) -> None:
    with opened(browser) as page:
        page.add_init_script(
            "Object.defineProperty(navigator, 'connection', {value: {saveData: true}})"
        )
        page.goto(open_address + NOTES)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.locator("#hy-q").press_sequentially("tomatoes")
        page.wait_for_timeout(500)
        assert asked == []


def test_a_phone_shows_the_last_word_of_a_preview_whole(
    filled: Filled, tmp_path: Path, browser: Any
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("The pelicans rested near the boathouse until evening came. " * 50)
    with serving(*configured(filled, tmp_path)) as base, opened(browser, PHONE) as page:
        page.goto(f"{base}{NOTES}?q=pelicans")
        preview = page.locator(".hy-preview").first
        assert preview.evaluate("shown => shown.scrollHeight <= shown.clientHeight")
        assert preview.inner_text().endswith(" …")


def test_any_script_and_any_length_fits(filled: Filled, tmp_path: Path, browser: Any) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add(f"{'unbroken' * 60} tomato 🍅", title="W" * 200, topics=("x" * 120,))
        store.add("الطماطم tomato تحتاج إلى الماء كل يومين", title="سقي الطماطم")
    with (
        serving(*configured(filled, tmp_path)) as base,
        opened(browser, (320, 640)) as page,  # 1,280 at a zoom of 400 %
    ):
        for path in ("?q=tomato&explain=1", "?q=tomato&narrow=topic:" + "x" * 120, ""):
            page.goto(base + NOTES + path)
            assert fits(page), path
        page.goto(f"{base}{NOTES}?q=tomato&limit=5")
        arabic = page.locator(".hy-result", has_text="سقي")
        for part in (arabic.get_by_role("link", name="سقي"), arabic.locator(".hy-preview")):
            assert part.first.evaluate("part => getComputedStyle(part).direction") == "rtl"
        arabic.get_by_role("link", name="سقي").click()
        paragraph = page.locator(".hy-text p").first
        style = paragraph.evaluate(
            "one => [getComputedStyle(one).direction, getComputedStyle(one).textAlign]"
        )
        assert style == ["rtl", "start"]


def test_a_map_that_is_wider_than_a_phone_says_so_and_moves_by_the_keyboard(
    open_address: str, private_address: str, browser: Any
) -> None:
    for base in (open_address, private_address):
        with opened(browser, PHONE) as page:
            page.goto(f"{base}{NOTES}/landscape")
            assert page.get_by_text("The map is wider than this window").is_visible()
            figure = page.get_by_role("figure", name="Map")
            figure.focus()
            page.keyboard.press("ArrowRight")
            page.wait_for_function(
                "map => map.scrollLeft > 0", arg=figure.element_handle(), polling=50
            )
        with opened(browser) as page:
            page.goto(f"{base}{NOTES}/landscape")
            assert not page.get_by_text("The map is wider than this window").is_visible()
            assert page.locator(".hy-map").evaluate("map => map.scrollWidth <= map.clientWidth")


def test_answers_about_words_stand_apart_from_the_form(open_address: str, page: Any) -> None:
    page.goto(f"{open_address}{NOTES}/exists?q=tomatoes+zanzibar")
    lines = [one.bounding_box() for one in page.locator(".hy-existing li").all()]
    form = page.locator(".hy-query").last.bounding_box()
    assert lines[0]["y"] - form["y"] - form["height"] >= 12
    assert lines[1]["y"] - lines[0]["y"] >= 30  # a finger's room: the words are links


def test_on_paper_there_are_results_and_nothing_to_press(open_address: str, browser: Any) -> None:
    with opened(browser) as page:
        page.goto(f"{open_address}{NOTES}?q=tomatoes")
        pressed = page.locator(
            ".hy-page :is(button, select, input, summary):not(.hy-far > summary)"
        )
        assert any(one.is_visible() for one in pressed.all())
        page.emulate_media(media="print")
        assert page.locator(".hy-result").first.is_visible()
        assert [one.inner_text() for one in pressed.all() if one.is_visible()] == []


STATES = {
    "before a question": NOTES,
    "results": f"{NOTES}?q=tomatoes",
    "narrowed": f"{NOTES}?q=tomatoes&narrow=topic:garden&narrow=type:note&limit=1",
    "a later page": f"{NOTES}?q=tomatoes&limit=1",
    "explained": f"{NOTES}?q=tomatoes&explain=1&why=00000000",
    "nothing found": f"{NOTES}?q=xylophone&mode=keyword&type=note",
    "refused": f"{NOTES}?q=tomatoes&since=someday",
    "like": f"{NOTES}?like=00000000-0000-4000-8000-000000000001",
    "across": "/-/hybrid?q=tomatoes",
    "no such address": f"{NOTES}/nowhere",
    "one memory": f"{NOTES}/memories/00000000-0000-4000-8000-000000000001?q=tomatoes",
    "a new memory": f"{NOTES}/new",
    "collections": f"{NOTES}/collections",
    "landscape": f"{NOTES}/landscape",
    "review": f"{NOTES}/review",
    "words": f"{NOTES}/exists?q=tomatoes+xylophone",
    "to unlock": f"{NOTES}/unlock",
    "import": f"{NOTES}/import",
    "trash": f"{NOTES}/trash",
    "saved searches": f"{NOTES}/searches",
}
ZOOMED = (640, 450)
"""A desktop at 200 %."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("size", "scheme"),
    [*itertools.product([DESKTOP, PHONE], ["light", "dark"]), (ZOOMED, "light")],
)
def test_axe_finds_nothing_wrong(
    open_address: str, browser: Any, size: tuple[int, int], scheme: str
) -> None:
    wrong = {}
    with opened(browser, size, color_scheme=scheme) as page:
        for state, path in STATES.items():
            page.goto(open_address + path)
            page.evaluate(
                "document.querySelectorAll('details').forEach(fold => (fold.open = true))"
            )
            if state == "a later page":
                with another_page(page):
                    page.locator(".hy-next").click()
            wrong[state] = violations(page)
            assert fits(page), state
        page.goto(open_address + NOTES)
        page.locator("h1 a").focus()
        page.keyboard.press("?")
        wrong["keys"] = violations(page)
    assert {state: found for state, found in wrong.items() if found} == {}


def test_axe_finds_nothing_wrong_with_the_box_on_pages_of_datasette(
    open_address: str, browser: Any
) -> None:
    with opened(browser, PHONE) as page:
        for path in ("/", "/notes"):
            page.goto(open_address + path)
            assert page.locator(".hybrid-box").count() == 1
            assert violations(page, ".hybrid-box") == []


def violations(page: Any, within: str | None = None) -> list[str]:
    """What axe-core objects to in a page, or in a part of it."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("document.querySelector('navigation-search')?.remove()")  # see titles()
    found = Axe().run(page, within).response["violations"]
    return [
        f"{one['id']}: {re.sub(' +', ' ', node['html'])[:120]}"
        for one in found
        for node in one["nodes"]
    ]
