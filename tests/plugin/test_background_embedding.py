"""A server that stays finds an upload by its words at once, and embeds it in the background."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.late_vectors import BackgroundEmbedding
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING
from memory_store.session import reindex

from .browsing import PATIENCE
from .conftest import ALLOW, Filled, Serve, Served
from .uploads import MANY, NOTES, imported, page_of


class Breath:
    """Holds the embedding thread at its second breath, inside of a batch, until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.release = threading.Event(), threading.Event()
        plain, breaths = BackgroundEmbedding._breathe, count(1)

        def waiting(one: Any) -> None:
            if next(breaths) > 1:
                self.reached.set()
                self.release.wait(PATIENCE)
            plain(one)

        monkeypatch.setattr(BackgroundEmbedding, "_breathe", waiting)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)


@pytest.fixture
def breath(monkeypatch: pytest.MonkeyPatch) -> Iterator[Breath]:
    held = Breath(monkeypatch)
    yield held
    held.release.set()


async def staying(filled: Filled, serve: Serve, **options: Any) -> Served:
    given = {"allow": ALLOW, "search_processes": 0, **options}
    served = await serve(filled.path, options=filled.options(**given))
    vaults_of(served.datasette).stay()
    return served.by("root")


async def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "still not so"
        await asyncio.sleep(0.02)


async def test_an_upload_is_found_by_words_at_once_and_by_meaning_later(
    filled: Filled, serve: Serve, breath: Breath
) -> None:
    root = await staying(filled, serve)
    job = await imported(root, MANY)
    assert (job["state"], job["imported"], job["embedding"]) == ("done", 12, None)
    await breath.wait()
    now = (await root.get(f"{page_of(job)}.json")).json()
    assert now["to_embed"] == 12
    assert "12 memories are found by words only" in now["meaning"]
    for page in (page_of(job), "/notes/-/hybrid", "/-/hybrid"):
        assert "12 memories are found by words only" in (await root.get(page)).text, page
    found = (await root.get(".json?q=note&mode=keyword&limit=20")).json()
    assert len(found["rows"]) == 12
    (line,) = (
        one
        for one in (await root.get(".json?q=note")).json()["degraded"]
        if one.startswith("meaning")
    )
    assert line.endswith("being embedded now.")
    assert "memory-store" not in line
    breath.release.set()
    await until(lambda: root.store.embedding().left == 0)
    await until(lambda: root.vault.upkeep.embedding_now(EVERYTHING) is None)
    assert (await root.get(f"{page_of(job)}.json")).json()["meaning"] is None


async def test_a_lock_stops_it_at_once_and_the_next_unlock_goes_on(
    filled: Filled, serve: Serve, breath: Breath
) -> None:
    root = await staying(filled, serve)
    await imported(root, MANY)
    await breath.wait()
    vault = root.vault
    locking = asyncio.ensure_future(asyncio.to_thread(vault.lock))
    await until(lambda: vault.locked)
    breath.release.set()
    await asyncio.wait_for(locking, PATIENCE)
    await until(lambda: "hybrid-embed" not in {one.name for one in threading.enumerate()})
    await asyncio.to_thread(vault.open_configured)
    await until(lambda: root.store.embedding().left == 0)
    assert root.store.embedding().total == 15


async def test_what_an_import_left_without_vectors_is_embedded_newest_first(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[list[str]] = []
    plain = reindex._renew

    def noting(vault: Any, preparer: Any, ids: list[str]) -> int:
        embedded.append(ids)
        return plain(vault, preparer, ids)

    monkeypatch.setattr(reindex, "UNHURRIED", reindex.Pace(fewest=1, most=1, anew=True))
    monkeypatch.setattr(reindex, "_renew", noting)
    served = await serve(filled.path, options=filled.options(allow=ALLOW, search_processes=0))
    for day in (1, 3, 2):
        draft = MemoryDraft(f"Kept on day {day}.", created=f"2024-01-0{day}T00:00:00Z")
        served.store.add_many([draft], embed=False)
    assert served.store.embedding().left == 3
    vaults_of(served.datasette).stay()
    await until(lambda: served.store.embedding().left == 0)
    days = [served.store.get(one).text[-2] for (one,) in embedded]
    assert days == ["3", "2", "1"]


async def test_searches_and_writes_get_through_meanwhile(
    filled: Filled, serve: Serve, breath: Breath
) -> None:
    root = await staying(filled, serve)
    await imported(root, MANY)
    await breath.wait()
    added = await root.send("POST", f"{root.base}/memories.json", {"text": "The gate is open."})
    assert added.status_code == 201
    assert (await root.get(".json?q=gate")).json()["rows"][0]["id"] == added.json()["rows"][0]["id"]


async def test_it_can_be_turned_off(filled: Filled, serve: Serve) -> None:
    root = await staying(filled, serve, background_embedding=False)
    job = await imported(root, NOTES)
    assert (job["imported"], job["to_embed"]) == (4, None)
    assert root.store.embedding().left == 0


async def test_others_learn_no_number_of_what_they_may_not_search(
    filled: Filled, serve: Serve, breath: Breath
) -> None:
    allow = {**ALLOW, "hybrid-search": {"id": ["root"]}}
    root = await staying(filled, serve, allow=allow)
    job = await imported(root.by("wanda"), MANY)
    await breath.wait()
    assert (await root.get(f"{page_of(job)}.json")).json()["to_embed"] == 12
    seen = (await root.by("wanda").get(f"{page_of(job)}.json")).json()
    assert (seen["to_embed"], seen["meaning"]) == (None, None)
