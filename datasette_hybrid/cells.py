"""What Datasette's own table pages show in sealed columns.

Boundary: the title of a memory shows only to an asker with the decrypt grant; everybody else
sees how large the sealed value is, which the file gives away anyhow.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from memory_store.records import MemoryStoreError, NotAVaultError
from memory_store.vault.schema import LATER_TABLES, MEMORY_TABLES, VAULT_TABLES

from .admission import QueueFullError, work
from .grants import asker
from .vaults import Vault, vaults_of

KEYED_HASHES = frozenset({"topic", "tag", "origin", "draft", "file"})


def sealed_cell(
    datasette: Any, database: str, table: str, row: Any, column: str, value: bytes
) -> Any:
    """HTML (or an awaitable of it) for a sealed value; ``None`` outside of a vault's tables."""
    if table not in (*MEMORY_TABLES, *VAULT_TABLES, *LATER_TABLES):
        return None
    try:
        vault = vaults_of(datasette).of(database)
    except NotAVaultError:
        return None
    if column in KEYED_HASHES:
        return Markup("<code>{}</code>").format(value.hex())
    sealed = Markup('<em title="encrypted in the file">sealed, {} bytes</em>').format(
        f"{len(value):,}"
    )
    readable = asker.get().on(database).decrypt and not vault.locked
    if (table, column) != ("memories", "head") or not readable:
        return sealed
    return _title(datasette, vault, row["id"], sealed)


async def _title(datasette: Any, vault: Vault, memory_id: str, sealed: Markup) -> Markup:
    try:
        memory = await work.run(lambda: vault.use().get(memory_id, refs=False))
    except (MemoryStoreError, QueueFullError):
        return sealed
    href = f"{datasette.urls.database(vault.database)}/-/hybrid/memories/{memory_id}"
    return Markup('<a href="{}">{}</a>').format(href, memory.title or memory_id)
