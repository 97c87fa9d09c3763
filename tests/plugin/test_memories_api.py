"""Memories over JSON: listed, added once, changed by version, one or many, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_store.records import TYPES
from memory_store.text.canonical import canonical_text

from .conftest import ALLOW, BEARER, ONE, THREE, TWO, Filled, Serve, Served

NAMED = "abcdef01-0000-4000-8000-000000000001"


async def send(visitor: Served, method: str, path: str, value: Any, **headers: str) -> Any:
    """A request below ``/memories``, with a token as the address of JSON wants it."""
    whole = f"{visitor.base}/memories{path}"
    return await visitor.send(method, whole, value, headers={**BEARER, **headers})


async def listed(visitor: Served, query: str = "") -> Any:
    return await visitor.get(f"{visitor.base}/memories.json{query}")


async def test_hashtags_of_a_text_are_topics(served: Served) -> None:
    root = served.by("root")
    new = {"text": "The #ferry leaves at nine", "topics": ["travel"]}
    row = (await send(root, "POST", ".json", new)).json()["rows"][0]
    assert row["topics"] == ["travel", "ferry"]
    fewer = await send(root, "PATCH", f"/{row['id']}.json", {"remove_topics": ["ferry"]})
    assert fewer.json()["rows"][0]["topics"] == ["travel"]
    change = {"text": "The #ferry leaves at ten from the #pier"}
    changed = await send(root, "PATCH", f"/{row['id']}.json", change)
    assert changed.json()["rows"][0]["topics"] == ["travel", "pier"]


# -- lists ---------------------------------------------------------------------------------


async def test_memories_are_listed_newest_first(served: Served) -> None:
    data = (await listed(served.by("bob"))).json()
    assert data["ok"] is True
    assert [row["id"] for row in data["rows"]] == [THREE, TWO, ONE]
    assert data["rows"][-1]["text"].startswith("The tomatoes")
    assert (data["next"], data["next_url"], data["truncated"]) == (None, None, False)


async def test_lists_are_filtered(served: Served) -> None:
    bob = served.by("bob")
    for query, found in [
        ("?topic=garden", [ONE]),
        ("?type=decision&type=task", [TWO]),
        ("?collection=personal&topic=work", [TWO]),
        ("?status=done", []),
        ("?since=2999", []),
    ]:
        data = (await listed(bob, query)).json()
        assert [row["id"] for row in data["rows"]] == found, query


async def test_every_page_of_a_list_leads_to_the_next(served: Served) -> None:
    bob, found = served.by("bob"), []
    path = f"{served.base}/memories.json?_size=2"
    while path:
        data = (await bob.datasette.client.get(path, cookies=bob.cookies)).json()
        found += [row["id"] for row in data["rows"]]
        assert data["truncated"] is (data["next"] is not None)
        path = (data["next_url"] or "").removeprefix("http://localhost")
    assert found == [THREE, TWO, ONE]


@pytest.mark.parametrize("host", ["]:", "[", "[::1"])
async def test_a_host_that_is_no_address_gets_a_path_to_the_next_page(
    served: Served, host: str
) -> None:
    root, headers = served.by("root"), {"Host": host}
    for path in ("memories.json?_size=1", "audit.json?limit=1", "audit.json?limit=1"):
        answer = await root.get(f"{served.base}/{path}", headers=headers)
        assert answer.status_code == 200, answer.text
    assert answer.json()["next_url"].startswith(f"{served.base}/audit.json?")
    found = (await root.get(".json?q=tomato&limit=1", headers=headers)).json()
    assert found["next_url"].startswith(f"{served.base}.json?")


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("?_size=many", "_size"),
        ("?_size=0", "_size"),
        ("?_size=1001", "_size"),
        (f"?_size={5_000 * '1'}", "_size"),
        ("?_next=nonsense", "_next"),
        ("?_next=2024-05-01,1", "_next"),
        ("?colour=red", "colour"),
        ("?status=lost", "status"),
        ("?type=opinion", "type"),
        ("?since=someday", "since"),
    ],
)
async def test_a_wrong_list_is_a_400_that_names_the_parameter(
    served: Served, query: str, parameter: str
) -> None:
    response = await listed(served.by("bob"), query)
    assert response.status_code == 400
    assert response.json()["parameter"] == parameter


async def test_one_is_read_as_of_a_day_by_who_may_read(served: Served) -> None:
    root = served.by("root")
    rows = [{"ref": "old", "text": "Then", "created": "2024-02-01"}, {"text": "Now"}]
    rows[1]["supersedes"] = "old"
    old, new = (await send(root, "POST", ".json", {"memories": rows})).json()["rows"]
    path = f"{served.base}/memories/{new['id']}.json?as_of="
    assert (await root.get(path + "2024-03")).json()["rows"][0]["id"] == old["id"]
    assert (await root.get(path + "now")).json()["rows"][0]["id"] == new["id"]
    assert (await root.get(path + "1999")).status_code == 404
    assert (await root.get(path + "soon")).status_code == 400
    assert (await served.by("alice").get(path + "2024-03")).status_code == 403


async def test_a_list_without_decrypt_has_nothing_to_read(served: Served) -> None:
    alice = served.by("alice")
    response = await listed(alice, "?type=note")
    assert [row["id"] for row in response.json()["rows"]] == [THREE, ONE]
    for row in response.json()["rows"]:
        assert {name for name, value in row.items() if value is not None} == {
            *("id", "type", "created", "updated", "version")
        }
    assert (await listed(alice, "?collection=personal")).status_code == 403
    assert (await listed(served.by(None))).status_code == 403


# -- new ones ------------------------------------------------------------------------------


async def test_the_same_sent_twice_is_added_once(served: Served) -> None:
    root = served.by("root")
    new = {"id": str(uuid.uuid4()), "text": "Sent by a client that lost the answer"}
    first = await send(root, "POST", ".json", new)
    again = await send(root, "POST", ".json", new)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["rows"][0]["unchanged"] is False
    assert again.json()["rows"][0] == {**first.json()["rows"][0], "unchanged": True}
    assert first.headers["location"].endswith(f"/memories/{new['id']}.json")
    both = await send(root, "POST", ".json", [new, {"text": "And another"}])
    assert both.status_code == 201
    assert [row["unchanged"] for row in both.json()["rows"]] == [True, False]
    assert len(served.store.list()) == 5


async def test_the_same_id_with_something_else_is_a_conflict_that_shows_both(
    served: Served,
) -> None:
    root = served.by("root")
    rows = [{"text": "Quite new"}, {"id": ONE, "text": "Something else"}]
    conflict = await send(root, "POST", ".json", rows)
    assert conflict.status_code == 409
    data = conflict.json()
    assert data["ok"] is False
    assert data["errors"] == [f"memories[1]: there is another version of {ONE}"]
    (one,) = data["conflicts"]
    assert (one["row"], one["id"], one["yours"]) == (1, ONE, rows[1])
    assert one["current"]["text"].startswith("The tomatoes")
    assert len(served.store.list()) == 3
    alone = (await send(root, "POST", ".json", rows[1])).json()
    assert alone["current"]["title"] == "Watering the tomatoes"
    assert alone["yours"] == rows[1]


async def test_every_wrong_row_is_named_with_its_field(served: Served) -> None:
    wrong = {"text": "x", "type": "opinion", "topics": ["y" * 300], "created": "someday"}
    rows = [{"text": "Fine"}, wrong, {"text": 3, "typ": "fact", "topics": "x"}, "x"]
    refused = await send(served.by("root"), "POST", ".json", {"memories": rows})
    assert refused.status_code == 400
    assert refused.json()["parameter"] == "memories[1].type"
    assert [said.partition(":")[0] for said in refused.json()["errors"]] == [
        "memories[1].type",
        "memories[1].topics",
        "memories[1].created",
        "memories[2].text",
        "memories[2].typ",
        "memories[2].topics",
        "memories[3]",
    ]
    assert len(served.store.list()) == 3


async def test_every_wrong_field_of_a_change_is_named(served: Served) -> None:
    wrong = {"txt": "x", "topics": 3, "version": "1"}
    refused = await send(served.by("root"), "PATCH", f"/{ONE}.json", wrong)
    named = [said.partition(":")[0] for said in refused.json()["errors"]]
    assert (refused.status_code, {*named}) == (400, {*wrong})
    says = {"type": "opinion", "valid_to": "someday"}
    refused = await send(served.by("root"), "PATCH", f"/{ONE}.json", says)
    named = [said.partition(":")[0] for said in refused.json()["errors"]]
    assert (refused.status_code, {*named}) == (400, {*says})


@pytest.mark.parametrize("sent", [{}, {"id": "x"}, {"ids": [], "also": 1}, {"ids": "x"}])
async def test_a_list_of_ids_is_asked_for_by_its_name(served: Served, sent: Any) -> None:
    refused = await send(served.by("root"), "POST", "/delete.json", sent)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "ids")


async def test_a_thousand_memories_at_most(served: Served) -> None:
    refused = await send(served.by("root"), "POST", ".json", [{"text": "x"}] * 1_001)
    assert refused.status_code == 400
    assert "1,000 at most" in refused.json()["error"]


async def test_lines_of_json_may_name_each_other_by_ref(served: Served) -> None:
    root = served.by("root")
    lines = [
        {"text": "Paint the fence", "type": "task", "ref": "t1"},
        {"text": "Two litres were enough", "type": "result", "parent": "t1", "ref": "r1"},
        {"text": "Three, with the gate", "type": "result", "supersedes": "r1", "parent": ONE},
    ]
    body = "\n".join(json.dumps(line) for line in lines) + "\n\n"
    headers = {**BEARER, "Content-Type": "application/x-ndjson"}
    response = await root.datasette.client.post(
        f"{served.base}/memories.json", content=body, headers=headers, cookies=root.cookies
    )
    assert response.status_code == 201
    task, result, newer = response.json()["rows"]
    assert result["parent"] == task["id"]
    assert (newer["supersedes"], newer["parent"]) == (result["id"], ONE)
    lost = await send(root, "POST", ".json", [{"text": "x"}, {"text": "y", "parent": "t1"}])
    assert lost.json()["parameter"] == "memories[1].parent"
    broken = await root.datasette.client.post(
        f"{served.base}/memories.json", content='{"text": "x"}\n{', headers=headers
    )
    assert broken.status_code in (400, 403)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: bool(canonical_text(text).strip())
)
RECORDS = st.fixed_dictionaries(
    {"text": TEXTS},
    optional={
        "title": TEXTS,
        "type": st.sampled_from(TYPES),
        "topics": st.lists(TEXTS, max_size=3),
        "created": st.dates().map(str),
        "metadata": st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
    },
)


async def test_whatever_is_sent_again_changes_nothing(served: Served) -> None:
    root = served.by("root")

    async def twice(records: list[dict[str, Any]]) -> None:
        rows = [{**record, "id": str(uuid.uuid4())} for record in records]
        first = await send(root, "POST", ".json", rows)
        again = await send(root, "POST", ".json", list(reversed(rows)))
        assert (first.status_code, again.status_code) == (201, 200)
        expected = [{**row, "unchanged": True} for row in reversed(first.json()["rows"])]
        assert again.json()["rows"] == expected

    examples: list[list[dict[str, Any]]] = []

    @settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(RECORDS, min_size=1, max_size=3))
    def collect(records: list[dict[str, Any]]) -> None:
        examples.append(records)

    await asyncio.to_thread(collect)  # hypothesis runs no coroutines
    for records in examples:
        await twice(records)


async def test_one_memory_takes_no_parameter_that_it_does_not_know(served: Served) -> None:
    root, path = served.by("root"), f"{served.base}/memories/{ONE}"
    for tail, wrong, known in (
        (".json?asof=2020-01-01", "asof", "as_of"),
        ("/related.json?n=3", "n", "limit"),
    ):
        refused = await root.get(path + tail)
        assert (refused.status_code, refused.json()["parameter"]) == (400, wrong)
        assert refused.json()["error"] == (
            f"{wrong}: there is no such parameter here; known: {known}"
        )
    assert (await root.get(path + ".json?_shape=objects")).status_code == 200


# -- changes -------------------------------------------------------------------------------


async def test_an_older_version_is_refused_with_both(served: Served) -> None:
    root = served.by("root")
    served.store.edit(ONE, title="Theirs")
    mine = {"title": "Mine", "version": 1}
    conflict = await send(root, "PATCH", f"/{ONE}.json", mine)
    assert conflict.status_code == 409
    data = conflict.json()
    assert (data["current"]["title"], data["current"]["version"]) == ("Theirs", 2)
    assert data["yours"] == mine
    assert data["errors"] == [data["error"]]


async def test_the_version_is_an_etag(served: Served) -> None:
    root = served.by("root")
    seen = (await root.get(f"{served.base}/memories/{ONE}.json")).headers["etag"]
    assert seen == '"1"'
    changed = await send(root, "PATCH", f"/{ONE}.json", {"title": "A"}, **{"If-Match": seen})
    assert changed.headers["etag"] == '"2"'
    stale = await send(root, "PATCH", f"/{ONE}.json", {"title": "B"}, **{"If-Match": seen})
    assert stale.status_code == 412
    assert stale.json()["current"]["title"] == "A"
    kept = await send(root, "DELETE", f"/{ONE}.json", None, **{"If-Match": seen})
    assert kept.status_code == 412
    assert served.store.get(ONE).title == "A"
    odd = await send(root, "PATCH", f"/{ONE}.json", {"title": "C"}, **{"If-Match": "yes"})
    assert odd.status_code == 400
    gone = await send(root, "DELETE", f"/{ONE}.json", None, **{"If-Match": '"2"'})
    assert gone.json() == {"ok": True}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("mark", ["done", "reopen"])
async def test_a_mark_is_refused_when_another_version_stands(
    served: Served, mark: str, again: bool
) -> None:
    """Also where the memory is marked so already, and nothing would be written."""
    root = served.by("root")
    kind = "task_done" if (mark == "done") == again else "task"
    served.store.edit(ONE, title="Theirs", type=kind)
    stale = await send(root, "POST", f"/{ONE}/{mark}.json", {}, **{"If-Match": '"1"'})
    assert stale.status_code == 412
    assert (stale.json()["current"]["title"], stale.json()["current"]["version"]) == ("Theirs", 2)
    assert (served.store.get(ONE).type, served.store.get(ONE).version) == (kind, 2)
    odd = await send(root, "POST", f"/{ONE}/{mark}.json", {}, **{"If-Match": "yes"})
    assert (odd.status_code, odd.json()["parameter"]) == (400, "If-Match")
    marked = await send(root, "POST", f"/{ONE}/{mark}.json", {}, **{"If-Match": '"2"'})
    assert marked.json()["rows"][0]["type"] == ("task_done" if mark == "done" else "task")


async def test_of_ten_who_write_at_once_each_version_is_written_once(served: Served) -> None:
    """Every one reads, appends and writes, and begins again where a person was quicker."""
    root, path = served.by("root"), f"/{ONE}.json"

    async def append(name: str) -> None:
        while True:
            read = (await root.get(f"{served.base}/memories{path}")).json()["rows"][0]
            change = {"text": f"{read['text']}\n{name}", "version": read["version"]}
            response = await send(root, "PATCH", path, change)
            if response.status_code == 200:
                return
            assert response.status_code in (409, 429)

    names = [f"writer {number}" for number in range(10)]
    await asyncio.gather(*(append(name) for name in names))
    memory = served.store.get(ONE)
    assert memory.version == 11
    assert sorted(memory.text.splitlines()[-10:]) == sorted(names)


async def test_topics_are_added_and_removed(served: Served) -> None:
    change = {"add_topics": ["#summer"], "remove_topics": ["Garden"]}
    changed = await send(served.by("root"), "PATCH", f"/{ONE}.json", change)
    assert changed.json()["rows"][0]["topics"] == ["water", "summer"]
    dated = {"valid_from": "2024-05-01", "valid_to": "2024-06-01"}
    await send(served.by("root"), "PATCH", f"/{ONE}.json", dated)
    open_ended = await send(served.by("root"), "PATCH", f"/{ONE}.json", {"valid_to": None})
    row = open_ended.json()["rows"][0]
    assert (row["valid_from"], row["valid_to"]) == ("2024-05-01T00:00:00Z", None)
    backwards = await send(served.by("root"), "PATCH", f"/{ONE}.json", {"valid_to": "2024-04"})
    assert backwards.status_code == 400
    said = "valid_to: 2024-04-01T00:00:00Z is before valid_from, 2024-05-01T00:00:00Z"
    assert backwards.json()["error"].rstrip(".") == said


async def test_many_are_changed_in_one_request_or_none_of_them(served: Served) -> None:
    root = served.by("root")
    rows = [{"id": ONE, "title": "A", "version": 1}, {"id": TWO[:-4] + "0002", "add_topics": ["b"]}]
    changed = await send(root, "POST", "/edit.json", {"memories": rows})
    assert [row["version"] for row in changed.json()["rows"]] == [2, 2]
    named = {"id": NAMED.upper(), "text": "Named by the beginning of its id"}
    await send(root, "POST", ".json", named)
    stale = {"id": NAMED[:8], "title": "B", "version": 7}
    conflict = await send(root, "POST", "/edit.json", [{"id": TWO, "title": "B"}, rows[0], stale])
    assert conflict.status_code == 409
    first, second = conflict.json()["conflicts"]
    assert (first["row"], first["current"]["title"], first["yours"]) == (1, "A", rows[0])
    assert (second["row"], second["id"], second["yours"]) == (2, NAMED, stale)
    lost = await send(root, "POST", "/edit.json", [rows[1], {"id": str(uuid.uuid4()), "text": "x"}])
    assert lost.status_code == 404
    assert lost.json()["error"].startswith("memories[1].id: no memory")
    wrong = await send(root, "POST", "/edit.json", [{"title": "No id"}, {"id": ONE}])
    assert wrong.json()["errors"] == [
        "memories[0].id: which memory? Its id is expected",
        "memories[1]: nothing to change",
    ]
    assert served.store.get(TWO).version == 2


async def test_many_are_deleted_in_one_request_or_none_of_them(served: Served) -> None:
    root = served.by("root")
    lost = await send(root, "POST", "/delete.json", {"ids": [ONE, str(uuid.uuid4())]})
    assert lost.status_code == 404
    assert len(served.store.list()) == 3
    deleted = await send(root, "POST", "/delete.json", {"ids": [ONE, TWO, ONE]})
    assert deleted.json() == {"ok": True, "deleted": 2}
    assert [memory.id for memory in served.store.list()] == [THREE]
    for odd in ({"ids": []}, {"ids": "x"}, {"ids": [3]}, {}):
        assert (await send(root, "POST", "/delete.json", odd)).status_code == 400


async def test_a_memory_is_completed_opened_again_and_published(served: Served) -> None:
    root = served.by("root")
    done = await send(root, "POST", f"/{ONE}/done.json", {})
    assert done.json()["rows"][0]["type"] == "note_done"
    again = await send(root, "POST", f"/{ONE}/reopen.json", {})
    assert again.json()["rows"][0]["type"] == "note"
    served.store.collections.create("team")
    published = await send(root, "POST", f"/{ONE}/publish.json", {"collection": "team"})
    copy = published.json()["rows"][0]
    assert (copy["collection"], copy["title"]) == ("team", "Watering the tomatoes")
    twice = await send(root, "POST", f"/{ONE}/publish.json", {"collection": "team"})
    assert twice.json()["rows"][0]["id"] == copy["id"]
    lost = await send(root, "POST", f"/{ONE}/publish.json", {"collection": "nowhere"})
    assert lost.status_code == 404
    unsaid = await send(root, "POST", f"/{ONE}/publish.json", {})
    assert unsaid.json()["parameter"] == "collection"


# -- who may -------------------------------------------------------------------------------


async def test_who_writes_without_reading_sees_nothing_back(served: Served) -> None:
    wanda = served.by("wanda")
    new = {"id": str(uuid.uuid4()), "text": "A secret of wanda's"}
    added = await send(wanda, "POST", ".json", new)
    again = await send(wanda, "POST", ".json", new)
    assert (added.status_code, again.status_code) == (201, 409)  # 200 would confirm a guess
    conflict = await send(wanda, "POST", ".json", {"id": ONE, "text": "A guess"})
    stale = await send(wanda, "PATCH", f"/{ONE}.json", {"title": "x", "version": 9})
    for response in (added, again, conflict, stale):
        assert "every second day" not in response.text
        assert "Watering" not in response.text
    assert added.json()["rows"][0]["text"] is None
    assert stale.json()["current"]["title"] is None
    assert stale.json()["current"]["version"] == 1
    changed = await send(wanda, "PATCH", f"/{ONE}.json", {"title": "Renamed", "version": 1})
    assert changed.status_code == 200
    assert changed.json()["rows"][0]["text"] is None
    assert "every second day" not in changed.text
    blind = await send(wanda, "PATCH", f"/{ONE}.json", {"title": "x"})
    assert blind.json()["parameter"] == "version"
    for change in ({"add_topics": ["x"]}, {"remove_topics": ["garden"]}):
        refused = await send(wanda, "PATCH", f"/{ONE}.json", {**change, "version": 2})
        assert refused.status_code == 403
    assert (
        await send(wanda, "POST", f"/{ONE}/publish.json", {"collection": "x"})
    ).status_code == 403


@pytest.mark.parametrize("actor", ["alice", "bob", None])
async def test_who_may_not_write_changes_nothing(served: Served, actor: str | None) -> None:
    visitor = served.by(actor)
    for method, path, value in [
        ("POST", ".json", {"text": "x"}),
        ("PATCH", f"/{ONE}.json", {"text": "x"}),
        ("DELETE", f"/{ONE}.json", None),
        ("POST", "/edit.json", [{"id": ONE, "text": "x"}]),
        ("POST", "/delete.json", {"ids": [ONE]}),
        ("POST", f"/{ONE}/done.json", {}),
        ("POST", f"/{ONE}/reopen.json", {}),
        ("POST", f"/{ONE}/publish.json", {"collection": "personal"}),
    ]:
        assert (await send(visitor, method, path, value)).status_code == 403, path
    assert [memory.version for memory in served.store.list()] == [1, 1, 1]


async def test_collections_that_are_not_ones_own_do_not_exist(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    served.store.collections.create("team")
    served.store.collections.change_members("team", {"root": "owner"})
    served.store.collections.change_members("team", {"alice": "writer"})
    alice = served.by("alice")
    added = await send(alice, "POST", ".json", {"text": "Ours", "collection": "team"})
    assert added.json()["rows"][0]["text"] == "Ours"
    mine = added.json()["rows"][0]["id"]
    elsewhere = {"text": "x", "collection": "personal"}
    assert (await send(alice, "POST", ".json", elsewhere)).status_code == 400
    moved = await send(alice, "PATCH", f"/{mine}.json", {"collection": "personal"})
    assert moved.status_code == 400
    assert (await send(alice, "PATCH", f"/{ONE}.json", {"title": "x"})).status_code == 404
    taken = await send(alice, "POST", ".json", {"id": ONE, "text": "x", "collection": "team"})
    assert taken.status_code == 409
    assert "tomatoes" not in taken.text
    assert (
        await send(served.by("bob"), "PATCH", f"/{mine}.json", {"text": "x"})
    ).status_code == 403
    rows = (await listed(served.by("bob"))).json()["rows"]
    assert mine not in [row["id"] for row in rows]
    both = (await listed(alice)).json()["rows"]
    assert {row["id"]: row["text"] for row in both} == {
        mine: "Ours",
        **dict.fromkeys([ONE, TWO, THREE]),
    }
    narrowed = (await listed(alice, "?collection=team")).json()["rows"]
    assert [row["id"] for row in narrowed] == [mine]
