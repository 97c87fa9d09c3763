"""Finding without reading: what a search answers, and which questions it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from memory_store.search.explain.verdict import IDS_ONLY
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, soup

ONE = "00000000-0000-4000-8000-000000000001"
TWO = "00000000-0000-4000-8000-000000000002"
SEARCH_FORM = re.compile(r'<form class="hy-form".*?</form>', re.DOTALL)
MISSING = "hybrid-decrypt"
SEALED = ("house-of-cards", "ledger.md", "2019-03-04", "2098-05-06", TWO)
"""A collection's name, a ref, both ends of a validity, and what is superseded and belonged to."""

TO_READERS_ONLY = [
    {"q": "tomatoes want w.*", "mode": "literal"},
    {"q": "/every second d/", "mode": "auto"},
    {"q": "every_second", "mode": "auto"},
    {"q": "tomatoes", "meta": "colour=red"},
    {"q": "tomatoes", "by": "codex"},
    {"q": "tomatoes", "as_of": "2024"},
    {"q": "tomatoes", "superseded": "1"},
    {"q": "tomatoes", "budget": "100"},
]


def address(fields: dict[str, str]) -> str:
    return "?" + "&".join(f"{name}={quote(value)}" for name, value in fields.items())


@pytest.mark.parametrize("fields", TO_READERS_ONLY)
async def test_questions_that_only_text_answers_are_for_readers(
    served: Served, fields: dict[str, str]
) -> None:
    alice, bob = served.by("alice"), served.by("bob")
    for path in (".json", ".csv", ""):
        refused = await alice.get(path + address(fields))
        assert refused.status_code == 403, path
        assert MISSING in refused.text
        assert ONE not in refused.text
        assert (await bob.get(path + address(fields))).status_code == 200, path
    posted = await alice.send("POST", ".json", fields, headers={"Authorization": "Bearer no"})
    assert posted.status_code == 403
    assert MISSING in posted.json()["error"]
    across = (await alice.get("/-/hybrid" + address(fields))).text
    assert MISSING in across
    assert ONE not in across


@pytest.mark.parametrize("fields", TO_READERS_ONLY)
@pytest.mark.parametrize("function", ["hybrid_search", "hybrid_explain"])
async def test_sql_answers_such_questions_with_a_refusal(
    served: Served, fields: dict[str, str], function: str
) -> None:
    options = json.dumps({name: value for name, value in fields.items() if name != "q"})
    sql = f"select {function}(:asked, :options) answer"
    (row,) = await served.by("alice").sql(sql, asked=fields["q"], options=options)
    (refusal,) = json.loads(row["answer"])
    assert (refusal["ok"], refusal["status"]) == (False, 403)
    assert MISSING in refusal["error"]
    (row,) = await served.by("bob").sql(sql, asked=fields["q"], options=options)
    assert not any(one.get("ok") is False for one in json.loads(row["answer"]))


async def test_a_pattern_confirms_no_letter_of_a_text(served: Served) -> None:
    """The attack: extend a pattern letter by letter and see whether the memory is still found."""
    answers = set()
    for guess in ("tomatoes want w", "tomatoes want x"):
        response = await served.by("alice").get(f".json?mode=literal&q={quote(guess)}.*")
        answers.add((response.status_code, response.json()["error"]))
    assert len(answers) == 1


async def test_the_form_of_a_searcher_offers_no_pattern(served: Served) -> None:
    assert 'value="literal"' not in (await served.by("alice").get("")).text
    assert 'value="literal"' in (await served.by("bob").get("")).text


async def test_a_quoted_phrase_stays_a_searchers_question(served: Served) -> None:
    alice = served.by("alice")
    for query, found in (('"every second day"', [ONE]), ('"second every day"', [])):
        rows = (await alice.get(f".json?q={quote(query)}")).json()["rows"]
        assert [row["id"] for row in rows] == found


async def test_why_gives_a_searcher_ranks_and_no_reason(served: Served) -> None:
    reported = (await served.by("alice").get(f".json?q=tomatoes&why={ONE}")).json()["why"]
    assert reported["returned"] is True
    assert reported["rank"] == 1
    assert "reason" not in reported
    own = (await served.by("bob").get(f".json?q=tomatoes&why={ONE[:-1]}1")).json()["why"]
    assert "result 1" in own["reason"]


