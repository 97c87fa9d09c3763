"""The JSON API of single memories: list, add, change, complete, publish, delete; one or many.

Boundary: to be read a memory is opened only for askers with the decrypt grant on its collection;
for others every sealed field is null, also where two versions are compared. A list that would
disclose what is sealed is refused to them. A request is written whole or not at all. Who may write
without reading replaces whole fields, of a version they name: nothing they send may depend on what
they cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from datasette import Forbidden, Response
from datasette.utils import tilde_decode, tilde_encode
from msgspec.structs import replace

from memory_store.access import Grants, with_text, without_text
from memory_store.errors import BadInputError, BadRowsError, ConflictError, NotFoundError
from memory_store.host import MemoryStore, Scope, checked_id, checked_type, epoch
from memory_store.records import OPTIONS, Memory, MemoryChange, SealedMemory

from ..requests import questions
from ..requests.admission import work, writing
from ..requests.answers import answer, refusal
from ..requests.frame import hybrid_path
from ..search.api import endpoint, following_url
from ..search.forms import last, values, whole_number
from ..vaults.vault import Vault
from . import posted

ETAG = re.compile(r'(?:W/)?"(\d{1,18})"')
LIST_FILTERS = (
    *("collection", "type", "topic", "status"),
    *("since", "until", "as_of", "superseded", "by"),
)
SEALED = frozenset({"as_of", "superseded", "by"})
"""Filters by what is sealed in every vault: for those who may read."""
SEVERAL = frozenset({"collection", "type", "topic"})
"""Filters that may be said several times."""

Row = dict[str, Any]
Answer = TypeVar("Answer")


@endpoint("GET", "HEAD", "POST", takes=LIST_FILTERS)
async def memories(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories.json``: a list, newest first; or new memories, one or many."""
    if request.method == "POST":
        return await _add(datasette, request)
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt", any_of=True)
    given = questions.arguments(request)
    filters, size, after = _filters(given), _size(datasette, given), _place(given)
    scope = _listed_scope(filters, vault, grants)

    def listed() -> tuple[list[Row], str | None]:
        store = vault.use(scope, readable=grants.decrypt)
        found = store.list(**filters, limit=size + 1, after=after)
        end = found[size - 1] if len(found) > size else None
        token = None if end is None else f"{end.created},{end.id}"
        return memory_data(found[:size], vault, grants), token

    rows, token = await work.run(listed)
    return answer(
        {
            "ok": True,
            "rows": rows,
            "next": token,
            "next_url": following_url(datasette, request, "_next", token),
            "truncated": token is not None,
        }
    )


def _filters(given: Mapping[str, list[str]]) -> dict[str, Any]:
    """The filters of a list. Raises :class:`BadInputError`."""
    filters: dict[str, Any] = {}
    for name in LIST_FILTERS:
        if said := values(given, name):
            filters[name] = said if name in SEVERAL else said[-1]
    if "superseded" in filters:
        filters["superseded"] = OPTIONS["superseded"].plain(filters["superseded"], loose=True)
        if type(filters["superseded"]) is not bool:
            raise BadInputError(f"superseded: {OPTIONS['superseded'].expected}", "superseded")
    for kind in filters.get("type", ()):
        checked_type(kind)
    return filters


def _listed_scope(filters: Mapping[str, Any], vault: Vault, grants: Grants) -> Scope:
    """The collections to list. Raises ``Forbidden`` where the list itself would disclose too much.

    Names of collections are sealed, and in a strict vault times, and so the order, too.
    """
    if not (vault.strict or "collection" in filters or SEALED & filters.keys()):
        return grants.search | grants.decrypt
    if not grants.decrypt:
        sealed = sorted(SEALED & filters.keys())
        what = (
            f"{sealed[0]}: a list by what is sealed" if sealed else "collection: a list by its name"
        )
        what = "a list by time" if vault.strict else what
        raise Forbidden(f"{what} needs the permission hybrid-decrypt")
    return grants.decrypt


def _size(datasette: Any, given: Mapping[str, list[str]]) -> int:
    """``_size`` as on Datasette's own tables: its default, its greatest, ``max`` for that one."""
    greatest = int(datasette.setting("max_returned_rows"))
    said = (given.get("_size") or [""])[-1]
    if not said:
        return min(int(datasette.setting("default_page_size")), greatest)
    if said == "max":
        return greatest
    number = whole_number(said)
    if number is None or not 1 <= number <= greatest:
        raise BadInputError(f"_size: 1 to {greatest}, or max, expected", "_size")
    return number


