"""The trash as a page and as JSON: what was deleted or changed, put back or erased.

Boundary: shows titles of what an actor may read, and texts of earlier versions of one memory; puts
back and erases where they may write, too. Of other collections nothing is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasette import Response

from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import Memory, TrashEntry

from ..requests import questions
from ..requests.admission import work, writing
from ..requests.answers import answer
from ..requests.frame import hybrid_path, page, render
from ..search import forms
from ..search.api import endpoint
from .addresses import kept, seeing_other
from .api import memory_data
from .posted import ids_of

UNDONE = "Nothing of that change is in the trash any more: it was undone, or erased."
MOST = 200
"""Rows that a page shows, the newest."""


@page("GET", "HEAD")
async def trash_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/trash``; with ``memory``, the earlier versions of that one."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    memory = forms.last(questions.arguments(request), "memory")

    def look() -> tuple[list[TrashEntry], set[tuple[str, int]], int]:
        store = vault.use(grants.decrypt)
        found = store.trash.list(memory or None, limit=MOST + 1)
        scope = grants.decrypt & grants.write
        mine = found if scope.covers(grants.decrypt) else []
        if scope and mine is not found:
            mine = vault.use(scope).trash.list(memory or None)
        return found, {(one.id, one.version) for one in mine}, store.trash.days()

    found, writable, days = await work.run(look)
    context = {
        "memory": memory,
        "entries": found[:MOST],
        "more": len(found) > MOST,
        "writable": writable,
        "days": days,
    }
    return await render(datasette, request, "hybrid_trash.html", context, vault=vault)


@page("POST")
async def restore(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/trash/restore``: each ``entry`` (``id:version``), or a ``group``."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)
    given = await questions.parameters(request)
    wanted, group = _versions(given), forms.last(given, "group")
    if not wanted and not group:
        raise BadInputError("select what to put back, by the boxes beside it", "entry")
    path = hybrid_path(datasette, vault.database)
    address = path + kept(request) if group else f"{path}/trash"
    if group and forms.last(given, "to") == "review":
        address = f"{path}/review"

    def restored() -> tuple[list[Memory], int]:
        """What is as before, and how much of the group stays as it is."""
        trash = vault.use(scope).trash
        put = trash.restore(wanted, group=group)
        return put, len({one.id for one in trash.list() if one.group == group}) if group else 0

    try:
        put, left = await writing.run(restored)
    except NotFoundError:
        if not group:
            raise
        return seeing_other(datasette, request, address, UNDONE)
    if len(put) == 1 and not group:
        address = f"{path}/memories/{put[0].id}"
    said = "1 memory is as before." if len(put) == 1 else f"{len(put)} memories are as before."
    if left:
        others = "1 was" if left == 1 else f"{left} were"
        said += (
            f" {others} changed again afterwards, and left alone: the trash has what was before."
        )
    return seeing_other(datasette, request, address, said)


def _versions(given: Mapping[str, Any]) -> dict[str, int | None]:
    """The memories to put back, each in a version. Raises BadInputError."""
    wanted: dict[str, int | None] = {}
    for entry in forms.values(given, "entry"):
        memory, _, version = entry.partition(":")
        if not version.isdecimal() or len(version) > 18:
            raise BadInputError("entry: an id and a version expected", "entry")
        wanted.setdefault(memory, int(version))  # the newest of them stands first on the page
    return wanted


@page("POST")
async def empty(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/trash/empty``: what it has of each ``entry``, or ``all`` of it."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)
    given = await questions.parameters(request)
    wanted = [*_versions(given)]
    if not wanted and not forms.last(given, "all"):
        raise BadInputError("select what to erase, by the boxes beside it", "entry")
    ids = () if forms.last(given, "all") else wanted
    gone = await writing.run(lambda: vault.use(scope).trash.empty(ids))
    path = f"{hybrid_path(datasette, vault.database)}/trash"
    return seeing_other(datasette, request, path, f"{gone} erased for good.")


@endpoint("GET", "HEAD", takes=("memory",))
async def trash_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/trash.json``, newest first; with ``memory``, its versions and texts."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    memory = forms.last(questions.arguments(request), "memory") or None
    most = int(datasette.setting("max_returned_rows"))

    def listed() -> list[TrashEntry]:
        return vault.use(grants.decrypt).trash.list(memory, limit=most + 1)

    found = await work.run(listed)
    rows = [one.as_dict() for one in found[:most]]
    return answer({"ok": True, "rows": rows, "truncated": len(found) > most})


@endpoint("POST")
async def restore_json(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/trash/restore.json``: ``{"ids": […]}`` or ``{"group": …}``."""
    vault, grants, scope = await questions.readable_and_writable(datasette, request)
    given = await questions.json_fields(request, "ids", "group")
    group = given.get("group", "")
    if not isinstance(group, str):
        raise BadInputError("group: text expected", "group")
    ids = [] if group else ids_of({"ids": given.get("ids", [])})

    def put() -> list[dict[str, Any]]:
        return memory_data(vault.use(scope).trash.restore(ids, group=group), vault, grants)

    return answer({"ok": True, "rows": await writing.run(put)})


@endpoint("POST")
async def empty_json(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/trash/empty.json``: ``{"ids": […]}``; ``{}`` erases all of it."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)
    given = await questions.json_fields(request, "ids")
    ids = ids_of({"ids": given["ids"]}) if "ids" in given else []
    gone = await writing.run(lambda: vault.use(scope).trash.empty(ids))
    return answer({"ok": True, "erased": gone})
