"""A Datasette that has a vault open follows what another process does to its keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_process import python
from stopping import stopped

from memory_store.store import MemoryStore

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served
from .test_unlocking import unlocked

TOMATOES = ".json?q=tomatoes&mode=keyword"


def keys(filled: Filled, command: str, *words: str) -> str:
    """``memory-store keys COMMAND``, in a process of its own."""
    opening = ("--key-file", str(filled.key_file))
    done = python(
        "-m", "memory_store", "keys", command, str(filled.path), *words, *opening, check=True
    )
    return done.stdout


async def found(served: Served) -> list[str]:
    answer = await served.get(TOMATOES)
    assert answer.status_code == 200, answer.text
    return [row["title"] for row in answer.json()["rows"]]


async def test_new_keys_of_everything_change_no_answer(filled: Filled, served: Served) -> None:
    alice = served.by("root")
    before = await found(alice)
    page = await alice.get(f"{alice.base}/memories/00000000-0000-4000-8000-000000000001")
    keys(filled, "rotate")
    assert await found(alice) == before
    assert len(before) == 2
    again = await alice.get(f"{alice.base}/memories/00000000-0000-4000-8000-000000000001")
    assert (page.status_code, again.status_code) == (200, 200)
    assert "feed on Sundays" in again.text


async def test_a_new_root_key_is_followed_where_the_configured_key_still_opens(
    filled: Filled, served: Served
) -> None:
    before = await found(served.by("root"))
    keys(filled, "rotate", "--root")
    assert await found(served.by("root")) == before


@pytest.mark.in_a_file
async def test_who_unlocked_with_a_key_that_was_taken_away_must_unlock_again(
    filled: Filled, serve: Serve
) -> None:
    browser = await unlocked(await serve(filled.path), PASSPHRASE)
    assert len(await found(browser)) == 2
    keys(filled, "rotate", "--root")
    assert (await browser.get(TOMATOES)).status_code in (403, 423)


@pytest.mark.in_a_file
async def test_a_key_of_a_person_serves_what_is_shared_with_her_alone(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    hers = tmp_path / "keys" / "alice.key"
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Shared tomatoes.", title="Shared", collection="allotment")
        data, _, _ = MemoryStore.introduce(filled.path, "Alice", key_file=hers)
        store.keys.share("allotment", data)
    settings = {"key-file": str(hers), "allow": ALLOW}
    alice = (await serve(filled.path, options={"notes": settings})).by("root")
    assert await found(alice) == ["Shared"]
    hidden = await alice.get(f"{alice.base}/memories/00000000-0000-4000-8000-000000000001")
    assert hidden.status_code == 404
    keys(filled, "revoke", "Alice")
    assert (await alice.get(TOMATOES)).status_code in (403, 423)


@pytest.mark.parametrize("times", [2])
async def test_an_interrupted_change_of_keys_changes_no_answer_either(
    filled: Filled, served: Served, times: int
) -> None:
    before = await found(served.by("root"))
    for _ in range(times):
        store = MemoryStore.open(filled.path, key_file=filled.key_file)
        with store, stopped() as stop:
            store.keys.rotate("personal", progress=stop)
        assert await found(served.by("root")) == before
