"""The JSON API (and CSV): parse → grant → memory_store → render.

Boundary: text leaves only for askers with the decrypt grant; for others every sealed field is
null. Answers are never cached.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette import NotFound, Response
from datasette.utils import tilde_decode

from memory_store.records import (
    RESULT_COLUMNS,
    BadInputError,
    Memory,
    MemoryDraft,
    SearchResponse,
)
from memory_store.sql import permitted
from memory_store.sql.functions import Grants
from memory_store.sql.permitted import without_text
from memory_store.store import MemoryStore

from . import asking
from .admission import QueueFullError, TooManyAttemptsError, work
from .vaults import Vault

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
COMPACT_KEYS = (
    "id",
    "title",
    "preview",
    "score",
    "vector_score",
    "rerank_score",
    "type",
    "created",
    "topics",
    "complete",
)
"""Gnosis, "Stage 7: Preview Generation", and the title."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""OWASP, "CSV Injection": a cell that begins with one of these may run as a formula."""

NEW_FIELDS = frozenset(
    {
        "text",
        "title",
        "type",
        "topics",
        "collection",
        "parent",
        "id",
        "ref",
        "source",
        "created",
        "updated",
        "valid_from",
        "valid_to",
        "supersedes",
        "metadata",
    }
)
EDIT_FIELDS = frozenset({"text", "title", "type", "topics", "collection", "metadata", "version"})

View = Callable[[Any, Any], Awaitable[Response]]


def endpoint(*methods: str) -> Callable[[View], View]:
    """Make a view answer in JSON whatever happens, and only to the given methods."""

    def decorate(view: View) -> View:
        @wraps(view)
        async def answer(datasette: Any, request: Any) -> Response:
            if request.method not in methods:
                return refusal(f"{request.method} is not possible here", 405)
            try:
                return await view(datasette, request)
            except asking.REFUSALS as error:
                return refused(error)
            except Exception as error:  # noqa: BLE001 - see report_fault
                return refusal(asking.report_fault(error), 500)

        return answer

    return decorate


def refused(error: Exception) -> Response:
    """The JSON answer to a refusal."""
    extra: dict[str, Any] = {}
    headers = {}
    if isinstance(error, BadInputError) and error.parameter:
        extra["parameter"] = "q" if error.parameter == "query" else error.parameter
    if isinstance(error, QueueFullError):
        headers["Retry-After"] = "1"
    if isinstance(error, TooManyAttemptsError):
        headers["Retry-After"] = str(error.seconds)
    return refusal(str(error), asking.status_of(error), extra, headers)


