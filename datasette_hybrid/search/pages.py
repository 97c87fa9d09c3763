"""The HTML pages: parse → grant → memory_store → render.

Boundary: these pages may show opened text; :mod:`datasette_hybrid.requests.frame` protects them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from datasette import NotFound, Response
from msgspec.structs import replace

from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.records import SearchRequest

from ..permissions.asker import asker
from ..permissions.grants import may_see
from ..requests import private_searches, questions
from ..requests.admission import QueueFullError, work
from ..requests.frame import hybrid_path, page, render, sentence
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import facets, forms, result_views
from .addresses import Asked, changed
from .contents import answered, looked_up, page_context
from .welcome import welcome

PER_VAULT = 5  # results of each database on the page across all of them


@page("GET", "HEAD", "POST")
@private_searches.in_one_vault
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid``: the search page of one vault."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    given = forms.understood(await questions.parameters(request))
    asked, wrong = _asked(given)
    found = await questions.in_turn(lambda: looked_up(vault, grants, asked))
    refusal = wrong or found.refusal
    context = page_context(datasette, vault, grants, given, found.collections)
    if refusal is not None:
        context["refusal"] = sentence(str(refusal))
    elif found.response is not None:
        context |= await answered(vault, grants, asked, found.response, context)
    else:
        context["welcome"] = await welcome(vault, grants, context["path"])
    if grants.decrypt:
        on_start = context["welcome"] is not None
        context["older"] = await work.run(lambda: vault.older(again=on_start))
    status = questions.status_of(refusal) if refusal else 200
    return await render(datasette, request, "hybrid_search.html", context, status)


@page("GET", "HEAD", "POST")
@private_searches.in_all_vaults
async def across(datasette: Any, request: Any) -> Response:
    """``/-/hybrid``: the same question to every vault the asker may search."""
    given = forms.understood(await questions.parameters(request))
    asked, wrong = _asked(given)
    refusal = sentence(str(wrong)) if wrong else None
    shown = [
        vault
        for vault in vaults_of(datasette).all()
        if await may_see(datasette, request.actor, vault.database)
    ]
    # one vault that keeps queries out of addresses is enough: the question goes to all of them
    private = any(vault.settings.private_queries for vault in shown)
    sections = [await _section(datasette, vault, asked, private) for vault in shown]
    context = {
        "q": forms.last(given, "q"),
        "sections": sections,
        "chips": facets.chips(given, datasette.urls.path("/-/hybrid")),
        "clear_href": facets.cleared(given, datasette.urls.path("/-/hybrid")),
        "refusal": refusal,
        "no_reranker": next((one["no_reranker"] for one in sections if one["no_reranker"]), None),
        "private_queries": private,
        "hidden": forms.carried(given),
    }
    status = 400 if refusal else 200
    return await render(datasette, request, "hybrid_across.html", context, status)


def _asked(given: Mapping[str, Any]) -> tuple[questions.Question, BadInputError | None]:
    """What is asked; nothing, and why not, where the parameters do not say it."""
    try:
        return questions.question(given, strict=False), None
    except BadInputError as error:
        return questions.Question(SearchRequest(), given), error


async def _section(
    datasette: Any, vault: Vault, asked: questions.Question, private: bool
) -> dict[str, Any]:
    """One database's part of the page across all of them."""
    given = {} if private else {**asked.given, "continue": []}
    grants = asker.get().on(vault.database)
    path = hybrid_path(datasette, vault.database)
    section: dict[str, Any] = {
        "database": vault.database,
        "path": path,
        "locked": vault.locked,
        "searchable": grants.search and not vault.locked,
        "all_href": changed(given, path),
        "results": [],
        "refusal": None,
        "response": None,
        "nearest": None,
        "degraded": [],
        "no_reranker": None,
    }
    if section["searchable"] and not asked.request.asks:
        section["memories"] = await work.run(lambda: vault.use(grants.search).stats()["memories"])
    elif section["searchable"]:
        few = questions.Question(replace(asked.request, limit=PER_VAULT), asked.given)
        try:
            response = await asyncio.wait_for(questions.search(vault, grants, few), timeout=30)
        except (MemoryStoreError, QueueFullError, TimeoutError) as error:
            section["refusal"] = sentence(str(error) or "this took too long")
        else:
            section["response"] = response
            section["found"] = facets.found(response, asked.given)
            section["results"] = result_views.results(response, grants, Asked(path, given))
            section |= result_views.remarks(response, grants)
    return section


@page("GET", "HEAD", "POST")
async def nowhere(datasette: Any, request: Any) -> Response:
    """Any other address below the search page."""
    raise NotFound("there is no such page")
