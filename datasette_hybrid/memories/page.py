"""One memory's page, and what its buttons do: complete, tag, publish, delete.

Boundary: opens one memory for an actor with the decrypt grant on its collection, and the names of
topics they may choose from. Messages about what was done name nothing of it: Datasette keeps them
in a cookie, which is signed and not sealed.
"""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import quote

from datasette import Response
from datasette.utils import tilde_decode

from memory_store.access import Grants
from memory_store.errors import (
    BadInputError,
    ConflictError,
    FormatError,
    NotFoundError,
    TamperedError,
)
from memory_store.host import NOTHING, MemoryStore, Scope, shown_title
from memory_store.records import DONE_SUFFIX, Memory, SealedMemory, SearchRequest, base_type

from ..code.source import file_view
from ..marks import Spans, marked
from ..requests import private_searches, questions
from ..requests.admission import work, writing
from ..requests.answers import HEADERS
from ..requests.frame import hybrid_path, page, render
from ..search import forms
from ..search.addresses import changed as changed_search
from ..search.neighbours import asked_in, neighbours
from ..vaults.vault import Vault
from . import undo
from .addresses import kept, memory_path, seeing_other
from .api import published, set_done, whole_id
from .links import near, notes_of
from .markdown import readable
from .source import is_here, origin

SUGGESTED_FROM = 250
"""Memories whose topics are suggested, the newest: to open their heads takes about 25 ms."""


@page("GET", "HEAD", "POST")
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}``: one memory, in full.

    A question that belongs in no address is posted here, and named in the address instead.
    """
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    grants = vault.offered(grants)
    here = memory_path(datasette, vault.database, _id(request))
    if request.method == "POST":
        given = forms.understood(await questions.parameters(request))
        if not vault.settings.private_queries:
            return private_searches.see(changed_search(given, here))
        way = await private_searches.led_to(datasette, request, vault, grants.decrypt, given, here)
        return way or private_searches.see(here)
    path = hybrid_path(datasette, vault.database)
    given, asked = await asked_in(request, vault)
    opened = await work.run(
        lambda: _opened(vault, grants, _id(request), path, asked, here=is_here(request.scope))
    )
    found = opened["memory"].id
    context = {
        **opened,
        "neighbours": await neighbours(request, vault, grants, given, asked, found, path),
        "here": memory_path(datasette, vault.database, found),
        "back": path + kept(request),
        "keep": kept(request),
        "grants": grants,
    }
    return await render(datasette, request, "hybrid_memory.html", context, vault=vault)


@page("GET", "HEAD")
async def original(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/original``: the file that it was read from, to be saved.

    A stranger made it: whatever it is, no browser shows it as a page of this site.
    """
    vault, grants = await questions.vault_for(datasette, request, "decrypt")

    def read() -> tuple[bytes, str]:
        store = vault.use(grants.decrypt)
        found = store.get(_id(request), refs=False)
        return store.original(found.id, refs=False), found.original.name if found.original else ""

    data, name = await work.run(read)
    headers = {
        **HEADERS,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name or 'original', safe='')}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(data, headers=headers, content_type="application/octet-stream")


def _opened(
    vault: Vault, grants: Grants, given: str, path: str, asked: SearchRequest, *, here: bool
) -> dict[str, Any]:
    """The memory, marked as ``asked``, where a copy may go, topics to choose from.

    Work for a thread. ``here``: for a browser on this machine.
    """
    store = vault.use(grants.decrypt)
    unfolded = store.unfolded(given)
    found = unfolded.memory
    spans = _marker(store, asked, found)
    file = file_view(store, found, spans)
    title = shown_title(found.title, found.text)
    writable = bool(grants.write) and found.id in vault.use(grants.write).heads([found.id])
    targets = []
    if grants.write:
        home = collection_of(vault, grants.decrypt, found)
        named = vault.use(grants.write & grants.decrypt).collections.list()  # names are sealed
        targets = [one for one in named if one.id != home]
    try:
        related = near(vault, grants, found.id)
    except NotFoundError:  # it may be read, and not searched
        related = []
    return {
        "memory": found,
        "title": title,
        "marked_title": marked(title, spans(title)),
        "plain_type": base_type(found.type),
        "done": found.type.endswith(DONE_SUFFIX),
        "file": file,
        "origin": origin(vault, grants, found) if here else None,
        "html": ""
        if file
        else readable(
            found.text,
            title=found.title,
            notes=notes_of(path, unfolded),
            ref=found.ref or "",
            spans=spans,
        ),
        "links": unfolded.links,
        "related": related,
        "words": len(found.text.split()),
        "writable": writable,
        "targets": targets,
        "recent_topics": store.recent_topics(SUGGESTED_FROM) if writable else (),
        "suggested": store.suggested_topics(found.id, refs=False) if writable and not file else (),
    }


