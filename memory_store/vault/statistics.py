"""Sizes and counts of a vault, or of some of its collections, from what stands in clear."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from memory_store.sqlite import sqlite3

_MINE = "in (select value from json_each(:collections))"
_COUNTS = {
    "collections": f"select count(*) from collections where id {_MINE}",
    "contents": f"select count(*) from memory_bodies where collection {_MINE}",
    "sources": f"select count(*) from vault_sources where collection {_MINE}",
    "segments": f"select count(*) from vault_segments where collection {_MINE}",
    "text_bytes": f"""
        select coalesce(sum(length(body)), 0) from memory_bodies where collection {_MINE}
        """,
    "index_bytes": f"""
        select coalesce(sum(length(main) + length(vectors) + length(pairs)), 0)
        from vault_segments where collection {_MINE}
        """,
}


def collection_statistics(
    connection: sqlite3.Connection, collections: Collection[str]
) -> dict[str, int]:
    """Counts of rows, and bytes of what is sealed, in those collections (ids)."""
    mine = {"collections": json.dumps(sorted(collections))}
    return {
        name: int(connection.execute(query, mine).fetchone()[0]) for name, query in _COUNTS.items()
    }


def file_statistics(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """The vault's format, and the bytes of its file."""
    (version,) = connection.execute("pragma user_version").fetchone()
    files = (path, path.with_name(path.name + "-wal"))
    return {
        "format": version,
        "database_bytes": sum(file.stat().st_size for file in files if file.exists()),
    }
