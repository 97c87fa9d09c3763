"""Processes that this package starts for itself, and the messages between them: lengths and bytes.

Boundary: both ends are this package, in one user's processes that started each other; no other
process can reach an anonymous pipe. Streams are unbuffered, because a buffer would keep a copy of a
key. A process that reads for another gets no variable of the environment that could hold a secret,
and its errors go nowhere, for they may quote a text.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Protocol

LENGTH_BYTES = 8  # before each message, big-endian
KEPT = (
    *("PATH", "HOME", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME"),
    *("LD_LIBRARY_PATH", "VIRTUAL_ENV"),
)


class Stream(Protocol):
    """One end of a pipe, unbuffered."""

    def write(self, data: Any, /) -> int | None: ...

    def readinto(self, buffer: Any, /) -> int | None: ...

    def close(self) -> None: ...


class Child:
    """A process that this one began, with what it is ``asked`` through and what it ``answered``."""

    def __init__(self, *command: str, variables: Mapping[str, str], **options: Any) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=variables,
            **options,
        )
        self.asked: Stream = self.process.stdin  # type: ignore[assignment]
        self.answered: Stream = self.process.stdout  # type: ignore[assignment]

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.asked, self.answered):
            with contextlib.suppress(OSError):  # what was not written need not be any more
                pipe.close()


def reader(module: str, *arguments: str) -> Child:
    """A process that reads something for this one: without a secret, and errors are not shown."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    command = (sys.executable, "-E", "-P", "-m", module, *arguments)
    return Child(*command, variables=kept, stderr=subprocess.DEVNULL)


def variables_without(*secrets: str) -> dict[str, str]:
    """The variables of this process, but those of a secret."""
    return {name: value for name, value in os.environ.items() if name not in secrets}


def pipes() -> tuple[Stream, Stream]:
    """In a process that was begun: where messages come from and answers go to.

    What anything prints goes to standard error from then on.
    """
    asked: Any = os.fdopen(os.dup(0), "rb", buffering=0)
    answered: Any = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return asked, answered


def send_bytes(stream: Stream, data: bytes | bytearray) -> None:
    """Raises ``OSError`` where the other end is closed."""
    for part in (len(data).to_bytes(LENGTH_BYTES, "big"), data):
        left = memoryview(part)
        while left:
            left = left[stream.write(left) or 0 :]


def receive_bytes(stream: Stream, most: int | None = None) -> bytearray:
    """The next message, in a buffer that can be wiped.

    Raises ``EOFError`` when the other end is gone, or would send more than the ``most``.
    """
    length = bytearray(LENGTH_BYTES)
    _read_into(stream, length)
    size = int.from_bytes(length, "big")
    if most is not None and size > most:
        raise EOFError
    data = bytearray(size)
    _read_into(stream, data)
    return data


def _read_into(stream: Stream, buffer: bytearray) -> None:
    left = memoryview(buffer)
    while left:
        count = stream.readinto(left)
        if not count:
            raise EOFError
        left = left[count:]
