"""From one result to the next: the order of a search's page, kept since it was shown.

So to open a memory searches nothing, and a result keeps its neighbours while memories are edited.

Boundary: ids alone, in memory until the lock, for askers with the same grants; what they may not
read now, or was deleted meanwhile, is passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from datasette import Response
from msgspec import Struct

from memory_store.access import Grants
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.records import SearchRequest, SearchResponse

from ..requests import private_searches, questions
from ..requests.admission import QueueFullError, work
from ..requests.frame import hybrid_path, page
from ..vaults.vault import Vault
from . import forms
from .addresses import changed, pairs_of
from .result_views import anchor


class Order(Struct, frozen=True):
    """The results of a page: id → the part of its memory's page; ``next`` leads to more."""

    rows: Mapping[str, str]
    next: str | None


class Neighbours(Struct, frozen=True):
    """The addresses of the results before and after one; ``None`` where there is none."""

    before: str | None = None
    after: str | None = None


async def asked_in(request: Any, vault: Vault) -> tuple[dict[str, Any], SearchRequest]:
    """The search in an address, or behind the name there, as its parameters and as a request.

    One of nothing where there is none. A further page is in the address itself.
    """
    if vault.settings.private_queries:
        private_searches.recall(request, [vault])
    given = {**await questions.parameters(request)}
    given |= {name: one for name, one in questions.arguments(request).items() if name == "continue"}
    given = forms.understood(given)
    with suppress(BadInputError):  # as the search page itself says
        return given, questions.question(given, strict=False)
    return given, SearchRequest()


def keep_order(
    vault: Vault, grants: Grants, given: Mapping[str, Any], found: SearchResponse
) -> Order:
    """Keep the order of a page that is shown."""
    order = Order({row.id: anchor(row) for row in found.rows}, found.next)
    vault.views.keep(_key(grants, given), order)
    return order


async def neighbours(
    request: Any,
    vault: Vault,
    grants: Grants,
    given: Mapping[str, Any],
    asked: SearchRequest,
    memory_id: str,
    path: str,
) -> Neighbours:
    """What stands beside a memory where the search for it was shown; ``path``: the search page's.

    Where that is kept no longer, as after a lock, it is searched again.
    """
    if not (asked.asks and grants.search):
        return Neighbours()
    order = vault.views.find(_key(grants, given))
    if order is None:
        try:
            found = await questions.search(vault, grants, asked)
        except (MemoryStoreError, QueueFullError):  # the memory is shown all the same
            return Neighbours()
        order = keep_order(vault, grants, given, found)
    ids = [*order.rows]
    if memory_id not in ids:
        return Neighbours()
    there, here = await _readable(vault, grants, order), ids.index(memory_id)
    searched = forms.understood(questions.arguments(request))
    named = {"asked": private_searches.name_in(request)}

    def way(some: list[str]) -> str | None:
        one = next((one for one in some if one in there), None)
        return one and changed(searched, f"{path}/memories/{one}", **named) + order.rows[one]

    after = way(ids[here + 1 :])
    if after is None and order.next:
        after = changed(searched, f"{path}/first", continue_=order.next, **named)
    return Neighbours(way(ids[:here][::-1]), after)


@page("GET", "HEAD")
async def first(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/first``: leads to the first result of a page of a search."""
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt")
    given, asked = await asked_in(request, vault)
    path = hybrid_path(datasette, vault.database)
    if not asked.asks:
        return private_searches.see(path)
    order = keep_order(vault, grants, given, await questions.search(vault, grants, asked))
    there = await _readable(vault, grants, order)
    path += next((f"/memories/{one}" for one in order.rows if one in there), "")
    if not vault.settings.private_queries:
        return private_searches.see(changed(given, path))
    way = await private_searches.led_to(datasette, request, vault, grants.search, given, path)
    return way or private_searches.see(path)


async def _readable(vault: Vault, grants: Grants, order: Order) -> Collection[str]:
    scope = grants.search & grants.decrypt
    return await work.run(lambda: vault.use(scope).present([*order.rows])) if scope else ()


def _key(grants: Grants, given: Mapping[str, Any]) -> int:
    """What stands for a search; nothing that was typed."""
    return hash((Order, grants, *pairs_of(given)))
