"""The search page's contents: the form, the answer, the ways on and the ways out.

Boundary: knows of a vault only what :mod:`datasette_hybrid.requests.questions` lets through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError, MemoryStoreError, NotFoundError
from memory_store.host import CODE, shown_title
from memory_store.records import SearchResponse

from ..requests import questions
from ..requests.admission import work
from ..requests.frame import hybrid_path
from ..vaults.vault import Vault
from . import facets, forms, result_views
from .addresses import Asked, changed
from .chart import slopes
from .explanation import stages, why_view
from .understood import examples, understood

MOST_RELAXED = 4  # further searches, unread, after one that found nothing


@dataclass(frozen=True)
class LookedUp:
    """What the page takes from the vault, all of it in one go: a thread is waited for once.

    ``collections`` pairs the names that the asker may read with their analysers. Of ``response``
    and ``refusal`` one at most is there; neither where nothing was asked.
    """

    collections: Sequence[tuple[str, str]] = ()
    response: SearchResponse | None = None
    refusal: BadInputError | access.NotPermittedError | None = None


def looked_up(vault: Vault, grants: Grants, asked: questions.Question) -> LookedUp:
    """The answer and the collections. Raises what the store raises, but for a question's faults."""
    collections = vault.use(grants.decrypt).collections.analysers() if grants.decrypt else ()
    if not asked.request.asks:
        return LookedUp(collections)
    try:
        return LookedUp(collections, response=questions.answer(vault, grants, asked))
    except (BadInputError, access.NotPermittedError) as refusal:
        return LookedUp(collections, refusal=refusal)


def page_context(
    datasette: Any,
    vault: Vault,
    grants: Grants,
    given: dict[str, Any],
    collections: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """What the page shows whatever becomes of the question: its frame and its form."""
    names = [name for name, _ in collections]
    path, private = hybrid_path(datasette, vault.database), vault.settings.private_queries
    return {
        "database": vault.database,
        "path": path,
        "grants": grants,
        "private_queries": private,
        "q": forms.last(given, "q"),
        "form": forms.form(given, grants, collections=names, strict=vault.strict),
        "code_collections": {name for name, analyser in collections if analyser == CODE},
        "chips": facets.chips(given, path),
        "examples": examples(path, names),
        "clear_href": facets.cleared(given, path),
        "response": None,
        "welcome": None,
        "older": None,
        "refusal": None,
        "nearest": None,
        "degraded": [],
    }


async def answered(
    vault: Vault,
    grants: Grants,
    asked: questions.Question,
    response: SearchResponse,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """The answer to a question, and ways out where it is empty."""
    path, like = context["path"], asked.request.like
    more = _answer(response, grants, asked, context)
    if like and grants.decrypt:
        title = await work.run(lambda: _title_of(vault, grants, like))
        more["chips"] = facets.chips(asked.given, path, title)
    if not response.rows:
        more["ways_out"] = await work.run(lambda: _ways_out(vault, grants, asked, path))
    return more


def _answer(
    response: SearchResponse, grants: Grants, asked: questions.Question, context: Mapping[str, Any]
) -> dict[str, Any]:
    given, path = asked.given, context["path"]
    # in a private search nothing of the question may stand in an address
    addresses = Asked(path, {} if context["private_queries"] else given)
    explaining = asked.request.explain
    results = result_views.results(response, grants, addresses, context["code_collections"])
    return {
        "response": response,
        "results": results,
        "found": facets.found(response, given),
        "holding": facets.holding(response),
        "understood": understood(response.query, response.mode, asked.request.mode),
        "continued": forms.last(given, "continue"),
        **result_views.remarks(response, grants),
        "facets": facets.facets(response, given, addresses),
        "widened_href": facets.widened(given, path),
        "stages": stages(response) if explaining else [],
        "slopes": slopes(results) if explaining else None,
        "why": why_view(response.why),
        "explaining": explaining,
        **_links(response, given, path, explaining),
    }


def _links(
    response: SearchResponse, given: Mapping[str, Any], path: str, explaining: bool
) -> dict[str, str | None]:
    """The same search in other shapes and on other pages."""
    following = response.next and changed(given, path, continue_=response.next)
    return {
        "explain_href": changed(given, path, explain=None if explaining else "1"),
        "json_href": changed(given, f"{path}.json"),
        "csv_href": changed(given, f"{path}.csv", explain=None),
        "first_href": changed(given, path, continue_=None),
        "next_href": following or None,
    }


def _ways_out(
    vault: Vault, grants: Grants, asked: questions.Question, path: str
) -> list[tuple[str, str, str]]:
    """What to leave out for results: a label, the address, and how many there would be."""
    ways = []
    store = vault.use(grants.search)
    for label, given in facets.relaxed(asked.given)[:MOST_RELAXED]:
        try:
            wider = questions.question(given, strict=False).request
            one = replace(wider, limit=1, rerank=False, explain=False)
            response = access.search(store, grants, one)
        except MemoryStoreError:  # nothing is left to search for
            continue
        if response.rows:
            count = facets.found(response, given)
            ways.append((label, changed(given, path, continue_=None), count))
    return ways


def _title_of(vault: Vault, grants: Grants, like: str) -> str:
    """What the memory is called that others should be like; empty if it is not to be read."""
    try:
        found = vault.use(grants.decrypt).get(like, refs=False)
    except NotFoundError:
        return ""
    return shown_title(found.title, found.text)
