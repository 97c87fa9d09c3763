"""A served Datasette searches in processes of its own; one that makes a single request does not."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from datasette.utils import StartupError
from own_process import ended

from datasette_hybrid import configuration
from memory_store.searchers.pool import COMMAND, WORTH

from .browsing import serving
from .conftest import Filled, Serve, plain_datasette

HANGS = 120.0
EVERYBODY = dict.fromkeys(("hybrid-search", "hybrid-decrypt"), True)


def searching() -> set[int]:
    """The search processes of the servers that this test started."""
    listed = ended("ps", "-Awwo", "pid=,ppid=,stat=,args=", check=True).stdout.splitlines()
    rows = [line.split(None, 3) for line in listed]
    ours = {pid for pid, parent, _, _ in rows if int(parent) == os.getpid()}
    return {
        int(pid)
        for pid, parent, state, command in rows
        if parent in ours and COMMAND[-1] in command and "Z" not in state
    }


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANGS
    while not holds():
        assert time.monotonic() < end, "still not so"
        time.sleep(0.05)


@contextmanager
def served(filled: Filled, tmp_path: Path, **options: Any) -> Iterator[str]:
    databases = {
        filled.path.stem: {"key-file": str(filled.key_file), "allow": EVERYBODY, **options}
    }
    settings = tmp_path / "datasette.json"
    settings.write_text(json.dumps({"plugins": {"datasette-hybrid": {"databases": databases}}}))
    option = "--config" if hasattr(Datasette, "get_internal_database") else "--metadata"
    with serving(filled.path, option, settings) as address:
        yield address


def titles(address: str, query: str) -> list[str]:
    with urllib.request.urlopen(f"{address}/notes/-/hybrid.json?q={query}", timeout=HANGS) as reply:
        return [row["title"] for row in json.load(reply)["rows"]]


def test_a_server_searches_in_processes_that_end_with_it(filled: Filled, tmp_path: Path) -> None:
    with served(filled, tmp_path, **{"search-processes": 1}) as address:
        assert searching() == set()
        by_itself = [titles(address, "tomatoes") for _ in range(WORTH)][-1]
        assert by_itself
        until(lambda: len(searching()) == 1)
        assert titles(address, "tomatoes") == by_itself
        (process,) = searching()
        spent = _processor_time(process)
        until(lambda: bool(titles(address, "tomatoes")) and _processor_time(process) > spent)
    assert not Path(f"/proc/{process}").exists()


def _processor_time(process: int) -> int:
    """In clock ticks."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_vault_that_rests_leaves_no_process_with_its_keys(filled: Filled, tmp_path: Path) -> None:
    soon = {"idle-minutes": 0.1, "search-processes": 1}
    with served(filled, tmp_path, **soon) as address:
        assert all(titles(address, "tomatoes") for _ in range(WORTH))
        until(lambda: len(searching()) == 1)
        until(lambda: searching() == set())
        assert titles(address, "tomatoes"), "the next use opens it again"


def test_a_server_searches_by_itself_where_it_is_configured_to(
    filled: Filled, tmp_path: Path
) -> None:
    with served(filled, tmp_path, **{"search-processes": 0}) as address:
        assert all(titles(address, "tomatoes") for _ in range(WORTH))
        assert searching() == set()


async def test_nothing_is_started_for_requests_without_a_server(
    filled: Filled, serve: Serve
) -> None:
    datasette = await serve(filled.path, options=filled.options(allow=EVERYBODY))
    found = await datasette.by("root").get("/notes/-/hybrid.json?q=tomatoes")
    assert found.json()["rows"]
    assert searching() == set()


@pytest.mark.parametrize("value", [-1, 65, "2", 1.5, True, None])
def test_a_senseless_number_of_processes_stops_the_start(value: Any) -> None:
    databases = {"notes": {"search-processes": value}}
    datasette = plain_datasette((), {"plugins": {"datasette-hybrid": {"databases": databases}}})
    with pytest.raises(StartupError, match="search-processes"):
        configuration.read(datasette)
