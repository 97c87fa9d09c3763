"""A keeper that is killed while it writes: what it answered is there, and the vault is sound."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_keeper, is_running, start, until

from memory_store.store import MemoryStore


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "kills", [pytest.param(3, id="3"), pytest.param(100, id="100", marks=pytest.mark.soak)]
)
def test_killed_while_it_writes(
    vault: KeptOpen, tmp_path: Path, kills: int, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Takes over a second: keepers are started, killed somewhere, and the vault is verified."""
    path, chance = tmp_path / "copy.db", random.Random(7)
    shutil.copy(vault.path, path)
    acknowledged: list[str] = []
    for _ in range(kills):
        kept = start(path, vault.key_file)
        process = kept.process()
        assert by_keeper(capfdbinary, "add", str(path), "The first one loads the model")[0] == 0
        killing = threading.Timer(chance.uniform(0, 1), os.kill, (process, signal.SIGKILL))
        killing.start()
        while True:
            code, out, _ = by_keeper(capfdbinary, "add", str(path), f"note {chance.random()}")
            if code != 0:
                break
            acknowledged.append(out.decode().strip())
        killing.join()
        until(lambda process=process: not is_running(process))
        with MemoryStore.open(path, key_file=vault.key_file) as store:
            assert store.verify()["failures"] == []
            assert {memory.id for memory in store.every()} >= set(acknowledged)
    assert acknowledged
