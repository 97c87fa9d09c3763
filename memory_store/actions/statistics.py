"""Sizes and counts of an opened vault.

Boundary: counts, names of models and languages; opens nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from memory_store.actions.action import Opened, action
from memory_store.index.topics import count_topics
from memory_store.vault.statistics import collection_statistics, file_statistics


@action(None, writes=False)
def stats(opened: Opened) -> dict[str, Any]:
    """Sizes (bytes) and counts by name, and with what the vault is indexed.

    Of some of its collections alone without the file's size, which tells of all.
    """
    vault = opened.vault
    snapshot, settings = vault.snapshot(), vault.settings
    return {
        **collection_statistics(vault.reader(), vault.keyring.readable()),
        **({} if vault.limits else file_statistics(vault.reader(), vault.path)),
        "memories": int(snapshot.total),
        "topics": count_topics(snapshot),
        "vectors": snapshot.living_vectors,
        "languages": dict(Counter(snapshot.language_counts).most_common()),
        "model": settings.embedder or None,
        "fingerprint": settings.fingerprint[:12] or None,
        "profile": settings.profile,
        "vector_index": opened.vectors.index(snapshot).reason if snapshot.vectors else "no vectors",
    }
