"""Starting a worker, killing it at a random moment, and what must hold of its vault then."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_store.store import MemoryStore

WORKERS = Path(__file__).with_name("workers.py")
KILLS = int(os.environ.get("SOAK_KILLS", "20"))  # for each operation
CANARY = "Zwetschgenmus"  # stands in every text; nowhere in clear on disk
MOST_TRIES = 4  # starts for one hit, on average


@dataclass(frozen=True)
class Scene:
    """A vault that dies and is opened again: its file, its key, and the model."""

    path: Path
    key_file: Path
    model: Path

    def arguments(self, **more: Any) -> dict[str, Any]:
        """What a worker needs to know, as JSON data."""
        given = {"path": self.path, "key_file": self.key_file, "model": self.model, **more}
        return json.loads(json.dumps(given, default=str))

    @contextmanager
    def reopened(self) -> Iterator[MemoryStore]:
        """The vault opened afresh and proved sound: verified, and nothing in clear on disk."""
        with MemoryStore.open(self.path, key_file=self.key_file, embedder=str(self.model)) as store:
            assert store.verify()["failures"] == []
            assert not in_clear(self.path)
            yield store


@dataclass(frozen=True)
class Death:
    """How a worker ended: whether the kill hit it at work, after how long, and what it said."""

    killed: bool
    seconds: float
    said: list[str]


def start(work: str, arguments: dict[str, Any]) -> subprocess.Popen[str]:
    """A worker that has opened its vault."""
    process = subprocess.Popen(
        [sys.executable, str(WORKERS), work, json.dumps(arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", f"{work} did not start"
    return process


def die(work: str, arguments: dict[str, Any], after: float | None) -> Death:
    """Run a worker and kill it ``after`` seconds of work (None: let it finish)."""
    process = start(work, arguments)
    began = time.monotonic()
    timer = threading.Timer(after, process.kill) if after is not None else None
    if timer is not None:
        timer.start()
    said = process.communicate(timeout=600)[0].splitlines()
    taken = time.monotonic() - began
    if timer is not None:
        timer.cancel()
    killed = process.returncode == -signal.SIGKILL
    assert killed or process.returncode == 0, f"{work} failed with {process.returncode}"
    return Death(killed, taken, said)


def kills(
    seconds: float, seed: int, work: str, arguments: Callable[[], dict[str, Any]]
) -> Iterator[Death]:
    """Deaths of ``work`` at random moments of its ``seconds``, until ``KILLS`` have hit it.

    ``arguments`` is asked before every start. A worker that was done sooner is a death too, by
    itself; raises when that happens most of the time.
    """
    choose, hits = random.Random(seed), 0
    for _ in range(MOST_TRIES * KILLS):
        death = die(work, arguments(), choose.uniform(0, seconds))
        hits += death.killed
        yield death
        if hits == KILLS:
            return
    raise AssertionError(f"{work} was hit {hits} times only")


def in_clear(path: Path) -> list[str]:
    """The vault's files that hold the canary."""
    encodings = [CANARY.encode(code) for code in ("utf-8", "utf-16-le")]
    encodings.append(CANARY.lower().encode())
    return [
        file.name
        for file in sorted(path.parent.glob(f"{path.name}*"))
        if any(canary in file.read_bytes() for canary in encodings)
    ]
