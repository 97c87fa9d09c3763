"""What a vault's tables and columns are, for Datasette's pages of them, without configuration.

``metadata.yml`` and ``datasette.yaml`` say the same of the demonstration's vault (a test compares).
Your own configuration counts more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.host import LATER_TABLES, VAULT_TABLES
from memory_store.records import TYPES

COLLECTION = "Random id of the collection it belongs to"
KEYED_HASH = "keyed hash"
MIGRATIONS = "_sqlite_migrations"
"""Which changes of its layout a file has had; 1.0 hides it by its name."""

TABLES: Mapping[str, Mapping[str, Any]] = {
    "memories": {
        "description": "One row for each memory. Titles, topics and texts are sealed; in a strict "
        "vault types and times are, too, and their columns empty.",
        "label_column": "id",
        "sort_desc": "created",
        "facets": ["type"],
        "columns": {
            "collection": COLLECTION,
            "type": f"What it is: {', '.join(TYPES)}; with _done when completed",
            "version": "How often it was written; 1 for never edited",
            "content": "Id of its text in memory_bodies; equal texts of a collection share one, "
            "where their writers may read",
            "head": "The title, for those who may read it. Sealed with it: topics, source, links "
            "to other memories and metadata",
        },
    },
    "memory_bodies": {
        "description": "The sealed texts of memories.",
        "label_column": "id",
        "columns": {
            "id": "Random id, as in the column content of memories",
            "collection": COLLECTION,
            "tag": f"Equal texts of a collection have an equal {KEYED_HASH}",
            "body": "Sealed: the text",
        },
    },
    "memory_topics": {
        "description": "Which memories share a topic. Empty where topics are kept in memory"
        " (see memory-store settings) and in a strict vault.",
        "columns": {
            "memory": "Id of the memory",
            "topic": f"The topic as a {KEYED_HASH}: compare it with topic_hash('travel')",
        },
    },
    "memory_sources": {
        "description": "Which memories were imported from one file, and whether it has changed.",
        "label_column": "memory",
        "columns": {
            "memory": "Id of the memory",
            "origin": f"Where it came from, as a {KEYED_HASH}",
            "draft": f"What it was when it was imported, as a {KEYED_HASH}",
            "file": f"The file it was read from, as a {KEYED_HASH}",
        },
    },
    "collections": {
        "description": "The collections that memories belong to. Their names are sealed.",
        "label_column": "id",
        "columns": {
            "name": "Empty: names are in the sealed settings",
        },
    },
    **{table: {"hidden": True} for table in (*VAULT_TABLES, *LATER_TABLES, MIGRATIONS)},
}
"""By table: as Datasette's configuration writes it. ``label_column`` keeps sealed bytes out of the
labels of rows and of foreign keys. There are no units: no column of these tables is a quantity."""
