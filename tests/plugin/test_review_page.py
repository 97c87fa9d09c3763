"""The review as a page and as JSON: who sees it, who decides, and the way back."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup, Tag

from memory_store.store import MemoryStore

from .conftest import Served

KEY = "The spare key of the boat hangs behind the pump in the engine room"


def pair(store: MemoryStore) -> tuple[str, str]:
    """The ids of two memories that say the same, the newer first."""
    older = store.add(KEY, created="2024-01-01", topics=["boat"], title="Older")
    newer = store.add(KEY, created="2025-01-01", topics=["keys"], title="Newer")
    return newer.id, older.id


async def review(served: Served, actor: str = "root", query: str = "") -> BeautifulSoup:
    answer = await served.by(actor).get(f"{served.base}/review{query}")
    assert answer.status_code == 200
    return BeautifulSoup(answer.text, "html.parser")


def cases(page: BeautifulSoup) -> list[Tag]:
    return page.select(".hy-case")


@pytest.mark.parametrize("do", ["keep", "merge", "supersede"])
async def test_a_pair_is_decided_by_a_button_and_undone_by_the_next(
    served: Served, do: str
) -> None:
    newer, older = pair(served.store)
    before = {one: served.store.get(one) for one in (newer, older)}
    (case,) = [one for one in cases(await review(served)) if "Newer" in one.text]
    form = case.select_one("form")
    assert form is not None
    fields = {str(one["name"]): str(one["value"]) for one in form.select("input[type=hidden]")}
    assert (fields["newer"], fields["older"]) == (newer, older)
    assert case.select_one(f"button[value={do}][data-key={do[0]}]") is not None
    root, page = served.by("root"), f"{served.base}/review"
    done = await root.submit(page, {**fields, "do": do})
    assert done.status_code == 303
    assert not [one for one in cases(await review(served)) if "Newer" in one.text]
    address = done.headers["location"]
    undo = BeautifulSoup((await root.get(address)).text, "html.parser").select_one("form.hy-undo")
    assert undo is not None
    given = {str(one["name"]): str(one["value"]) for one in undo.select("input[type=hidden]")}
    back = await root.submit(str(undo["action"]), given, page=address)
    assert back.headers["location"] == page
    for one, memory in before.items():
        now = served.store.get(one)
        assert (now.text, now.topics, now.metadata, now.valid_to, now.superseded_by) == (
            *(memory.text, memory.topics, memory.metadata),
            *(memory.valid_to, memory.superseded_by),
        )


async def test_one_memory_gets_topics_or_goes_to_the_trash_or_is_valid_again(
    served: Served,
) -> None:
    bare = served.store.add("Ring the harbour master about the mooring", title="Bare")
    over = served.store.add("The ferry leaves at nine", title="Over", valid_to="2020-01-01")
    shown = {one.select_one("h3").text.strip(): one for one in cases(await review(served))}  # type: ignore[union-attr]
    assert {"Bare", "Over"} <= shown.keys()
    root, page = served.by("root"), f"{served.base}/review"
    await root.submit(page, {"do": "topics", "id": bare.id, "topics": "calls, harbour"})
    assert set(served.store.get(bare.id).topics) == {"calls", "harbour"}
    await root.submit(page, {"do": "valid", "id": over.id})
    assert served.store.get(over.id).valid_to is None
    await root.submit(page, {"do": "delete", "id": over.id})
    assert over.id in {one.id for one in served.store.trash.list()}


async def test_a_reader_sees_it_and_has_no_buttons(served: Served) -> None:
    newer, older = pair(served.store)
    page = await review(served, "bob")
    assert [one for one in cases(page) if "Newer" in one.text]
    assert not page.select(".hy-case form")
    for path in ("/review", "/review.json"):
        assert (await served.by("alice").get(served.base + path)).status_code == 403
    given = {"do": "merge", "newer": newer, "older": older}
    refused = await served.by("bob").send("POST", f"{served.base}/review.json", given)
    assert refused.status_code == 403
    assert served.store.get(older).text == KEY


async def test_json_lists_and_decides(served: Served) -> None:
    newer, older = pair(served.store)
    root, address = served.by("root"), f"{served.base}/review.json"
    found = (await root.get(f"{address}?limit=5")).json()
    assert found["ok"]
    assert (newer, older) in [(one["newer"]["id"], one["older"]["id"]) for one in found["same"]]
    given = {"do": "merge", "newer": newer, "older": older}
    done = (await root.send("POST", address, given)).json()
    assert done["ok"]
    assert set(served.store.get(newer).topics) == {"boat", "keys"}
    back = await root.send("POST", f"{served.base}/trash/restore.json", {"group": done["group"]})
    assert {one["id"] for one in back.json()["rows"]} == {newer, older}


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"do": "burn"}, "do"),
        ({}, "do"),
        ({"do": "merge", "newer": "x"}, "older"),
        ({"do": "delete"}, "id"),
        ({"do": "topics", "id": "x", "topics": []}, "topics"),
        ({"do": "keep", "colour": 1}, "colour"),
        ({"do": ["keep"]}, "do"),
    ],
)
async def test_what_is_missing_is_named(
    served: Served, given: dict[str, object], parameter: str
) -> None:
    answer = await served.by("root").send("POST", f"{served.base}/review.json", given)
    assert (answer.status_code, answer.json()["parameter"]) == (400, parameter)


@pytest.mark.parametrize("limit", ["0", "101", "x", "99999999999"])
async def test_limits_are_refused_by_name(served: Served, limit: str) -> None:
    answer = await served.by("root").get(f"{served.base}/review.json?limit={limit}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "limit")


async def test_a_pair_of_two_collections_is_not_merged(served: Served) -> None:
    served.store.collections.create("team")
    older = served.store.add(KEY, created="2024-01-01", title="Mine")
    newer = served.store.add(KEY, created="2025-01-01", title="Ours", collection="team")
    (case,) = [
        one for one in cases(await review(served)) if "Ours" in one.text and "Mine" in one.text
    ]
    assert case.select_one("button[value=merge]") is None
    given = {"do": "merge", "newer": newer.id, "older": older.id}
    refused = await served.by("root").send("POST", f"{served.base}/review.json", given)
    assert refused.status_code == 400
    assert served.store.get(newer.id).topics == ()
