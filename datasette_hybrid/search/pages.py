"""The HTML pages: parse → grant → memory_store → render.

Boundary: these pages may show opened text; :mod:`datasette_hybrid.requests.frame` protects them.
They know of a vault only what :mod:`datasette_hybrid.requests.questions` lets through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from datasette import NotFound, Response
from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError, MemoryStoreError, NotFoundError
from memory_store.host import CODE, shown_title, typed_vault, words
from memory_store.records import TYPES, SearchRequest, SearchResponse

from ..memories import undo
from ..memories.addresses import kept
from ..permissions.asker import asker
from ..permissions.grants import may_see
from ..requests import private_searches, questions
from ..requests.admission import QueueFullError, work
from ..requests.frame import hybrid_path, page, render, sentence
from ..saved.owner import owner_of, saved_for
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import facets, forms, result_views
from .addresses import Asked, changed
from .explanation import slopes, why_view
from .neighbours import keep_order
from .understood import asks_words, examples, mode_examples, understood
from .welcome import welcome

PER_VAULT = 5  # results of each database on the page across all of them
MOST_RELAXED = 4  # further searches, unread, after one that found nothing

Refusal = BadInputError | access.NotPermittedError


@page("GET", "HEAD", "POST")
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid``: the search page of one vault."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    grants, path = vault.offered(grants), hybrid_path(datasette, vault.database)
    private = [vault] if vault.settings.private_queries else []
    away = await private_searches.led_away(datasette, request, path, private)
    if away is not None:
        return away
    given = forms.understood(await questions.parameters(request))
    asked, refusal = _asked(given)

    def look() -> tuple[Sequence[tuple[str, str]], SearchResponse | Refusal | None]:
        """The names that may be read, with their analysers, and the answer: one wait for both."""
        named = vault.use(grants.decrypt).collections.analysers() if grants.decrypt else ()
        try:
            return named, questions.answer(vault, grants, asked) if asked.asks else None
        except (BadInputError, access.NotPermittedError) as error:
            return named, error

    collections, found = await questions.in_turn(look)
    names = [name for name, _ in collections]
    completes = bool(grants.search & grants.decrypt) and not private
    context: dict[str, Any] = {
        "database": vault.database,
        "path": path,
        "grants": grants,
        "private_queries": bool(private),
        "keep": kept(request),
        "words_href": f"{path}/words.json" if completes else "",
        "types": TYPES,
        "undo": undo.group_in(request) if grants.decrypt and grants.write else "",
        "q": forms.last(given, "q"),
        "form": (form := forms.form(given, grants, collections=names, strict=vault.strict)),
        "code_collections": {name for name, analyser in collections if analyser == CODE},
        "chips": facets.chips(given, path),
        "examples": examples(path, names),
        "mode_examples": mode_examples(path, form["modes"]),
        "saves": owner_of(vault) is not None,
        "carried": forms.carried(given),
        "saved": (),
        "clear_href": facets.cleared(given, path),
        **dict.fromkeys(("response", "welcome", "older", "refusal", "nearest", "embedding")),
        "also_searched": {},
        "degraded": [],
    }
    if isinstance(found, Exception):
        refusal = found
    if refusal is not None:
        context["refusal"] = sentence(forms.in_labels(refusal))
    elif isinstance(found, SearchResponse):
        keep_order(vault, grants, given, found)
        context |= await _answered(vault, grants, given, asked, found, context)
    else:
        context["welcome"] = await welcome(vault, grants, path)
        named = "ADDRESS" if vault.settings.storage else vault.path.name  # nothing of the server
        context["typed"] = typed_vault(vault.path) and f" {named}"
        context["saved"] = await work.run(lambda: saved_for(vault, owner_of(vault)))
        context["embedding"] = await work.run(lambda: vault.upkeep.embedding_now(grants.search))
    if grants.decrypt:
        on_start = context["welcome"] is not None
        older = await work.run(lambda: vault.older(again=on_start))
        context["older"] = older and access.warning_shown(older, owner=grants.audit)
    status = questions.status_of(refusal) if refusal else 200
    return await render(datasette, request, "hybrid_search.html", context, status)


@page("GET", "HEAD", "POST")
async def across(datasette: Any, request: Any) -> Response:
    """``/-/hybrid``: the same question to every vault the asker may search."""
    if request.method == "POST":
        await questions.read_body(request)  # may take long; who may do what is settled by then
    shown = [
        vault
        for vault in vaults_of(datasette).all()
        if await may_see(datasette, request.actor, vault.database)
    ]
    # one vault that keeps queries out of addresses is enough: the question goes to all of them
    private = [vault for vault in shown if vault.settings.private_queries]
    open_to = [one for one in private if asker.get().on(one.database).search and not one.locked]
    path = datasette.urls.path("/-/hybrid")
    away = await private_searches.led_away(datasette, request, path, open_to)
    if away is not None:
        return away
    given = forms.understood(await questions.parameters(request))
    asked, refusal = _asked(given)
    sections = [await _section(datasette, vault, given, asked, bool(private)) for vault in shown]
    context = {
        "q": forms.last(given, "q"),
        "sections": sections,
        "chips": facets.chips(given, path),
        "clear_href": facets.cleared(given, path),
        "refusal": sentence(str(refusal)) if refusal else None,
        "no_reranker": next((one["no_reranker"] for one in sections if one["no_reranker"]), None),
        "private_queries": bool(private),
        "hidden": forms.carried(given),
    }
    status = 400 if refusal else 200
    return await render(datasette, request, "hybrid_across.html", context, status)


@page("GET", "HEAD", "POST")
async def nowhere(datasette: Any, request: Any) -> Response:
    """Any other address below the search page."""
    raise NotFound("there is no such page")


def _asked(given: Mapping[str, Any]) -> tuple[SearchRequest, Refusal | None]:
    """What is asked; nothing, and why not, where the parameters do not say it."""
    try:
        return questions.question(given, strict=False), None
    except BadInputError as error:
        return SearchRequest(), error


async def _section(
    datasette: Any, vault: Vault, given: Mapping[str, Any], asked: SearchRequest, private: bool
) -> dict[str, Any]:
    """One database's part of the page across all of them."""
    linked = {} if private else {**given, "continue": []}
    grants = asker.get().on(vault.database)
    path = hybrid_path(datasette, vault.database)
    section: dict[str, Any] = {
        "database": vault.database,
        "path": path,
        "locked": vault.locked,
        "searchable": grants.search and not vault.locked,
        "all_href": changed(linked, path),
        "degraded": [],
        "no_reranker": None,
    }
    if section["searchable"] and not asked.asks:
        section["memories"] = await work.run(lambda: vault.use(grants.search).stats()["memories"])
        section["embedding"] = await work.run(lambda: vault.upkeep.embedding_now(grants.search))
    elif section["searchable"]:
        few = replace(asked, limit=PER_VAULT)
        try:
            response = await asyncio.wait_for(questions.search(vault, grants, few), timeout=30)
        except (MemoryStoreError, QueueFullError, TimeoutError) as error:
            section["refusal"] = sentence(str(error) or "this took too long")
        else:
            section["response"] = response
            section["how_many"] = facets.how_many(response, given)
            section["results"] = result_views.results(response, grants, Asked(path, linked))
            section |= result_views.remarks(response, grants)
    return section


