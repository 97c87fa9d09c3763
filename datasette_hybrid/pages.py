"""The HTML pages: parse → grant → memory_store → render.

Boundary: these pages may show opened text, so they are never stored by a browser or a proxy, send
no referrer, sit in no frame, and run no script but Datasette's own and ours (a content security
policy with hashes taken from Datasette's templates, rendered without any of our data).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import weakref
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from datasette import Forbidden, NotFound, Response
from datasette.utils import tilde_decode
from markupsafe import Markup

from memory_store.records import (
    DONE_SUFFIX,
    STATUSES,
    TYPES,
    BadInputError,
    LockedError,
    Memory,
    MemoryStoreError,
    NotAVaultError,
    NotFoundError,
)
from memory_store.sql.functions import Grants
from memory_store.sql.permitted import NotPermittedError

from . import asking, compat, presenting
from .admission import QueueFullError, TooManyAttemptsError, work
from .explaining import stages, why_view
from .grants import asker
from .reading import readable
from .vaults import Vault, vaults_of

PER_VAULT = 5  # results of each database on the page across all of them
INLINE_SCRIPT = re.compile(r"<script(?:\s+type=\"module\")?>(.*?)</script>", re.DOTALL)

View = Callable[[Any, Any], Awaitable[Response]]

_script_hashes: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def page(*methods: str) -> Callable[[View], View]:
    """Make a view answer every refusal with a page that says what to do."""

    def decorate(view: View) -> View:
        @wraps(view)
        async def answer(datasette: Any, request: Any) -> Response:
            if request.method not in methods:
                return await message(datasette, request, "Not possible here", "", 405)
            try:
                return await view(datasette, request)
            except asking.REFUSALS as error:
                return await refused(datasette, request, error)
            except Exception as error:  # noqa: BLE001 - see report_fault
                text = asking.report_fault(error)
                return await message(datasette, request, "This did not work", text, 500)

        return answer

    return decorate


async def refused(datasette: Any, request: Any, error: Exception) -> Response:
    """The page for a refusal: the way to unlock where that helps, else a message."""
    status = asking.status_of(error)
    if isinstance(error, LockedError | Forbidden) and "database" in request.url_vars:
        from .unlocking import unlock_page

        try:
            vault = await asking.visible_vault(datasette, request)
        except asking.REFUSALS:
            return await message(datasette, request, "Not allowed", str(error), status)
        return await unlock_page(datasette, request, vault, status=status)
    title = {
        400: "That cannot be searched for",
        404: "Nothing here",
        413: "Too long",
        429: "A moment, please",
    }.get(status, "This did not work")
    hint = ""
    if isinstance(error, NotAVaultError):
        title = "No vault in this database"
        hint = "Make one in a terminal: memory-store init notes.db --key-file ~/keys/notes.key"
    elif isinstance(error, NotFoundError):
        title = "No such memory"
        hint = "It may have been deleted, or live in another collection."
    retry = {"Retry-After": "1"} if isinstance(error, QueueFullError) else {}
    if isinstance(error, TooManyAttemptsError):
        retry = {"Retry-After": str(error.seconds)}
    return await message(datasette, request, title, str(error), status, hint, retry)


async def message(
    datasette: Any,
    request: Any,
    title: str,
    text: str,
    status: int,
    hint: str = "",
    headers: dict[str, str] | None = None,
) -> Response:
    """A page with a heading, a sentence, and what to do next."""
    context = {"title": title, "text": text, "hint": hint}
    return await render(datasette, request, "hybrid_message.html", context, status, headers)


async def render(
    datasette: Any,
    request: Any,
    template: str,
    context: dict[str, Any],
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """One of our templates, with the headers all of our pages carry."""
    body = await datasette.render_template(template, context, request=request)
    policy = await content_policy(datasette)
    protective = {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Content-Security-Policy": policy,
    }
    return Response.html(body, status=status, headers={**protective, **(headers or {})})


async def content_policy(datasette: Any) -> str:
    """The content security policy. Inline scripts: only those of Datasette's empty base page.

    Styles may be inline, because Datasette's menus are; images, fonts and requests stay here.
    """
    hashes = _script_hashes.get(datasette)
    if hashes is None:
        blank = await datasette.render_template("hybrid_blank.html", {}, request=None)
        hashes = " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
            for script in dict.fromkeys(INLINE_SCRIPT.findall(blank))
        )
        _script_hashes[datasette] = hashes
    return (
        f"default-src 'none'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


@page("GET", "HEAD", "POST")
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid``: the search page of one vault."""
    vault, grants = await asking.vault_for(datasette, request, "search")
    given = await asking.parameters(request)
    context = _search_context(datasette, vault, grants, given)
    status = 200
    try:
        asked = asking.question(given, strict=False)
        context["q"] = asked.query
        context["options"] = asked.options
        if asked.query.strip():
            response = await asking.search(vault, grants, asked)
            context.update(_answer_context(response, grants, given, context))
        else:
            context["memories"] = await work.run(lambda: vault.use().stats()["memories"])
    except (BadInputError, NotPermittedError) as error:
        status = asking.status_of(error)
        context["refusal"] = str(error)
    return await render(datasette, request, "hybrid_search.html", context, status)


