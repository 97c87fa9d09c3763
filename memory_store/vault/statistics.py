"""Sizes and counts of a vault, from what stands in clear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_store.sqlite import sqlite3
from memory_store.vault.schema import FORMAT_VERSION

_COUNTS = {
    "collections": "collections",
    "contents": "memory_bodies",
    "sources": "vault_sources",
    "segments": "vault_segments",
}


def vault_statistics(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """Counts of rows, bytes of the file and of what is sealed in it."""
    counts = {
        name: int(connection.execute(f"select count(*) from {table}").fetchone()[0])
        for name, table in _COUNTS.items()
    }
    topics = connection.execute("select count(distinct topic) from memory_topics").fetchone()[0]
    bodies, index = (
        int(connection.execute(query).fetchone()[0])
        for query in (
            "select coalesce(sum(length(body)), 0) from memory_bodies",
            """
            select coalesce(sum(length(main) + length(vectors) + length(pairs)), 0)
            from vault_segments
            """,
        )
    )
    return {
        **counts,
        "topics": int(topics),
        "format": FORMAT_VERSION,
        "database_bytes": sum(
            file.stat().st_size
            for file in (path, path.with_name(path.name + "-wal"))
            if file.exists()
        ),
        "text_bytes": bodies,
        "index_bytes": index,
    }
