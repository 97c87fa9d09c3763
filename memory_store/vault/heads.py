"""Questions that only the sealed heads can answer: every one that may be is opened, no body.

Boundary: titles, topics and refs pass through one at a time; counts and ids come out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from memory_store.errors import BadInputError, NotFoundError
from memory_store.vault.keyring import Keyring
from memory_store.vault.rows import Known, open_head
from memory_store.vault.storage import Storage
from memory_store.vault.storage.table import parts


def read_refs(
    storage: Storage, keyring: Keyring, collections: Collection[str], known: Known
) -> dict[str, str | None]:
    """Memory id → its ref, ``None`` where it has none."""
    heads = heads_of(storage, keyring, collections, known)
    return {memory: head["ref"] for memory, head in heads}


def find_by_ref(storage: Storage, keyring: Keyring, ref: str, known: Known) -> str:
    """The id of the one memory of that ref; else of that title, or whose file is called so; else,
    whatever the case of its letters.

    Raises NotFoundError, BadInputError for several.
    """
    matches, called, alike = [], [], []
    folded = ref.strip().casefold()
    for memory, head in heads_of(storage, keyring, set(keyring.readable()), known):
        if head["ref"] == ref:
            matches.append(memory)
            continue
        names = (head["title"], (head["ref"] or "").rpartition("/")[2])
        if ref and ref in names:
            called.append(memory)
        elif folded and folded in (name.casefold() for name in (*names, head["ref"] or "")):
            alike.append(memory)
    found = matches or called or alike
    if not found:
        raise NotFoundError(
            f"no memory {ref!r}; name one by its id, its path as imported, or its title"
        )
    if len(found) > 1:
        what = "have the ref" if matches else "are called"
        raise BadInputError(f"{len(found)} memories {what} {ref!r}; use an id", "id")
    return found[0]


def heads_of(
    storage: Storage, keyring: Keyring, collections: Collection[str], known: Known
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Memory ids with their opened heads, of those of some collections that may be opened.

    Raises TamperedError for one that is not as it is ``known``.
    """
    ids = storage.memories.ids(set(collections) & set(keyring.openable()))
    for some in parts(ids):
        for row in storage.memories.rows(some).values():
            yield row.id, open_head(keyring, row, known)
