"""Starting a worker, killing it at a chosen moment, and what must hold of its vault then."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import workers

from memory_store.store import MemoryStore

KILLS = int(os.environ.get("SOAK_KILLS", "20"))  # for each operation
CANARY = "Zwetschgenmus"  # stands in every text; nowhere in clear on disk
MOST_TRIES = 4  # starts for one hit, on average
KINDS = ("seconds", "statements", "commits")  # what a moment may be counted in
PATIENCE = 120.0  # seconds that a worker may take at most

_processes = multiprocessing.get_context("forkserver")


@cache
def _prepare_to_fork() -> None:
    """Start the process that workers are forked from: each then starts in 50 ms instead of 2 s."""
    _processes.set_forkserver_preload(["preloaded"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # where it looks for that module
    forkserver.ensure_running()
    del os.environ["PYTHONPATH"]
    if before is not None:
        os.environ["PYTHONPATH"] = before


@dataclass(frozen=True)
class Scene:
    """A vault that dies and is opened again: its file, its key, and the model."""

    path: Path
    key_file: Path
    model: Path

    def arguments(self, **more: Any) -> dict[str, Any]:
        """What a worker needs to know, as JSON data."""
        settings = {k: v for k, v in os.environ.items() if k.startswith("MEMORY_STORE_")}
        own = {"path": self.path, "key_file": self.key_file, "model": self.model}
        return dict(json.loads(json.dumps({**own, "settings": settings, **more}, default=str)))

    @contextmanager
    def reopened(self) -> Iterator[MemoryStore]:
        """The vault opened afresh and proved sound: verified, and nothing in clear on disk."""
        assert not in_clear(self.path)
        with MemoryStore.open(self.path, key_file=self.key_file, embedder=str(self.model)) as store:
            assert store.verify()["failures"] == []
            yield store
        assert not in_clear(self.path)

    @contextmanager
    def copied(self, number: int) -> Iterator[Scene]:
        """The same vault in a folder of its own, for one death."""
        folder = self.path.parent / f"death-{number}"
        folder.mkdir()
        shutil.copyfile(self.path, folder / self.path.name)
        yield replace(self, path=folder / self.path.name)
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Death:
    """How a worker ended: whether the kill hit it at work, when, and what it had said."""

    killed: bool
    moment: str
    said: list[str]

    def numbers(self, name: str) -> list[int]:
        """What was said as ``name number``."""
        return [int(words[1]) for words in map(str.split, self.said) if words[0] == name]


@dataclass(frozen=True)
class Length:
    """How long an operation is when nobody kills it: in seconds, SQL statements, commits."""

    seconds: float
    statements: int
    commits: int

    def moment(self, choose: random.Random) -> tuple[str, float]:
        """A moment within it: anywhere in time, before any statement, or before any commit."""
        kind = choose.choice(KINDS)
        if kind == "seconds":
            return kind, choose.uniform(0, self.seconds)
        return kind, choose.randint(1, getattr(self, kind))


class Worker:
    """A process that has opened its vault and is at work."""

    def __init__(self, work: str, arguments: dict[str, Any]) -> None:
        _prepare_to_fork()
        self.work = work
        self._hears: Connection
        self._hears, speaks = _processes.Pipe(duplex=False)
        self.process = _processes.Process(target=workers.run, args=(work, arguments, speaks))
        self.process.start()
        speaks.close()
        assert self._next(PATIENCE) == "ready", f"{work} did not start"

    def heard(self, seconds: float) -> list[str]:
        """What it says within so many seconds, or until it ends."""
        until, lines = time.monotonic() + seconds, []
        while (left := until - time.monotonic()) > 0:
            line = self._next(left)
            if line is None:
                break
            lines.append(line)
        return lines

    def _next(self, seconds: float) -> str | None:
        try:
            return self._hears.recv() if self._hears.poll(seconds) else None
        except EOFError:
            return None

    def ended(self) -> int:
        """Its exit code, negative for a signal."""
        self.process.join(PATIENCE)
        code = self.process.exitcode
        self._hears.close()
        assert code is not None, f"{self.work} does not end"
        return code


def die(work: str, arguments: dict[str, Any], moment: tuple[str, float] | None = None) -> Death:
    """Run a worker and kill it at that moment of its work (None: let it finish)."""
    kind, at = moment or ("never", PATIENCE)
    worker = Worker(work, {**arguments, "moment": [kind, at]})
    said = worker.heard(at if kind == "seconds" else PATIENCE)
    if kind == "seconds":
        worker.process.kill()
    said += worker.heard(PATIENCE)
    code = worker.ended()
    killed = code == -signal.SIGKILL
    assert killed or code == 0, f"{work} failed with {code}: {said[-1:]}"
    return Death(killed, f"{kind} {at:.4g}", said)


def length(work: str, scene: Scene, arguments: dict[str, Any]) -> Length:
    """How long the operation is on a copy of the vault."""
    with scene.copied(0) as rehearsal:
        told = die(work, rehearsal.arguments(**arguments)).said[-1]
    return Length(**json.loads(told))


def kills(seed: int, work: str, scene: Scene, **arguments: Any) -> Iterator[tuple[Scene, Death]]:
    """Copies of a vault on which ``work`` was killed, and how, until :data:`KILLS` have hit it.

    A worker that was done sooner is none; raises when that happens most of the time.
    """
    choose, hits = random.Random(seed), 0
    whole = length(work, scene, arguments)
    for number in range(1, MOST_TRIES * KILLS + 1):
        with scene.copied(number) as copy:
            death = die(work, copy.arguments(**arguments), whole.moment(choose))
            if death.killed:
                hits += 1
                print(f"{work} killed at {death.moment}")  # shown when a check of it fails
                yield copy, death
        if hits == KILLS:
            return
    raise AssertionError(f"{work} was hit {hits} times only")


def in_clear(path: Path) -> list[str]:
    """The vault's files that hold the canary. Only while nobody here has the vault open."""
    encodings = [CANARY.encode(code) for code in ("utf-8", "utf-16-le")]
    encodings.append(CANARY.lower().encode())
    return [
        file.name
        for file in sorted(path.parent.glob(f"{path.name}*"))
        if any(canary in file.read_bytes() for canary in encodings)
    ]
