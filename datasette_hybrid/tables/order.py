"""Order of relevance on Datasette's own page of memories, which sorts by columns alone.

A filter cannot order. So it settles the order in the request, before Datasette reads it there, and
marks the page's statement, whose ``order by`` is then written anew where connections are guarded.

Boundary: ids and their places alone.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette.utils import tilde_decode

PARAMETER = "_by"
RELEVANCE = "relevance"
SETTLED = "hybrid_order"
"""Under which name a request's scope holds its :class:`Place`, once it is settled."""

FOUND = "id in (select value from json_each(:hybrid_found))"
RANKED = f"{FOUND} and :hybrid_after is not null"
_RANK = "(select key from json_each(:hybrid_found) where value = memories.id)"
_COLUMNS = re.compile(r"select [^()]+")
_ORDER = re.compile(r"\S+(?: desc)?(?:, \S+)? limit (\d+)")


def after(request: Any) -> str | None:
    """The id of the memory that a page of relevance comes after, empty for the first page.

    ``None`` where the order is the table's. Datasette's next page is one by a column: of a page of
    relevance, which ``_by`` marks, what is taken from it is the id that it ends with.
    """
    if SETTLED not in request.scope:
        request.scope[SETTLED] = _settle(request)
    place: str | None = request.scope[SETTLED]
    return place


def _settle(request: Any) -> str | None:
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    given = dict(pairs)
    following = given.get("_next", "")
    by_column = given.get("_sort") or given.get("_sort_desc")
    place: str | None = tilde_decode(following.rpartition(",")[2])
    if given.get("_stream") or (by_column and not (following and PARAMETER in given)):
        place = None
    left_out = {PARAMETER} if place is None else {PARAMETER, "_next", "_sort", "_sort_desc"}
    kept = [(name, value) for name, value in pairs if name not in left_out]
    if place is not None:
        kept.append((PARAMETER, RELEVANCE))
    request.scope["query_string"] = urlencode(kept).encode("latin-1")
    return place


def in_order(sql: Any) -> Any:
    """``sql``, and of a page that is marked so in the order of what was found.

    All SQL comes here, also what visitors write: it takes as long as the SQL, whatever that is.
    """
    if not isinstance(sql, str) or RANKED not in sql:
        return sql
    chosen, _, order = sql.rpartition(" order by ")
    columns, _, wanted = chosen.partition(" from memories where ")
    found = _ORDER.fullmatch(order)
    if found is None or RANKED not in wanted or not _COLUMNS.fullmatch(columns):
        return sql
    return f"{chosen} and {_RANK} > :hybrid_after order by {_RANK} limit {found[1]}"