async def _answered(
    vault: Vault,
    grants: Grants,
    given: Mapping[str, Any],
    asked: SearchRequest,
    response: SearchResponse,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """The answer to a question, the same search in other shapes, and ways out of an empty one."""
    path, like, explaining = context["path"], asked.like, asked.explain
    # in a private search nothing of the question may stand in an address
    addresses = Asked(path, {} if context["private_queries"] else given)
    results = result_views.results(response, grants, addresses, context["code_collections"])
    following = response.next and changed(given, path, continue_=response.next)
    more = {
        "response": response,
        "results": results,
        "found": facets.found(response, given),
        "how_many": facets.how_many(response, given),
        "holding": facets.holding(response),
        "understood": understood(response.query, response.mode, asked.mode),
        "asks_words": asks_words(response.query, response.mode),
        "continued": forms.last(given, "continue"),
        **result_views.remarks(response, grants),
        "facets": facets.facets(response, given, addresses),
        "widened_href": facets.widened(given, path),
        "stages": [*map(words.stage_words, response.explain)] if explaining else [],
        "slopes": slopes(results) if explaining else None,
        "why": why_view(response.why),
        "explaining": explaining,
        "explain_href": changed(given, path, explain=None if explaining else "1"),
        "json_href": changed(given, f"{path}.json"),
        "csv_href": changed(given, f"{path}.csv", explain=None),
        "first_href": changed(given, path, continue_=None),
        "next_href": following or None,
    }
    more["selectable"] = await work.run(lambda: _selectable(vault, grants, response))
    if like and grants.decrypt:
        title = await work.run(lambda: _title_of(vault, grants, like))
        more["chips"] = facets.chips(given, path, title)
    if not response.rows:
        more["ways_out"] = await work.run(lambda: _ways_out(vault, grants, given, path))
    return more


def _ways_out(
    vault: Vault, grants: Grants, asked: Mapping[str, Any], path: str
) -> list[tuple[str, str, str]]:
    """What to leave out for results: a label, the address, and how many there would be."""
    ways = []
    store = vault.use(grants.search)
    for label, given in facets.relaxed(asked)[:MOST_RELAXED]:
        try:
            wider = questions.question(given, strict=False)
            one = replace(wider, limit=1, rerank=False, explain=False)
            response = access.search(store, grants, one)
        except MemoryStoreError:  # nothing is left to search for
            continue
        if response.rows:
            count = facets.found(response, given)
            ways.append((label, changed(given, path, continue_=None), count))
    return ways


def _selectable(vault: Vault, grants: Grants, response: SearchResponse) -> Collection[str]:
    """The results that the asker may change together."""
    scope = grants.decrypt & grants.write
    ids = [row.id for row in response.rows]
    if scope.covers(grants.search | grants.decrypt):
        return ids
    return vault.use(scope).present(ids) if scope else ()


def _title_of(vault: Vault, grants: Grants, like: str) -> str:
    """What the memory is called that others should be like; empty if it is not to be read."""
    try:
        found = vault.use(grants.decrypt).get(like, refs=False)
    except NotFoundError:
        return ""
    return shown_title(found.title, found.text)
