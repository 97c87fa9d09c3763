"""Imported paths: what a bare ``import`` reads again.

Boundary: a source makes a program read files of this machine, so it is believed only of the
principal and the machine that named it. It is sealed under the principal's own scope, which no
other principal has: a member of a collection cannot name a path for another member. Inside stand
the machine, the path and the options; its collection is bound to its place.

A row can be put back to what it was before (with other options, say), by those who have no more
than the file. So each change of a source has a number, and this machine keeps the newest
(``machine.py``). A row that is older, or that this machine does not know, is not read again until
its path is named.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.crypto.sealing import Place
from memory_store.errors import TamperedError
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import OWNER, VAULT_SCOPE, Keyring
from memory_store.vault.machine import SOURCES, keep, kept, machine_id
from memory_store.vault.storage import Storage

TABLE = "vault_sources"
PURPOSE = "path"
UPLOADED = "upload:"
"""The source of what came from another machine: no path here, no row, and never read again."""


class Source(Struct, frozen=True):
    """A path that was imported into a collection, with the options it was imported with.

    ``last`` says when an import of it last came to its end, and what failed then.
    """

    id: str
    collection: str
    machine: str
    path: str
    options: dict[str, Any]
    version: int = 1
    last: dict[str, Any] = {}


def find_source(storage: Storage, keyring: Keyring, collection: str, path: str) -> Source | None:
    """This principal's source of that path on this machine; None where there is none that opens."""
    try:
        tag = _tag(keyring, collection, machine_id(), path)
    except UnicodeEncodeError:  # half a pair: no system has such a name, but a caller may
        return None
    row = storage.sources.tagged(tag, keyring.principal)
    if row is None or row[1] != collection:
        return None
    try:
        found = _opened(keyring.of(VAULT_SCOPE), *row)
    except TamperedError:
        return None
    return found if (found.machine, found.path) == (machine_id(), path) else None


def write_source(
    storage: Storage,
    keyring: Keyring,
    collection: str,
    path: str,
    options: dict[str, Any],
    last: dict[str, Any] | None = None,
) -> Source:
    """Remember a path of this machine (inside the caller's transaction).

    :func:`note` it once that is committed. ``last`` is how an import of it ended, if it did; that
    alone makes no new version, for nothing is done by it.
    """
    known = find_source(storage, keyring, collection, path)
    newest = kept(keyring.vault, SOURCES, keyring.principal)
    source = Source(
        known.id if known is not None else str(uuid.uuid4()),
        collection,
        machine_id(),
        path,
        options,
        last=last or (known.last if known is not None else {}),
    )
    if known is not None:
        as_before = (source.machine, source.options) == (known.machine, known.options)
        as_before = as_before and known.version == newest.get(known.id)
        if as_before and last is None:
            return known
        present = max(known.version, newest.get(known.id, 0))
        source = replace(source, version=known.version if as_before else present + 1)
    store_source(storage, keyring, source)
    return source


def store_source(storage: Storage, keyring: Keyring, source: Source) -> None:
    """Seal and store a source as this principal's (inside the caller's transaction)."""
    keys = keyring.of(VAULT_SCOPE)
    sealed = keys.seal(PURPOSE, _place(keys, source.id, source.collection), _content(source))
    tag = _tag(keyring, source.collection, source.machine, source.path)
    storage.sources.write(source.id, source.collection, tag, sealed, keyring.principal)


def note(keyring: Keyring, *sources: Source) -> None:
    """Keep on this machine that these are the newest there are."""
    newest = kept(keyring.vault, SOURCES, keyring.principal)
    fresh = {**newest, **{source.id: source.version for source in sources}}
    if fresh != newest:
        keep(keyring.vault, SOURCES, keyring.principal, fresh)


def is_newest(keyring: Keyring, source: Source) -> bool:
    """Whether this machine wrote the source, and nothing newer since."""
    newest = kept(keyring.vault, SOURCES, keyring.principal).get(source.id)
    return newest is not None and source.version >= newest


def read_sources(storage: Storage, keyring: Keyring) -> list[Source]:
    """This principal's sources in the collections that can be read, in the order they were named.

    Raises TamperedError for a row that was changed.
    """
    keys, readable = keyring.of(VAULT_SCOPE), set(keyring.readable())
    return [
        _opened(keys, *row) for row in storage.sources.of(keyring.principal) if row[1] in readable
    ]


def check(storage: Storage, keyring: Keyring, source: str, collection: str, sealed: bytes) -> None:
    """Open one row of them, and look whether its path finds it. Raises TamperedError."""
    said = _opened(keyring.of(VAULT_SCOPE), source, collection, sealed)
    tag = _tag(keyring, collection, said.machine, said.path)
    if storage.sources.tagged(tag, keyring.principal) != (source, collection, sealed):
        raise TamperedError(f"{TABLE}.tag of {source}: is another's")


def reseal(storage: Storage, keys: CollectionKeys) -> None:
    """Seal the owner's sources in the newest epoch of the vault's scope (in a transaction)."""
    fresh = []
    for source, collection, sealed in storage.sources.of(OWNER):
        place = _place(keys, source, collection)
        fresh.append((keys.seal(PURPOSE, place, keys.unseal(PURPOSE, place, sealed)), source))
    storage.sources.replace_heads(fresh)


def _tag(keyring: Keyring, collection: str, machine: str, path: str) -> bytes:
    parts = (collection.encode(), machine.encode(), path.encode("utf-8", "surrogateescape"))
    return keyring.of(VAULT_SCOPE).source.tag(b"source", *parts)


def _content(source: Source) -> bytes:
    data = {
        "machine": source.machine,
        "path": source.path,
        "options": source.options,
        "version": source.version,
    }
    if source.last:
        data["last"] = source.last
    return json.dumps(data).encode()


def _opened(keys: CollectionKeys, source: str, collection: str, sealed: bytes) -> Source:
    data = json.loads(bytes(keys.unseal(PURPOSE, _place(keys, source, collection), sealed)))
    return Source(
        source,
        collection,
        data["machine"],
        data["path"],
        data["options"],
        data["version"],
        data.get("last", {}),
    )


def _place(keys: CollectionKeys, source: str, collection: str) -> Place:
    return keys.place(TABLE, "head", f"{source}|{collection}")
