"""The sources of a vault: which paths were imported into it, and which of them are read again.

Boundary: opens the sealed paths of this principal alone. To forget a source deletes no memory.
"""

from __future__ import annotations

from memory_store.actions.action import Opened, action
from memory_store.errors import NotFoundError
from memory_store.importing.ledger import left_out
from memory_store.paths import home_path
from memory_store.records import SourceInfo
from memory_store.vault.sources import read_sources


@action(None, writes=False)
def sources(opened: Opened) -> list[SourceInfo]:
    """Every path that this principal imported, in the order in which they were named."""
    vault = opened.vault
    names, origins = vault.collections.names(), vault.reader().origins
    return [
        SourceInfo(
            path=one.path,
            collection=names[one.collection],
            memories=len(origins.of_source(one.id, vault.keyring.openable())),
            options={name: kept for name, kept in one.options.items() if kept},
            left_out=left_out(vault, one),
        )
        for one in read_sources(vault.reader(), vault.keyring)
    ]


@action(None, writes=True)
def forget_source(opened: Opened, path: str) -> int:
    """Read a path no more when an import names none. Its memories stay.

    Returns how many sources it was: one for each collection. Raises NotFoundError.
    """
    vault = opened.vault.whole_vault()
    wanted = {path, str(home_path(path).resolve())}
    found = [one for one in read_sources(vault.reader(), vault.keyring) if one.path in wanted]
    if not found:
        raise NotFoundError(f"{path} is no source of this vault: memory-store sources lists them")
    with vault.writing() as storage, storage.transaction(vault.keyring):
        for one in found:
            storage.sources.delete(one.id)
    return len(found)
