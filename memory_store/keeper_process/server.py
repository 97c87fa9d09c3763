"""A keeper's socket: who may ask, what, for how long, and when the keeper ends.

Boundary: takes connections of the same user's processes alone, reads of each one question of a
limited size within seconds, and answers no more than so many at once. What is no question gets no
answer. Nothing that arrives is executed, unpickled or used as a name of code.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import DecodeError, ValidationError, to_builtins
from msgspec import json as typed_json

from memory_store.cli.failures import exit_code_of, said_plainly
from memory_store.cli.kept import FAILED
from memory_store.cli.options import Serving, Steps
from memory_store.configuration import config_file
from memory_store.errors import MemoryStoreError, StorageError
from memory_store.keeper.address import peer_is_mine
from memory_store.keeper.client import ASSISTANT, COMMAND, EMBED, facts
from memory_store.keeper.frames import (
    ACCEPTED,
    ANSWER,
    ASKED,
    EXIT,
    INPUT,
    MOST_ASKED,
    MOST_INPUT,
    PROTOCOL,
    QUESTION_SECONDS,
    STEP,
    VERSION,
    YOURSELF,
    BrokenError,
    receive,
    send,
)
from memory_store.keeper.launch import Kept
from memory_store.keeper_process.commands import FAULT, Commands, Question
from memory_store.late_vectors import BackgroundEmbedding
from memory_store.sqlite import file_there
from memory_store.store import MemoryStore

MOST_AT_ONCE = 32
MOST_ASSISTANTS = 16
LEAVE_SECONDS = 5.0
FOLLOW_AGAIN_SECONDS = 5.0  # where no known source was there, or the vault could not be written
EMBEDDING_SECONDS = 20.0  # a model loads in less
MOST_SAID = 64_000_000  # characters of one message, which may hold a memory
LOOK_SECONDS = 1.0  # between two looks at the limits, the socket and the vault's file
INPUT_SECONDS = 3600.0  # a person may be typing it
ANSWER_SECONDS = 60.0  # a caller reads all of it before it prints a word


class GoneError(BaseException):
    """Who asked for this has gone. No error of the work that it ends."""


class Server:
    """Answers until a limit, a signal or a lock comes; then the socket is gone."""

    def __init__(self, store: MemoryStore, kept: Kept) -> None:
        self._store = store
        self._kept = kept
        self._begun = self._used = _now()
        self._ending = threading.Event()
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._working = 0
        self._threads: list[threading.Thread] = []
        self._embedding = BackgroundEmbedding(store, lambda _: None, self._begin)
        store.embedded_by(self._embedding)
        self._commands = Commands(store, kept.key_files, self._embedding.begin)
        self._assistants: set[socket.socket] = set()
        self._followed: set[socket.socket] = set()
        self._count = threading.Lock()
        self._embeds_to_the_end = kept.embed
        self._facts = facts(())
        self._code = _code()
        self._vault = file_there(store.path)

    def __enter__(self) -> Server:
        """Take the address. Raises StorageError where another keeper of this vault has it."""
        path = self._kept.socket
        self._held = os.open(f"{path}.held", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._held)
            raise StorageError("another one of this vault has started just now") from None
        with suppress(FileNotFoundError):
            os.unlink(path)  # of one that was killed: its lock is free
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(path)  # umask: for its owner alone
        self._socket.listen(4 * MOST_AT_ONCE)
        self._socket.setblocking(False)
        self._place = file_there(path)
        self._woken, self._waking = socket.socketpair()
        for end in (self._woken, self._waking):
            end.setblocking(False)
        signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: self._ending.set())
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if file_there(self._kept.socket) == self._place:
            os.unlink(self._kept.socket)
        self._socket.close()
        for connection in [*self._assistants, *self._followed]:
            with suppress(OSError):  # gone by itself
                connection.shutdown(socket.SHUT_RDWR)
        self._embedding.stop()
        for thread in self._threads:
            thread.join(EMBEDDING_SECONDS)  # a process that ends inside of a model crashes
        deadline = time.monotonic() + LEAVE_SECONDS
        while (
            self._assistants or self._followed
        ) and time.monotonic() < deadline:  # they write what they did
            time.sleep(0.01)
        self._store.lock()
        signal.set_wakeup_fd(-1)
        for end in (self._woken, self._waking):
            end.close()
        os.close(self._held)

    def serve(self) -> None:
        """Answer until it is time to end."""
        self._begun = self._used = _now()
        self._embed()
        if self._kept.follow:
            self._begin("watch", self._follow, None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._ended():
                if selector.select(LOOK_SECONDS):
                    self._take()

    def _ended(self) -> bool:
        """Whether an end was asked for, a limit is reached, or socket or vault are gone."""
        now = _now()
        if self._embeds_to_the_end and self._embedding.running:
            self._used = now
        return (
            self._ending.is_set()
            or now - self._begun > self._kept.longest
            or (not self._working and now - self._used > self._kept.idle)
            or file_there(self._kept.socket) != self._place
            or file_there(self._store.path) != self._vault
        )

    def _take(self) -> None:
        """Begin with the next connection, if there is room for it."""
        try:
            connection, _ = self._socket.accept()
        except OSError:  # it has gone away, or this is a signal
            return
        if not peer_is_mine(connection) or not self._places.acquire(blocking=False):
            connection.close()
            return
        try:
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except RuntimeError:  # as many threads as this machine allows
            self._places.release()
            connection.close()

    def _answer(self, connection: socket.socket) -> None:
        """Answer one connection; what is no question, or goes away, ends it."""
        try:
            with connection:
                self._answer_question(connection, _question(connection))
        except (OSError, ValidationError, DecodeError):
            pass  # the other end knows best: no answer makes it do the work itself
        finally:
            self._places.release()

    def _answer_question(self, connection: socket.socket, asked: Question) -> None:
        if asked.protocol != PROTOCOL:
            send(connection, YOURSELF, VERSION)
        elif asked.kind == "status":
            send(connection, ANSWER, json.dumps(self._status()).encode())
        elif asked.kind == EMBED:
            self._embedding.begin()
            self._embeds_to_the_end = True
            send(connection, ANSWER, json.dumps(self._status()).encode())
        elif asked.kind == "lock":
            send(connection, ANSWER, json.dumps(self._status()).encode())
            self._end()
            time.sleep(ANSWER_SECONDS)  # the connection closes when the process ends
        elif reason := self._reason_against(asked):
            send(connection, YOURSELF, reason)
        else:
            self._work(connection, asked)

    def _work(self, connection: socket.socket, asked: Question) -> None:
        """Do a command, and send what it wrote."""
        with self._count:
            self._working += 1
        try:
            send(connection, ACCEPTED)
            given = b""
            if asked.input:
                kind, given = receive(connection, MOST_INPUT, seconds=INPUT_SECONDS)
                if kind != INPUT:
                    raise BrokenError("no input")
            connection.settimeout(ANSWER_SECONDS)
            frames, later = self._commands.run(asked, given)
            for frame in frames:
                send(connection, *frame)
            if isinstance(later, Steps):
                self._go_on(connection, later)
        finally:
            with self._count:
                self._working -= 1
                self._used = _now()
        self._embed()
        if later is not None and not isinstance(later, Steps):
            self._serve_assistant(connection, later)

    def _go_on(self, connection: socket.socket, steps: Steps) -> None:
        """Send the steps of work beside other commands, until it is done or the caller goes."""

        def step(name: str, *said: Any) -> None:
            try:
                send(connection, STEP, json.dumps(to_builtins((name, said), enc_hook=str)).encode())
            except OSError:
                raise GoneError from None

        self._followed.add(connection)
        try:
            steps.run(step, partial(_is_gone, connection))
            send(connection, EXIT, b"0")
        except GoneError:
            pass
        except Exception as error:  # noqa: BLE001 - its words may quote a memory
            message = said_plainly(error)
            with suppress(GoneError):
                step(FAILED, message or FAULT, exit_code_of(error))
        finally:
            self._followed.discard(connection)
            self._embedding.begin()

    def _follow(self) -> None:
        """Keep the vault as its known sources are, until this process ends. It counts as use."""
        with self._count:
            self._working += 1
        while not self._ending.is_set():
            with suppress(MemoryStoreError):  # no source is there, as after a restart: look again
                for _ in self._store.watch(embed=False, stopped=self._ending.is_set):
                    self._embedding.begin()
            self._ending.wait(FOLLOW_AGAIN_SECONDS)

    def _serve_assistant(self, connection: socket.socket, serving: Serving) -> None:
        """Serve until the caller goes away, or this process ends. What it says counts as use."""
        connection.settimeout(None)
        self._assistants.add(connection)
        try:
            with (
                Said(connection.makefile("rb"), self._touch) as said,
                connection.makefile("w", encoding="utf-8") as answered,
            ):
                serving(said, answered)
        finally:
            self._assistants.discard(connection)

    def _embed(self) -> None:
        """Look whether memories have no vectors yet, not too often, and give them theirs."""
        self._embedding.look()

    def _begin(self, name: str, call: Callable[[], object], _: object) -> None:
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]

    def _touch(self) -> None:
        self._used = _now()

    def _reason_against(self, asked: Question) -> bytes | None:
        """Why a process has to do this itself, if it has."""
        if asked.package != self._facts["package"] or self._older():
            return VERSION
        if asked.kind not in (COMMAND, ASSISTANT) or asked.terminal is None or not asked.words:
            return b"kind"
        if asked.kind == ASSISTANT:  # it is started with few variables
            if len(self._assistants) >= MOST_ASSISTANTS:
                return b"room"
            if not asked.variables.items() <= self._facts["variables"].items():
                return b"variables"
        elif asked.variables != self._facts["variables"]:
            return b"variables"
        if asked.key_file and not self._commands.opened_by(asked.key_file):
            return b"key"
        return None

    def _older(self) -> bool:
        """Whether the code that runs here, or ``config.yaml``, was changed on disk since."""
        return _code(self._code) != self._code

    def _status(self) -> dict[str, Any]:
        now = _now()
        left = self._kept.longest - (now - self._begun)
        return {
            "vault": os.fsencode(self._store.path).decode("latin-1"),
            "process": os.getpid(),
            "open": now - self._begun,
            "idle": 0.0 if self._working else now - self._used,
            "idle_limit": self._kept.idle,
            "left": max(0.0, left),
            "older": self._older(),
            "follows": self._kept.follow,
        }

    def _end(self) -> None:
        self._ending.set()
        with suppress(BlockingIOError):
            self._waking.send(b"\0")


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other end, which says nothing more, has closed."""
    with selectors.DefaultSelector() as ready:
        ready.register(connection, selectors.EVENT_READ)
        return bool(ready.select(0))


class Said(io.TextIOWrapper):
    """What an assistant says, line by line; ``told`` learns of each. A very long line is cut."""

    def __init__(self, binary: Any, told: Callable[[], None]) -> None:
        super().__init__(binary, "utf-8", "replace")
        self._told = told

    def readline(self, size: int = MOST_SAID, /) -> str:  # type: ignore[override]
        line = super().readline(size)
        self._told()
        return line


def _question(connection: socket.socket) -> Question:
    kind, data = receive(connection, MOST_ASKED, seconds=QUESTION_SECONDS)
    if kind != ASKED:
        raise BrokenError("no question")
    return typed_json.decode(data, type=Question)


def _code(names: dict[str, int] | None = None) -> dict[str, int]:
    """When loaded modules of this package, and ``config.yaml``, were written; or those files."""
    if names is None:
        loaded = [
            getattr(one, "__file__", None)
            for name, one in list(sys.modules.items())
            if name.partition(".")[0] == "memory_store"
        ]
        names = dict.fromkeys([*filter(None, loaded), str(config_file())], 0)
    return {name: _written(name) for name in names}


def _written(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return -1


def _now() -> float:
    """Seconds that go on while the machine sleeps, where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_REALTIME))
