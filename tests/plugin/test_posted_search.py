"""A search that belongs in no address: where it is answered, and its way through other pages."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest

from datasette_hybrid.vaults.questions import LONGEST, MOST, MOST_OF_ONE, Questions

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served, soup

ONE = "00000000-0000-4000-8000-000000000001"
PAGE = f"/notes/-/hybrid/memories/{ONE}"
SEARCH = {"q": "tomatoes", "type": "note"}


@pytest.fixture
async def private(filled: Filled, serve: Serve) -> Served:
    """The vault, whose queries stand in no address."""
    return (await serve(filled.path, options=filled.options(private_queries=True, allow=ALLOW))).by(
        "root"
    )


async def pressed(served: Served, below: str, fields: dict[str, str], page: str = PAGE) -> Any:
    """What a button leads to: an address to be asked again, with nothing of the question in it."""
    done = await served.submit(below, fields, page, follow_redirects=True)
    assert done.status_code == 200, done.text
    assert [step.status_code for step in done.history] == [303]
    assert "tomatoes" not in str(done.url)
    return done


def below(response: Any) -> str:
    """The address of an answer, without the server."""
    parts = urlsplit(str(response.url))
    return f"{parts.path}?{parts.query}"


def link(response: Any, words: str) -> str:
    """Where a link leads."""
    found = soup(response).find("a", string=words)
    assert found is not None, response.text
    return str(found["href"])


def fields_of(response: Any) -> dict[str, str]:
    """What the search form of a page says."""
    form = soup(response).select_one("#hy-form")
    assert form is not None, response.text
    typed = {one["name"]: one["value"] for one in form.select("input[name=q]")}
    chosen = {
        select["name"]: option["value"]
        for select in form.select("select[name=type]")
        for option in select.select("option[selected]")
    }
    return {name: value for name, value in {**typed, **chosen}.items() if value}


async def test_an_answer_has_an_address_to_be_asked_again_at(private: Served) -> None:
    found = await pressed(private, "", SEARCH, "")
    assert re.fullmatch(r"/notes/-/hybrid\?asked=[\w-]{22}", below(found))
    again = await private.get(below(found))
    assert fields_of(found) == fields_of(again) == SEARCH
    same = await pressed(private, "", SEARCH, "")
    assert below(same) == below(found)
    assert below(await pressed(private, "", {"q": "herons"}, "")) != below(found)
    nothing = await private.submit("", {"q": ""}, "")
    assert (nothing.status_code, nothing.headers["location"]) == (303, "/notes/-/hybrid")


async def test_a_name_means_nothing_to_anybody_else(private: Served) -> None:
    address = below(await pressed(private, "", SEARCH, ""))
    for other in ("alice", "bob"):
        refused = await private.by(other).get(address)
        assert (refused.status_code, refused.headers["location"]) == (303, "/notes/-/hybrid")
        reported = await private.by(other).get(address, follow_redirects=True)
        assert "not kept any longer" in reported.text
        assert fields_of(reported) == {}
    assert (await private.by(None).get(address)).status_code == 403


async def test_where_no_one_logs_in_a_browser_finds_its_own_questions_and_no_other(
    filled: Filled, serve: Serve
) -> None:
    everybody = {"hybrid-search": True, "hybrid-decrypt": True}
    served = (
        await serve(filled.path, options=filled.options(private_queries=True, allow=everybody))
    ).by(None)
    asked = await served.submit("", SEARCH)
    assert asked.status_code == 303
    address, get = str(asked.headers["location"]), served.datasette.client.get
    own = {"ds_hybrid_visitor": asked.cookies["ds_hybrid_visitor"]}
    assert fields_of(await get(address, cookies=own)) == SEARCH
    for other in ({}, {"ds_hybrid_visitor": "x" * 22}):
        reported = await get(address, cookies=other, follow_redirects=True)
        assert "not kept any longer" in reported.text
        assert fields_of(reported) == {}


async def test_a_lock_forgets_what_was_asked(private: Served) -> None:
    address = below(await pressed(private, "", SEARCH, ""))
    vault = private.vault
    vault.lock()
    assert (await private.get(address)).status_code == 423
    vault.unlock(PASSPHRASE)
    reported = await private.get(address, follow_redirects=True)
    assert "not kept any longer" in reported.text
    assert fields_of(reported) == {}


async def test_a_question_too_long_to_be_kept_is_answered_all_the_same(private: Served) -> None:
    long = {"q": "tomatoes", "meta": "a=" + "b" * LONGEST}
    answer = await private.submit("", long)
    assert answer.status_code == 200
    assert fields_of(answer)["q"] == "tomatoes"


def test_only_so_many_questions_are_kept() -> None:
    questions, me = Questions(), ("me", False)
    first = questions.keep(me, [("q", "0")])
    second = questions.keep(me, [("q", "1")])
    assert first
    assert second
    assert questions.find(me, first) == [("q", "0")]  # which makes it the newest
    for number in range(2, MOST_OF_ONE + 1):
        questions.keep(me, [("q", str(number))])
    assert questions.find(me, second) is None
    assert questions.find(me, first) == [("q", "0")]
    assert questions.find(("you", False), first) is None
    questions.wipe()
    assert questions.find(me, first) is None


def test_one_who_asks_much_takes_no_other_the_way_back() -> None:
    """Nor does a visitor whose every question comes from another browser."""
    questions, me = Questions(), ("me", False)
    mine = questions.keep(me, [("q", "0")])
    assert mine
    for number in range(2 * MOST):
        for flood in (("mallory", False), (None, False, str(number))):
            questions.keep(flood, [("q", str(number))])
    assert questions.find(me, mine) == [("q", "0")]


@pytest.mark.parametrize(
    ("button", "more"),
    [
        ("/done", {}),
        ("/reopen", {}),
        ("/topics", {"add": "ripe"}),
        ("/topics", {"remove": "garden"}),
    ],
)
async def test_the_way_back_stays_after_a_button(
    private: Served, button: str, more: dict[str, str]
) -> None:
    shown = await pressed(private, PAGE, SEARCH)
    keep = "?" + below(shown).partition("?")[2]
    after = await pressed(private, PAGE + button + keep, more)
    assert below(after) == below(shown)
    assert fields_of(await private.get(link(after, "Back to the results"))) == SEARCH


async def test_the_way_back_stays_after_a_change(private: Served) -> None:
    shown = await pressed(private, PAGE, SEARCH)
    edit = link(shown, "Edit")
    form = await private.get(edit)
    assert link(form, "Cancel") == below(shown)
    fields = {"id": ONE, "version": "1", "title": "Wet", "text": "Watered.", "type": "note"}
    wrong = await private.submit(edit, {**fields, "text": ""}, edit)
    assert (wrong.status_code, link(wrong, "Cancel")) == (400, below(shown))
    stale = await private.submit(edit, {**fields, "version": "7"}, edit)
    assert (stale.status_code, link(stale, "Keep theirs")) == (409, below(shown))
    saved = await pressed(private, edit, fields, edit)
    assert "Saved." in saved.text
    assert fields_of(await private.get(link(saved, "Back to the results"))) == SEARCH


async def test_a_copy_is_published_with_the_way_back(private: Served) -> None:
    made = await private.send(
        "POST", "/collections.json", {"name": "team"}, headers={"Authorization": "Bearer nothing"}
    )
    assert made.status_code == 201, made.text
    shown = await pressed(private, PAGE, {**SEARCH, "collection": "personal"})
    keep = "?" + below(shown).partition("?")[2]
    target = {"target": made.json()["rows"][0]["id"]}
    after = await pressed(private, f"{PAGE}/publish{keep}", target)
    assert "This is the copy." in after.text
    assert fields_of(await private.get(link(after, "Back to the results"))) == SEARCH


async def test_what_is_left_is_searched_again_after_a_deletion(private: Served) -> None:
    shown = await pressed(private, PAGE, SEARCH)
    sure = link(shown, "Delete")
    asked = await private.get(sure)
    assert link(asked, "Keep it") == below(shown)
    after = await pressed(private, sure, {"version": "1"}, sure)
    assert "Deleted." in after.text
    assert "Undo" in after.text
    assert fields_of(after) == SEARCH
    assert ONE not in after.text


async def test_across_databases_it_has_an_address_too(private: Served) -> None:
    found = await pressed(private, "/-/hybrid", {"q": "tomatoes"}, "/-/hybrid")
    assert "Watering" in (await private.get(below(found))).text
    private.vault.lock()
    assert "Watering" not in (await private.get(below(found))).text


async def test_elsewhere_the_address_has_the_search(served: Served) -> None:
    done = await served.by("root").submit(f"{PAGE}/done?q=tomatoes", {}, PAGE)
    assert (done.status_code, done.headers["location"]) == (303, f"{PAGE}?q=tomatoes")
    posted = await served.by("root").submit(PAGE, {"q": "tomatoes"}, PAGE)
    assert (posted.status_code, posted.headers["location"]) == (303, f"{PAGE}?q=tomatoes")
    answered = await served.by("root").submit("", {"q": "tomatoes"}, "")
    assert answered.status_code == 200