def refusal(
    message: str,
    status: int,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """``{"ok": false, "error": …, "errors": […], "status": …}``."""
    data = {"ok": False, "error": message, "errors": [message], "status": status, **(extra or {})}
    return Response.json(data, status=status, headers={**HEADERS, **(headers or {})})


def answer(data: Any, status: int = 200) -> Response:
    """``data`` as JSON with the headers every answer carries."""
    body = json.dumps(data, ensure_ascii=False, default=str)
    return Response(
        body, status=status, headers=dict(HEADERS), content_type="application/json; charset=utf-8"
    )


@endpoint("GET", "HEAD", "POST")
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid.json``."""
    vault, grants = await asking.vault_for(datasette, request, "search")
    given = await asking.parameters(request)
    shape = _shape(given)
    asked = asking.question(given, strict=True)
    response = await asking.search(vault, grants, asked)
    if shape == "compact":
        return answer(compact(response, _rows(response, vault, grants)))
    data = {**response.as_dict(), "rows": _rows(response, vault, grants)}
    if shape == "array":
        return answer(data["rows"])
    data["next_url"] = _next_url(datasette, request, response)
    return answer(data)


@endpoint("GET", "HEAD")
async def search_csv(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid.csv``: the same rows with the SQL columns."""
    vault, grants = await asking.vault_for(datasette, request, "search")
    asked = asking.question(await asking.parameters(request), strict=True)
    response = await asking.search(vault, grants, asked)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(RESULT_COLUMNS)
    for data in _rows(response, vault, grants):
        data["topics"] = ", ".join(data["topics"] or ())
        writer.writerow([_cell(data[name]) for name in RESULT_COLUMNS])
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="search.csv"'}
    return Response(out.getvalue(), headers=headers, content_type="text/csv; charset=utf-8")


@endpoint("GET", "HEAD", "PATCH", "DELETE")
async def memory(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}.json``."""
    memory_id = tilde_decode(request.url_vars["id"])
    if request.method == "PATCH":
        vault, grants = await asking.vault_for(datasette, request, "write")
        changes = edit_fields(await asking.json_body(request))
        rows = await work.run(lambda: _edited(vault, grants, memory_id, changes))
        return answer({"ok": True, "rows": rows})
    if request.method == "DELETE":
        vault, grants = await asking.vault_for(datasette, request, "write")
        await work.run(lambda: _deleted(vault, grants, memory_id))
        return answer({"ok": True})
    vault, grants = await asking.vault_for(datasette, request, "search", "decrypt", any_of=True)
    rows = await work.run(lambda: _found(vault, grants, memory_id))
    return answer({"ok": True, "rows": rows})


@endpoint("POST")
async def memories(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories.json``: one memory, a list, or ``{"memories": […]}``."""
    vault, grants = await asking.vault_for(datasette, request, "write")
    given = await asking.json_body(request)
    if isinstance(given, dict) and set(given) == {"memories"}:
        given = given["memories"]
    records = given if isinstance(given, list) else [given]
    drafts = [draft(record) for record in records]
    if not drafts:
        raise BadInputError("memories: at least one expected", "memories")
    rows = await work.run(lambda: _added(vault, grants, drafts))
    return answer({"ok": True, "rows": rows}, status=201)


@endpoint("POST")
async def done(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/memories/{id}/done.json``."""
    vault, grants = await asking.vault_for(datasette, request, "write")
    memory_id = tilde_decode(request.url_vars["id"])
    rows = await work.run(lambda: _finished(vault, grants, memory_id))
    return answer({"ok": True, "rows": rows})


def _edited(
    vault: Vault, grants: Grants, given: str, changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    store = vault.use(grants.write, creating=grants.create)
    return memory_data([store.edit(_whole_id(store, given), **changes)], vault, grants)


def _deleted(vault: Vault, grants: Grants, given: str) -> None:
    store = vault.use(grants.write)
    store.delete(_whole_id(store, given))


def _found(vault: Vault, grants: Grants, given: str) -> list[dict[str, Any]]:
    store = vault.use(grants.search | grants.decrypt)
    return memory_data([store.get(given, refs=False)], vault, grants)


def _added(
    vault: Vault, grants: Grants, drafts: Sequence[MemoryDraft]
) -> list[dict[str, Any]]:
    store = vault.use(grants.write, creating=grants.create)
    return memory_data(store.add_many(drafts), vault, grants)


def _finished(vault: Vault, grants: Grants, given: str) -> list[dict[str, Any]]:
    store = vault.use(grants.write)
    return memory_data([store.done(_whole_id(store, given))], vault, grants)


def _cell(value: Any) -> Any:
    """A value as a cell of CSV, with an apostrophe before what a spreadsheet would calculate."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def _whole_id(store: MemoryStore, given: str) -> str:
    """The id that an id or its beginning names. Never by ref, which opens every memory's head."""
    return store.find_id(given, refs=False)


def compact(response: SearchResponse, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Gnosis's table ``[results, counts, topics]``, scores 0–100, and the titles with it."""
    results = []
    for data in rows:
        short = {key: data[key] for key in COMPACT_KEYS}
        for key in ("score", "vector_score", "rerank_score"):
            short[key] = None if short[key] is None else round(short[key] * 100, 1)
        results.append(short)
    return [results, response.counts, [list(pair) for pair in response.topics.items()]]


def memory_data(found: Iterable[Memory], vault: Vault, grants: Grants) -> list[dict[str, Any]]:
    """Memories as JSON data, text withheld from those who may not read it. Work for a thread."""
    memories = [*found]
    readable = _readable([one.id for one in memories], vault, grants)
    return [
        one.as_dict() if one.id in readable else without_text(one.as_dict(), strict=vault.strict)
        for one in memories
    ]


def _readable(ids: Sequence[str], vault: Vault, grants: Grants) -> Collection[str]:
    """Of memories that may be found or changed, those whose text may be read, too."""
    if grants.decrypt.covers(grants.search | grants.write):
        return ids
    return vault.use(grants.decrypt).heads(ids) if grants.decrypt else ()


@endpoint("GET", "HEAD", "POST", "PATCH", "DELETE")
async def nowhere(datasette: Any, request: Any) -> Response:
    """Any other address below the search page that ends in ``.json``."""
    raise NotFound("there is no such address")


def _rows(response: SearchResponse, vault: Vault, grants: Grants) -> list[dict[str, Any]]:
    return [permitted.row_data(row, strict=vault.strict) for row in response.rows]


def draft(record: Any) -> MemoryDraft:
    """A posted memory. Raises :class:`BadInputError` naming the field."""
    fields = _fields(record, NEW_FIELDS)
    if not isinstance(fields.get("text"), str) or not fields["text"].strip():
        raise BadInputError("text: a memory needs some text", "text")
    return MemoryDraft(**fields)


def edit_fields(record: Any) -> dict[str, Any]:
    """Keyword arguments for :meth:`MemoryStore.edit` from a posted object."""
    changes = _fields(record, EDIT_FIELDS)
    if not changes:
        raise BadInputError("body: nothing to change", "body")
    version = changes.pop("version", None)
    if version is not None:
        if not isinstance(version, int) or isinstance(version, bool):
            raise BadInputError("version: a whole number expected", "version")
        changes["expected_version"] = version
    return changes


def _fields(record: Any, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise BadInputError("body: a JSON object expected", "body")
    fields: dict[str, Any] = {}
    for name, value in record.items():
        if name not in known:
            raise BadInputError(f"{name}: a memory has no such field", name)
        if name == "topics":
            if not isinstance(value, list) or not all(isinstance(topic, str) for topic in value):
                raise BadInputError("topics: a list of texts expected", name)
            value = tuple(value)
        elif name == "metadata":
            if not isinstance(value, dict):
                raise BadInputError("metadata: an object expected", name)
        elif name != "version" and not isinstance(value, str | None):
            raise BadInputError(f"{name}: text expected", name)
        fields[name] = value
    return fields


def _shape(given: Mapping[str, Any]) -> str:
    shape = given.get("_shape", "objects")
    shape = shape[-1] if isinstance(shape, list) and shape else shape
    if shape not in ("objects", "array", "compact"):
        raise BadInputError("_shape: objects, array or compact expected", "_shape")
    return str(shape)


def _next_url(datasette: Any, request: Any, response: SearchResponse) -> str | None:
    """The address of the following rows; none for posted queries, which belong in no URL."""
    if response.next is None or request.method == "POST":
        return None
    given = parse_qsl(request.query_string, keep_blank_values=True)
    pairs = [(name, value) for name, value in given if name != "continue"]
    path = f"{request.path}?{urlencode([*pairs, ('continue', response.next)])}"
    return str(datasette.absolute_url(request, path))
