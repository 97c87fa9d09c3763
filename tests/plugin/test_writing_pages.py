"""Writing on the pages: add, change, complete, tag, publish, delete; and nothing typed is lost."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from msgspec.structs import replace

from datasette_hybrid.requests import cross_site

from .conftest import ALLOW, ONE, Filled, Serve, Served

NEW = {"title": "Gate", "text": "Oil the hinges.", "type": "task", "topics": "house, to do"}


def soup(response: Any) -> BeautifulSoup:
    return BeautifulSoup(response.text, "html.parser")


def fields(response: Any, form: int = 0) -> dict[str, str]:
    """What a browser would send of a page's form for a memory, as it is shown."""
    shown = soup(response).select("form:has(input[name=version])")[form]
    found = {}
    for one in shown.select("[name]"):
        if one.name == "select":
            chosen = one.select_one("option[selected]") or one.select_one("option")
            found[one["name"]] = chosen["value"]
        elif one.name == "textarea":
            found[one["name"]] = one.text.removeprefix("\n")
        elif one.name != "button" and one["name"] != "csrftoken":
            found[one["name"]] = one.get("value", "")
    return found


def stored(served: Served, memory_id: str = ONE) -> Any:
    return served.store.get(memory_id)


async def sent(served: Served, path: str, page: str | None = None, **changes: str) -> Any:
    """Fill in the form on a page, with some fields typed otherwise, and send it."""
    shown = await served.get(served.base + (page or path))
    typed = fields(shown) if 'name="version"' in shown.text else {}
    return await served.submit(
        served.base + path, {**typed, **changes}, served.base + (page or path)
    )


async def test_a_memory_is_added_and_shown_with_a_message(served: Served) -> None:
    root = served.by("root")
    added = await sent(root, "/new", **NEW)
    assert added.status_code == 303
    address = added.headers["location"]
    cookies = {**root.cookies, **dict(added.cookies)}
    shown = await root.datasette.client.get(address, cookies=cookies)
    assert "Added." in shown.text
    assert soup(shown).h1.text == "Gate"
    memory = stored(served, address.rpartition("/")[2])
    assert (memory.text, memory.type, memory.topics) == (NEW["text"], "task", ("house", "to do"))
    assert memory.collection == "personal"


async def test_a_form_that_is_sent_twice_adds_one_memory(served: Served) -> None:
    root = served.by("root")
    form = {**fields(await root.get(f"{served.base}/new")), **NEW}
    first = await root.submit(f"{served.base}/new", form)
    second = await root.submit(f"{served.base}/new", form)
    assert first.headers["location"] == second.headers["location"]
    assert len(served.store.list()) == 4
    other = await root.submit(f"{served.base}/new", {**form, "text": "Oil them twice."})
    assert other.status_code == 409
    assert "Oil them twice." in other.text
    assert len(served.store.list()) == 4


async def test_wrong_fields_are_shown_again_with_the_error_beside_them(served: Served) -> None:
    root = served.by("root")
    wrong = {**NEW, "title": "x" * 1_001, "valid_from": "someday", "type": "opinion"}
    again = await sent(root, "/new", **wrong)
    assert again.status_code == 400
    page = soup(again)
    for name in ("title", "valid_from", "type"):
        field = page.select_one(f"[name={name}]")
        assert field["aria-invalid"] == "true"
        assert page.find(id=field["aria-describedby"].split()[0]).text
    assert fields(again)["text"] == NEW["text"]
    assert fields(again)["valid_from"] == "someday"
    assert page.select_one("details.hy-folded").has_attr("open")
    assert len(served.store.list()) == 3


async def test_an_end_before_the_beginning_is_named_as_the_form_does(served: Served) -> None:
    wrong = {**NEW, "valid_from": "2024-05-01", "valid_to": "2024-04-01"}
    again = await sent(served.by("root"), "/new", **wrong)
    assert again.status_code == 400
    field = soup(again).select_one("[name=valid_to]")
    said = soup(again).find(id=field["aria-describedby"].split()[0]).text
    assert said == "2024-04-01T00:00:00Z is before \u201cValid from\u201d, 2024-05-01T00:00:00Z."
    assert len(served.store.list()) == 3


