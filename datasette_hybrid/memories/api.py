"""The JSON API of single memories: list, add, change, complete, publish, delete; one or many.

Boundary: to be read a memory is opened only for askers with the decrypt grant on its collection;
for others every sealed field is null, also where two versions are compared. A request is written
whole or not at all. Who may write without reading replaces whole fields, of a version they name:
nothing they send may depend on what they cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from datasette import Forbidden, Response
from datasette.utils import tilde_decode, tilde_encode
from msgspec.structs import replace

from memory_store.access import Grants, without_text
from memory_store.errors import BadInputError, BadRowsError, ConflictError, NotFoundError
from memory_store.host import MemoryStore
from memory_store.records import Memory, MemoryChange, MemoryDraft, SealedMemory

from ..requests import questions
from ..requests.admission import work, writing
from ..requests.frame import hybrid_path
from ..search.api import answer, endpoint, refusal
from ..vaults.vault import Vault
from . import posted
from .lists import listing, next_url, scope_of, token_behind

ETAG = re.compile(r'(?:W/)?"(\d{1,18})"')

Row = dict[str, Any]


@endpoint("GET", "HEAD", "POST")
async def memories(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories.json``: a list, newest first; or new memories, one or many."""
    if request.method == "POST":
        return await _add(datasette, request)
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt", any_of=True)
    asked = listing(datasette, questions.arguments(request))
    scope = scope_of(asked, vault, grants)

    def listed() -> tuple[list[Row], str | None]:
        store = vault.use(scope, readable=grants.decrypt)
        found = store.list(**asked.filters, limit=asked.size + 1, after=asked.after)
        page = found[: asked.size]
        token = token_behind(page[-1]) if len(found) > asked.size else None
        return memory_data(page, vault, grants), token

    rows, token = await work.run(listed)
    return answer(
        {
            "ok": True,
            "rows": rows,
            "next": token,
            "next_url": next_url(datasette, request, token),
            "truncated": token is not None,
        }
    )


async def _add(datasette: Any, request: Any) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")
    rows, alone = posted.rows_of(await _posted(request))
    try:
        drafts = posted.drafts_of(rows)
        data = await writing.run(lambda: _added(vault, grants, drafts))
    except BadRowsError as error:
        return _wrong_rows(error, alone=alone)
    except ConflictError as error:
        return await _conflict(error, vault, grants, [draft.id for draft in drafts], rows, alone)
    status = 200 if all(one["unchanged"] for one in data) else 201
    response = answer({"ok": True, "rows": data}, status=status)
    if alone:
        response.headers["Location"] = _address(datasette, vault, data[0]["id"])
        response.headers["ETag"] = _etag(data[0]["version"])
    return response


def _added(vault: Vault, grants: Grants, drafts: Sequence[MemoryDraft]) -> list[Row]:
    store = vault.use(grants.write, creating=grants.create)
    added = store.add_once(drafts, readable=grants.decrypt)
    rows = memory_data([one.memory for one in added], vault, grants)
    return [{**row, "unchanged": one.unchanged} for row, one in zip(rows, added, strict=True)]


@endpoint("GET", "HEAD", "PATCH", "DELETE")
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}.json``."""
    if request.method == "PATCH":
        return await _edit(datasette, request)
    if request.method == "DELETE":
        vault, grants = await questions.vault_for(datasette, request, "write")
        wanted = {_id(request): _if_match(request)}
        try:
            await writing.run(lambda: _deleted(vault, grants, wanted))
        except ConflictError as error:
            response = await _conflict(error, vault, grants, error.ids, [None], True)
            response.status = 412
            return response
        return answer({"ok": True})
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt", any_of=True)

    def read() -> Memory:
        store = vault.use(grants.search | grants.decrypt, readable=grants.decrypt)
        return store.get(_id(request), refs=False)

    return await _one(vault, grants, await work.run(read))


async def _edit(datasette: Any, request: Any) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")
    row = await questions.json_body(request)
    edit = posted.edit_of(row, _id(request))
    held_to = _if_match(request)
    if held_to is not None and edit.expected_version not in (None, held_to):
        raise BadInputError("If-Match: another version than in the body", "If-Match")
    edit = replace(edit, expected_version=edit.expected_version or held_to)
    try:
        edited = await writing.run(lambda: _edited(vault, grants, [edit]))
    except BadRowsError as error:
        return _wrong_rows(error, alone=True)
    except ConflictError as error:
        response = await _conflict(error, vault, grants, error.ids, [row], True)
        if held_to is not None:  # RFC 9110, 13.1.1
            response.status = 412
        return response
    return await _one(vault, grants, edited[0])


@endpoint("POST")
async def edit_many(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/edit.json``: ``{"memories": [{"id": …, …}]}``."""
    vault, grants = await questions.vault_for(datasette, request, "write")
    rows, _ = posted.rows_of(await _posted(request))
    try:
        edits = posted.edits_of(rows)
        edited = await writing.run(lambda: _edited(vault, grants, edits))
    except BadRowsError as error:
        return _wrong_rows(error, alone=False)
    except ConflictError as error:
        return await _conflict(error, vault, grants, [edit.id for edit in edits], rows, False)
    return answer({"ok": True, "rows": await work.run(lambda: memory_data(edited, vault, grants))})


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
    return await _marked(datasette, request, lambda store, memory: store.done(memory))


