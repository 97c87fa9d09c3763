"""Sizes and counts of an opened vault.

Boundary: counts, names of models and languages; opens nothing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from memory_store.actions.action import Opened, action
from memory_store.index.topics import count_topics
from memory_store.vault.storage import Storage


@action(None, writes=False)
def stats(opened: Opened) -> dict[str, Any]:
    """Sizes (bytes) and counts by name, and with what the vault is indexed.

    Of some of its collections alone without the file's size, which tells of all.
    """
    vault = opened.vault
    snapshot, settings = vault.snapshot(), vault.settings
    return {
        **vault.reader().collections.statistics(vault.keyring.readable()),
        **({} if vault.limits else _of_file(vault.reader(), vault.path)),
        "memories": int(snapshot.total),
        "topics": count_topics(snapshot),
        "vectors": snapshot.living_vectors,
        "languages": dict(Counter(snapshot.language_counts).most_common()),
        "model": settings.embedder or None,
        "fingerprint": settings.fingerprint[:12] or None,
        "profile": settings.profile,
        "vector_index": opened.vectors.index(snapshot).reason if snapshot.vectors else "no vectors",
    }


def _of_file(storage: Storage, path: Path) -> dict[str, int]:
    """The vault's format, and the bytes of its file."""
    files = (path, path.with_name(path.name + "-wal"))
    return {
        "format": storage.format(),
        "database_bytes": sum(file.stat().st_size for file in files if file.exists()),
    }
