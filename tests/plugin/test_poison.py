"""Half a surrogate pair and NaN: no request posts what breaks later answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from datasette_hybrid.memories.markdown import readable
from memory_store.actions.reads import open_one
from memory_store.actions.writes import write
from memory_store.errors import BadInputError
from memory_store.importing.drafts import next_version
from memory_store.store import MemoryStore
from memory_store.text.plain_json import write_json

from .conftest import ALLOW, Filled, Serve, Served

ONE = "00000000-0000-4000-8000-000000000001"
POISONED = "00000000-0000-4000-8000-00000000000b"
HALF = "\ud800"
JSON = {"Authorization": "Bearer none", "content-type": "application/json"}
PAGES = (
    ".json?q=poison",
    ".json?q=poison&explain=1",
    ".csv?q=poison",
    "?q=poison",
    f"/notes/-/hybrid/memories/{POISONED}.json",
    f"/notes/-/hybrid/memories/{POISONED}",
    f"/notes/-/hybrid/memories/{POISONED}/edit",
    "/notes/-/hybrid/memories.json",
    "/notes/memories",
    f"/notes/memories/{POISONED}",
    "/-/hybrid?q=poison",
)


async def post(served: Served, path: str, value: Any, method: str = "POST") -> Any:
    """Send ``value`` as Python writes it: with halves of pairs escaped, and with NaN."""
    return await served.datasette.client.request(
        method,
        served.full(path),
        content=json.dumps(value).encode(),
        cookies=served.cookies,
        headers=JSON,
    )


async def shown_to(served: Served) -> None:
    for path in PAGES:
        answer = await served.get(path)
        assert answer.status_code == 200, path
        answer.content.decode()
        if ".json" in path:
            json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.in_a_file
async def test_halves_of_pairs_are_replaced_at_the_door(served: Served) -> None:
    new = {"id": POISONED, "text": f"poison {HALF}", "title": HALF, "ref": HALF, "source": HALF}
    new |= {"topics": [f"t{HALF}"], "metadata": {HALF: [HALF, {"deep": f"a{HALF}"}]}}
    made = await post(served.by("wanda"), "/notes/-/hybrid/memories.json", new)
    assert made.status_code == 201
    await shown_to(served.by("root"))
    memory = (await served.by("root").get(f"{served.base}/memories/{POISONED}.json")).json()
    assert memory["rows"][0]["metadata"] == {"�": ["�", {"deep": "a�"}]}
    assert memory["rows"][0]["ref"] == "�"


async def test_what_is_no_number_is_refused_at_the_door(served: Served) -> None:
    for value in (float("nan"), float("inf")):
        new = {"text": "poison", "metadata": {"deep": [value]}}
        assert (
            await post(served.by("wanda"), "/notes/-/hybrid/memories.json", new)
        ).status_code == 400
    raw = b'{"text": "poison", "metadata": {"far": 1e400}}'
    refused = await served.datasette.client.post(
        "/notes/-/hybrid/memories.json",
        content=raw,
        cookies=served.by("wanda").cookies,
        headers=JSON,
    )
    assert refused.status_code == 400


def test_so_they_are_in_python(make_store: Callable[..., MemoryStore]) -> None:
    store = make_store()
    memory = store.add("x", ref=HALF, metadata={HALF: HALF})
    assert (memory.ref, memory.metadata) == ("�", {"�": "�"})
    with pytest.raises(BadInputError, match="metadata"):
        store.add("x", metadata={"a": float("nan")})
    assert store.search("x", topic=HALF).rows == ()


@pytest.mark.parametrize(
    "asked",
    [
        {"q": f"tomatoes {HALF}"},
        *({"q": "tomatoes", name: [HALF]} for name in ("topic", "type", "collection", "narrow")),
        {"q": "tomatoes", "narrow": [f"topic:{HALF}"], "explain": True},
        *({"q": "tomatoes", name: HALF} for name in ("like", "why", "since", "recipe", "continue")),
        {"q": "tomatoes", "meta": {HALF: HALF}, "reranker": HALF},
        {"q": "tomatoes", "min_score": float("nan")},
        {"q": "tomatoes", "limit": float("inf")},
    ],
)
async def test_a_search_for_them_is_harmless_or_refused(
    served: Served, asked: dict[str, Any]
) -> None:
    root = served.by("root")
    for path in (".json", ""):
        answer = await post(root, path, asked)
        assert answer.status_code in (200, 400, 404), (path, answer.text)
    options = {name: value for name, value in asked.items() if name != "q"}
    await root.sql("select hybrid_search('tomatoes', :o) a", o=json.dumps(options))


async def test_other_doors_take_no_halves(served: Served) -> None:
    root, home = served.by("root"), "/notes/-/hybrid"
    assert (await post(root, f"{home}/collections.json", {"name": HALF})).status_code < 500
    edit = {"version": 1, "title": HALF, "metadata": {HALF: HALF}, "topics": [HALF]}
    assert (await post(root, f"{home}/memories/{ONE}.json", edit, "PATCH")).status_code == 200
    lines = b'{"text": "one", "metadata": {"a": "\\ud800"}}\n{"text": "two", "ref": "\\ud800"}\n'
    headers = {**JSON, "content-type": "application/x-ndjson"}
    path = f"{home}/memories.json"
    sent = await root.datasette.client.post(
        path, content=lines, cookies=root.cookies, headers=headers
    )
    assert sent.status_code == 201
    assert (await root.get(path)).status_code == 200


async def test_a_vault_that_was_poisoned_before_is_shown(filled: Filled, serve: Serve) -> None:
    poison = {"a": HALF, "b": float("nan"), HALF: [float("inf")]}
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("poison", id=POISONED)
        before = open_one(store._opened.vault, POISONED)
        after = next_version(before, ref=f"{HALF}/{HALF}", source=f"/a/{HALF}", metadata=poison)
        write(store._opened, [after])  # past the checks, as earlier versions did
    key_file = str(filled.key_file)
    served = await serve(filled.path, options={"notes": {"key-file": key_file, "allow": ALLOW}})
    await shown_to(served.by("root"))
    memory = (await served.by("root").get(f"{served.base}/memories/{POISONED}.json")).json()
    assert memory["rows"][0]["metadata"] == {"a": "�", "b": None, "�": [None]}


def test_an_answer_can_always_be_written() -> None:
    assert readable(f"plums {HALF}") == "<p>plums �</p>"
    assert write_json({HALF: (float("nan"), HALF)}) == '{"�": [null, "�"]}'
