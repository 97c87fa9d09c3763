"""The processes that read documents, as the importer sees them: one for each kind, while it runs.

Boundary: a process has no secret (see ``processes``). One that answers too late is killed.
"""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress

import msgspec

from memory_store.importing.converters.child import Answer
from memory_store.importing.converters.document import Document, LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import PACKAGE
from memory_store.processes import Child, reader, receive_bytes, send_bytes

SECONDS = 60.0  # for one document
STARTING_SECONDS = 30.0  # more for the first one: the parser is loaded
MOST_BYTES = 256 * 1024 * 1024  # of one answer


class _Process:
    """One process; begun again when it has ended."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._turn = threading.Lock()
        self._child: Child | None = None

    def ask(self, data: bytes, seconds: float) -> Answer:
        with self._turn:
            if self._child is None or self._child.process.poll() is not None:
                self._child = reader(f"{PACKAGE}.child", self._kind)
                seconds += STARTING_SECONDS
            return self._asked(self._child, data, seconds)

    def _asked(self, child: Child, data: bytes, seconds: float) -> Answer:
        late = threading.Event()

        def end() -> None:
            late.set()
            child.process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        answered = bytearray()
        try:
            with suppress(OSError, EOFError):  # it has ended: there is no answer either
                send_bytes(child.asked, data)
                answered = receive_bytes(child.answered, MOST_BYTES)
        finally:
            timer.cancel()
            if not answered:
                self._end()
        if late.is_set() and not answered:
            raise UnreadableError(f"takes more than {seconds:.0f} s to read")
        if not answered:
            raise UnreadableError("broken: it ended the process that read it")
        return msgspec.msgpack.decode(answered, type=Answer)

    def close(self) -> None:
        with self._turn:
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


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
