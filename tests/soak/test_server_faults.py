"""Whatever dies between a vault on a server and those who write to it: what was acknowledged is
there, once, and as it was written; and what is read meanwhile is never older than that.

``SOAK_FAULTS`` faults (300) befall 16 writers and 4 readers: programs are killed (SIGKILL), the
server is killed, or started again, connections are cut at a moment of their own, half of them
behind a question that the server got, clocks jump by days, and a synchronous
standby is promoted in the place of a primary that was killed. Then the history that they noted is
checked, as Jepsen's checkers would: each memory is a register with one writer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from own_process import ended

sys.path.insert(0, str(Path(__file__).parent))  # server_writers

import server_writers
from postgres_line import Line, line_to
from postgres_server import Server, running, server_or_skip, why_not

from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

FAULTS = int(os.environ.get("SOAK_FAULTS", "300"))
PROGRAMS, THREADS = 4, 4
BETWEEN = 0.6  # seconds from one fault to the next, on average
FULL_AGAIN = 5.0  # seconds that the writers have after the last one
KINDS = {"cut before": 8, "cut behind": 8, "program": 3, "server": 3, "restart": 1, "clock": 2}
PROMOTIONS = 30  # one in so many faults, besides
DAYS = 40  # that a clock jumps at most: longer than the trash keeps anything
DISK = 120 << 20  # bytes of a small one
NURSERY = get_context("forkserver")  # whose processes have imported everything
NURSERY.set_forkserver_preload(["preloaded", "server_writers"])


class Clock:
    """By how much the clocks of what is started from now on are wrong, at any moment."""

    def __init__(self, folder: Path) -> None:
        self._file, self.library = folder / "shift", folder / "shifted.so"
        self.shift(0)
        source = Path(__file__).parent / "shifted_clock.c"
        compiled = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self.library), str(source)]
        subprocess.run(compiled, check=True)
        self.variables = {"LD_PRELOAD": str(self.library), "CLOCK_SHIFT": str(self._file)}

    def shift(self, seconds: int) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))


@pytest.fixture(scope="module")
def clock() -> Iterator[Clock | None]:
    """Of programs and servers; none where nothing can be compiled."""
    if not shutil.which("cc") or not sys.platform.startswith("linux"):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        Path(folder).chmod(0o755)  # the server has a user of its own
        clock = Clock(Path(folder))
        for name, value in clock.variables.items():
            patched.setenv(name, value)
        yield clock


@pytest.fixture
def fragile(clock: Clock | None) -> Iterator[Server]:
    yield from server_or_skip()


@dataclass
class Life:
    """What was tried with one memory, in order, and when; and when that was acknowledged."""

    tried: list[str] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    id: str = ""

    def may_be(self, at: float, until: float) -> set[int]:
        """Which of the texts may be read between two moments; -1: none yet."""
        known = sum(moment < at for moment in self.acknowledged) - 1
        return {n for n in range(known, len(self.tried)) if n < 0 or self.began[n] < until}

    def places(self, text: str) -> set[int]:
        """Which of the texts it is."""
        absent = {-1} if not text else set()
        return absent | {n for n, tried in enumerate(self.tried) if tried == text}


@dataclass(frozen=True)
class Read:
    memory: str
    text: str
    began: float
    ended: float


class Writers:
    """Programs that write and read, and what all of them noted."""

    def __init__(self, address: str, key_file: Path) -> None:
        self.lives: dict[str, Life] = {}
        self.reads: list[Read] = []
        self.errors: Counter[str] = Counter()
        self.crashes: list[str] = []
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

    def wait_for_some(self) -> None:
        """Until a few writes were acknowledged since now."""
        wanted = self.acknowledged() + PROGRAMS * THREADS
        while self.acknowledged() < wanted:
            assert not self.crashes, self.crashes[0]
            time.sleep(0.1)

    def acknowledged(self) -> int:
        return sum(len(life.acknowledged) for life in [*self.lives.values()])

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
            what, memory, said, began, ended = json.loads(line)
            if what == "error":
                self.errors[said.rpartition(": ")[2]] += 1
                continue
            if what == "crash":
                self.crashes.append(said)
                continue
            if what == "read":
                self.reads.append(Read(memory, said, began, ended))
                continue
            life = self.lives.setdefault(memory, Life())
            if what == "try":
                life.tried.append(said)
                life.began.append(began)
            else:
                life.acknowledged.append(ended)
                life.id = said


def misread(writers: Writers) -> list[Read]:
    """Reads of what was never written, of what was older than what was acknowledged or read before,
    or came later."""
    by_id = {life.id: life for life in writers.lives.values() if life.id}
    by_text = {text: one for one in writers.lives.values() for text in one.tried if text}
    seen: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    wrong = []
    for read in sorted(writers.reads, key=lambda read: read.ended):
        life = by_id.get(read.memory) or by_text.get(read.text)
        if life is None and not read.text:
            continue  # who made it did not live to say so
        possible = life.may_be(read.began, read.ended) & life.places(read.text) if life else set()
        before = seen[read.memory]
        known = bisect_left(before, (read.began, -2))
        least = max((place for _, place in before[:known]), default=-1)
        possible = {place for place in possible if place >= least}
        if not possible:
            wrong.append(read)
        else:
            before.append((read.ended, min(possible)))
    return wrong


def check(writers: Writers, address: str, key_file: Path) -> str:
    """Hold what is there in the end, and what was read, against the history. Returns its counts."""
    assert not writers.crashes, writers.crashes[0]
    with MemoryStore.open(address, key_file=key_file) as store:
        texts = {one.id: one.text for one in store.every()}
        assert store.verify(full=True)["failures"] == []
        assert store.older() is None
    ended = time.monotonic()
    by_memory = {life.id: life for life in writers.lives.values() if life.id}
    allowed = {text: memory for memory, life in writers.lives.items() for text in life.tried}
    lost = [
        one
        for one, life in by_memory.items()
        if not life.may_be(ended, ended) & life.places(texts.get(one, ""))
    ]
    strange = [one for one, text in texts.items() if text not in allowed]
    held = Counter(allowed.get(text, text) for text in texts.values())
    doubled = [memory for memory, count in held.items() if count > 1]
    assert (lost, strange, doubled, misread(writers)) == ([], [], [], [])
    tried = sum(len(life.tried) for life in writers.lives.values())
    return (
        f"{tried:,} writes tried, {writers.acknowledged():,} acknowledged, {len(texts):,} memories "
        f"held, {len(writers.reads):,} reads; errors: {dict(writers.errors.most_common(9))}"
    )


def cut_one(line: Line, behind: bool) -> None:
    """Cut the connection that asks next, once."""
    left = iter([True])

    def now(sent: bytes) -> bool:
        return next(left, False)

    if behind:
        line.cut_behind = now
    else:
        line.cut_before = now


class Place:
    """The server that all reach by one line, and a standby that each commit waits for."""

    def __init__(self, server: Server, line: Line, stack: ExitStack) -> None:
        self.server, self._line, self._stack = server, line, stack
        server.sql("alter system set synchronous_standby_names = '*'")
        self._standby = self._follow()

    def promote(self) -> None:
        """Kill the primary, and have the standby in its place, with one of its own."""
        self.server.kill()
        self._standby.sql("select pg_promote()")
        self.server = self._line.server = self._standby
        self._standby = self._follow()

    def _follow(self) -> Server:
        standby = self._stack.enter_context(self.server.standby())
        self.server.sql("select pg_reload_conf()")
        return standby


def befall(
    chance: random.Random,
    line: Line,
    place: Place,
    writers: Writers,
    clock: Clock | None,
    fault: int,
) -> str:
    kind = chance.choices([*KINDS], [*KINDS.values()])[0]
    if fault % PROMOTIONS == PROMOTIONS - 1:
        kind = "promotion"
    if kind == "promotion":
        place.promote()
    elif kind == "program":
        writers.kill(chance.randrange(PROGRAMS))
        writers.start(f"w{fault}")
    elif kind == "server":
        place.server.kill()
        place.server.start()
    elif kind == "restart":
        place.server.stop()
        place.server.start()
    elif kind == "clock" and clock is not None:
        clock.shift(chance.randrange(-DAYS * 86_400, DAYS * 86_400))
    else:
        kind = "cut before" if kind == "clock" else kind
        cut_one(line, kind == "cut behind")
    return kind


def test_no_acknowledged_write_is_lost_doubled_or_changed(
    fragile: Server, clock: Clock | None, key_file: Path, private_folders: Path
) -> None:
    chance, befallen = random.Random(23), Counter[str]()
    store, _ = MemoryStore.create(fragile.address("harmed"), key_file=key_file)
    store.lock()
    with ExitStack() as stack:
        line = stack.enter_context(line_to(fragile))
        place = Place(fragile, line, stack)
        writers = Writers(line.address("harmed"), key_file)
        with ExitStack() as writing:
            writing.callback(writers.kill_all)
            for number in range(PROGRAMS):
                writers.start(f"first{number}")
            writers.wait_for_some()
            began = time.monotonic()
            for fault in range(FAULTS):
                time.sleep(chance.uniform(0, 2 * BETWEEN))
                befallen[befall(chance, line, place, writers, clock, fault)] += 1
            took = time.monotonic() - began
            writers.wait_for_some()
            time.sleep(FULL_AGAIN)
        found = check(writers, place.server.address("harmed"), key_file)
    print(f"{dict(befallen)} in {took:.0f} s; {found}")
    assert writers.acknowledged() > FAULTS
    assert sum(befallen.values()) == FAULTS


@contextmanager
def small_disk() -> Iterator[Path]:
    """A folder on a disk of its own."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0755", "tmpfs", str(folder)]
    try:
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("no file system of some megabytes can be mounted here")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()


