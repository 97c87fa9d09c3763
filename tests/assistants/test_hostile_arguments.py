"""Arguments that are made to harm: huge, deep, half of a character, of what one may not see."""

from __future__ import annotations

import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from test_server import connected

from memory_store.access import Grants
from memory_store.assistants.answers import MOST_SAID
from memory_store.assistants.assistant import Assistant, access_of
from memory_store.assistants.reads import as_markdown
from memory_store.assistants.task_plan import tick
from memory_store.assistants.tools import answered
from memory_store.errors import MemoryStoreError
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import MCPError


def test_many_steps_are_ticked_in_a_time_that_grows_with_their_number() -> None:
    def seconds(steps: int) -> float:
        text, every = "- [ ] a\n" * steps, [*range(1, steps + 1)]
        begun = time.thread_time()
        assert tick(text, every).count("x") == steps
        return time.thread_time() - begun

    few, many = (min(seconds(steps) for _ in range(3)) for steps in (1_000, 20_000))
    assert many < 100 * few, "20 times as many; each with each would be 400"


HALF = "\ud800"  # of a surrogate pair, as a text that was cut in the middle of an emoji has it


def test_half_a_character_in_a_memory_breaks_no_tool(store: MemoryStore) -> None:
    helper = Assistant(store.limited_to(EVERYTHING), "write", "helper")
    text = f"The harbour {HALF} is closed\n- [ ] a step"
    id_ = store.add(text, title=f"Harbour {HALF}", topics=[f"sea {HALF}"], type="task").id
    for name, given in (
        ("memory_start", {"query": "harbour"}),
        ("memory_search", {"query": "harbour", "budget": 200}),
        ("memory_search", {"query": "harbour", "format": "compact"}),
        ("memory_landscape", {}),
        ("memory_read", {"ids": [id_]}),
        ("memory_read", {"ids": [id_], "budget": 150}),
        ("tasks", {}),
        ("memory_add", {"memories": [{"text": "The harbour is closed - [ ] a step"}]}),
        ("memory_update", {"id": id_, "tick": [1]}),
    ):
        answer = json.dumps(answered(helper, name, given), ensure_ascii=False)
        assert answer.encode().decode() == answer, name


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("memory_search", {"query": f"half {HALF}"}),
        ("memory_add", {"memories": [{"text": f"half {HALF}"}]}),
        ("memory_read", {"ids": [HALF]}),
        ("memory_search", {"query": json.loads("[" * 900 + "]" * 900)}),
        ("memory_search", {"query": [[[]]] * 9}),
        ("memory_update", {"id": "x", "version": 10**40, "text": "x"}),
    ],
)
def test_arguments_that_cannot_be_meant_are_answered_in_words(
    store: MemoryStore, name: str, given: dict[str, Any]
) -> None:
    helper = Assistant(store.limited_to(EVERYTHING), "write", "helper")
    try:
        answered(helper, name, given)
    except MemoryStoreError as error:
        assert "went wrong inside" not in str(error)  # noqa: PT017


async def test_a_refusal_is_short_however_long_the_call_was(
    store: MemoryStore, key_file: Path
) -> None:
    long = "y" * 200_000
    async with connected(store, key_file, "--write") as session:
        for name, given in (
            ("memory_search", {"query": "x", "collection": [long]}),
            ("memory_search", {"query": "x", long: 1}),
            ("memory_search", {"query": "x", "like": long}),
            ("memory_read", {"ids": [long]}),
            ("memory_add", {"memories": [{"text": "x", "type": long}]}),
        ):
            refused = await session.call_tool(name, given)
            assert refused.is_error
            assert len(refused.content[0].text) <= MOST_SAID
        for asking in (
            lambda: session.call_tool(long, {}),
            lambda: session.read_resource(f"memory://{store.path.stem}/{long}"),
            lambda: session.get_prompt(long, {}),
        ):
            with pytest.raises(MCPError) as error:
                await asking()
            assert len(str(error.value)) <= MOST_SAID


async def test_a_subscription_too_many_is_refused_and_not_dropped(
    store: MemoryStore, key_file: Path
) -> None:
    base = f"memory://{store.path.stem}"
    async with connected(store, key_file) as session:
        for number in range(100):
            await session.subscribe_resource(f"{base}/{number}")
        with pytest.raises(MCPError, match="100 subscriptions at most"):
            await session.subscribe_resource(f"{base}/landscape")
        await session.unsubscribe_resource(f"{base}/0")
        await session.subscribe_resource(f"{base}/landscape")


def test_publishing_needs_the_right_to_read_and_to_write_on_both_sides(
    store: MemoryStore,
) -> None:
    scopes = {name: store.collections.create(name).id for name in ("amber", "birch")}
    id_ = store.add("A note of amber", collection="amber").id
    allowed = 0
    for rights in product((False, True), repeat=6):
        given = [
            Scope.of(
                scopes[name] for name, right in zip(scopes, rights[at::3], strict=True) if right
            )
            for at in range(3)
        ]
        grants = Grants(search=given[0], decrypt=given[1], write=given[2])
        limited = store.limited_to(given[0] | given[1] | given[2], readable=given[1])
        helper = Assistant(limited, access_of(grants), "helper", grants)
        may = {*scopes.values()} == {one for one in scopes.values() if one in given[1] & given[2]}
        try:
            copy = answered(helper, "memory_update", {"id": id_, "publish": "birch"})["id"]
        except MemoryStoreError as error:
            assert not may, rights
            assert "A note" not in str(error)  # noqa: PT017
        else:
            assert may, rights
            assert store.get(copy).collection == "birch"
            allowed += 1
            store.delete(copy, now=True)
    assert allowed == 4, "whatever may be searched"


def test_what_was_deleted_elsewhere_is_refused_as_what_never_was(store: MemoryStore) -> None:
    scopes = {name: store.collections.create(name).id for name in ("amber", "birch")}
    gone = store.add("A note of amber", collection="amber").id
    there = store.add("Another note of amber", collection="amber").id
    store.delete(gone)
    birch = Scope.of([scopes["birch"]])
    grants = Grants(search=birch, decrypt=birch, write=birch)
    helper = Assistant(store.limited_to(birch, readable=birch), "write", "helper", grants)
    never = "11111111-2222-4333-8444-555555555555"
    calls: list[Any] = [
        lambda id_: answered(helper, "memory_read", {"ids": [id_]}),
        lambda id_: answered(helper, "memory_read", {"ids": [id_], "as_of": "2020"}),
        lambda id_: answered(helper, "memory_search", {"like": id_}),
        lambda id_: answered(helper, "memory_update", {"id": id_, "done": True}),
        lambda id_: answered(helper, "memory_update", {"id": id_, "publish": "birch"}),
        lambda id_: answered(helper, "memory_update", {"id": id_, "delete": True, "version": 1}),
        lambda id_: answered(helper, "memory_add", {"memories": [{"text": "x", "parent": id_}]}),
        lambda id_: as_markdown(helper, id_),
    ]
    for call in calls:
        said = []
        for id_ in (never, gone, there):
            with pytest.raises(MemoryStoreError) as refused:
                call(id_)
            said.append(str(refused.value).replace(id_, "ID"))
        assert len({*said}) == 1, said
