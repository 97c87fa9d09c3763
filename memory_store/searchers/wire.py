"""What goes through the pipes between a server and its search processes: lengths and bytes.

Boundary: both ends are this package, in one user's processes that started each other; no other
process can reach an anonymous pipe. The vault's root key passes once, into a buffer that can be
wiped. The streams are unbuffered, because a buffer would keep a copy of it. Questions, and the text
of what was found, pass as pickles.
"""

from __future__ import annotations

import pickle
from typing import Any, Protocol

from msgspec import Struct

from memory_store.errors import MemoryStoreError
from memory_store.records import SearchRequest, SearchResponse
from memory_store.scopes import Scope

LENGTH_BYTES = 8

View = tuple[Scope, Scope]
"""What a store was limited to: the collections in it, and those whose memories may be opened."""


class Stream(Protocol):
    """One end of a pipe, unbuffered."""

    def write(self, data: Any, /) -> int | None: ...

    def readinto(self, buffer: Any, /) -> int | None: ...


class Question(Struct, frozen=True):
    """A search: in which views, by which of the store's methods, and what is asked."""

    views: tuple[View, ...]
    method: str
    request: SearchRequest


class Outcome(Struct, frozen=True):
    """What came of a question. Neither: something unforeseen, which the asker may try himself."""

    found: SearchResponse | None = None
    refused: MemoryStoreError | None = None


READY = Outcome()


def send(stream: Stream, message: object) -> None:
    """Raises ``OSError`` where the other end is closed."""
    send_bytes(stream, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def send_bytes(stream: Stream, data: bytes | bytearray) -> None:
    """Raises ``OSError`` where the other end is closed."""
    _write(stream, len(data).to_bytes(LENGTH_BYTES, "big"))
    _write(stream, data)


def receive(stream: Stream) -> Any:
    """The next message. Raises ``EOFError`` when the other end is gone."""
    return pickle.loads(receive_bytes(stream))


def receive_bytes(stream: Stream) -> bytearray:
    """Bytes, in a buffer that can be wiped. Raises ``EOFError`` when the other end is gone."""
    length = bytearray(LENGTH_BYTES)
    _read_into(stream, length)
    data = bytearray(int.from_bytes(length, "big"))
    _read_into(stream, data)
    return data


def _write(stream: Stream, data: bytes | bytearray) -> None:
    left = memoryview(data)
    while left:
        left = left[stream.write(left) or 0 :]


def _read_into(stream: Stream, buffer: bytearray) -> None:
    left = memoryview(buffer)
    while left:
        count = stream.readinto(left)
        if not count:
            raise EOFError
        left = left[count:]
