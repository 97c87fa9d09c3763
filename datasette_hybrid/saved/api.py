"""Saved searches in JSON.

Boundary: names and queries of the asker's own. A feed's token is in the one answer that makes it.
"""

from __future__ import annotations

from typing import Any

from datasette import Response

from memory_store.errors import BadInputError
from memory_store.records import SavedSearch

from ..requests import questions
from ..requests.admission import work, writing
from ..requests.answers import answer
from ..requests.frame import hybrid_path
from ..search.addresses import address, pairs_of
from ..search.api import absolute_url, endpoint
from ..vaults.vault import Vault
from .owner import changing, owned, store_of


@endpoint("GET", "HEAD", "POST")
async def searches(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/searches.json``: list them, or save one."""
    if request.method != "POST":
        vault, _, owner = await owned(datasette, request)
        found = await work.run(lambda: store_of(vault).searches.list(owner))
        return answer({"ok": True, "rows": [_row(datasette, request, vault, one) for one in found]})
    vault, owner = await changing(datasette, request)
    given = await questions.json_fields(request, "name", "search")
    name, search = _text(given, "name"), given.get("search")
    if not isinstance(search, dict):
        raise BadInputError("search: an object expected, as q and the other options", "search")
    asked = questions.question(search, strict=True)
    saved = await writing.run(lambda: store_of(vault).searches.save(owner, name, asked))
    return answer({"ok": True, "rows": [_row(datasette, request, vault, saved)]}, 201)


@endpoint("GET", "HEAD", "PATCH", "DELETE")
async def one_search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/searches/{id}.json``: one of them; rename or remove it."""
    named = request.url_vars["id"]
    if request.method in ("GET", "HEAD"):
        vault, _, owner = await owned(datasette, request)
        saved = await work.run(lambda: store_of(vault).searches.find(owner, named))
        return answer({"ok": True, "rows": [_row(datasette, request, vault, saved)]})
    vault, owner = await changing(datasette, request)
    if request.method == "DELETE":
        await writing.run(lambda: store_of(vault).searches.remove(owner, named))
        return answer({"ok": True})
    name = _text(await questions.json_fields(request, "name"), "name")
    saved = await writing.run(lambda: store_of(vault).searches.rename(owner, named, name))
    return answer({"ok": True, "rows": [_row(datasette, request, vault, saved)]})


@endpoint("POST", "DELETE")
async def feed(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/searches/{id}/feed.json``: make its feed anew, or end it."""
    vault, owner = await changing(datasette, request, feed=request.method == "POST")
    named = request.url_vars["id"]
    if request.method == "DELETE":
        saved = await writing.run(lambda: store_of(vault).searches.end_feed(owner, named))
        return answer({"ok": True, "rows": [_row(datasette, request, vault, saved)]})
    saved, token = await writing.run(lambda: store_of(vault).searches.make_feed(owner, named))
    addresses = feed_addresses(datasette, request, vault, saved)
    return answer({"ok": True, **addresses, "token": token}, 201)


def feed_addresses(
    datasette: Any, request: Any, vault: Vault, saved: SavedSearch
) -> dict[str, str]:
    """Where the feed of a saved search is, in both forms."""
    base = f"{hybrid_path(datasette, vault.database)}/feeds/{saved.id}"
    return {form: absolute_url(datasette, request, f"{base}.{form}") for form in ("atom", "json")}


def _row(datasette: Any, request: Any, vault: Vault, saved: SavedSearch) -> dict[str, Any]:
    """One as JSON. ``url`` asks it; null where questions stand in no address."""
    path = f"{hybrid_path(datasette, vault.database)}.json"
    url = None
    if not vault.settings.private_queries:
        url = absolute_url(datasette, request, address(path, pairs_of(saved.search)))
    return {**saved.as_dict(), "url": url}


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise BadInputError(f"{name}: text expected", name)
    return value