async def test_hashtags_of_a_text_are_topics_and_saving_twice_is_no_conflict(
    served: Served,
) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    added = await sent(root, "/new", **{**NEW, "text": "Oil the #hinges."})
    assert stored(served, added.headers["location"].rpartition("/")[2]).topics == (
        *("house", "to do", "hinges"),
    )
    form = {**fields(await root.get(served.base + path)), "text": "With #rain", "topics": "water"}
    for _ in range(2):
        saved = await root.submit(served.base + path, form)
        assert saved.status_code == 303
        memory = stored(served)
        assert (memory.topics, memory.version) == (("water", "rain"), 2)
    await sent(root, path, topics="water")
    assert stored(served).topics == ("water",)
    taken_off = await root.submit(served.base + path, {**form, "topics": "water, rain"})
    assert taken_off.status_code == 409


async def test_an_empty_memory_is_no_memory(served: Served) -> None:
    again = await sent(served.by("root"), "/new", **{**NEW, "text": " \n"})
    assert again.status_code == 400
    assert "Write something first." in again.text
    assert fields(again)["title"] == "Gate"


async def test_a_memory_is_edited(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    shown = fields(await root.get(served.base + path))
    assert shown["text"] == stored(served).text
    assert shown["topics"] == "garden, water"
    saved = await sent(root, path, text="Every day.\r\n\r\nNow.", topics="garden", valid_to="2030")
    assert saved.status_code == 303
    assert saved.headers["location"].endswith(f"/memories/{ONE}")
    memory = stored(served)
    assert (memory.text, memory.topics) == ("Every day.\n\nNow.", ("garden",))
    assert (memory.version, memory.valid_to) == (2, "2030-01-01T00:00:00Z")
    assert memory.title == "Watering the tomatoes"


async def test_saving_what_is_shown_changes_nothing_but_the_version(served: Served) -> None:
    hostile = "00000000-0000-4000-8000-000000000003"
    before = stored(served, hostile)
    assert (await sent(served.by("root"), f"/memories/{hostile}/edit")).status_code == 303
    after = stored(served, hostile)
    assert after == replace(before, version=2, updated=after.updated)


async def test_of_two_who_edit_the_same_the_second_sees_both_versions(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    mine = fields(await root.get(served.base + path))
    await sent(root, path, text="Water them daily.\n\n- feed on Sundays", title="Theirs")
    conflict = await root.submit(
        served.base + path, {**mine, "text": f"{mine['text']}\n- and on Mondays", "topics": "mine"}
    )
    assert conflict.status_code == 409
    page = soup(conflict)
    assert "This was changed meanwhile" in page.h1.text
    rows = {row.th.text: [cell.text for cell in row("td")] for row in page.select(".wide tbody tr")}
    assert rows["Title"] == ["Theirs", "Watering the tomatoes"]
    assert rows["Topics"] == ["garden, water", "mine"]
    marked = [mark.text for mark in page.select(".hy-diff mark")]
    assert "- and on Mondays" in marked
    assert stored(served).title == "Theirs"

    merged = fields(conflict, 1)
    assert merged["text"].splitlines() == [
        "Water them daily.",
        "The tomatoes want water every second day.",
        "",
        "- feed on Sundays",
        "- and on Mondays",
    ]
    over = await root.submit(served.base + path, fields(conflict, 0))
    assert over.status_code == 303
    kept = stored(served)
    assert (kept.version, kept.title, kept.topics) == (3, "Watering the tomatoes", ("mine",))


async def test_choosing_mine_cannot_go_over_a_third_version(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    mine = fields(await root.get(served.base + path))
    await sent(root, path, text="The second version")
    conflict = await root.submit(served.base + path, {**mine, "text": "Mine"})
    await sent(root, path, text="The third version")
    again = await root.submit(served.base + path, fields(conflict, 0))
    assert again.status_code == 409
    assert "third" in again.text
    assert stored(served).text == "The third version"


async def test_saving_twice_the_same_is_no_conflict(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    typed = {**fields(await root.get(served.base + path)), "text": "Once."}
    for _ in range(2):
        assert (await root.submit(served.base + path, typed)).status_code == 303
    assert stored(served).version == 2


@pytest.mark.skipif(
    not cross_site.BY_TOKEN, reason="1.0 takes JSON with cookies from its own pages"
)
async def test_json_with_cookies_learns_what_to_do(served: Served) -> None:
    path = f"{served.base}/memories.json"
    response = await served.by("root").send("POST", path, {"text": "x"}, headers={})
    assert response.status_code == 403
    assert "token in the Authorization header" in response.json()["error"]


async def test_done_and_open_again(served: Served) -> None:
    root, page = served.by("root"), f"/memories/{ONE}"
    finished = await root.submit(f"{served.base}{page}/done", {}, served.base + page)
    assert finished.headers["location"].endswith(page)
    assert stored(served).type == "note_done"
    shown = await root.get(served.base + page)
    assert "Mark as open" in shown.text
    edit = await root.get(f"{served.base}{page}/edit")
    assert fields(edit)["type"] == "note_done"
    await root.submit(f"{served.base}{page}/reopen", {}, served.base + page)
    assert stored(served).type == "note"


async def test_topics_are_added_and_removed_in_place(served: Served) -> None:
    root, page = served.by("root"), f"/memories/{ONE}"
    suggested = soup(await root.get(served.base + page)).select("#hy-suggested option")
    assert "work" in [option["value"] for option in suggested]
    assert "garden" not in [option["value"] for option in suggested]
    await root.submit(f"{served.base}{page}/topics", {"add": "summer"}, served.base + page)
    await root.submit(f"{served.base}{page}/topics", {"remove": "water"}, served.base + page)
    assert stored(served).topics == ("garden", "summer")
    several = {"add": "late summer, , gate"}
    await root.submit(f"{served.base}{page}/topics", several, served.base + page)
    assert stored(served).topics == ("garden", "summer", "late summer", "gate")
    nothing = await root.submit(f"{served.base}{page}/topics", {"add": " "}, served.base + page)
    assert nothing.status_code == 400


async def test_a_memory_is_published_in_another_collection(served: Served) -> None:
    root, page = served.by("root"), f"/memories/{ONE}"
    assert "Publish" not in (await root.get(served.base + page)).text
    team = served.store.collections.create("team")
    shown = soup(await root.get(served.base + page))
    assert [one.text for one in shown.select("#hy-target option")] == ["team"]
    published = await root.submit(
        f"{served.base}{page}/publish", {"collection": team.id}, served.base + page
    )
    copy = stored(served, published.headers["location"].rpartition("/")[2])
    assert (copy.collection, copy.text) == ("team", stored(served).text)
    assert copy.id != ONE


async def test_deleting_asks_first(served: Served) -> None:
    root, page = served.by("root"), f"/memories/{ONE}"
    asked = await root.get(f"{served.base}{page}/delete")
    assert "Delete this memory?" in asked.text
    assert stored(served)
    served.store.edit(ONE, title="Changed meanwhile")
    version = {"version": "1"}
    changed = await root.submit(f"{served.base}{page}/delete", version)
    assert changed.status_code == 409
    assert "Changed meanwhile" in changed.text
    deleted = await root.submit(f"{served.base}{page}/delete", {"version": "2"})
    assert deleted.status_code == 303
    assert deleted.headers["location"].partition("?")[0].endswith("/-/hybrid")
    assert ONE not in [memory.id for memory in served.store.list()]


async def test_the_way_back_to_the_results_stays(served: Served) -> None:
    root, page = served.by("root"), f"/memories/{ONE}"
    finished = await root.submit(
        f"{served.base}{page}/done?q=tomatoes", {}, f"{served.base}{page}?q=tomatoes"
    )
    assert finished.headers["location"].endswith(f"{page}?q=tomatoes")
    edited = f"{served.base}{page}/edit?q=tomatoes"
    shown = await root.get(f"{served.base}{page}?q=tomatoes")
    assert soup(shown).find("a", string="Edit")["href"] == edited
    form = await root.get(edited)
    assert soup(form).find("a", string="Cancel")["href"] == f"{served.base}{page}?q=tomatoes"
    assert soup(form).select_one("form.hy-write")["action"] == edited
    typed = fields(form)
    saved = await root.submit(edited, {**typed, "text": "Water them at night."})
    assert saved.headers["location"].endswith(f"{page}?q=tomatoes")
    conflict = await root.submit(edited, {**typed, "text": "Water them at noon."})
    assert conflict.status_code == 409
    kept = soup(conflict).find("a", string="Keep theirs")["href"]
    assert kept == f"{served.base}{page}?q=tomatoes"
    assert {form["action"] for form in soup(conflict).select(".hy-conflict form")} == {edited}
    gone = await root.submit(f"{served.base}{page}/delete?q=tomatoes", {"version": "3"})
    assert "/-/hybrid?q=tomatoes&undo=" in gone.headers["location"]


async def test_no_message_says_anything_of_a_memory(served: Served) -> None:
    """Datasette signs its cookie of messages and does not seal it."""
    root, page = served.by("root"), f"/memories/{ONE}"
    responses = [
        await sent(root, "/new", **NEW),
        await sent(root, f"{page}/edit", text="Else"),
        await root.submit(f"{served.base}{page}/topics", {"add": "x"}, served.base + page),
        await root.submit(f"{served.base}{page}/done", {}, served.base + page),
    ]
    for response in responses:
        value = served.datasette.unsign(response.cookies["ds_messages"], "messages")
        assert value[0][0] in ("Added.", "Saved.", "Topic added.", "Marked as done.")


@pytest.mark.parametrize("actor", ["alice", "bob", "wanda", None])
async def test_who_may_not_write_and_read_sees_no_edit_form(
    served: Served, actor: str | None
) -> None:
    visitor = served.by(actor)
    for name in ("edit", "delete"):
        response = await visitor.get(f"{served.base}/memories/{ONE}/{name}")
        assert response.status_code == 403
        assert "every second day" not in response.text
    if actor == "bob":
        shown = await visitor.get(f"{served.base}/memories/{ONE}")
        assert not soup(shown).select(".hy-actions, .hy-topics form")
    else:
        assert (await visitor.get(f"{served.base}/new")).status_code == (
            200 if actor == "wanda" else 403
        )


async def test_a_writer_who_may_not_read_adds_and_sees_nothing_back(served: Served) -> None:
    wanda = served.by("wanda")
    shown = await wanda.get(f"{served.base}/new")
    assert not soup(shown).select("datalist option, select[name=collection]")
    added = await sent(wanda, "/new", **NEW)
    assert added.status_code == 303
    assert added.headers["location"].endswith("/-/hybrid/new")
    assert len(served.store.list()) == 4
    typed = {**fields(shown), **NEW, "id": ONE}
    refused = await wanda.submit(f"{served.base}/new", typed)
    assert refused.status_code in (403, 409)
    assert "every second day" not in refused.text
    assert fields(refused)["text"] == NEW["text"]


async def test_a_member_writes_in_their_collections_alone(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    team = served.store.collections.create("team")
    served.store.collections.change_members("team", {"root": "owner"})
    served.store.collections.change_members("team", {"alice": "writer"})
    alice = served.by("alice")
    shown = soup(await alice.get(f"{served.base}/new"))
    assert [one.text for one in shown.select("select[name=collection] option")] == ["team"]
    added = await sent(alice, "/new", **NEW)
    address = added.headers["location"]
    assert stored(served, address.rpartition("/")[2]).collection == "team"
    assert (await alice.get(f"{served.base}/memories/{ONE}/edit")).status_code == 404
    personal = next(one.id for one in served.store.collections.list() if one.name == "personal")
    form = {**fields(await alice.get(f"{address}/edit")), "collection": personal}
    refused = await alice.submit(f"{address}/edit", form)
    assert refused.status_code == 400
    assert team.id in refused.text
    assert stored(served, address.rpartition("/")[2]).collection == "team"


async def test_everything_stays_below_the_base_url(filled: Filled, serve: Serve) -> None:
    served = await serve(
        filled.path, options=filled.options(allow=ALLOW), settings={"base_url": "/below/"}
    )
    root = served.by("root")
    shown = await root.get(f"{served.base}/new")
    action = soup(shown).select_one("form.hy-write")["action"]
    assert action == f"/below{served.base}/new"
    added = await sent(root, "/new", **NEW)
    assert added.status_code == 303
    assert added.headers["location"].startswith(f"/below{served.base}/memories/")
    page = await root.datasette.client.get(
        added.headers["location"].removeprefix("/below"), cookies=root.cookies
    )
    addresses = [form["action"] for form in soup(page).select(".hy-actions form, .hy-topics form")]
    addresses += [link["href"] for link in soup(page).select(".hy-actions a")]
    assert addresses
    assert all(address.startswith(f"/below{served.base}/") for address in addresses)


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("/notes/-/hybrid/new", True),
        ("/below/notes/-/hybrid/new", True),
        (f"/notes/-/hybrid/memories/{ONE}/edit", True),
        (f"/notes/-/hybrid/memories/{ONE}/delete", False),
        ("/notes/-/hybrid/new/more", False),
        ("/another/plugin/-/hybrid/new", False),
        ("/notes/query%2F-%2Fhybrid%2Fnew", False),
        ("/notes/-/hybrid/unlock?/-/hybrid/new", False),
    ],
)
async def test_only_the_two_forms_are_checked_by_themselves(
    filled: Filled, serve: Serve, path: str, ours: bool
) -> None:
    served = await serve(filled.path, settings={"base_url": "/below/"})
    scope = {"path": path, "raw_path": path.encode()}
    assert cross_site.is_checked_here(served.datasette, scope) is ours
