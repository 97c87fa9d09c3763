"""A sealed account of each collection: how many memories it holds, and what each of them is.

Boundary: keys in, a sealed blob out. The account is a multiset hash: the sum modulo 2¹²⁸ of a
keyed function of every memory's tag (``row_tag`` in ``vault/rows.py``), which covers its id, its
version and all that its head says, the id of its body among it. After Clarke and others,
"Incremental Multiset Hash Functions" (2003), MSet-Add-Hash. It changes by one addition per write.

The index holds the tags, too: the sum of those of its living entries must be the account's, and
each row that is opened must have the tag that its entry says. So a row that was removed, added or
replayed is noticed, and so is an entry. Rollback of the whole file cannot be seen from the file:
``last_seen`` keeps the last counters in the state folder for that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from memory_store.crypto.blinding import SUM_MODULUS
from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import ReadOnlyError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import CollectionKeys

CONTENT_FORMAT = 3
"""From here on an account covers what memories say; before, their ids and versions alone."""
EARLIER_MODULUS = 2**256
EARLIER_BYTES = 32


class Manifest(Struct, frozen=True):
    """``counter`` grows with every write, ``count`` counts memories, ``total`` is the sum.

    ``revision`` is the newest of the vault's settings (kept in the personal collection's account).
    ``epoch`` is that of the collection's key, which the sum was made with; ``format`` says by which
    rules.
    """

    counter: int = 0
    count: int = 0
    total: int = 0
    revision: int = 0
    epoch: int = 0
    format: int = CONTENT_FORMAT


def read_manifest(connection: sqlite3.Connection, keys: CollectionKeys) -> Manifest:
    """The collection's account. Raises TamperedError when it was changed or taken away."""
    row = connection.execute(
        "select counter, sealed from vault_manifests where collection = ?", (keys.collection,)
    ).fetchone()
    if row is None:
        raise TamperedError(f"vault_manifests of {keys.collection}: the account is missing")
    counter, sealed = row
    place = keys.place("vault_manifests", "sealed", keys.collection, counter)
    data = json.loads(bytes(keys.unseal("manifest", place, sealed)))
    return Manifest(
        counter=counter,
        count=int(data["count"]),
        total=int(data["total"], 16),
        revision=int(data["revision"]),
        epoch=sealed_epoch(sealed, place),
        format=int(data.get("format", 2)),
    )


def write_manifest(
    connection: sqlite3.Connection, keys: CollectionKeys, manifest: Manifest
) -> None:
    """Replace the collection's account (inside the caller's transaction)."""
    place = keys.place("vault_manifests", "sealed", keys.collection, manifest.counter)
    data = {
        "count": manifest.count,
        "total": f"{manifest.total:x}",
        "revision": manifest.revision,
        "format": manifest.format,
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
    added: Iterable[bytes] = (),
    removed: Iterable[bytes] = (),
) -> None:
    """Enter the tags of written and removed rows into the collection's account.

    Raises ReadOnlyError where the vault's owner has not brought it up to today's format yet.
    """
    manifest = read_manifest(connection, keys)
    if manifest.format < CONTENT_FORMAT:
        raise ReadOnlyError(
            "the vault is of an earlier format: its owner has to open it once with this version, "
            "before anything can be written to it"
        )
    new, gone, elements = list(added), list(removed), keys.elements_of(manifest.epoch)
    total = manifest.total + elements.total(b"".join(new)) - elements.total(b"".join(gone))
    counted = replace(
        manifest,
        counter=manifest.counter + 1,
        count=manifest.count + len(new) - len(gone),
        total=total % SUM_MODULUS,
    )
    write_manifest(connection, keys, counted)


def note_revision(connection: sqlite3.Connection, keys: CollectionKeys, revision: int) -> None:
    """Enter the newest revision of the vault's settings into a collection's account."""
    manifest = read_manifest(connection, keys)
    noted = replace(manifest, counter=manifest.counter + 1, revision=revision)
    write_manifest(connection, keys, noted)


def rows_of(connection: sqlite3.Connection, collection: str) -> list[tuple[str, int]]:
    """The (memory, version) pairs of a collection's rows. Raises TamperedError."""
    rows: list[tuple[str, int]] = connection.execute(
        "select id, version from memories where collection = ?", (collection,)
    ).fetchall()
    for memory, version in rows:
        if not isinstance(version, int):
            raise TamperedError(f"memories.version of {memory}: no number")
    return rows


def count_rows(connection: sqlite3.Connection, collection: str) -> int:
    """How many rows a collection has: 5 ms for 100,000, by an index alone."""
    (count,) = connection.execute(
        "select count(*) from memories where collection = ?", (collection,)
    ).fetchone()
    return int(count)


def earlier_total(keys: CollectionKeys, rows: Iterable[tuple[str, int]], epoch: int) -> int:
    """What the (memory, version) pairs of rows add up to by the rules before format 3."""
    # signed: a thief may write any SQLite number
    parts = ((memory.encode(), version.to_bytes(8, "big", signed=True)) for memory, version in rows)
    tags = keys.earlier_elements_of(epoch).tags(parts, EARLIER_BYTES)
    return sum(int.from_bytes(tag, "big") for tag in tags) % EARLIER_MODULUS