def _place(given: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Where the page before ended, from ``_next``."""
    token = (given.get("_next") or [""])[-1]
    if not token:
        return None
    created, _, memory_id = token.rpartition(",")
    try:
        epoch(created)
        checked_id(memory_id)
    except BadInputError:
        raise BadInputError("_next: this is not the next of an answer", "_next") from None
    return created, memory_id


async def _add(datasette: Any, request: Any) -> Response:
    questions.refuse_unknown(questions.arguments(request))
    vault, grants = await questions.vault_for(datasette, request, "write")
    rows, alone = posted.rows_of(await _posted(request))

    def add(drafts: Sequence[Any]) -> list[Row]:
        store = vault.use(grants.write, creating=grants.create)
        added = store.add_once(drafts, readable=grants.decrypt)
        data = memory_data([one.memory for one in added], vault, grants)
        return [{**row, "unchanged": one.unchanged} for row, one in zip(data, added, strict=True)]

    data = await _written(vault, grants, (rows, alone), posted.drafts_of, add)
    if isinstance(data, Response):
        return data
    response = answer(
        {"ok": True, "rows": data}, status=200 if all(one["unchanged"] for one in data) else 201
    )
    if alone:
        path = f"{hybrid_path(datasette, vault.database)}/memories/{tilde_encode(data[0]['id'])}"
        response.headers["Location"] = f"{path}.json"
        response.headers["ETag"] = f'"{data[0]["version"]}"'
    return response


async def _written(
    vault: Vault,
    grants: Grants,
    sent: tuple[list[Any], bool],
    read: Callable[[list[Any]], Sequence[Any]],
    write: Callable[[Sequence[Any]], list[Row]],
) -> list[Row] | Response:
    """What the changes in the rows that were ``sent`` made; a refusal naming those that failed."""
    rows, alone = sent
    changes: Sequence[Any] = ()
    try:
        changes = read(rows)
        return await writing.run(lambda: write(changes))
    except BadRowsError as error:
        sentences, culprit = error.sentences(alone=alone)
        return refusal(sentences[0], 400, {"errors": sentences, "parameter": culprit})
    except ConflictError as error:
        return await _conflict(error, vault, grants, [one.id for one in changes], rows, alone)


@endpoint("GET", "HEAD", "PATCH", "DELETE", takes=("as_of",))
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}.json``."""
    if request.method == "PATCH":
        return await _edit(datasette, request)
    if request.method == "DELETE":
        vault, grants = await questions.vault_for(datasette, request, "write")
        held_to = _if_match(request)
        wanted = {named_id(request): held_to}
        gone = await _held(vault, grants, held_to, lambda: _deleted(vault, grants, wanted))
        return gone if isinstance(gone, Response) else answer({"ok": True})
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt", any_of=True)

    as_of = last(questions.arguments(request), "as_of")
    if as_of and not grants.decrypt:
        raise Forbidden("as_of: how long a memory is valid needs the permission hybrid-decrypt")

    def read() -> list[Row]:
        if as_of:
            found = vault.use(grants.decrypt).succession(named_id(request), as_of, refs=False)[-1]
        else:
            store = vault.use(grants.search | grants.decrypt, readable=grants.decrypt)
            found = store.get(named_id(request), refs=False)
        return memory_data([found], vault, grants)

    return _one(await work.run(read))


async def _edit(datasette: Any, request: Any) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")
    row = await questions.json_body(request)
    edit = posted.edit_of(row, named_id(request))
    held_to = _if_match(request)
    if held_to is not None and edit.expected_version not in (None, held_to):
        raise BadInputError("If-Match: another version than in the body", "If-Match")
    edit = replace(edit, expected_version=edit.expected_version or held_to)
    data = await _written(
        vault, grants, ([row], True), lambda _: [edit], lambda edits: _edited(vault, grants, edits)
    )
    if not isinstance(data, Response):
        return _one(data)
    return data if held_to is None or data.status != 409 else _precondition_failed(data)


@endpoint("POST")
async def edit_many(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/edit.json``: ``{"memories": [{"id": …, …}]}``."""
    vault, grants = await questions.vault_for(datasette, request, "write")
    rows, _ = posted.rows_of(await _posted(request))
    data = await _written(
        vault, grants, (rows, False), posted.edits_of, lambda edits: _edited(vault, grants, edits)
    )
    return data if isinstance(data, Response) else answer({"ok": True, "rows": data})


@endpoint("POST")
async def delete_many(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/delete.json``: ``{"ids": […]}``."""
    vault, grants = await questions.vault_for(datasette, request, "write")
    ids = posted.ids_of(await questions.json_body(request))
    deleted = await writing.run(lambda: _deleted(vault, grants, dict.fromkeys(ids)))
    return answer({"ok": True, "deleted": deleted})


@endpoint("POST")
async def done(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/done.json``: mark as completed."""
    return await _marked(datasette, request, "done")


@endpoint("POST")
async def reopen(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/reopen.json``: mark as open again."""
    return await _marked(datasette, request, "reopen")


async def _marked(datasette: Any, request: Any, mark: str) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")
    held_to = _if_match(request)

    def marked() -> list[Row]:
        found = set_done(vault, grants, named_id(request), mark, held_to)
        return memory_data([found], vault, grants)

    data = await _held(vault, grants, held_to, marked)
    return data if isinstance(data, Response) else _one(data)


async def _held(
    vault: Vault, grants: Grants, version: int | None, write: Callable[[], Answer]
) -> Answer | Response:
    """What ``write`` returns; a refusal where If-Match names another ``version`` of a memory."""
    try:
        return await writing.run(write)
    except ConflictError as error:
        response = await _conflict(error, vault, grants, error.ids, [None], True)
        return response if version is None else _precondition_failed(response)


def _precondition_failed(response: Response) -> Response:
    response.status = 412  # RFC 9110, 13.1.1
    return response


def set_done(
    vault: Vault, grants: Grants, given: str, mark: str, version: int | None = None
) -> Memory:
    """The memory once it is marked as ``done``, or by ``reopen`` as open. Work for a thread.

    Raises ConflictError where it is at another ``version`` than the one that is given.
    """
    store = vault.use(grants.write)
    marking: Callable[..., Memory] = {"done": store.done, "reopen": store.reopen}[mark]
    return marking(whole_id(store, given), expected_version=version)


@endpoint("POST")
async def publish(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/publish.json``: ``{"collection": …}``, a copy there."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    given = await questions.json_fields(request, "collection")
    collection = given.get("collection")
    if not isinstance(collection, str) or not collection:
        raise BadInputError("collection: the name or id of one expected", "collection")

    def copied() -> list[Row]:
        return memory_data([published(vault, grants, named_id(request), collection)], vault, grants)

    return _one(await writing.run(copied))


def published(vault: Vault, grants: Grants, given: str, collection: str) -> Memory:
    """The copy of a memory in another collection: read in the one, written in the other.

    Raises NotFoundError for a memory that the asker may not read, or a collection that they may
    not write; BadInputError where it is in there already. Work for a thread.
    """
    memory_id = whole_id(vault.use(grants.decrypt), given)
    try:
        target = vault.use(grants.write).collections.find(collection)
    except NotFoundError:
        raise NotFoundError(f"no collection {collection!r} that you may write") from None
    store = vault.use(grants.decrypt | grants.write)
    return store.publish(memory_id, target, readable=grants.decrypt)


def whole_id(store: MemoryStore, given: str) -> str:
    """The id that an id or its beginning names. Never by ref, which opens every memory's head."""
    return store.find_id(given, refs=False)


def memory_data(found: Sequence[Memory], vault: Vault, grants: Grants) -> list[Row]:
    """Memories as JSON data, text withheld from those who may not read it. Work for a thread.

    From those who may not search either, all but ids and versions is withheld.
    """
    ids = [one.id for one in found]
    readable = _ids_within(grants.decrypt, grants.search | grants.write, ids, vault)
    searchable = _ids_within(grants.search, grants.decrypt | grants.write, ids, vault)
    return [
        with_text(one, owner=grants.audit)
        if one.id in readable and not isinstance(one, SealedMemory)
        else without_text(one, strict=vault.strict or one.id not in searchable)
        for one in found
    ]


def _ids_within(scope: Scope, others: Scope, ids: Sequence[str], vault: Vault) -> Collection[str]:
    """Of memories that came by ``scope`` or ``others``, those that ``scope`` covers."""
    if scope.covers(others):
        return ids
    return vault.use(scope).present(ids) if scope else ()


def _edited(vault: Vault, grants: Grants, edits: Sequence[MemoryChange]) -> list[Row]:
    store = vault.use(grants.write, creating=grants.create)
    named = []
    for number, edit in enumerate(edits):
        try:
            named.append(replace(edit, id=whole_id(store, edit.id)))
        except NotFoundError as error:
            where = f"memories[{number}].id: " if len(edits) > 1 else ""
            raise NotFoundError(f"{where}{error}") from None
    ids = [edit.id for edit in named]
    readable = _ids_within(grants.decrypt, grants.search | grants.write, ids, vault)
    for edit in named:
        if edit.id not in readable:
            _refuse_to_depend_on_text(edit)
    if not grants.decrypt.covers(grants.write):
        named = [_held_to_what_was_read(edit, vault, grants) for edit in named]
    return memory_data(store.edit_many(named, refs=False), vault, grants)


def _refuse_to_depend_on_text(edit: MemoryChange) -> None:
    if edit.collection is not None:
        raise Forbidden("collection: to move a memory needs the permission hybrid-decrypt on it")
    if edit.title == "" and edit.text is None:
        raise Forbidden("title: to take it away needs hybrid-decrypt, or a new text beside it")
    if edit.add_topics or edit.remove_topics:
        raise Forbidden("add_topics, remove_topics: this needs the permission hybrid-decrypt")
    if edit.expected_version is None:
        raise BadInputError("version: needed from an actor without hybrid-decrypt", "version")


def _held_to_what_was_read(edit: MemoryChange, vault: Vault, grants: Grants) -> MemoryChange:
    """A move of the version that may be read: it may be somewhere else a moment later."""
    if edit.collection is None or edit.expected_version is not None:
        return edit
    found = vault.use(grants.decrypt).get(edit.id, refs=False)
    return replace(edit, expected_version=found.version)


def _deleted(vault: Vault, grants: Grants, versions: Mapping[str, int | None]) -> int:
    store = vault.use(grants.write)
    whole = {whole_id(store, given): version for given, version in versions.items()}
    return store.delete_many(whole, refs=False)


def _one(rows: Sequence[Row]) -> Response:
    response = answer({"ok": True, "rows": rows})
    response.headers["ETag"] = f'"{rows[0]["version"]}"'
    return response


async def _conflict(
    error: ConflictError,
    vault: Vault,
    grants: Grants,
    ids: Sequence[str | None],
    rows: Sequence[Any],
    alone: bool,
) -> Response:
    """409 with what is there now beside what was sent, for each row that did not fit."""

    def compared() -> list[dict[str, Any]]:
        present = _present(vault, grants, error.ids)
        return [
            {"row": number, "id": whole, "current": present.get(whole), "yours": rows[number]}
            for number, given in enumerate(ids)
            for whole in error.ids
            if given and whole.startswith(given.lower())  # an id, or its beginning
        ]

    conflicts = await work.run(compared)
    if alone and conflicts:
        versions = {name: conflicts[0][name] for name in ("current", "yours")}
        return refusal(str(error), 409, versions)
    sentences = [
        f"memories[{one['row']}]: there is another version of {one['id']}" for one in conflicts
    ]
    extra = {"errors": sentences or [str(error)], "conflicts": conflicts}
    return refusal(str(error), 409, extra)


def _present(vault: Vault, grants: Grants, ids: Sequence[str]) -> dict[str, Row]:
    """Memories as they are now, as far as the asker may see them."""
    scope = grants.search | grants.decrypt | grants.write
    found = []
    for one in ids:
        try:
            store = vault.use(scope, readable=grants.decrypt)
            found.append(store.get(one, refs=False))
        except NotFoundError:
            continue  # in a collection that they know nothing of, or deleted since
    return {row["id"]: row for row in memory_data(found, vault, grants)}


async def _posted(request: Any) -> Any:
    """The posted value: JSON, or NDJSON with a memory on each line."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in posted.NDJSON:
        return posted.rows_of_lines(await questions.read_body(request))
    return await questions.json_body(request)


def named_id(request: Any) -> str:
    return str(tilde_decode(request.url_vars["id"]))


def _if_match(request: Any) -> int | None:
    """The version that the request insists on."""
    given = request.headers.get("if-match", "*").strip()
    if given == "*":
        return None
    found = ETAG.fullmatch(given)
    if found is None:
        raise BadInputError('If-Match: a version expected, as in "3"', "If-Match")
    return int(found[1])
