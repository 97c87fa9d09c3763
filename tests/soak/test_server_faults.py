"""Whatever dies between a vault on a server and those who write to it: what was acknowledged is
there, once, and as it was written.

``SOAK_FAULTS`` faults (300) befall 16 writers: programs are killed (SIGKILL), the server is, and
connections are cut at a moment of their own, half of them behind a question that the server got.
Then each memory is held against what its writer noted.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # server_writers

import server_writers
from postgres_line import Line, line_to
from postgres_server import Server, server_or_skip

from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

FAULTS = int(os.environ.get("SOAK_FAULTS", "300"))
PROGRAMS, THREADS = 4, 4
BETWEEN = 0.6  # seconds from one fault to the next, on average
FULL_AGAIN = 5.0  # seconds that the writers have after the last one
NURSERY = get_context("forkserver")  # whose processes have imported everything
NURSERY.set_forkserver_preload(["preloaded", "server_writers"])


@pytest.fixture(scope="module")
def fragile() -> Iterator[Server]:
    yield from server_or_skip()


@dataclass
class Life:
    """What was tried with one memory, in order, and how much of it was acknowledged."""

    tried: list[str] = field(default_factory=list)
    acknowledged: int = 0
    id: str = ""

    def may_be(self) -> set[str]:
        """What may be there in the end; empty text: nothing."""
        return set(self.tried[self.acknowledged - 1 :] if self.acknowledged else ["", *self.tried])


class Writers:
    """Programs that write, and what all of them noted."""

    def __init__(self, address: str, key_file: Path) -> None:
        self.lives: dict[str, Life] = {}
        self.errors: Counter[str] = Counter()
        self._words = (address, str(key_file))
        self._running: list[BaseProcess] = []
        self._readers: list[threading.Thread] = []

    def start(self, name: str) -> None:
        heard, said = NURSERY.Pipe(duplex=False)
        program = NURSERY.Process(
            target=server_writers.main, args=(*self._words, name, THREADS, said)
        )
        program.start()
        said.close()
        reader = threading.Thread(target=self._note, args=(heard,))
        reader.start()
        self._running.append(program)
        self._readers.append(reader)

    def kill(self, number: int) -> None:
        """kill -9 of one, whatever it is doing."""
        program = self._running.pop(number)
        program.kill()
        program.join()

    def kill_all(self) -> None:
        while self._running:
            self.kill(0)
        for reader in self._readers:
            reader.join()

    def _note(self, heard: Connection) -> None:
        for line in os.fdopen(os.dup(heard.fileno())):
            what, memory, said = json.loads(line)
            if what == "error":
                self.errors[said.rpartition(": ")[2]] += 1
                continue
            life = self.lives.setdefault(memory, Life())
            if what == "try":
                life.tried.append(said)
            else:
                life.acknowledged, life.id = len(life.tried), said


def cut_one(line: Line, behind: bool) -> None:
    """Cut the connection that asks next, once."""
    left = iter([True])

    def now(sent: bytes) -> bool:
        return next(left, False)

    if behind:
        line.cut_behind = now
    else:
        line.cut_before = now


def befall(chance: random.Random, line: Line, server: Server, writers: Writers, fault: int) -> str:
    kind = chance.choices(("cut before", "cut behind", "program", "server"), (4, 4, 1, 1))[0]
    if kind == "program":
        writers.kill(chance.randrange(PROGRAMS))
        writers.start(f"w{fault}")
    elif kind == "server":
        server.kill()
        server.start()
    else:
        cut_one(line, kind == "cut behind")
    return kind


def test_no_acknowledged_write_is_lost_doubled_or_changed(
    fragile: Server, key_file: Path, private_folders: Path
) -> None:
    chance, befallen = random.Random(23), Counter[str]()
    store, _ = MemoryStore.create(fragile.address("harmed"), key_file=key_file)
    store.lock()
    with ExitStack() as stack:
        line = stack.enter_context(line_to(fragile))
        writers = Writers(line.address("harmed"), key_file)
        stack.callback(writers.kill_all)
        for number in range(PROGRAMS):
            writers.start(f"first{number}")
        while sum(life.acknowledged for life in [*writers.lives.values()]) < PROGRAMS * THREADS:
            time.sleep(0.1)
        began = time.monotonic()
        for fault in range(FAULTS):
            time.sleep(chance.uniform(0, 2 * BETWEEN))
            befallen[befall(chance, line, fragile, writers, fault)] += 1
        took = time.monotonic() - began
        time.sleep(FULL_AGAIN)
    with MemoryStore.open(fragile.address("harmed"), key_file=key_file) as store:
        texts = {one.id: one.text for one in store.every()}
        assert store.verify(full=True)["failures"] == []
    by_memory = {life.id: life for life in writers.lives.values() if life.id}
    allowed = {text: memory for memory, life in writers.lives.items() for text in life.tried}
    lost = [one for one, life in by_memory.items() if texts.get(one, "") not in life.may_be()]
    strange = [one for one, text in texts.items() if text not in allowed]
    held = Counter(allowed.get(text, text) for text in texts.values())
    doubled = [memory for memory, count in held.items() if count > 1]
    acknowledged = sum(life.acknowledged for life in writers.lives.values())
    tried = sum(len(life.tried) for life in writers.lives.values())
    print(
        f"{dict(befallen)} in {took:.0f} s; {tried:,} writes tried, {acknowledged:,} acknowledged, "
        f"{len(texts):,} memories held; errors: {dict(writers.errors.most_common(6))}"
    )
    assert (lost, strange, doubled) == ([], [], [])
    assert acknowledged > FAULTS
    assert sum(befallen.values()) == FAULTS


VANISHING = """
import socket, subprocess, sys, threading
from pathlib import Path
from types import SimpleNamespace
from postgres_line import Line
from memory_store.errors import StorageError
from memory_store.store import MemoryStore

interface = ["ip", "link", "set", "lo"]
subprocess.run([*interface, "up"], check=True)
listening = socket.create_server(("127.0.0.1", 0))
line = Line(SimpleNamespace(folder=sys.argv[1]), listening, "")
threading.Thread(target=line.accept, daemon=True).start()
address = f"postgresql://owner@127.0.0.1:{listening.getsockname()[1]}/vaults?vault=vanishing"
store, _ = MemoryStore.create(address, key_file=Path(sys.argv[2]))
store.add("before")
subprocess.run([*interface, "down"], check=True)
for ask in (store.list, lambda: store.add("lost")):
    try:
        ask()
    except StorageError as error:
        print(error)
subprocess.run([*interface, "up"], check=True)
print(*(one.text for one in store.list()))
"""


def test_a_server_that_vanishes_without_a_word_is_said_to_be_away(
    fragile: Server, key_file: Path, private_folders: Path
) -> None:
    """In a network of its own, whose only interface goes down. Unnoticed it would take minutes."""
    alone = ["unshare", "--net", sys.executable, "-c", VANISHING]
    if (
        not shutil.which("ip")
        or subprocess.run(["unshare", "--net", "true"], check=False).returncode
    ):
        pytest.skip("no network of its own can be made here")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    words = [*alone, str(fragile.folder), str(key_file)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=40, check=False)
    assert done.returncode == 0, done.stderr
    *away, back = done.stdout.splitlines()
    assert ["the database is away" in line for line in away] == [True, True]
    assert back == "before"
