"""A description of the JSON API for programs: ``/-/hybrid/openapi.json`` (OpenAPI 3.1).

Boundary: says what the API takes and answers, nothing of any vault: not even which there are.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from datasette import Response

from ..requests.answers import answer
from ..search.api import endpoint
from .answers import Error
from .operations import CSV, OPERATIONS, Operation
from .schemas import Described, What

DESCRIPTION = """\
Private notes and memories in Datasette, sealed on disk, searched by name and by meaning.

An actor without the permission `hybrid-decrypt` gets null for everything that is sealed. A browser
session that unlocked a vault with its secret holds another cookie, which counts as well. Requests
that change something need a token in the `Authorization` header, or come from a page of the same
site."""

ERRORS = {
    400: "Bad input; `parameter` names it, and `errors` has a line for each of several",
    401: "The token has expired, or its signature is wrong (Datasette 1.0)",
    403: "A permission is missing",
    404: "No such memory, collection or vault",
    408: "The body did not arrive within 30 seconds",
    409: "Changed meanwhile; or the index needs `memory-store reindex`",
    412: "Not the version that `If-Match` names",
    413: "A body of more than 8 MiB",
    423: "The vault is locked",
    429: "Too much at once; `Retry-After` says when to try again",
    500: "Something broke; the server's log says where",
    501: "A package is not installed; the message names the extra that brings it",
    503: "A model is missing, or the disk does not read or write: it is full, or a file is damaged",
}

PATH_PARAMETERS = {
    "database": "The database that is a vault",
    "id": "An id, or its first 8 characters or more",
    "job": "The `job` of an import's answer",
    "actor": "An actor's id",
}


@endpoint("GET", "HEAD")
async def openapi(datasette: Any, request: Any) -> Response:
    """``/-/hybrid/openapi.json``."""
    base = datasette.setting("base_url").rstrip("/") or "/"
    return answer({**document(), "servers": [{"url": base}]})


@cache
def document() -> dict[str, Any]:
    """The description, the same for everybody."""
    taken = [one.body for one in OPERATIONS if one.body is not None]
    given = [what for one in OPERATIONS for what in one.answers.values() if what != CSV]
    records = Described([*taken, *given, Error])
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        path = paths.setdefault(operation.path, {"parameters": _in_path(operation.path)})
        path[operation.method.lower()] = _described(operation, records)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "datasette-hybrid",
            "version": version("datasette-hybrid"),
            "summary": "Search private memories, and keep them",
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "security": [{"token": []}, {"session": []}],
        "components": {
            "schemas": records.components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Datasette's token"},
                "session": {"type": "apiKey", "in": "cookie", "name": "ds_actor"},
            },
        },
        "tags": [
            {"name": name} for name in dict.fromkeys(operation.tag for operation in OPERATIONS)
        ],
    }


def _described(operation: Operation, records: Described) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": f"Needs {operation.needs}.",
        "responses": {
            **{str(status): _response(what, records) for status, what in operation.answers.items()},
            **{str(status): _refusal(status) for status in operation.errors},
        },
    }
    if operation.parameters:
        described["parameters"] = [*operation.parameters]
    contents = {kind: {"schema": schema} for kind, schema in operation.contents.items()}
    if operation.body is not None:
        posted = {"schema": records.of(operation.body), "example": operation.example}
        contents["application/json"] = posted
    if contents:
        described["requestBody"] = {"required": operation.body_needed, "content": contents}
    return described


def _response(what: What, records: Described) -> dict[str, Any]:
    if what == CSV:
        rows = {"type": "string", "description": "The columns of a row, one result a line"}
        return {"description": "Rows", "content": {what: {"schema": rows}}}
    return {"description": "Done", "content": {"application/json": {"schema": records.of(what)}}}


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    refusal: dict[str, Any] = {
        "description": ERRORS[status],
        "content": {"application/json": {"schema": schema}},
    }
    if status == 429:
        seconds = {"description": "Seconds to wait", "schema": {"type": "integer"}}
        refusal["headers"] = {"Retry-After": seconds}
    return refusal


def _in_path(path: str) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    return [
        {"name": name, "in": "path", "required": True, "schema": {**text, "description": said}}
        for name, said in PATH_PARAMETERS.items()
        if f"{{{name}}}" in path
    ]
