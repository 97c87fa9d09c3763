"""``?_hybrid=query`` on Datasette's own table page of memories: the rows that a search finds.

Boundary: without the search grant, or locked, no row is shown, as in SQL. The page cannot keep the
order of the ranking; the search page does that.
"""

from __future__ import annotations

import json
from typing import Any

from datasette.filters import FilterArguments

from memory_store.records import LIMIT_STANDARD, MemoryStoreError, NotAVaultError

from . import asking
from .admission import QueueFullError
from .grants import asker
from .vaults import vaults_of


async def found_memories(datasette: Any, request: Any, database: str) -> FilterArguments | None:
    """A filter for the memories that the query finds; ``None`` where there is no vault."""
    query = request.args["_hybrid"]
    try:
        vault = vaults_of(datasette).of(database)
    except NotAVaultError:
        return None
    ids: list[str] = []
    description = f'found by searching for "{query}"'
    grants = asker.get().on(database)
    if grants.search:
        try:
            asked = asking.Question(query, {"limit": LIMIT_STANDARD}, {})
            ids = [row.id for row in (await asking.search(vault, grants, asked)).rows]
        except (MemoryStoreError, QueueFullError) as error:
            description = f"not searched: {error}"
    return FilterArguments(
        where_clauses=["id in (select value from json_each(:hybrid_found))"],
        params={"hybrid_found": json.dumps(ids)},
        human_descriptions=[description],
    )
