"""Listening to the ciphers: whatever is decrypted was asked of one of them, with its place.

The ciphers stay what they are; each call is noted before it is handed on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from memory_store.crypto import sealing

HEADS, BODIES = "memories", "memory_bodies"  # tables, as places name them
TRAIL = "vault_audit"  # which a server goes on with by itself


@dataclass(frozen=True)
class Decrypted:
    """Where something that was decrypted stands."""

    collection: str
    table: str
    column: str
    row: str


@dataclass
class Heard:
    """What was decrypted since it was last cleared, in order."""

    all: list[Decrypted] = field(default_factory=list)

    @property
    def places(self) -> list[Decrypted]:
        """All but the trail of the audit."""
        return [place for place in self.all if place.table != TRAIL]

    @property
    def memories(self) -> list[Decrypted]:
        """Those of heads and bodies of memories."""
        return [place for place in self.all if place.table in (HEADS, BODIES)]

    @property
    def heads(self) -> set[str]:
        """The ids of the memories whose heads were opened."""
        return {place.row for place in self.all if place.table == HEADS}

    def clear(self) -> None:
        self.all.clear()


def listen(environment: pytest.MonkeyPatch) -> Heard:
    """Put an ear to every suite, for the vaults that are opened from now on."""
    heard = Heard()
    for number, made in list(sealing.SUITES.items()):
        environment.setitem(sealing.SUITES, number, _listening(made, heard))
    return heard


def _listening(made: Callable[[bytearray], Any], heard: Heard) -> Callable[[bytearray], Any]:
    """A suite whose ciphers record what they decrypt."""

    class Listening:
        def __init__(self, key: bytearray) -> None:
            self._cipher = made(key)
            self.encrypt = self._cipher.encrypt

        def decrypt_into(self, nonce: bytes, data: Any, place: bytes, into: bytearray) -> int:
            heard.all.append(_decoded(place[sealing.HEADER.size :]))
            return int(self._cipher.decrypt_into(nonce, data, place, into))

    return Listening


def _decoded(place: bytes) -> Decrypted:
    """A place taken apart: each of its parts stands after its length."""
    parts, position = [], 0
    while position < len(place):
        (length,) = sealing.LENGTH.unpack_from(place, position)
        position += sealing.LENGTH.size
        parts.append(place[position : position + length])
        position += length
    _vault, collection, table, column, row, _version = parts
    return Decrypted(collection.decode(), table.decode(), column.decode(), row.decode())