def _marker(store: MemoryStore, asked: SearchRequest, memory: Memory) -> Spans:
    """What finds the words of a search in a memory; nothing where it asks for none."""
    with contextlib.suppress(BadInputError):  # of collections, say, that may not be read
        if asked.query.strip():
            return store.marker(asked, memory).spans
    return lambda _: ()


def collection_of(vault: Vault, scope: Scope, found: Memory) -> str:
    """The id of a memory's collection: two of them may have the same name."""
    alike = [one.id for one in vault.use(scope).collections.list() if one.name == found.collection]
    if len(alike) == 1:
        return alike[0]
    return next(one for one in alike if vault.use(Scope.of([one])).heads([found.id]))


@page("POST")
async def done(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/done``."""
    return await _changed(datasette, request, "done", "Marked as done.")


@page("POST")
async def reopen(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/reopen``."""
    return await _changed(datasette, request, "reopen", "Marked as open.")


async def _changed(datasette: Any, request: Any, method: str, message: str) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")

    changed = await writing.run(lambda: set_done(vault, grants, _id(request), method))
    return _back(datasette, request, vault, changed.id, message)


@page("POST")
async def topics(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/topics``: ``add`` or ``remove`` one."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    given = await questions.parameters(request)
    added = [one for text in forms.values(given, "add") for one in text.split(",") if one.strip()]
    removed = forms.values(given, "remove")
    if not (added or [one for one in removed if one.strip()]):
        raise BadInputError("add: a topic expected", "add")

    def change() -> Memory:
        store = vault.use(grants.decrypt & grants.write)
        return store.edit(whole_id(store, _id(request)), add_topics=added, remove_topics=removed)

    changed = await writing.run(change)
    message = "Topic removed."
    if added:
        message = "Topic added." if len(added) == 1 else "Topics added."
    return _back(datasette, request, vault, changed.id, message)


@page("POST")
async def publish(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/publish``: a copy in a chosen collection, the ``target``."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    given = await questions.parameters(request)
    collection = forms.last(given, "target") or forms.last(given, "collection")
    if not collection:
        raise BadInputError("collection: choose one", "collection")
    copy = await writing.run(lambda: published(vault, grants, _id(request), collection))
    if await work.run(lambda: is_readable(vault, grants, copy.id)):
        return _back(datasette, request, vault, copy.id, "Published. This is the copy.")
    return _back(datasette, request, vault, _id(request), "Published.")


def is_readable(vault: Vault, grants: Grants, memory_id: str) -> bool:
    """Whether the asker may read a memory that they wrote. Work for a thread."""
    return bool(grants.decrypt) and bool(vault.use(grants.decrypt).heads([memory_id]))


@page("GET", "HEAD", "POST")
async def delete(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/delete``: asks first, then deletes."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)

    def look() -> Memory:
        try:
            return vault.use(scope).get(_id(request), refs=False)
        except (TamperedError, FormatError):  # it is deleted without being opened
            return vault.use(scope, readable=NOTHING).get(_id(request), refs=False)

    found, changed = await work.run(look), False
    damaged = isinstance(found, SealedMemory)  # the trash keeps none
    days = 0 if damaged else await work.run(lambda: vault.use(scope).trash.days())
    given = await questions.parameters(request)
    if request.method == "POST" and forms.last(given, "version"):
        if forms.last(given, "version") == str(found.version):
            with contextlib.suppress(ConflictError):  # it is shown again, as it is now
                seen = {found.id: found.version}
                now, group = bool(forms.last(given, "now")), undo.new_group()
                await writing.run(
                    lambda: vault.use(scope).delete_many(seen, refs=False, now=now, group=group)
                )
                said = "Erased for good." if now or not days else "Deleted."
                return undo.offered(
                    datasette, request, vault, group if days and not now else "", said
                )
            found = await work.run(look)
        changed = True
    context = {
        "here": memory_path(datasette, vault.database, found.id),
        "keep": kept(request),
        "memory": found,
        "title": shown_title(found.title, found.text) or "Untitled",
        "damaged": damaged,
        "changed": changed,
        "days": days,
    }
    status = 409 if changed else 200
    return await render(datasette, request, "hybrid_delete.html", context, status, vault=vault)


def _back(datasette: Any, request: Any, vault: Vault, memory_id: str, message: str) -> Response:
    address = memory_path(datasette, vault.database, memory_id) + kept(request)
    return seeing_other(datasette, request, address, message)


def _id(request: Any) -> str:
    return str(tilde_decode(request.url_vars["id"]))
