"""The processes that read documents, as the importer sees them: one for each kind, while it runs.

Boundary: a process gets no variable of the environment that could hold a secret, and its errors go
nowhere, for they may quote a document. One that answers too late is killed.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from contextlib import suppress

import msgspec

from memory_store.importing.converters.child import Answer, receive, send
from memory_store.importing.converters.document import Document, LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import PACKAGE

SECONDS = 60.0  # for one document
STARTING_SECONDS = 30.0  # more for the first one: the parser is loaded
MOST_BYTES = 256 * 1024 * 1024  # of one answer
KEPT = ("PATH", "HOME", "SYSTEMROOT", "APPDATA", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class _Process:
    """One process; begun again when it has ended."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, data: bytes, seconds: float) -> Answer:
        with self._turn:
            running = self._process is not None and self._process.poll() is None
            process = self._process = self._process if running else self._begun()
            assert process is not None
            return self._asked(process, data, seconds + (0 if running else STARTING_SECONDS))

    def _asked(self, process: subprocess.Popen[bytes], data: bytes, seconds: float) -> Answer:
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        answered = b""
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(OSError):  # it has ended: there is no answer either
                send(process.stdin, data)
                answered = receive(process.stdout, MOST_BYTES)
        finally:
            timer.cancel()
            if not answered:
                self._end()
        if late.is_set() and not answered:
            raise UnreadableError(f"takes more than {seconds:.0f} s to read")
        if not answered:
            raise UnreadableError("broken: it ended the process that read it")
        return msgspec.msgpack.decode(answered, type=Answer)

    def _begun(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-E", "-P", "-m", f"{PACKAGE}.child", self._kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
        )

    def close(self) -> None:
        with self._turn:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()


_processes: dict[str, _Process] = {}
_guard = threading.Lock()


def convert(kind: str, data: bytes, seconds: float = SECONDS) -> list[Document]:
    """The documents in a file of that kind.

    Raises LeftOutError where there is nothing to import, UnreadableError where it cannot be read:
    broken, locked by a password, too large or too slow.
    """
    with _guard:
        process = _processes.setdefault(kind, _Process(kind))
    answer = process.ask(data, min(seconds, SECONDS))
    if answer.refused:
        raise (LeftOutError if answer.left_out else UnreadableError)(answer.refused)
    return answer.documents


@atexit.register
def close() -> None:
    """End the processes: an import is over, and what they read is to leave the memory."""
    with _guard:
        ending = [*_processes.values()]
    for process in ending:
        process.close()