@endpoint("POST")
async def reopen(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/reopen.json``: mark as open again."""
    return await _marked(datasette, request, lambda store, memory: store.reopen(memory))


async def _marked(
    datasette: Any, request: Any, mark: Callable[[MemoryStore, str], Memory]
) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "write")

    def change() -> Memory:
        store = vault.use(grants.write)
        return mark(store, whole_id(store, _id(request)))

    return await _one(vault, grants, await writing.run(change))


@endpoint("POST")
async def publish(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/publish.json``: ``{"collection": …}``, a copy there."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    given = questions.json_object(await questions.read_body(request))
    collection = given.get("collection")
    if not isinstance(collection, str) or not collection:
        raise BadInputError("collection: the name or id of one expected", "collection")
    copy = await writing.run(lambda: published(vault, grants, _id(request), collection))
    return await _one(vault, grants, copy)


def published(vault: Vault, grants: Grants, given: str, collection: str) -> Memory:
    """The copy of a memory in another collection: read in the one, written in the other.

    Raises NotFoundError for a memory that the asker may not read, or a collection that they may
    not write; BadInputError where it is in there already. Work for a thread.
    """
    memory_id = whole_id(vault.use(grants.decrypt), given)
    target = collection_named(vault.use(grants.write), collection)
    store = vault.use(grants.decrypt | grants.write)
    return store.publish(memory_id, target, readable=grants.decrypt)


def collection_named(store: MemoryStore, given: str) -> str:
    """The id of one of a store's collections, named by its name or id. Raises NotFoundError."""
    try:
        return store.collections.find(given)
    except NotFoundError:
        raise NotFoundError(f"no collection {given!r} that you may write") from None


def whole_id(store: MemoryStore, given: str) -> str:
    """The id that an id or its beginning names. Never by ref, which opens every memory's head."""
    return store.find_id(given, refs=False)


def memory_data(found: Sequence[Memory], vault: Vault, grants: Grants) -> list[Row]:
    """Memories as JSON data, text withheld from those who may not read it. Work for a thread.

    From those who may not search either, all but ids and versions is withheld.
    """
    ids = [one.id for one in found]
    readable, searchable = readable_ids(ids, vault, grants), _searchable_ids(ids, vault, grants)
    return [
        one.as_dict()
        if one.id in readable and not isinstance(one, SealedMemory)
        else without_text(one, strict=vault.strict or one.id not in searchable)
        for one in found
    ]


def readable_ids(ids: Sequence[str], vault: Vault, grants: Grants) -> Collection[str]:
    """Of memories that may be found or changed, those whose text may be read, too."""
    if grants.decrypt.covers(grants.search | grants.write):
        return ids
    return vault.use(grants.decrypt).present(ids) if grants.decrypt else ()


def _searchable_ids(ids: Sequence[str], vault: Vault, grants: Grants) -> Collection[str]:
    if grants.search.covers(grants.decrypt | grants.write):
        return ids
    return vault.use(grants.search).present(ids) if grants.search else ()


def _edited(vault: Vault, grants: Grants, edits: Sequence[MemoryChange]) -> list[Memory]:
    store = vault.use(grants.write, creating=grants.create)
    named = []
    for number, edit in enumerate(edits):
        try:
            named.append(replace(edit, id=whole_id(store, edit.id)))
        except NotFoundError as error:
            where = f"memories[{number}].id: " if len(edits) > 1 else ""
            raise NotFoundError(f"{where}{error}") from None
    readable = readable_ids([edit.id for edit in named], vault, grants)
    for edit in named:
        if edit.id not in readable:
            _refuse_to_depend_on_text(edit)
    if not grants.decrypt.covers(grants.write):
        named = [_held_to_what_was_read(edit, vault, grants) for edit in named]
    return store.edit_many(named, refs=False)


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


async def _one(vault: Vault, grants: Grants, found: Memory) -> Response:
    rows = await work.run(lambda: memory_data([found], vault, grants))
    response = answer({"ok": True, "rows": rows})
    response.headers["ETag"] = _etag(found.version)
    return response


def _wrong_rows(error: BadRowsError, *, alone: bool) -> Response:
    sentences, culprit = posted.told(error, alone=alone)
    return refusal(sentences[0], 400, {"errors": sentences, "parameter": culprit})


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


def _id(request: Any) -> str:
    return str(tilde_decode(request.url_vars["id"]))


def _etag(version: int) -> str:
    return f'"{version}"'


def _if_match(request: Any) -> int | None:
    """The version that the request insists on."""
    given = request.headers.get("if-match", "*").strip()
    if given == "*":
        return None
    found = ETAG.fullmatch(given)
    if found is None:
        raise BadInputError('If-Match: a version expected, as in "3"', "If-Match")
    return int(found[1])


def _address(datasette: Any, vault: Vault, memory_id: str) -> str:
    path = f"{hybrid_path(datasette, vault.database)}/memories/{tilde_encode(memory_id)}.json"
    return str(path)
