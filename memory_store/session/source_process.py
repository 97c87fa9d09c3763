"""A second process that reads source code for a large import: ``SourceProcess`` starts and asks it.

Boundary: the process gets opened texts through a pipe that no other process can open, and gives
back what needs no key; it has none, nor the variables of the environment that could hold a secret.
It writes no file and leaves no core dump. It ends when the import does, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

from msgspec import MsgspecError, Struct, msgpack

from memory_store.records import Memory
from memory_store.session.source_parts import PartsOf, SourceParts, source_parts
from memory_store.text.name_counts import NameCounter

TOGETHER = 4  # files a message: what the last ones of a batch are waited for
AHEAD = 3  # messages that are sent before they are answered, so that it need not wait for this one
KEPT = ("PATH", "HOME", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME")
LENGTH = 8  # bytes

_memories = msgpack.Decoder(list[Memory])
_parts = msgpack.Decoder(list[SourceParts])
_UNSENT = (ValueError, TypeError, OverflowError)  # half a character


class _Asked(Struct, frozen=True):
    """Some files of a batch, which are asked for together; ``batch`` are those not yet begun."""

    memories: Sequence[Memory]
    parts: Future[list[SourceParts]]
    batch: list[_Asked]


class SourceProcess:
    """One process, begun when it is first asked. ``here`` gives parts in this one."""

    def __init__(self, here: PartsOf) -> None:
        self._here = here
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = Thread(target=self._ask, name="source-process", daemon=True)
        self._waiting = SimpleQueue[_Asked | None]()
        self._asked: dict[str, tuple[_Asked, int]] = {}
        self._made: dict[str, SourceParts] = {}

    def begin(self, memories: Sequence[Memory]) -> None:
        """Have files of source code read in their order, without waiting."""
        if self._process is None:
            self._process = _begun()
            self._asking.start()
        batch: list[_Asked] = []
        new = [one for one in memories if one.id not in self._asked]
        for start in range(0, len(new), TOGETHER):
            asked = _Asked(new[start : start + TOGETHER], Future(), batch)
            batch.append(asked)
            self._asked |= {one.id: (asked, number) for number, one in enumerate(asked.memories)}
            self._waiting.put(asked)

    def parts(self, memory: Memory) -> SourceParts:
        """The parts of a file. While the process reads it, those of the last ones that were begun
        with it are made here, so that neither waits for the other."""
        asked, number = self._asked.pop(memory.id, (None, 0))
        if asked is None:
            return self._here(memory)
        while asked.batch and not asked.parts.done():
            last = asked.batch.pop()
            if last.parts.cancel():
                self._made |= {one.id: self._here(one) for one in last.memories}
        if memory.id in self._made:
            return self._made.pop(memory.id)
        try:
            return asked.parts.result()[number]
        except (OSError, EOFError, MsgspecError, *_UNSENT):
            return self._here(memory)

    def close(self) -> None:
        """End the process, and with it all that it read."""
        for asked, _ in self._asked.values():
            asked.parts.cancel()
        self._waiting.put(None)
        if self._process is not None:
            self._process.kill()
            self._asking.join()
        self._asked.clear()
        self._made.clear()

    def _ask(self) -> None:
        """Ask the process until there is nothing more to come, or it fails: what it has not begun
        then is made here."""
        sent, process = deque[_Asked](), self._process
        assert process is not None
        try:
            with contextlib.suppress(OSError, EOFError, MsgspecError):
                while self._sends(process, sent):
                    found = _parts.decode(_receive(process.stdout))
                    sent.popleft().parts.set_result(found)
        finally:
            for asked in sent:
                asked.parts.set_exception(EOFError())
            _end(process)

    def _sends(self, process: subprocess.Popen[bytes], sent: deque[_Asked]) -> bool:
        """Send what waits, :data:`AHEAD` of the answers. False once nothing more will come."""
        while len(sent) < AHEAD:
            try:
                asked = self._waiting.get(block=not sent)
            except Empty:
                break
            if asked is None:
                return False
            if not asked.parts.set_running_or_notify_cancel():
                continue
            try:
                said = msgpack.encode(asked.memories)
            except _UNSENT as error:
                asked.parts.set_exception(error)
                continue
            sent.append(asked)
            _send(process.stdin, said)
        return True


def _begun() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-E", "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # an error may quote a text
        env={name: os.environ[name] for name in KEPT if name in os.environ},
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # what was not written need not be any more
            pipe.close()  # type: ignore[union-attr]
    process.wait()


def _send(stream: IO[bytes] | None, data: bytes) -> None:
    assert stream is not None
    stream.write(len(data).to_bytes(LENGTH, "big"))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes] | None) -> bytes:
    """The next message. Raises ``EOFError`` when the other end is gone."""
    assert stream is not None
    head = stream.read(LENGTH)
    data = stream.read(int.from_bytes(head, "big"))
    if len(head) < LENGTH or len(data) < int.from_bytes(head, "big"):
        raise EOFError
    return data


def _listen(stream: IO[bytes], heard: SimpleQueue[bytes]) -> None:
    """Take messages as they come, so that the other end never waits; an empty one ends them."""
    with contextlib.suppress(EOFError):
        while True:
            heard.put(_receive(stream))
    heard.put(b"")


def main() -> None:
    """Read files until the importing process closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the import's: it ends this
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    heard, counter = SimpleQueue[bytes](), NameCounter()
    Thread(target=_listen, args=(sys.stdin.buffer, heard), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while said := heard.get():
            some = _memories.decode(said)
            _send(outgoing, msgpack.encode([source_parts(one, counter) for one in some]))


if __name__ == "__main__":
    main()
