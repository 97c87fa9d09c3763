"""Saved searches as pages: save the present one, run, rename and remove them, make a feed.

Boundary: names and queries of the asker's own. In a vault with private questions none of them is
in an address: a saved search goes by its random id. A feed's token is on one page, once.
"""

from __future__ import annotations

from typing import Any

from datasette import Response

from memory_store.errors import BadInputError
from memory_store.records import SavedSearch

from ..memories.addresses import seeing_other
from ..requests import private_searches, questions
from ..requests.admission import work, writing
from ..requests.frame import hybrid_path, page, render
from ..search import forms
from ..search.addresses import address, pairs_of
from ..vaults.vault import Vault
from .api import feed_addresses
from .owner import changing, owned, saved_for, store_of


@page("GET", "HEAD", "POST")
async def searches(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/searches``: the list; posted to, it saves a search."""
    if request.method == "POST":
        return await _save(datasette, request)
    vault, _, owner = await owned(datasette, request)
    found = await work.run(lambda: saved_for(vault, owner))
    return await _shown(datasette, request, vault, found)


@page("GET", "HEAD")
async def run(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/searches/{id}``: to the answer of a saved search."""
    vault, grants, owner = await owned(datasette, request)
    saved = await work.run(lambda: store_of(vault).searches.find(owner, request.url_vars["id"]))
    path, given = hybrid_path(datasette, vault.database), dict(saved.search)
    if vault.settings.private_queries:
        given = {name: forms.values(given, name) for name in given}
        away = await private_searches.led_to(datasette, request, vault, grants.search, given, path)
        if away is None:
            raise BadInputError("this search is too long to be asked here", "q")
        return away
    return private_searches.see(address(path, pairs_of(given)))


@page("POST")
async def change(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/searches/{id}/change``: ``do`` rename, remove, feed or end-feed."""
    given = await questions.parameters(request)
    do, named = forms.last(given, "do"), request.url_vars["id"]
    vault, owner = await changing(datasette, request, feed=do == "feed")
    mine = store_of(vault).searches
    if do == "feed":
        saved, token = await writing.run(lambda: mine.make_feed(owner, named))
        found = await work.run(lambda: mine.list(owner))
        return await _shown(datasette, request, vault, found, (saved, token))
    if do == "rename":
        saved = await writing.run(lambda: mine.rename(owner, named, forms.last(given, "name")))
        said = f"It is called {saved.name} now."
    elif do == "remove":
        saved = await writing.run(lambda: mine.remove(owner, named))
        said = f"{saved.name} is removed. No memory was touched."
    elif do == "end-feed":
        saved = await writing.run(lambda: mine.end_feed(owner, named))
        said = f"The feed of {saved.name} has ended."
    else:
        raise BadInputError("do: rename, remove, feed or end-feed expected", "do")
    path = f"{hybrid_path(datasette, vault.database)}/searches"
    return seeing_other(datasette, request, path, said)


async def _save(datasette: Any, request: Any) -> Response:
    vault, owner = await changing(datasette, request)
    given = await questions.parameters(request)
    asked = questions.question(given, strict=False)
    name = forms.last(given, "name") or asked.query
    saved = await writing.run(lambda: store_of(vault).searches.save(owner, name, asked))
    path = f"{hybrid_path(datasette, vault.database)}/searches"
    return seeing_other(datasette, request, path, f"Saved as {saved.name}.")


async def _shown(
    datasette: Any,
    request: Any,
    vault: Vault,
    found: list[SavedSearch],
    made: tuple[SavedSearch, str] | None = None,
) -> Response:
    context = {
        "searches": [(one, _words(one)) for one in found],
        "kept": await work.run(lambda: store_of(vault).is_owner),
        "made": made and (*made, feed_addresses(datasette, request, vault, made[0])),
    }
    return await render(datasette, request, "hybrid_searches.html", context, vault=vault)


def _words(saved: SavedSearch) -> str:
    """What it asks for, on one line."""
    options = [f"{name}: {value}" for name, value in forms.carried(saved.search)]
    return " · ".join([*filter(None, [forms.last(saved.search, "q")]), *options])
