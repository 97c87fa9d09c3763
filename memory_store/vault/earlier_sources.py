"""The imports of a vault of an earlier format, when it becomes one of today's.

Boundary: the owner's keys. Before format 3 imported paths were sealed under the collection's key,
and nothing proved which memory a record had become: any of those who shared a collection could have
written either. What is taken over here is what none of them could have written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from memory_store.errors import FormatError, TamperedError
from memory_store.vault.keyring import CollectionKeys, WholeKeyring
from memory_store.vault.machine import machine_id
from memory_store.vault.rows import Origin, head_of, opened_head
from memory_store.vault.settings import Settings
from memory_store.vault.sources import UPLOADED, Source, note, store_source
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.storage.table import parts

MOST_COPIES = 3  # of one record that got a number, for its memory was hidden


def own_sources(storage: Storage, keyring: WholeKeyring, settings: Settings) -> Settings:
    """Imported paths become the owner's, on this machine.

    Those of shared collections are not noted as such, for a member may have named them: they are
    read again once the owner names them. Their files stay known.
    """
    shared = settings.shared
    for row, collection, sealed in _earlier(storage, keyring):
        keys = keyring.of(collection)
        storage.sources.delete(row)
        try:
            opened = keys.unseal("head", keys.place("vault_sources", "head", row), sealed)
            data = json.loads(bytes(opened))
            path, options = str(data["path"]), dict(data["options"])
            _check_options(options)
        except (TamperedError, ValueError, TypeError, KeyError):
            continue
        if path == UPLOADED:
            storage.files.rename_source(row, UPLOADED)
            continue
        source = Source(row, collection, machine_id(), path, options)
        store_source(storage, keyring, source)
        if collection not in shared:
            note(keyring, source)
    return settings


def _check_options(options: dict[str, object]) -> None:
    """Raise TypeError for what no import was given: lists of texts, and texts."""
    for one in options.values():
        for value in one if isinstance(one, list) else [one]:
            if value is not None and not isinstance(value, str):
                raise TypeError("not an option")


def prove_origins(storage: Storage, keyring: WholeKeyring, settings: Settings) -> Settings:
    """Each memory's row of where it came from is proven, where its sealed head says the same.

    The others go: their records are taken for new ones by the next import that reads them.
    """
    shared = settings.shared
    through = [keyring.of(one) for one in keyring.readable() if one not in shared]
    drafts: list[tuple[bytes, str]] = []
    unproven: list[str] = []
    for part in parts(storage.origins.all()):
        present = storage.memories.rows([str(row[0]) for row in part])
        for memory, origin, draft, file in part:
            said = _proven(keyring, present.get(memory), Origin(origin, draft, file), through)
            if said is None:
                unproven.append(memory)
            else:
                fresh = said.stored(keyring.of(present[memory].collection), memory)[1]
                drafts.append((fresh, memory))
    storage.origins.delete(unproven)
    storage.origins.replace_drafts(drafts)
    return settings


def _proven(
    keyring: WholeKeyring, row: MemoryRow | None, said: Origin, through: Sequence[CollectionKeys]
) -> Origin | None:
    """What a row said, with the collection that the memory's own head says it came through."""
    if row is None or row.collection not in keyring.collections:
        return None
    try:
        head = head_of(keyring, row, opened_head(keyring, row))
    except (TamperedError, FormatError):
        return None
    for keys in (keyring.of(row.collection), *through):
        if said.origin in set(_origins(keys, row.id, head)):
            return replace(said, through=keys.collection)
    return None


def _origins(keys: CollectionKeys, memory: str, head: dict[str, object]) -> Iterator[bytes]:
    """The tags that an import into a collection gives the record that a memory came from."""
    said = head["ref"] if head["ref"] is not None else memory
    parts = [str(one or "").encode("utf-8", "surrogateescape") for one in (head["source"], said)]
    for turn in range(MOST_COPIES):
        number = (str(turn).encode(),) if turn else ()
        yield keys.source.tag(b"record", *parts, *number)


def warnings(storage: Storage, keyring: WholeKeyring, settings: Settings) -> list[str]:
    """What the owner has to know of an upgrade to come; nothing where nothing is shared."""
    shared = settings.shared
    dropped = sum(collection in shared for _, collection, _ in _earlier(storage, keyring))
    if not shared:
        return []
    names = ", ".join(sorted(settings.names.get(one, one) for one in shared))
    said = [
        f"the collections that you share are called {names}: in the format that this vault had, "
        "their members could rename them. Look whether the names are yours (memory-store "
        "collections)"
    ]
    if dropped:
        paths = "a path that was" if dropped == 1 else f"{dropped:,} paths that were"
        said.append(
            f"{paths} imported into shared collections will not be read again by an import "
            "without a path, for their members could have named them: import yours by name once"
        )
    return said


def _earlier(storage: Storage, keyring: WholeKeyring) -> list[tuple[str, str, bytes]]:
    """Rows of sources as they were, of the collections that can be read."""
    readable = set(keyring.readable())
    return [row for row in storage.sources.earlier() if row[1] in readable]
