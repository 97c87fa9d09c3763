"""The JSON API: search by GET and POST, one memory, and clear refusals."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.records import OPTION_NAMES, RESULT_COLUMNS, read_request

from .conftest import Served

ONE = "00000000-0000-4000-8000-000000000001"
TOKEN = {"Authorization": "Bearer nothing"}


async def test_get_and_post_give_the_same_answer(served: Served) -> None:
    bob = served.by("bob")
    got = (await bob.get(".json?q=tomatoes&limit=2&topic=garden&status=open")).json()
    fields = {"q": "tomatoes", "limit": 2, "topic": ["garden"], "status": "open"}
    posted = (await bob.send("POST", ".json", fields, headers=TOKEN)).json()
    for answer in (got, posted):
        answer.pop("milliseconds")
        for row in answer["rows"]:
            row["score"] = round(row["score"], 4)
    assert got == posted
    assert [row["id"] for row in got["rows"]] == [ONE]


async def test_the_answer_has_the_documented_shape(served: Served) -> None:
    data = (await served.by("bob").get(".json?q=tomatoes")).json()
    assert data["ok"] is True
    for key in ("query", "mode", "rows", "counts", "opened", "total", "topics", "next", "next_url"):
        assert key in data
    row = data["rows"][0]
    assert set(RESULT_COLUMNS) <= set(row)
    assert isinstance(row["topics"], list)
    assert isinstance(row["complete"], bool)
    assert 0 <= row["score"] <= 1
    assert row["created"].endswith("Z")
    assert data["total"] == 3
    assert data["counts"].startswith("Reranked ")


async def test_other_shapes(served: Served) -> None:
    bob = served.by("bob")
    rows = (await bob.get(".json?q=tomatoes&_shape=array")).json()
    assert rows[0]["id"] == ONE
    results, counts, topics = (await bob.get(".json?q=tomatoes&_shape=compact")).json()
    assert results[0]["id"] == ONE
    assert results[0]["title"] == rows[0]["title"] == "Watering the tomatoes"
    assert results[0]["score"] == pytest.approx(rows[0]["score"] * 100, abs=0.1)
    assert "returned" in counts
    assert ["garden", 1] in topics


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("q=", "q"),
        ("", "q"),
        ("q=x&limit=many", "limit"),
        ("q=x&limit=33", "limit"),
        ("q=x&limit=0", "limit"),
        ("q=x&mode=psychic", "mode"),
        ("q=x&status=lost", "status"),
        ("q=x&deep=perhaps", "deep"),
        ("q=x&since=someday", "since"),
        ("q=x&min_score=high", "min_score"),
        ("q=x&meta=nothing", "meta"),
        ("q=x&type=opinion", "type"),
        ("q=x&lmit=3", "lmit"),
        ("q=x&_shape=round", "_shape"),
        ("q=" + "x" * 9000, "q"),
    ],
)
async def test_bad_input_is_a_400_that_names_the_parameter(
    served: Served, query: str, parameter: str
) -> None:
    response = await served.by("bob").get(f".json?{query}")
    data = response.json()
    assert response.status_code == 400, data
    assert data["ok"] is False
    assert data["errors"] == [data["error"]]
    assert data["status"] == 400
    assert data["parameter"] == parameter


async def test_all_wrong_options_are_named_at_once(served: Served) -> None:
    wrong = {"q": "tomatoes", "limt": 2, "limit": "many", "topic": 3, "mode": "psychic"}
    refused = await served.by("bob").send("POST", ".json", wrong, headers=TOKEN)
    named = [said.partition(":")[0] for said in refused.json()["errors"]]
    assert (refused.status_code, sorted(named)) == (400, sorted(wrong.keys() - {"q"}))


@pytest.mark.parametrize("path", [".json", ".csv", "", "/memories/" + ONE, "/unlock"])
async def test_too_many_parameters_are_a_400_that_says_so(served: Served, path: str) -> None:
    many = "&".join(["q=tomatoes", *["topic=garden"] * 200])
    bob, full = served.by("bob"), served.base + path
    if path != "/unlock":
        response = await bob.get(f"{full}?{many}")
        assert response.status_code == 400
        assert "more than 200 parameters" in response.text
        fewer = many.removesuffix("&topic=garden")
        assert (await bob.get(f"{full}?{fewer}")).status_code == 200
    if path in ("", "/unlock"):
        headers = {**TOKEN, "Content-Type": "application/x-www-form-urlencoded"}
        posted = await served.datasette.client.post(
            full, content=many, headers=headers, cookies=bob.cookies
        )
        assert posted.status_code == 400
        assert "more than 200 parameters" in posted.text


async def test_first_words_stand_in_for_a_missing_title_in_csv_alone(served: Served) -> None:
    root = served.by("root")
    new = {"text": "Descale the kettle in spring."}
    assert (await root.send("POST", "/memories.json", new, headers=TOKEN)).status_code == 201
    asked = "q=kettle&limit=1&mode=keyword"
    row = next(csv.DictReader(io.StringIO((await root.get(f".csv?{asked}")).text)))
    assert row["title"] == new["text"]
    assert (await root.get(f".json?{asked}")).json()["rows"][0]["title"] == ""
    unread = next(csv.DictReader(io.StringIO((await served.by("alice").get(f".csv?{asked}")).text)))
    assert unread["title"] == ""


@pytest.mark.parametrize("start", [*"=+-@＝＋－＠"])
async def test_no_cell_of_csv_is_a_formula(served: Served, start: str) -> None:
    root = served.by("root")
    formula = f"{start}HYPERLINK(zebra)"
    new = {"text": f"{formula} zebra", "title": formula, "topics": [formula], "ref": formula}
    await root.send("POST", f"{served.base}/memories.json", new, headers=TOKEN)
    table = (await root.get(".csv?q=zebra&limit=1")).text
    row = next(csv.DictReader(io.StringIO(table)))
    for name in ("title", "ref", "preview", "topics"):
        assert row[name].startswith(f"'{start}"), name
    assert row["preview"] == f"'{new['text']}"
    assert float(row["score"]) > 0


@pytest.mark.parametrize("start", ["\t", "\r", "\n"])
async def test_no_cell_of_csv_begins_with_a_break(served: Served, start: str) -> None:
    root = served.by("root")
    new = {"text": f"{start}=zebra()"}
    await root.send("POST", f"{served.base}/memories.json", new, headers=TOKEN)
    row = next(csv.DictReader(io.StringIO((await root.get(".csv?q=zebra&limit=1")).text)))
    assert row["preview"].startswith("'")


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"q": 3}'])
async def test_a_body_that_is_no_question_is_a_400(served: Served, body: bytes) -> None:
    headers = {**TOKEN, "Content-Type": "application/json"}
    response = await served.datasette.client.post(
        served.full(".json"), content=body, headers=headers, cookies=served.by("bob").cookies
    )
    assert response.status_code == 400
    assert response.json()["ok"] is False


async def test_a_body_of_many_megabytes_is_refused(served: Served) -> None:
    response = await served.by("bob").send("POST", ".json", {"q": "x" * 9_000_000}, headers=TOKEN)
    assert response.status_code == 413


async def test_a_memory_is_added_read_changed_finished_and_deleted(served: Served) -> None:
    root = served.by("root")
    memories = f"{served.base}/memories"
    new = {"text": "Oil the hinges of the gate.", "title": "Gate", "type": "task"}
    created = await root.send("POST", f"{memories}.json", new, headers=TOKEN)
    assert created.status_code == 201
    one = created.json()["rows"][0]
    path = f"{memories}/{one['id']}.json"
    assert (await root.get(path)).json()["rows"][0]["text"] == new["text"]
    found = (await root.get(".json?q=hinges")).json()
    assert found["rows"][0]["id"] == one["id"]

    change = {"topics": ["house"], "version": one["version"]}
    changed = (await root.send("PATCH", path, change, headers=TOKEN)).json()["rows"][0]
    assert changed["topics"] == ["house"]
    assert changed["text"] == new["text"]
    stale = await root.send("PATCH", path, change, headers=TOKEN)
    assert stale.status_code == 409

    done = await root.send("POST", path.replace(".json", "/done.json"), {}, headers=TOKEN)
    assert done.json()["rows"][0]["type"] == "task_done"
    assert (await root.send("DELETE", path, None, headers=TOKEN)).json() == {"ok": True}
    assert (await root.get(path)).status_code == 404


NAMED = "abcdef01-0000-4000-8000-000000000001"


async def test_a_memory_answers_to_its_id_and_its_beginning(served: Served) -> None:
    root = served.by("root")
    new = {"text": "Named by its source.", "id": NAMED, "ref": "shelf/named.md"}
    await root.send("POST", f"{served.base}/memories.json", new, headers=TOKEN)
    for name in (NAMED, NAMED[:8], NAMED[:13].upper()):
        found = await root.get(f"{served.base}/memories/{name}.json")
        assert found.json()["rows"][0]["id"] == NAMED
        row = (await root.sql("select memory_text(:name) text", name=name))[0]
        assert row["text"] == new["text"]
        assert (await root.get(f".json?q=named&why={name}")).json()["why"]["id"] == NAMED
    path = f"{served.base}/memories/{NAMED[:8]}.json"
    changed = await root.send("PATCH", path, {"title": "Named"}, headers=TOKEN)
    assert changed.json()["rows"][0]["title"] == "Named"


@pytest.mark.parametrize("name", ["named-by-ref", "abcdef0", "0000000", "00000000", "deadbeef"])
async def test_nothing_else_names_a_memory_lest_every_head_is_opened(
    served: Served, name: str
) -> None:
    """Refs are sealed: looking for one would confirm it, and open the whole vault to do so."""
    root = served.by("root")
    new = [{"text": "Named by its source.", "id": NAMED, "ref": name}]
    await root.send("POST", f"{served.base}/memories.json", new, headers=TOKEN)
    path = f"{served.base}/memories/{name}"
    assert (await root.get(f"{path}.json")).status_code == 404
    assert (await served.by("alice").get(f"{path}.json")).status_code == 404
    assert (await root.get(path)).status_code == 404
    reported = (await root.get(f".json?q=named&why={name}")).json()["why"]
    assert ("ids only here" if name == "named-by-ref" else "no such memory") in reported["reason"]
    assert await root.sql("select memory_text(:name) text", name=name) == [{"text": None}]
    for method, address, body in (
        ("PATCH", f"{path}.json", {"title": "Found by ref"}),
        ("POST", f"{path}/done.json", {}),
        ("DELETE", f"{path}.json", None),
    ):
        answer = await root.send(method, address, body, headers=TOKEN)
        assert answer.status_code == 404, method
    assert (await root.get(f"{served.base}/memories/{NAMED}.json")).status_code == 200


@pytest.mark.parametrize(
    ("value", "parameter"),
    [
        ({"text": "x", "colour": "red"}, "colour"),
        ({"text": "x", "topics": "garden"}, "topics"),
        ({"text": "x", "metadata": []}, "metadata"),
        ({"text": 3}, "text"),
        ({"text": "x", "type": "opinion"}, "type"),
        ([], "memories"),
        ("x", "body"),
    ],
)
async def test_a_malformed_memory_is_a_400_that_names_the_field(
    served: Served, value: Any, parameter: str
) -> None:
    path = f"{served.base}/memories.json"
    response = await served.by("root").send("POST", path, value, headers=TOKEN)
    assert response.status_code == 400
    assert response.json()["parameter"] == parameter


async def test_another_method_is_refused(served: Served) -> None:
    response = await served.by("root").send("PUT", ".json", {}, headers=TOKEN)
    assert response.status_code == 405
    assert response.json()["ok"] is False


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(OPTION_NAMES) | st.text(max_size=8), VALUES, max_size=4))
def test_any_options_are_read_or_refused_by_name(values: dict[str, Any]) -> None:
    culprit = None
    try:
        read_request(values)
    except BadInputError as refusal:
        culprit = refusal.parameter
    assert culprit in values or set(values) <= set(OPTION_NAMES)
