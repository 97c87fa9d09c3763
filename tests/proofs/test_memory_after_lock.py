"""After a lock no key is left in a process's memory, and no vector of the NumPy index.

Another process opens a vault, searches and locks; its memory is read from outside. What was opened
as text stays in Python's strings: docs/trust/security.md says how much.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from pathlib import Path

import pytest
from counts import FULL
from plugin.conftest import Filled
from servers import ROOT, served_process

from benchmarks.after_lock import (
    KEY_FILE,
    KEYS,
    QUERY,
    TEXTS,
    VECTORS,
    fill,
    found_in,
    looked_at,
    things_in,
)
from benchmarks.after_lock_of_writing import HALF
from benchmarks.after_lock_of_writing import looked_at as looked_at_writing
from memory_store.store import MemoryStore

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/mem", os.R_OK), reason="this system shows no process's memory"
)

MEMORIES = 120
PATIENCE = 120.0


@pytest.mark.sampled(1)
@pytest.mark.once
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_no_key_is_left_after_a_lock(
    tmp_path: Path, private_folders: Path, tiny_model: Path, profile: str
) -> None:
    kind, while_open, locked = looked_at(tmp_path, profile, str(tiny_model), MEMORIES)
    assert while_open[KEYS].different > 20, "what is looked for is really there before"
    assert while_open[VECTORS].different >= MEMORIES
    assert while_open[TEXTS].different
    assert locked[KEYS].copies == locked[KEY_FILE].copies == 0
    if profile == "strict":
        assert kind == "numpy"
    if kind == "numpy":
        assert locked[VECTORS].copies == 0


@pytest.mark.sampled(0)
@pytest.mark.parametrize("search", [True, False], ids=["searched", "never searched"])
@pytest.mark.once
def test_what_wrote_merged_and_indexed_again_leaves_no_vector_after_a_lock(
    tmp_path: Path, private_folders: Path, tiny_model: Path, search: bool
) -> None:
    count, while_open, locked = looked_at_writing(
        tmp_path, str(tiny_model), search=search, widths=()
    )
    assert count >= 50
    assert while_open[KEYS].different > 20, "what is looked for is really there before"
    assert while_open[HALF].different >= 44
    assert locked[KEYS].copies == locked[HALF].copies == 0


def children(process: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[1]) == process and fields[0] != "Z":
            found |= {int(status.parent.name), *children(int(status.parent.name))}
    return found


def asked(address: str, path: str, value: dict[str, str] | None = None) -> int:
    """The status of a request as root; with a ``value`` it is posted as JSON."""
    body = None if value is None else json.dumps(value).encode()
    headers = {**ROOT, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return int(response.status)


@pytest.fixture
def vault(
    tmp_path: Path, private_folders: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Filled, dict[str, list[bytes]]]:
    """A strict vault, and what its memory holds while it is open."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    (tmp_path / "vaults").mkdir()
    path, key_file = tmp_path / "vaults" / "notes.db", tmp_path / "keys" / "notes.key"
    fill(path, key_file, "strict", str(tiny_model), MEMORIES)
    with MemoryStore.open(path, key_file=key_file, embedder=str(tiny_model)) as store:
        things = things_in(store, key_file)
    return Filled(path, key_file, ""), things


@pytest.mark.sampled(0)
@pytest.mark.parametrize("written", [True, *([False] if FULL else [])])
def test_a_server_that_locks_leaves_no_key_and_no_process_behind(
    vault: tuple[Filled, dict[str, list[bytes]]], tmp_path: Path, written: bool
) -> None:
    filled, things = vault
    with served_process(filled, tmp_path) as server:
        process = server.process.pid
        for mode in ("hybrid", "keyword", "vector"):
            assert asked(server.address, f"/notes/-/hybrid.json?q={QUERY}&mode={mode}") == 200
        if written:
            new = {"text": "Written while the vault is open."}
            assert asked(server.address, "/notes/-/hybrid/memories.json", new) == 201
        assert found_in(process, things)[KEYS].different
        until = time.monotonic() + PATIENCE
        while not any(found_in(one, things)[KEYS].different for one in children(process)):
            assert time.monotonic() < until, "no process of its own searches with the keys"
            asked(server.address, f"/notes/-/hybrid.json?q={QUERY}")
        assert asked(server.address, "/notes/-/hybrid/lock", {}) == 200
        assert found_in(process, things)[KEYS].copies == 0, "at once"
        until = time.monotonic() + PATIENCE
        while children(process) and time.monotonic() < until:
            time.sleep(0.05)
        assert children(process) == set()
        left = found_in(process, things)
        assert left[KEYS].copies == left[KEY_FILE].copies == left[VECTORS].copies == 0
