"""A sealed account of each collection: how many memories it holds, and which.

Boundary: keys in, a sealed blob out. The account is a multiset hash: the sum modulo 2²⁵⁶ of a
keyed hash of every (memory, version), after Clarke and others, "Incremental Multiset Hash
Functions" (2003), MSet-Add-Hash. It changes by one addition per write, and a removed, added or
replayed row leaves it unequal to what the rows add up to. Rollback of the whole file cannot be seen
from the file: ``last_seen`` keeps the last counters in the state folder for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import decode
from msgspec.structs import replace

from memory_store.crypto.blinding import Tagger
from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import FormatError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys

MODULUS = 2**256
ELEMENT_BYTES = 32


class Manifest(Struct, frozen=True):
    """``counter`` grows with every write, ``count`` counts memories, ``total`` is the sum.

    ``revision`` is the newest of the vault's settings (kept in the personal collection's account).
    ``epoch`` is that of the collection's key, which the sum was made with.
    """

    counter: int = 0
    count: int = 0
    total: int = 0
    revision: int = 0
    epoch: int = 0


def element(elements: Tagger, memory: str, version: int) -> int:
    """The keyed hash of one (memory, version), as a number below 2²⁵⁶. Raises TamperedError."""
    return _sum_of(elements, [(memory, version)])


def _sum_of(elements: Tagger, memories: Iterable[tuple[str, int]]) -> int:
    """The sum of the keyed hashes of some (memory, version) pairs, not yet modulo 2²⁵⁶."""
    return sum(int.from_bytes(tag, "big") for tag in elements.tags(_parts(memories), ELEMENT_BYTES))


def _parts(memories: Iterable[tuple[str, int]]) -> Iterator[tuple[bytes, bytes]]:
    for memory, version in memories:
        if not isinstance(version, int):
            raise TamperedError(f"memories.version of {memory}: no number")
        # signed: a thief may write any SQLite number
        yield memory.encode(), version.to_bytes(8, "big", signed=True)


def read_manifest(connection: sqlite3.Connection, keys: CollectionKeys) -> Manifest:
    """The collection's account. Raises TamperedError when it was changed or taken away."""
    row = connection.execute(
        "select counter, sealed from vault_manifests where collection = ?", (keys.collection,)
    ).fetchone()
    if row is None:
        raise TamperedError(f"vault_manifests of {keys.collection}: the account is missing")
    counter, sealed = row
    place = keys.place("vault_manifests", "sealed", keys.collection, counter)
    try:
        told = decode(keys.unseal("manifest", place, sealed), type=_Told)
        total = int(told.total, 16)
    except (MsgspecError, ValueError):
        raise FormatError(
            f"vault_manifests of {keys.collection}: is nothing that this reads"
        ) from None
    return Manifest(counter, told.count, total, told.revision, sealed_epoch(sealed, place))


class _Told(Struct):
    """What an account says under its seal, which any member may have written."""

    count: int
    total: Annotated[str, Meta(max_length=2 * ELEMENT_BYTES)]
    revision: int


def write_manifest(
    connection: sqlite3.Connection, keys: CollectionKeys, manifest: Manifest
) -> None:
    """Replace the collection's account (inside the caller's transaction)."""
    place = keys.place("vault_manifests", "sealed", keys.collection, manifest.counter)
    data = {
        "count": manifest.count,
        "total": f"{manifest.total:x}",
        "revision": manifest.revision,
    }
    content = json.dumps(data).encode()
    connection.execute(
        """
        insert into vault_manifests (collection, counter, sealed) values (?, ?, ?)
        on conflict (collection) do update set
            counter = excluded.counter, sealed = excluded.sealed
        """,
        (keys.collection, manifest.counter, keys.seal("manifest", place, content)),
    )


def account(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    *,
    added: Iterable[tuple[str, int]] = (),
    removed: Iterable[tuple[str, int]] = (),
) -> None:
    """Enter written and removed (memory, version) pairs into the collection's account."""
    manifest = read_manifest(connection, keys)
    count, total, elements = manifest.count, manifest.total, keys.manifest_of(manifest.epoch)
    for memory, version in added:
        count, total = count + 1, total + element(elements, memory, version)
    for memory, version in removed:
        count, total = count - 1, total - element(elements, memory, version)
    counted = replace(manifest, counter=manifest.counter + 1, count=count, total=total % MODULUS)
    write_manifest(connection, keys, counted)


def note_revision(connection: sqlite3.Connection, keys: CollectionKeys, revision: int) -> None:
    """Enter the newest revision of the vault's settings into a collection's account."""
    manifest = read_manifest(connection, keys)
    noted = replace(manifest, counter=manifest.counter + 1, revision=revision)
    write_manifest(connection, keys, noted)


def recount(
    connection: sqlite3.Connection, keys: CollectionKeys, epoch: int | None = None
) -> tuple[int, int]:
    """Count and total of the rows that are there, to be held against an account of that epoch."""
    return added_up(keys, rows_of(connection, keys.collection), epoch)


def rows_of(connection: sqlite3.Connection, collection: str) -> Iterable[tuple[str, int]]:
    """The (memory, version) pairs of a collection's rows."""
    return connection.execute(
        "select id, version from memories where collection = ?", (collection,)
    )


def count_rows(connection: sqlite3.Connection, collection: str) -> int:
    """How many rows a collection has: 5 ms for 100,000, by an index alone."""
    (count,) = connection.execute(
        "select count(*) from memories where collection = ?", (collection,)
    ).fetchone()
    return int(count)


def added_up(
    keys: CollectionKeys, memories: Iterable[tuple[str, int]], epoch: int | None = None
) -> tuple[int, int]:
    """Count and total of some (memory, version) pairs, in an epoch (``None``: the newest)."""
    counted = list(memories)
    elements = keys.manifest_of(keys.epoch if epoch is None else epoch)
    return len(counted), _sum_of(elements, counted) % MODULUS
