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
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

from msgspec import MsgspecError, msgpack

from memory_store.records import Memory
from memory_store.session.source_parts import PartsOf, SourceParts, source_parts
from memory_store.text.name_counts import NameCounter

TOGETHER = 8  # files a message: for each a thread of this process must be let in
KEPT = ("PATH", "HOME", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME")
OWN = 1 / 3  # of the files are read here meanwhile: hashing the words of all is this one's, too
LENGTH = 8  # bytes

_memories = msgpack.Decoder(list[Memory])
_parts = msgpack.Decoder(list[SourceParts])


class SourceProcess:
    """One process, begun when it is first asked. ``here`` gives parts in this one."""

    def __init__(self, here: PartsOf) -> None:
        self._here = here
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = ThreadPoolExecutor(1, "source-process")
        self._asked: dict[str, tuple[Future[list[SourceParts]], int]] = {}
        self._ended = False

    def begin(self, memories: Sequence[Memory]) -> None:
        """Have files of source code read from behind the first ones on, without waiting."""
        self._asked.clear()
        starts = [*range(0, 0 if self._ended else len(memories), TOGETHER)]
        first = int(len(starts) * OWN)
        for start in (*starts[first:], *starts[:first]):
            some = memories[start : start + TOGETHER]
            asked = self._asking.submit(self._ask, some)
            self._asked |= {one.id: (asked, number) for number, one in enumerate(some)}

    def parts(self, memory: Memory) -> SourceParts:
        """The parts of a file. Those that the process has not yet begun are made here, so that
        neither waits for the other: they are asked for in the order of the files."""
        asked, number = self._asked.pop(memory.id, (None, 0))
        if asked is not None and not asked.cancel():
            try:
                return asked.result()[number]
            except (OSError, EOFError, MsgspecError):
                self._ended = True
            except (ValueError, TypeError, OverflowError):  # what cannot be sent: half a character
                return self._here(memory)
        return self._here(memory)

    def close(self) -> None:
        """End the process, and with it all that it read."""
        if self._process is not None:
            self._process.kill()
        self._asking.shutdown(cancel_futures=True)
        self._asked.clear()
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # it may have begun meanwhile
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # what was not written need not be any more
                    pipe.close()  # type: ignore[union-attr]
            process.wait()

    def _ask(self, some: Sequence[Memory]) -> list[SourceParts]:
        said = msgpack.encode(some)
        process = self._process = self._process or _begun()
        assert process.stdin is not None
        assert process.stdout is not None
        _send(process.stdin, said)
        return _parts.decode(_receive(process.stdout))


def _begun() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-E", "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # an error may quote a text
        env={name: os.environ[name] for name in KEPT if name in os.environ},
    )


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(len(data).to_bytes(LENGTH, "big"))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """The next message. Raises ``EOFError`` when the other end is gone."""
    head = stream.read(LENGTH)
    data = stream.read(int.from_bytes(head, "big"))
    if len(head) < LENGTH or len(data) < int.from_bytes(head, "big"):
        raise EOFError
    return data


def main() -> None:
    """Read files until the importing process closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the import's: it ends this
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    counter = NameCounter()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            some = _memories.decode(_receive(incoming))
            _send(outgoing, msgpack.encode([source_parts(one, counter) for one in some]))


if __name__ == "__main__":
    main()
