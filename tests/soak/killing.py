"""Starting a worker, killing it at a chosen moment, and what must hold of its vault then."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import workers

from memory_store.store import MemoryStore

KILLS = int(os.environ.get("SOAK_KILLS", "20"))  # for each operation
CANARY = "Zwetschgenmus"  # stands in every text; nowhere in clear on disk
MOST_TRIES = 4  # starts for one hit, on average
PATIENCE = 120.0  # seconds that a worker may take at most

Moment = tuple[str, float]  # "commits" and "statements" are counted from 1, "seconds" from 0

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
    moment: Moment
    said: list[str]

    def numbers(self, name: str) -> list[int]:
        """What was said as ``name number``."""
        return [int(words[1]) for words in map(str.split, self.said) if words[0] == name]


@dataclass(frozen=True)
class Length:
    """How long an operation is when no one kills it: in seconds, commits, and other statements."""

    seconds: float
    statements: int
    commits: int

    def moments(self, choose: random.Random, count: int) -> Iterator[Moment]:
        """Moments within it, no commit and no statement twice: commits, up to a third of ``count``,
        then other statements, half of what is left of it, then any time, without end.
        """
        commits = _some_of(self.commits, count // 3, choose)
        statements = _some_of(self.statements, (count - len(commits)) // 2, choose)
        yield from (("commits", number) for number in commits)
        yield from (("statements", number) for number in statements)
        while True:
            yield "seconds", choose.uniform(0, self.seconds)


def _some_of(there: int, wanted: int, choose: random.Random) -> list[int]:
    """So many numbers from 1 to ``there``, each once: all of them where there are too few."""
    return choose.sample(range(1, there + 1), min(wanted, there))


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


def die(work: str, arguments: dict[str, Any], moment: Moment | None = None) -> Death:
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
    return Death(killed, (kind, at), said)


def length(work: str, scene: Scene, arguments: dict[str, Any]) -> Length:
    """How long the operation is on a copy of the vault."""
    with scene.copied(0) as rehearsal:
        reported = die(work, rehearsal.arguments(**arguments)).said[-1]
    return Length(**json.loads(reported))


def kills(seed: int, work: str, scene: Scene, **arguments: Any) -> Iterator[tuple[Scene, Death]]:
    """Copies of a vault on which ``work`` was killed, and how: :data:`KILLS`, each at a moment of
    its own.

    A worker that was done sooner is none; raises when that happens most of the time.
    """
    hits: list[Moment] = []
    whole = length(work, scene, arguments)
    moments = whole.moments(random.Random(seed), KILLS)
    for number, moment in enumerate(islice(moments, MOST_TRIES * KILLS), 1):
        with scene.copied(number) as copy:
            death = die(work, copy.arguments(**arguments), moment)
            if death.killed:
                hits.append(moment)
                print(f"{work} killed at {moment}")  # shown when a check of it fails
                yield copy, death
        if len(hits) == KILLS:
            break
    assert len(set(hits)) == KILLS, f"{work} was hit at {len(set(hits))} moments only"
    print(f"{work}: {dict(Counter(kind for kind, _ in hits))} of {whole}")


def in_clear(path: Path) -> list[str]:
    """The vault's files that hold the canary. Only while no one here has the vault open."""
    encodings = [CANARY.encode(code) for code in ("utf-8", "utf-16-le")]
    encodings.append(CANARY.lower().encode())
    return [
        file.name
        for file in sorted(path.parent.glob(f"{path.name}*"))
        if any(canary in file.read_bytes() for canary in encodings)
    ]
