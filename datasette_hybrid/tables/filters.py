"""``?_hybrid=query`` and the search box on Datasette's own page of memories: what a search finds.

Boundary: without the search grant, or locked, no row is shown, as in SQL. Where a vault keeps
queries out of addresses none is taken from one. The page keeps Datasette's filters, facets and
formats; its rows stand in the order of relevance unless another is asked for.
"""

from __future__ import annotations

import json
from typing import Any

from datasette.filters import FilterArguments, Filters
from msgspec.structs import replace

from memory_store.access import Grants
from memory_store.errors import BadInputError, MemoryStoreError, NotAVaultError
from memory_store.records import (
    LIMIT_DEEP,
    LIMIT_STANDARD,
    SearchRequest,
    SearchResponse,
    read_request,
)

from ..permissions.asker import asker
from ..requests import questions
from ..requests.admission import QueueFullError
from ..requests.frame import hybrid_path
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import order

PARAMETER = "_hybrid"
DESCRIPTION = "hybrid_description"
"""Under which name a request's scope holds what was found, in words."""
OPTION_PREFIX = "_hybrid_"
BOX = "_search"
"""Datasette's own search box, which its page shows when a filter says that it supports it."""


async def found_memories(datasette: Any, request: Any, database: str) -> FilterArguments | None:
    """A filter for the memories that the query finds; ``None`` where there is no vault."""
    try:
        vault = vaults_of(datasette).of(database)
    except NotAVaultError:
        return None
    grants = asker.get().on(database)
    private = vault.settings.private_queries
    query = asked_for(request)
    box = bool(grants.search) and not (vault.locked or private)
    context = {"supports_search": box, "search": "" if private else query}
    if not query:
        return FilterArguments([], extra_context=context)
    if private:
        ids: list[str] = []
        description = "not searched: this vault keeps queries out of addresses, use its search page"
    else:
        path = hybrid_path(datasette, database)
        ids, description = await _found(vault, grants, query, request, path)
    after = order.after(request)
    if after is None:
        clause, place = order.FOUND, {}
    else:
        clause, place = order.RANKED, {"hybrid_after": ids.index(after) if after in ids else -1}
        description = f"{description}, in order of relevance" if ids else description
    request.scope[DESCRIPTION] = description
    return FilterArguments(
        where_clauses=[clause],
        params={"hybrid_found": json.dumps(ids), **place},
        human_descriptions=[description],
        extra_context=context,
    )


def shown_order(request: Any) -> dict[str, Any]:
    """What the page says of the order of its rows, where it is that of relevance."""
    if request.scope.get(order.SETTLED) is None:
        return {}
    asked = [
        (name, value)
        for name in request.args
        if "__" in name or not name.startswith("_")
        for value in request.args.getlist(name)
    ]
    said = Filters(sorted(asked)).human_description_en(extra=[request.scope[DESCRIPTION]])
    return {"human_description_en": said, "sort": None, "sort_desc": None}


def asked_for(request: Any) -> str:
    """The query in a table page's address; what stands in the box counts more."""
    return str(request.args.get(BOX) or request.args.get(PARAMETER) or "").strip()


def options_asked(request: Any) -> dict[str, list[str]]:
    """Options of the search in a table page's address (``_hybrid_mode=keyword``), by name."""
    return {
        name.removeprefix(OPTION_PREFIX): request.args.getlist(name)
        for name in request.args
        if name.startswith(OPTION_PREFIX)
    }


async def _found(
    vault: Vault, grants: Grants, query: str, request: Any, path: str
) -> tuple[list[str], str]:
    """Ids of what the search finds, and a description for the page, which puts “where” before it.

    ``path`` is the search page's.
    """
    if vault.locked:
        return [], f"not searched: {vault.database} is locked, unlock it at {path}/unlock"
    if not grants.search:
        return [], "not searched: this needs the permission hybrid-search"
    try:
        options = options_asked(request)
        asked = read_request({**options, "q": query})
        sized = bool({"deep", "limit"}.intersection(options))
        response = await _widely(vault, grants, asked, sized=sized)
    except (MemoryStoreError, QueueFullError) as error:
        return [], f"not searched: {error}"
    more = f" (the best {len(response.rows)})" if response.next else ""
    return [row.id for row in response.rows], f"found for “{query}”{more}"


async def _widely(
    vault: Vault, grants: Grants, asked: SearchRequest, *, sized: bool
) -> SearchResponse:
    """A deep search, so that filters and facets have something to choose from.

    One word is too little for a deep search; that is a standard one with its full limit.
    """
    if not sized:
        wide = replace(asked, deep=True, limit=LIMIT_DEEP)
        try:
            return await questions.search(vault, grants, wide)
        except BadInputError as error:
            if error.parameter != "deep":
                raise
        asked = replace(asked, limit=LIMIT_STANDARD)
    return await questions.search(vault, grants, asked)
