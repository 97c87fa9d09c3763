"""A vault put back to an older state while the server was down: a warning, once."""

from __future__ import annotations

import shutil

import pytest
from bs4 import BeautifulSoup

from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served

OLDER = "older than the one last used on this machine"


def reported(page: str) -> bool:
    return OLDER in BeautifulSoup(page, "html.parser").get_text()


async def put_back(filled: Filled, serve: Serve) -> Served:
    """A server over a file that was written to since, and then exchanged for what it was."""
    before = filled.path.with_name("before")
    shutil.copy(filled.path, before)
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Written after the backup")
    shutil.copy(before, filled.path)
    return await serve(filled.path, options=filled.options(allow=ALLOW))


@pytest.mark.in_a_file
async def test_the_start_page_says_it_until_it_is_accepted_and_results_show_it_once(
    filled: Filled, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    served = await put_back(filled, serve)
    root = served.by("root")
    assert [reported((await root.get("?q=tomatoes")).text) for _ in range(2)] == [True, False]
    assert [reported((await root.get("")).text) for _ in range(2)] == [True, True]
    assert not any(
        OLDER in line for line in (await root.get(".json?q=tomatoes")).json()["degraded"]
    )
    assert capsys.readouterr().err.count(OLDER) == 1
    store = served.store
    store.add("Written by the server meanwhile")
    store.add("And once more")
    assert reported((await root.get("")).text)
    assert not reported((await served.by("alice").get("")).text)
    for_a_reader = (await served.by("bob").get("")).text
    assert reported(for_a_reader)
    assert str(filled.path.parent) not in for_a_reader
    assert "its latest changes are missing." in for_a_reader, "a whole sentence, and no command"
    assert "memory-store verify" not in for_a_reader
    with MemoryStore.open(filled.path, key_file=filled.key_file) as terminal:
        terminal.accept_older()
    assert not reported((await root.get("")).text)
