"""The HTML pages: parse → grant → memory_store → render.

Boundary: these pages may show opened text; :mod:`datasette_hybrid.framing` protects them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from datasette import NotFound, Response
from datasette.utils import tilde_decode
from markupsafe import Markup

from memory_store.records import (
    DONE_SUFFIX,
    TYPES,
    BadInputError,
    CollectionInfo,
    Memory,
    MemoryStoreError,
    SearchResponse,
)
from memory_store.sql.functions import Grants
from memory_store.sql.permitted import NotPermittedError
from memory_store.store import MemoryStore
from memory_store.text.identifiers import CODE
from memory_store.titles import shown_title

from . import asking, compat, forms, presenting
from .admission import QueueFullError, work
from .explaining import stages, why_view
from .framing import hybrid_path, page, render
from .grants import asker
from .reading import readable
from .vaults import Vault, vaults_of

FILTERS = ("type", "topic", "collection", "status", "since", "until", "meta", "min_score")
PER_VAULT = 5  # results of each database on the page across all of them


@page("GET", "HEAD", "POST")
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid``: the search page of one vault."""
    vault, grants = await asking.vault_for(datasette, request, "search")
    given = forms.understood(await asking.parameters(request))
    collections = await work.run(lambda: vault.use(grants.decrypt).collections()) if grants.decrypt else []
    context = _search_context(datasette, vault, grants, given, collections)
    status = 200
    try:
        asked = asking.question(given, strict=False)
        context["options"] = asked.options
        if asked.query.strip() or "like" in asked.options:
            response = await asking.search(vault, grants, asked)
            context.update(_answer_context(response, given, context))
        else:
            context["memories"] = await work.run(lambda: vault.use(grants.search).stats()["memories"])
    except (BadInputError, NotPermittedError) as error:
        status = asking.status_of(error)
        context["refusal"] = str(error)
    return await render(datasette, request, "hybrid_search.html", context, status)


def _search_context(
    datasette: Any,
    vault: Vault,
    grants: Grants,
    given: dict[str, Any],
    collections: Sequence[CollectionInfo],
) -> dict[str, Any]:
    names = [one.name for one in collections]
    return {
        "database": vault.database,
        "path": hybrid_path(datasette, vault.database),
        "grants": grants,
        "private_queries": vault.settings.private_queries,
        "given": given,
        "q": forms.last(given, "q"),
        "options": {},
        "form": forms.form(given, grants, collections=names),
        "collection_names": names,
        "code_collections": {one.name for one in collections if one.analyser == CODE},
        "types": TYPES,
        "filtered": any(forms.values(given, name) for name in FILTERS),
        "response": None,
        "refusal": None,
        "memories": None,
        "degraded": [],
    }


def _answer_context(
    response: SearchResponse, given: dict[str, Any], context: dict[str, Any]
) -> dict[str, Any]:
    path, private, grants = context["path"], context["private_queries"], context["grants"]
    keep = "" if private else presenting.changed(given, "")
    explaining = bool(context["options"].get("explain"))
    return {
        "response": response,
        "form": forms.form(
            given, grants, collections=context["collection_names"], facets_carry=private
        ),
        "results": presenting.results(response, grants, path, keep, context["code_collections"]),
        "later": bool(forms.last(given, "continue")),
        "degraded": [presenting.with_command(line) for line in response.degraded],
        "topic_facets": presenting.facets("topic", response.facets.get("topic", {}), given, path),
        "type_facets": presenting.facets("type", response.facets.get("type", {}), given, path),
        "stages": stages(response) if explaining else [],
        "why": why_view(response.why),
        "explaining": explaining,
        **_links(response, given, path, explaining),
    }


def _links(
    response: SearchResponse, given: dict[str, Any], path: str, explaining: bool
) -> dict[str, str | None]:
    """The same search in other shapes, on other pages, and without its filters."""
    following = response.next and presenting.changed(given, path, continue_=response.next)
    return {
        "explain_href": presenting.changed(given, path, explain=None if explaining else "1"),
        "json_href": presenting.changed(given, f"{path}.json"),
        "csv_href": presenting.changed(given, f"{path}.csv", explain=None),
        "first_href": presenting.changed(given, path, continue_=None),
        "next_href": following or None,
        "clear_href": presenting.changed({"q": given.get("q", "")}, path),
    }


@page("GET", "HEAD")
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}``: one memory, in full."""
    vault, grants = await asking.vault_for(datasette, request, "decrypt")
    memory_id = tilde_decode(request.url_vars["id"])
    path = hybrid_path(datasette, vault.database)
    given = forms.understood(await asking.parameters(request))
    found, html, words = await work.run(lambda: _opened(vault.use(grants.decrypt), memory_id))
    context = {
        "database": vault.database,
        "path": path,
        "back": presenting.changed(given, path) if given.get("q") else path,
        "grants": grants,
        "memory": found,
        "title": shown_title(found.title, found.text),
        "plain_type": found.type.removesuffix(DONE_SUFFIX),
        "done": found.type.endswith(DONE_SUFFIX),
        "html": html,
        "words": words,
    }
    return await render(datasette, request, "hybrid_memory.html", context)


def _opened(store: MemoryStore, memory_id: str) -> tuple[Memory, Markup, int]:
    """A memory, its text as HTML and its number of words: work for a thread, not the event loop."""
    found = store.get(memory_id, refs=False)
    return found, readable(found.text, title=found.title), len(found.text.split())


@page("GET", "HEAD", "POST")
async def across(datasette: Any, request: Any) -> Response:
    """``/-/hybrid``: the same question to every vault the asker may search."""
    given = forms.understood(await asking.parameters(request))
    asked = asking.question(given, strict=False)
    shown = [
        vault
        for vault in vaults_of(datasette).all()
        if await compat.may_view(datasette, request.actor, vault.database)
    ]
    # one vault that keeps queries out of addresses is enough: the question goes to all of them
    private = any(vault.settings.private_queries for vault in shown)
    sections = [await _section(datasette, vault, asked, private) for vault in shown]
    context = {
        "q": asked.query,
        "sections": sections,
        "private_queries": private,
        "hidden": forms.carried(given),
    }
    return await render(datasette, request, "hybrid_across.html", context)


async def _section(
    datasette: Any, vault: Vault, asked: asking.Question, private: bool
) -> dict[str, Any]:
    """One database's part of the page across all of them."""
    keep = "" if private else presenting.changed(asked.given, "", continue_=None)
    grants = asker.get().on(vault.database)
    path = hybrid_path(datasette, vault.database)
    section: dict[str, Any] = {
        "database": vault.database,
        "path": path,
        "locked": vault.locked,
        "searchable": grants.search and not vault.locked,
        "all_href": path + keep,
        "results": [],
        "refusal": None,
        "response": None,
        "degraded": [],
    }
    if section["searchable"] and asked.query.strip():
        few = asking.Question(asked.query, {**asked.options, "limit": PER_VAULT}, asked.given)
        try:
            response = await asyncio.wait_for(asking.search(vault, grants, few), timeout=30)
        except (MemoryStoreError, QueueFullError, TimeoutError) as error:
            section["refusal"] = str(error) or "this took too long"
        else:
            section["response"] = response
            section["results"] = presenting.results(response, grants, path, keep)
            section["degraded"] = [presenting.with_command(one) for one in response.degraded]
    return section


@page("GET", "HEAD", "POST")
async def nowhere(datasette: Any, request: Any) -> Response:
    """Any other address below the search page."""
    raise NotFound("there is no such page")
