"""The trash on pages and in JSON: undo after a deletion, several results at once, who may what."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup

from .conftest import ONE, THREE, TWO, Served


def selectable(text: str) -> list[str]:
    """The ids of the results that a page lets one select."""
    boxes = BeautifulSoup(text, "html.parser").select("input[form=hy-selected][name=id]")
    return [str(box["value"]) for box in boxes]


def said(served: Served, answer: Any) -> str:
    """What the next page says once."""
    ((message, _),) = served.datasette.unsign(answer.cookies["ds_messages"], "messages")
    return str(message)


async def test_a_deletion_is_undone_by_the_button_that_the_next_page_shows(served: Served) -> None:
    root = served.by("root")
    asked = "?q=tomatoes"
    page = f"/memories/{ONE}/delete{asked}"
    assert "30 days" in (await root.get(f"{served.base}{page}")).text
    gone = await root.submit(f"{served.base}{page}", {"version": "1"})
    assert gone.status_code == 303
    address = gone.headers["location"]
    assert address.startswith(f"{served.base}?q=tomatoes&undo=")
    shown = BeautifulSoup((await root.get(address)).text, "html.parser")
    form = shown.select_one("form.hy-undo")
    assert form is not None
    group = str(form.select_one("input[name=group]")["value"])  # type: ignore[index]
    back = await root.submit(str(form["action"]), {"group": group}, page=address)
    assert back.headers["location"] == f"{served.base}?q=tomatoes"
    assert served.store.get(ONE).version == 2
    assert served.store.trash.list() == []
    again = await root.submit(str(form["action"]), {"group": group}, page=address)
    assert (again.status_code, again.headers["location"]) == (303, f"{served.base}?q=tomatoes")
    assert said(served, again) == (
        "Nothing of that change is in the trash any more: it was undone, or erased."
    )


async def test_what_is_erased_now_leaves_nothing_to_undo(served: Served) -> None:
    root = served.by("root")
    path = f"{served.base}/memories/{ONE}/delete"
    gone = await root.submit(path, {"version": "1", "now": "1"})
    assert "undo" not in gone.headers["location"]
    assert served.store.trash.list() == []
    served.store.set_trash(0)
    assert "goes for good" in (await root.get(f"{served.base}/memories/{TWO}/delete")).text


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({"do": "topic", "topic": "two, three"}, lambda one: {"two", "three"} <= {*one.topics}),
        ({"do": "type", "type": "decision"}, lambda one: one.type == "decision"),
        ({"do": "done"}, lambda one: one.type.endswith("_done")),
        ({"do": "delete"}, None),
    ],
)
async def test_selected_results_are_changed_together_and_undone_together(
    served: Served, fields: dict[str, str], holds: object
) -> None:
    root, store = served.by("root"), served.store
    before = {one: store.get(one) for one in (ONE, TWO)}
    shown = await root.get(f"{served.base}?since=2000-01-01")
    assert {ONE, TWO} <= {*selectable(shown.text)}
    data = {"id": [ONE, TWO], **fields}
    changed = await root.submit(f"{served.base}/selected", data, page=served.base + "?q=tomatoes")
    assert changed.status_code == 303, changed.text
    if callable(holds):
        assert all(holds(store.get(one)) for one in (ONE, TWO))
    else:
        assert store.heads([ONE, TWO]) == {}
    group = changed.headers["location"].partition("undo=")[2]
    back = await root.submit(
        f"{served.base}/trash/restore", {"group": group}, page=f"{served.base}?undo={group}"
    )
    assert back.status_code == 303
    for one, was in before.items():
        now = store.get(one)
        assert (now.text, now.type, now.topics) == (was.text, was.type, was.topics)


async def test_undo_leaves_what_was_edited_since_and_may_be_pressed_twice(served: Served) -> None:
    root, store = served.by("root"), served.store
    data = {"id": [ONE, TWO], "do": "type", "type": "fact"}
    changed = await root.submit(f"{served.base}/selected", data, page=served.base + "?q=tomatoes")
    group = changed.headers["location"].partition("undo=")[2]
    store.edit(ONE, text="Edited in between.")

    async def pressed() -> Any:
        page = f"{served.base}?undo={group}"
        return await root.submit(f"{served.base}/trash/restore", {"group": group}, page=page)

    first, second = await pressed(), await pressed()
    assert said(served, first) == (
        "1 memory is as before. 1 was changed again afterwards, and left alone: the trash has what "
        "was before."
    )
    assert (store.get(ONE).text, store.get(ONE).type) == ("Edited in between.", "fact")
    assert store.get(TWO).type != "fact"
    assert second.status_code == 409
    assert "All of it was changed again afterwards" in second.text
    store.trash.empty()
    assert said(served, await pressed()).startswith("Nothing of that change is in the trash")


async def test_no_type_is_set_that_nobody_chose(served: Served) -> None:
    page = BeautifulSoup(
        (await served.by("root").get(f"{served.base}?q=tomatoes")).text, "html.parser"
    )
    first = page.select("#hy-bulk-type option")[0]
    fields = {"do": "type", "type": first["value"], "id": [ONE]}
    answer = await served.by("root").submit(
        f"{served.base}/selected", fields, page=f"{served.base}/new"
    )
    assert (answer.status_code, served.store.get(ONE).version) == (400, 1)
    assert "choose the type to set" in answer.text


async def test_of_selected_results_all_are_changed_or_none(served: Served) -> None:
    root = served.by("root")
    for fields, status in [
        ({"do": "delete"}, 400),
        ({"do": "delete", "id": [ONE, "0" * 8]}, 404),
        ({"do": "type", "type": "no type", "id": [ONE]}, 400),
        ({"do": "type", "type": "", "id": [ONE]}, 400),
        ({"do": "topic", "topic": " , ", "id": [ONE]}, 400),
        ({"do": "burn", "id": [ONE]}, 400),
    ]:
        answer = await root.submit(f"{served.base}/selected", fields, page=f"{served.base}/new")
        assert answer.status_code == status, fields
    assert served.store.get(ONE).version == 1


async def test_the_page_lists_puts_back_and_erases(served: Served) -> None:
    root, store = served.by("root"), served.store
    store.edit(ONE, text="The tomatoes are ripe.")
    store.delete(ONE)
    store.delete(TWO)
    page = BeautifulSoup((await root.get(f"{served.base}/trash")).text, "html.parser")
    entries = [str(box["value"]) for box in page.select("input[name=entry]")]
    assert entries == [f"{TWO}:1", f"{ONE}:2", f"{ONE}:1"]
    versions = (await root.get(f"{served.base}/trash?memory={ONE}")).text
    assert "The tomatoes are ripe." in versions
    path = f"{served.base}/trash"
    back = await root.submit(f"{path}/restore", {"entry": f"{ONE}:1"}, page=path)
    assert back.headers["location"] == f"{served.base}/memories/{ONE}"
    assert store.get(ONE).text.startswith("The tomatoes")
    assert "earlier versions" in (await root.get(f"{served.base}/memories/{ONE}")).text
    gone = await root.submit(f"{path}/empty", {"entry": f"{TWO}:1"}, page=path)
    assert gone.status_code == 303
    assert {one.id for one in store.trash.list()} == {ONE}
    for odd in ({}, {"entry": "x"}, {"entry": f"{ONE}:{'9' * 40}"}):
        assert (await root.submit(f"{path}/restore", odd, page=path)).status_code == 400
    assert (await root.submit(f"{path}/empty", {"all": "1"}, page=path)).status_code == 303
    assert store.trash.list() == []


async def test_json_lists_restores_and_erases(served: Served) -> None:
    root, store = served.by("root"), served.store
    store.delete_many([ONE, TWO])
    data = (await root.get(f"{served.base}/trash.json")).json()
    assert {row["id"] for row in data["rows"]} == {ONE, TWO}
    assert (data["truncated"], data["rows"][0]["text"]) == (False, None)
    one = (await root.get(f"{served.base}/trash.json?memory={ONE}")).json()["rows"]
    assert one[0]["text"].startswith("The tomatoes")
    restore = f"{served.base}/trash/restore.json"
    put = await root.send("POST", restore, {"ids": [ONE]})
    assert [(row["id"], row["version"]) for row in put.json()["rows"]] == [(ONE, 2)]
    assert (await root.send("POST", restore, {"ids": [ONE]})).status_code == 404
    group = data["rows"][0]["group"]
    assert (await root.send("POST", restore, {"group": group})).json()["rows"][0]["id"] == TWO
    for odd in ({}, {"ids": []}, {"ids": [3]}, {"group": 3}, []):
        assert (await root.send("POST", restore, odd)).status_code == 400
    store.delete(ONE)
    for odd in ({"id": [TWO]}, {"ids": [ONE], "also": 1}, {"ids": []}, {"ids": None}):
        refused = await root.send("POST", f"{served.base}/trash/empty.json", odd)
        assert (refused.status_code, {one.id for one in store.trash.list()}) == (400, {ONE})
    erased = await root.send("POST", f"{served.base}/trash/empty.json", {})
    assert erased.json() == {"ok": True, "erased": 1}


async def test_who_may_not_read_or_write_gets_nothing_of_it(served: Served) -> None:
    served.store.delete(ONE)
    group = served.store.trash.list()[0].group
    restore, empty = f"{served.base}/trash/restore", f"{served.base}/trash/empty"
    for who, listed in (("bob", 200), ("wanda", 403), ("alice", 403), (None, 403)):
        visitor = served.by(who)
        for end in ("/trash", "/trash.json", f"/trash?memory={ONE}"):
            answer = await visitor.get(f"{served.base}{end}")
            assert answer.status_code == listed, (who, end)
            assert ("tomatoes" in answer.text.lower()) == (listed == 200)
        assert 'name="entry"' not in (await visitor.get(f"{served.base}/trash")).text
        assert selectable((await visitor.get(f"{served.base}?q=tomatoes")).text) == []
        assert "hy-undo" not in (await visitor.get(f"{served.base}?undo={group}")).text
        for path, value in ((restore, {"group": group}), (empty, {})):
            assert (await visitor.send("POST", f"{path}.json", value)).status_code == 403
            assert (
                await visitor.submit(path, {"group": group}, page=served.base)
            ).status_code == 403
        fields = {"id": TWO, "do": "delete"}
        refused = await visitor.submit(f"{served.base}/selected", fields, page=served.base)
        assert refused.status_code == 403
    assert len(served.store.trash.list()) == 1


async def test_a_member_sees_the_trash_of_what_she_may_read_and_changes_what_she_may_write(
    served: Served,
) -> None:
    store = served.store
    store.collections.create("hers", owner="root")
    hers = store.add("The cellar key.", collection="hers").id
    store.collections.change_members("hers", {"alice": "reader"})
    store.delete_many([hers, THREE])
    alice = served.by("alice")
    rows = (await alice.get(f"{served.base}/trash.json")).json()["rows"]
    assert [row["id"] for row in rows] == [hers]
    send = f"{served.base}/trash/restore.json"
    assert (await alice.send("POST", send, {"ids": [hers]})).status_code == 403
    store.collections.change_members("hers", {"alice": "writer"})
    assert (await alice.send("POST", send, {"ids": [THREE]})).status_code == 404
    assert (await alice.send("POST", send, {"ids": [hers]})).status_code == 200
    assert store.get(hers).text == "The cellar key."
    shown = await alice.get(f"{served.base}?q=cellar+key")
    assert selectable(shown.text) == [hers]


async def test_what_was_moved_to_a_closed_collection_is_not_put_back_out_of_it(
    served: Served,
) -> None:
    store = served.store
    store.collections.create("hers", owner="alice")
    store.edit(ONE, collection="hers")
    root, send = served.by("root"), f"{served.base}/trash/restore.json"
    assert [row["id"] for row in (await root.get(f"{served.base}/trash.json")).json()["rows"]] == [
        ONE
    ]
    refused = await root.send("POST", send, {"ids": [ONE]})
    assert refused.status_code == 404
    assert store.collections.find("hers") not in refused.text
    assert store.get(ONE).collection == "hers"


async def test_who_may_read_a_deleted_memory_is_led_to_the_trash_and_others_see_nothing_of_it(
    served: Served,
) -> None:
    page, missing = f"{served.base}/memories/{ONE}", f"{served.base}/memories/{ONE[:-4]}0000"
    served.store.delete(ONE)
    deleted = f"memory {ONE} was deleted on {served.store.trash.list()[0].time[:10]}"
    for reader in map(served.by, ("root", "bob")):
        found = await reader.get(page)
        link = BeautifulSoup(found.text, "html.parser").select_one("main a")
        assert (found.status_code, f"{deleted[1:]}, and is in" in found.text) == (404, True)
        assert link is not None
        assert link["href"] == f"{served.base}/trash?memory={ONE}"
        assert ONE in (await reader.get(str(link["href"]))).text
        assert (await reader.get(f"{page}.json")).json()["error"].startswith(deleted)
    for other in map(served.by, ("alice", "wanda")):
        there, nowhere = [await other.get(f"{path}.json") for path in (page, missing)]
        assert there.status_code == nowhere.status_code
        assert there.text.replace(ONE, "") == nowhere.text.replace(missing[-36:], "")
        there, nowhere = [await other.get(path) for path in (page, missing)]
        words = [BeautifulSoup(one.text, "html.parser").get_text() for one in (there, nowhere)]
        assert there.status_code == nowhere.status_code
        assert words[0].replace(ONE, "") == words[1].replace(missing[-36:], "")
