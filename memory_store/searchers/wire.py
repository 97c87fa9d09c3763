"""What a server and its search processes say to each other through the pipes of ``processes``.

Boundary: the vault's root key passes once, into a buffer that is wiped. Questions, and the text of
what was found, pass as pickles: both ends are this package.
"""

from __future__ import annotations

import pickle
from typing import Any

from msgspec import Struct

from memory_store.crypto.keys import SecretKey
from memory_store.errors import MemoryStoreError
from memory_store.processes import Stream, receive_bytes, send_bytes
from memory_store.records import SearchRequest, SearchResponse
from memory_store.scopes import Limits


class Question(Struct, frozen=True):
    """A search: in which views, by which of the store's methods, and what is asked."""

    views: tuple[Limits, ...]
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


def receive(stream: Stream) -> Any:
    """The next message. Raises ``EOFError`` when the other end is gone."""
    return pickle.loads(receive_bytes(stream))


def receive_root(stream: Stream) -> SecretKey:
    """The vault's root key, which follows on what says how the vault is opened."""
    received = receive_bytes(stream)
    root = SecretKey(received)
    received[:] = bytes(len(received))
    return root