async def filed(filled: Filled, serve: Serve, profile: str, model: Path) -> Served:
    """A vault with one memory in which every field is filled in, as its only one."""
    path = filled.path.with_name(f"{profile}.db")
    key_file = filled.path.parents[1] / "keys" / f"{profile}.key"
    store, _ = MemoryStore.create(path, key_file=key_file, profile=profile, embedder=str(model))
    store.add(
        "The tomatoes want water.",
        title="Watering",
        type="task",
        id=ONE,
        collection="house-of-cards",
        ref="ledger.md",
        parent=TWO,
        supersedes=TWO,
        valid_from="2019-03-04",
        valid_to="2098-05-06",
        created="2021-07-08",
        metadata={"colour": "vermilion"},
    )
    store.close()
    return await serve(path, options={profile: {"key-file": str(key_file), "allow": ALLOW}})


async def everything_for(asked: Served) -> dict[str, str]:
    """Every answer a searcher can get about a memory, by surface."""
    sql = "select hybrid_search('tomatoes', '{\"why\": \"%s\"}') a, hybrid_explain('tomatoes') b"
    one = f"{asked.base}/memories/{ONE}.json"
    paths = ("?q=tomatoes&explain=1", ".csv?q=tomatoes", one, "/-/hybrid?q=tomatoes")
    answers = {path: (await asked.get(path)).text for path in paths}
    answers["json"] = (await asked.get(f".json?q=tomatoes&explain=1&why={ONE}")).text
    answers["compact"] = (await asked.get(".json?q=tomatoes&_shape=compact")).text
    answers["array"] = (await asked.get(".json?q=tomatoes&_shape=array")).text
    answers["sql"] = str(await asked.sql(sql % ONE))
    return answers


async def test_no_sealed_field_reaches_a_searcher(
    filled: Filled, serve: Serve, model: Path
) -> None:
    served = await filed(filled, serve, "default", model)
    for surface, text in (await everything_for(served.by("alice"))).items():
        assert ONE[:8] in text, surface
        assert not [
            value for value in (*SEALED, "Watering", "water.", "vermilion") if value in text
        ]
    one = (await served.by("alice").get(f"{served.base}/memories/{ONE}.json")).json()["rows"][0]
    reported = {name for name, value in one.items() if value is not None}
    assert reported == {"id", "type", "created", "updated", "version"}
    reader = (await served.by("bob").get(f"{served.base}/memories/{ONE}.json")).text
    assert not [value for value in SEALED if value not in reader]


async def test_a_strict_vault_shows_a_searcher_neither_types_nor_times(
    filled: Filled, serve: Serve, model: Path
) -> None:
    served = await filed(filled, serve, "strict", model)
    for surface, text in (await everything_for(served.by("alice"))).items():
        assert ONE[:8] in text, surface
        shown = SEARCH_FORM.sub("", text)  # it names every type there is
        assert not [value for value in (*SEALED, "2021-07-08", "task") if value in shown], surface
    data = (await served.by("alice").get(".json?q=tomatoes")).json()
    assert data["types"] == {}
    row = data["rows"][0]
    assert (row["type"], row["created"], row["collection"]) == (None, None, None)
    assert row["score"] > 0
    assert data["rows"][0]["id"] == ONE


async def test_a_strict_vault_offers_a_searcher_no_field_that_it_refuses(
    filled: Filled, serve: Serve, model: Path
) -> None:
    served = await filed(filled, serve, "strict", model)
    sealed = ("type", "status", "since", "until")
    for actor, offered in (("bob", True), ("alice", False)):
        page = soup(await served.by(actor).get("?q=tomatoes"))
        assert page.select_one(".hy-form [name=mode]")
        for name in sealed:
            assert bool(page.select(f".hy-form [name={name}]")) is offered, (actor, name)
    asked = await served.by("alice").get("?q=tomatoes&type=task&since=7d")
    assert asked.status_code == 403
    form = soup(asked)
    boxes = form.select(".hy-form [type=checkbox][checked]")  # to untick
    assert {(box["name"], box["value"]) for box in boxes} == {("type", "task"), ("since", "7d")}


