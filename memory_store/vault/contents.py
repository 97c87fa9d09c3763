"""What a memory says, as it travels between copies of its vault, or is kept as a version that lost.

Boundary: plain text in bytes, on its way into a seal or out of one; nothing is kept here. What
comes out of a seal was written by another copy of the same vault, and is checked all the same: it
becomes a memory of this one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from msgspec import MsgspecError, Struct, convert, msgpack
from msgspec.structs import asdict, replace

from memory_store.errors import FormatError
from memory_store.records import Memory
from memory_store.text.plain_json import read_stored_json
from memory_store.vault.rows import Origin

UNSAID = {"version": 1, "updated": "", "id": ""}
"""Of a memory, what makes no difference to what it says."""


class Content(Struct, frozen=True):
    """All that a memory is besides its id and its version, which each copy counts by itself."""

    memory: Memory
    origin: Origin = Origin()

    def as_version(self, memory: str, version: int) -> Memory:
        """The memory that it makes, under an id, in a version of this copy."""
        return replace(self.memory, id=memory, version=version)


class _Packed(Struct, frozen=True, array_like=True):
    """``head`` is JSON, as in the sealed heads; ``text`` may hold halves of surrogate pairs."""

    head: bytes
    text: bytes
    origin: Origin


def packed(content: Content) -> bytes:
    """A content in bytes."""
    head = _said(content.memory)
    text = head.pop("text").encode("utf-8", "surrogatepass")
    for name in ("id", "version"):
        del head[name]
    return msgpack.encode(_Packed(_json(head), text, content.origin))


def unpacked(data: bytes) -> Content:
    """The content in some bytes. Raises FormatError for what is none."""
    try:
        found = msgpack.decode(data, type=_Packed)
        head = read_stored_json(found.head, verbatim="source")
        said = {**head, "text": found.text.decode("utf-8", "surrogatepass"), "id": ""}
        return Content(convert(said, Memory), found.origin)
    except (MsgspecError, ValueError, TypeError, RecursionError):
        raise FormatError("a version of a memory is nothing that this reads") from None


def digest(memory: Memory) -> bytes:
    """Equal for two memories that say the same, whenever they were made to."""
    said: Mapping[str, Any] = {**_said(memory), **UNSAID}
    return hashlib.sha256(_json(said)).digest()


def exact_digest(memory: Memory) -> bytes:
    """Equal for two memories that say the same since the same moment."""
    return hashlib.sha256(digest(memory) + memory.updated.encode()).digest()[:16]


def _said(memory: Memory) -> dict[str, Any]:
    """What a memory says, by name; of an original which file it is, not where this copy has it."""
    said = asdict(memory)
    original = said.pop("original")
    return said if original is None else {**said, "original": original.as_dict()}


def _json(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