def _search_context(
    datasette: Any, vault: Vault, grants: Grants, given: dict[str, Any]
) -> dict[str, Any]:
    path = hybrid_path(datasette, vault.database)
    return {
        "database": vault.database,
        "path": path,
        "grants": grants,
        "private_queries": vault.settings.private_queries,
        "given": given,
        "q": "",
        "options": {},
        "modes": presenting.offered_modes(str(_last(given, "mode") or "hybrid"), grants),
        "types": TYPES,
        "statuses": STATUSES,
        "chosen_types": _all(given, "type"),
        "chosen_topics": _all(given, "topic"),
        "chosen_collections": _all(given, "collection"),
        "response": None,
        "refusal": None,
        "memories": None,
        "degraded": [],
    }


def _answer_context(
    response: Any, grants: Grants, given: dict[str, Any], context: dict[str, Any]
) -> dict[str, Any]:
    path = context["path"]
    keep = "" if context["private_queries"] else presenting.changed(given, "")
    views = presenting.results(response, grants, path, keep)
    explaining = bool(context["options"].get("explain"))
    return {
        "response": response,
        "results": views,
        "degraded": [presenting.with_command(line) for line in response.degraded],
        "topic_facets": presenting.facets("topic", response.facets.get("topic", {}), given, path),
        "type_facets": presenting.facets("type", response.facets.get("type", {}), given, path),
        "stages": stages(response) if explaining else [],
        "why": why_view(response.why),
        "explaining": explaining,
        "explain_href": presenting.changed(given, path, explain="" if explaining else "1"),
        "json_href": presenting.changed(given, f"{path}.json"),
        "csv_href": presenting.changed(given, f"{path}.csv", explain=None),
        "next_href": presenting.changed(given, path, continue_=response.next)
        if response.next
        else None,
        "clear_href": presenting.changed({"q": context["q"]}, path),
    }


@page("GET", "HEAD")
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}``: one memory, in full."""
    vault, grants = await asking.vault_for(datasette, request, "decrypt")
    memory_id = tilde_decode(request.url_vars["id"])
    path = hybrid_path(datasette, vault.database)
    given = await asking.parameters(request)
    found, html, words = await work.run(lambda: _opened(vault, memory_id))
    context = {
        "database": vault.database,
        "path": path,
        "back": presenting.changed(given, path) if given.get("q") else path,
        "grants": grants,
        "memory": found,
        "plain_type": found.type.removesuffix(DONE_SUFFIX),
        "done": found.type.endswith(DONE_SUFFIX),
        "html": html,
        "words": words,
    }
    return await render(datasette, request, "hybrid_memory.html", context)


def _opened(vault: Vault, memory_id: str) -> tuple[Memory, Markup, int]:
    """A memory, its text as HTML and its number of words: work for a thread, not the event loop."""
    found = vault.use().get(memory_id, refs=False)
    return found, readable(found.text, title=found.title), len(found.text.split())


@page("GET", "HEAD", "POST")
async def across(datasette: Any, request: Any) -> Response:
    """``/-/hybrid``: the same question to every vault the asker may search."""
    asked = asking.question(await asking.parameters(request), strict=False)
    shown = [
        vault
        for vault in vaults_of(datasette).all()
        if await compat.may_view(datasette, request.actor, vault.database)
    ]
    # one vault that keeps queries out of addresses is enough: the question goes to all of them
    private = any(vault.settings.private_queries for vault in shown)
    sections = [await _section(datasette, vault, asked, private) for vault in shown]
    context = {"q": asked.query, "sections": sections, "private_queries": private}
    return await render(datasette, request, "hybrid_across.html", context)


async def _section(
    datasette: Any, vault: Vault, asked: asking.Question, private: bool
) -> dict[str, Any]:
    """One database's part of the page across all of them."""
    keep = "" if private else presenting.changed({"q": asked.query}, "")
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


def hybrid_path(datasette: Any, database: str) -> str:
    """The address of a database's search page."""
    return f"{datasette.urls.database(database)}/-/hybrid"


def _all(given: dict[str, Any], name: str) -> list[str]:
    value = given.get(name) or []
    return [value] if isinstance(value, str) else [str(item) for item in value if item]


def _last(given: dict[str, Any], name: str) -> str | None:
    values = _all(given, name)
    return values[-1] if values else None