@pytest.mark.parametrize(
    "asked",
    ["q=tomatoes&type=task", "q=tomatoes&since=7d", "q=tomatoes&until=2021-07-09",
     "q=tomatoes&status=open", "q=tomatoes+type:task", "q=tomatoes+since:2021-07-08",
     "q=tomatoes&narrow=type:task", "q=tomatoes&narrow=created:2021"],
)  # fmt: skip
async def test_a_strict_vault_confirms_neither_types_nor_times(
    filled: Filled, serve: Serve, model: Path, asked: str
) -> None:
    served = await filed(filled, serve, "strict", model)
    refused = await served.by("alice").get(f".json?{asked}")
    assert refused.status_code == 403
    assert MISSING in refused.json()["error"]
    assert (await served.by("bob").get(f".json?{asked}")).status_code == 200
    page = await served.by("alice").get(f"/strict/memories?_hybrid={quote('tomatoes since:7d')}")
    assert page.status_code == 200
    assert MISSING in page.text
    default = await filed(filled, serve, "default", model)
    assert (await default.by("alice").get(f".json?{asked}")).status_code == 200


async def test_no_one_loads_a_model_from_a_folder_of_their_choice(served: Served) -> None:
    for folder in ("/etc", "../models", "~/model", "a/b"):
        options = json.dumps({"reranker": folder})
        sql = "select hybrid_search('tomatoes', :options) answer"
        (row,) = await served.by("bob").sql(sql, options=options)
        (refusal,) = json.loads(row["answer"])
        assert "not a folder" in refusal["error"]


async def test_a_mistake_is_explained_to_those_who_may_ask_and_to_no_other(
    served: Served,
) -> None:
    sql = "select hybrid_search('tomatoes', '{\"bogus\": 1}') answer"
    (row,) = await served.by("bob").sql(sql)
    assert "bogus" in json.loads(row["answer"])[0]["error"]
    (row,) = await served.by(None).sql(sql)
    assert json.loads(row["answer"]) == []


async def test_explanations_show_a_searcher_ranks_and_in_a_strict_vault_no_more(
    filled: Filled, serve: Serve, model: Path
) -> None:
    derived = {
        "ranks",
        "contributions",
        "boost",
        "steps",
        "fusion_sum",
    }  # a type would show in them
    for profile in ("default", "strict"):
        served = await filed(filled, serve, profile, model)
        path = f".json?q=tomatoes&explain=1&why={ONE}"
        data = (await served.by("alice").get(path)).json()
        (adjust,) = [stage for stage in data["explain"] if stage["stage"] == "adjust"]
        for record in (adjust["results"][0], data["why"]):
            assert record["fusion_rank"] == 1
            assert bool(derived & set(record)) is (profile == "default")
        assert "moved" not in adjust
        assert not {"reason", "stage"} & set(data["why"])


async def test_what_a_searcher_may_not_learn_is_no_answer_to_why(served: Served) -> None:
    """Bob reads, alice searches; neither may learn whether an id that is not theirs exists."""
    made_up = "00000000-0000-4000-8000-0000000000ff"
    reported = (await served.by("alice").get(f".json?q=tomatoes&why={made_up}")).json()["why"]
    assert reported == {"id": made_up, "returned": False}
    reported = (await served.by("bob").get(f".json?q=tomatoes&why={made_up}")).json()["why"]
    assert reported["stage"] == "unknown"


async def test_a_ref_is_no_answer_to_why_whether_there_is_one_or_not(served: Served) -> None:
    for who in ("alice", "bob"):
        for name in ("garden.md", "no-such-file.md", "cooking-85"):
            reported = (await served.by(who).get(f".json?q=tomatoes&why={name}")).json()["why"]
            assert reported.pop("stage", "unknown") == "unknown"
            assert reported == {"id": name, "returned": False, "reason": IDS_ONLY}


async def test_why_is_answered_in_sql(served: Served) -> None:
    sql = "select hybrid_explain('zebra -tomatoes', :options) reported"
    (row,) = await served.by("bob").sql(sql, options=json.dumps({"why": ONE}))
    (why,) = [one["why"] for one in json.loads(row["reported"]) if one["stage"] == "why"]
    assert why["filters"] == ["-tomatoes"]
