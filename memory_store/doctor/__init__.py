"""What is installed, loaded or missing, what that switches off, and the command that mends it.

installation  what a check says; libraries, folders, network, key
models        embedding, reranking, expansion
vault         the file, and the opened vault behind it

Boundary: looks, and changes nothing: no download, no model built, no write. Paths and versions
are shown, never a key, a passphrase, or anything from a memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_store.addresses import vault_path
from memory_store.doctor import installation, models
from memory_store.doctor.installation import Check, key_source
from memory_store.doctor.vault import vault

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

__all__ = ["Check", "examine", "key_source"]


def examine(path: str | Path | None, store: MemoryStore | None, key: Check) -> list[Check]:
    """Every check that can be made: of this installation, of the file, and of the opened vault.

    ``key`` is what :func:`key_source` said before the vault was opened, which takes a passphrase
    out of the environment.
    """
    checks = [installation.versions(), installation.sqlite()]
    checks += [installation.extension(), installation.table_function()]
    checks += [models.embedding_model(store), models.reranking_model()]
    checks += [*installation.libraries(), *installation.extras(), models.expander()]
    checks += [*installation.folders(), installation.network(), *installation.keepers(), key]
    if path is not None:
        checks += vault(vault_path(path), store, key)
    return checks
