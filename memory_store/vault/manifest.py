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
from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import decode
from msgspec.structs import replace

from memory_store.crypto.blinding import SUM_MODULUS
from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import FormatError, ReadOnlyError, TamperedError
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.storage import Storage

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


def read_manifest(storage: Storage, keys: CollectionKeys) -> Manifest:
    """The collection's account. Raises TamperedError when it was changed or taken away."""
    return open_manifest(keys, storage.accounts.of([keys.collection]))


def open_manifest(keys: CollectionKeys, stored: Mapping[str, tuple[int, bytes]]) -> Manifest:
    """The same, of those that were read at once."""
    if keys.collection not in stored:
        raise TamperedError(f"vault_manifests of {keys.collection}: the account is missing")
    counter, sealed = stored[keys.collection]
    place = keys.place("vault_manifests", "sealed", keys.collection, counter)
    try:
        said = decode(keys.unseal("manifest", place, sealed), type=_Sealed)
        total = int(said.total, 16)
    except (MsgspecError, ValueError):
        raise FormatError(
            f"vault_manifests of {keys.collection}: is nothing that this reads"
        ) from None
    epoch = sealed_epoch(sealed, place)
    return Manifest(counter, said.count, total, said.revision, epoch, said.format)


class _Sealed(Struct):
    """What an account says under its seal, which any member may have written."""

    count: int
    total: Annotated[str, Meta(max_length=2 * EARLIER_BYTES)]
    revision: int
    format: int = 2


def write_manifest(storage: Storage, keys: CollectionKeys, manifest: Manifest) -> None:
    """Replace the collection's account (inside the caller's transaction)."""
    place = keys.place("vault_manifests", "sealed", keys.collection, manifest.counter)
    data = {
        "count": manifest.count,
        "total": f"{manifest.total:x}",
        "revision": manifest.revision,
        "format": manifest.format,
    }
    content = json.dumps(data).encode()
    sealed = keys.seal("manifest", place, content)
    storage.accounts.write(keys.collection, manifest.counter, sealed)


def account(
    storage: Storage,
    keys: CollectionKeys,
    *,
    added: Iterable[bytes] = (),
    removed: Iterable[bytes] = (),
) -> None:
    """Enter the tags of written and removed rows into the collection's account.

    Raises ReadOnlyError where the vault's owner has not brought it up to today's format yet.
    """
    manifest = read_manifest(storage, keys)
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
    write_manifest(storage, keys, counted)


def note_revision(storage: Storage, keys: CollectionKeys, revision: int) -> None:
    """Enter the newest revision of the vault's settings into a collection's account."""
    manifest = read_manifest(storage, keys)
    noted = replace(manifest, counter=manifest.counter + 1, revision=revision)
    write_manifest(storage, keys, noted)


def rows_of(storage: Storage, collection: str) -> list[tuple[str, int]]:
    """The (memory, version) pairs of a collection's rows. Raises TamperedError."""
    rows = storage.memories.versions(collection)
    for memory, version in rows:
        if not isinstance(version, int):
            raise TamperedError(f"memories.version of {memory}: no number")
    return rows


def earlier_total(keys: CollectionKeys, rows: Iterable[tuple[str, int]], epoch: int) -> int:
    """What the (memory, version) pairs of rows add up to by the rules before format 3."""
    tag, total = keys.of_account(epoch).manifest.tag, 0
    for memory, version in rows:
        number = version.to_bytes(8, "big", signed=True)  # a thief may write any SQLite number
        total += int.from_bytes(tag(memory.encode(), number, length=EARLIER_BYTES), "big")
    return total % EARLIER_MODULUS
