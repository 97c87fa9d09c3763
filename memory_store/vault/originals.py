"""The files that memories were read from, where an import was asked to keep them: sealed, in parts.

Boundary: bytes of a stranger's file go in and come out; here they are never looked into. A part is
a body like any other (``memory_bodies``), so whatever is done to bodies is done to it: it is sealed
again with a new key, copied and counted. What names the file (its name, its size, its hash, and the
random token in the ids of its parts) is sealed in the memory's head, which the index accounts for:
a part that was exchanged, put back or taken away is noticed when the file is opened.

In clear stand the memory that a part belongs to, and how long it is.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import PurePosixPath

from msgspec.structs import replace

from memory_store.errors import NotFoundError, TamperedError
from memory_store.records import Memory, Original
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import Keyring
from memory_store.vault.rows import body_place
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import BodyRow
from memory_store.vault.storage.table import parts

PART_BYTES = 256 * 1024
READ_AT_ONCE = 16  # parts
MOST_BYTES = 50 * 1024 * 1024  # no reader takes a larger document


def described(name: str, data: bytes) -> Original:
    """What a memory says of the file that it was read from."""
    return Original(PurePosixPath(name).name, len(data), hashlib.sha256(data).hexdigest())


def is_of(original: Original, data: bytes) -> bool:
    """Whether these are the bytes of that file."""
    return described(original.name, data) == replace(original, token="")


def part_id(memory: str, token: str, number: int) -> str:
    """The id of a part of an original, which begins with its memory's."""
    return f"{memory}.{token}.{number}"


def sealed(storage: Storage, keys: CollectionKeys, memory: Memory, data: bytes) -> Memory:
    """Write the bytes of a memory's original, in the caller's transaction. Returns the memory that
    names them."""
    token, rows = secrets.token_hex(8), list[BodyRow]()
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        id_ = part_id(memory.id, token, number)
        tag = keys.stored(keys.plain_dedupe.tag(b"original", id_.encode()))
        body = keys.seal("body", body_place(keys, id_, tag), data[start : start + PART_BYTES])
        rows.append(BodyRow(id_, memory.collection, tag, body))
    storage.memories.insert((), rows)
    original = memory.original or described("", data)
    return replace(memory, original=replace(original, token=token))


def opened(storage: Storage, keyring: Keyring, memory: Memory) -> bytes:
    """The bytes of a memory's original. ``memory`` was opened, and held against the index.

    Raises NotFoundError where none was kept, or not in this copy of the vault; TamperedError.
    """
    original = memory.original
    if original is None:
        raise NotFoundError(f"no original was kept of {memory.id}: import it with --keep-originals")
    if not original.token:
        raise NotFoundError(f"the original of {memory.id} is not in this copy of the vault")
    if not 0 <= original.bytes <= MOST_BYTES:
        raise TamperedError(f"memories.head of {memory.id}: names an original of no size")
    keys, data = keyring.of(memory.collection), bytearray()
    count = -(-original.bytes // PART_BYTES)
    ids = [part_id(memory.id, original.token, number) for number in range(count)]
    for some in parts(ids, READ_AT_ONCE):
        there = storage.memories.bodies(some)
        for id_ in some:
            if id_ not in there:
                raise TamperedError(f"memory_bodies {id_}: a part of an original is missing")
            tag, part = there[id_]
            data += keys.unseal("body", body_place(keys, id_, tag), part)
    if not is_of(original, bytes(data)):
        raise TamperedError(f"memory_bodies of {memory.id}: its original is another")
    return bytes(data)