def test_a_full_disk_of_the_server_loses_nothing(
    key_file: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filled to the last byte while 16 write, and again; where its log finds no room it crashes."""
    if reason := why_not():
        pytest.skip(reason)
    with small_disk() as disk, ExitStack() as stack:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        server = stack.enter_context(running("-c", "listen_addresses=", "-c", "max_wal_size=32MB"))
        monkeypatch.undo()
        monkeypatch.setenv("MEMORY_STORE_STATE", str(private_folders / "state"))
        MemoryStore.create(server.address("full"), key_file=key_file)[0].lock()
        writers = Writers(server.address("full"), key_file)
        with ExitStack() as writing:
            writing.callback(writers.kill_all)
            for number in range(PROGRAMS):
                writers.start(f"first{number}")
            for _ in range(5):
                writers.wait_for_some()
                errors = writers.errors.total()
                fill(disk / "ballast")
                until = time.monotonic() + 60
                while writers.errors.total() == errors and time.monotonic() < until:
                    time.sleep(0.2)
                (disk / "ballast").unlink()
                if not server.answers():
                    server.start()
            writers.wait_for_some()
        found = check(writers, server.address("full"), key_file)
        said = {text for text in writers.errors if "disk of the server is full" in text}
    print(found)
    assert said


def fill(file: Path) -> None:
    """Take all the room that there is."""
    with suppress(OSError), file.open("wb", buffering=0) as ballast:
        while ballast.write(b"\0" * 65_536):
            pass


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
    done = ended(*words, env=env, timeout=40)
    assert done.returncode == 0, done.stderr
    *away, back = done.stdout.splitlines()
    assert ["the database is away" in line for line in away] == [True, True]
    assert back == "before"
