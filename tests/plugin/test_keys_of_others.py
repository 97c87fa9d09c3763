"""A person with whom a collection is shared unlocks it, and it alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_store.store import MemoryStore

from .conftest import ALLOW, PASSPHRASE, Filled, Serve, Served
from .test_unlocking import unlocked

TOMATOES = ".json?q=tomatoes&mode=keyword"
HIDDEN = "memories/00000000-0000-4000-8000-000000000001"


@pytest.fixture
def hers(filled: Filled, tmp_path: Path) -> str:
    """What Alice types, with whom a collection is shared whose only member is carol."""
    key_file = tmp_path / "keys" / "alice.key"
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Shared tomatoes.", title="Shared", collection="allotment")
        data, _, _ = MemoryStore.introduce(filled.path, "Alice", key_file=key_file)
        store.keys.share("allotment", data)
        store.collections.change_members("allotment", {"carol": "owner"})
    return key_file.read_text()


async def titles(served: Served) -> list[str]:
    answer = await served.get(TOMATOES)
    assert answer.status_code == 200, answer.text
    return [row["title"] for row in answer.json()["rows"]]


async def test_her_key_opens_nothing_of_a_vault_that_the_owner_opened(
    filled: Filled, serve: Serve, hers: str
) -> None:
    served = await serve(filled.path)
    owner = await unlocked(served, PASSPHRASE)
    assert len(await titles(owner)) == 3
    refused = await served.submit("/unlock", {"secret": hers})
    assert refused.status_code == 409
    assert "open with another key" in refused.text
    assert "ds_hybrid" not in refused.headers.get("set-cookie", "")
    assert len(await titles(owner)) == 3, "who had opened it goes on"


async def test_a_closed_collection_that_she_unlocks_stays_closed_to_others(
    filled: Filled, serve: Serve, hers: str
) -> None:
    served = await serve(filled.path, options={"notes": {"allow": ALLOW}})
    alice = await unlocked(served, hers)
    assert await titles(alice) == ["Shared"]
    assert (await alice.get(f"{alice.base}/{HIDDEN}")).status_code == 404
    assert "allotment" in (await alice.get("/collections")).text
    assert (await served.by("root").get(TOMATOES)).status_code == 403
    assert await served.by("root").sql("select hybrid_search('tomatoes') s") == [{"s": "[]"}]


async def test_the_owner_takes_over_a_vault_that_she_opened(
    filled: Filled, serve: Serve, hers: str
) -> None:
    served = await serve(filled.path, options={"notes": {"allow": ALLOW}})
    alice = await unlocked(served, hers)
    owner = await unlocked(served, PASSPHRASE)
    assert len(await titles(owner)) == 3
    assert len(await titles(served.by("root"))) == 2, "the database's permissions count again"
    assert (await alice.get(TOMATOES)).status_code == 403
