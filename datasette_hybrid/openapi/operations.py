"""Every endpoint of the JSON API: its address, what it needs, takes and answers.

One frozen table; a test holds it to the routes that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_store.host import ACTIONS, DIFFERING, ROLES
from memory_store.records import LISTED_IDS, MAX_QUERY_CHARACTERS, OPTION_NAMES, STATUSES

from ..audit.pages import MOST
from ..audit.recorder import SURFACES
from ..memories.posted import MANY
from ..uploads.jobs import STATES
from .schemas import MEMORY_TYPES, Schema, option_parameter

BASE = "/{database}/-/hybrid"
MEMORY = BASE + "/memories/{id}"
COLLECTION = BASE + "/collections/{id}"

ANYWHERE = (400, 403, 404, 423, 429, 500, 503)
SEARCHING = (*ANYWHERE, 408, 409, 413)
WRITING = (*ANYWHERE, 408, 409, 413)


@dataclass(frozen=True)
class Operation:
    """One method of one address.

    ``answers``: status → the name of a schema, a schema, or a content type; ``errors`` are answered
    with the schema ``Error``. ``body`` is of JSON, ``contents`` of other types.
    """

    method: str
    path: str
    name: str
    tag: str
    summary: str
    needs: str
    answers: Mapping[int, str | Schema]
    errors: tuple[int, ...] = ANYWHERE
    parameters: tuple[Mapping[str, Any], ...] = ()
    body: Schema | None = None
    example: Any = field(default=None, hash=False)
    contents: Mapping[str, Schema] = field(default_factory=dict)


def ref(name: str) -> Schema:
    """A reference to one of the schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _named(name: str, schema: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


QUERY: Schema = {
    **_query("q", {"type": "string", "maxLength": MAX_QUERY_CHARACTERS}, "The query"),
    "example": "spare key",
}
SHAPE = _query("_shape", {"enum": ["objects", "array", "compact"]}, "How rows are answered")
OPTIONS = tuple(option_parameter(name) for name in OPTION_NAMES)
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
KINDS: Schema = {"type": "array", "items": {"enum": MEMORY_TYPES}}
LISTING = (
    _query("collection", TEXTS, "Names or ids of collections"),
    _query("type", KINDS, "Types of memories"),
    _query("topic", TEXTS, "Topics, any of which a memory has"),
    _query("status", {"enum": list(STATUSES)}, "Open memories, done ones, or all"),
    _query("since", {"type": "string"}, "Created from then on: a date, a time, or 7d"),
    _query("until", {"type": "string"}, "Created until then"),
    _query("_size", {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "max"}]}, "Rows"),
    _query("_next", {"type": "string"}, "`next` of the page before"),
)
AUDITING = (
    _query("who", {"type": "string"}, "An actor's id, or what stands for one"),
    _query("surface", {"type": "string"}, "Where from: " + ", ".join(SURFACES)),
    _query("action", {"type": "string"}, "What was done: " + ", ".join(ACTIONS)),
    _query("since", {"type": "string"}, "From then on: a date, a time, or 7d"),
    _query("until", {"type": "string"}, "Until then"),
)
AUDIT_PAGE = (
    _query("limit", {"type": "integer", "minimum": 1, "maximum": MOST}, "Events of a page"),
    _query("before", {"type": "integer", "minimum": 0}, "`next` of the page before"),
)
IF_MATCH: Schema = {
    "name": "If-Match",
    "in": "header",
    "description": "The version that is expected, as in the ETag",
    "schema": {"type": "string", "pattern": r'^(\*|(W/)?"[0-9]{1,18}")$'},
}
FOUND: Schema = {
    "anyOf": [ref("SearchAnswer"), {"type": "array", "items": ref("Row")}, ref("CompactAnswer")]
}
ROWS: Schema = {"type": "array", "minItems": 1, "maxItems": MANY}
NEW: Schema = {
    "anyOf": [
        ref("NewMemory"),
        {**ROWS, "items": ref("NewMemory")},
        _named("memories", {**ROWS, "items": ref("NewMemory")}),
    ]
}
CHANGES = _named("memories", {**ROWS, "items": ref("NamedMemoryChange")})
IDS = _named("ids", {**ROWS, "items": {"type": "string"}})
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
NEW_COLLECTION: Schema = {
    "type": "object",
    "properties": {"name": NAME, "private": {"type": "boolean"}},
    "required": ["name"],
    "additionalProperties": False,
}
COLLECTION_CHANGE: Schema = {
    "type": "object",
    "properties": {
        "name": NAME,
        "members": {
            "type": ["object", "null"],
            "description": "Roles by actor, null for those who go; null opens the collection",
            "minProperties": 1,
            "additionalProperties": {"enum": [*ROLES, None]},
        },
    },
    "minProperties": 1,
    "additionalProperties": False,
}

SEARCH, READ, WRITE = "hybrid-search", "hybrid-search or hybrid-decrypt", "hybrid-write"
AUDIT = "hybrid-audit"
ANY = "hybrid-search, hybrid-decrypt or hybrid-write"

_COUNT: Schema = {"type": "integer", "minimum": 0}
_NAMED: Schema = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
_TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
IMPORT_JOB: Schema = {
    "type": "object",
    "required": ["ok", "job", "state", "done", "total"],
    "properties": {
        "ok": {"const": True},
        "job": {"type": "string"},
        "state": {"enum": list(STATES)},
        **dict.fromkeys(("done", "total", "imported", "replaced", "unchanged"), _COUNT),
        "embedding": {
            "type": ["array", "null"],
            "items": {"type": "integer"},
            "description": "Of the batch at work: passages that are embedded, and how many it has",
        },
        "dry_run": {"type": "boolean"},
        "error": _TEXT_OR_NONE,
        "summary": _TEXT_OR_NONE,
        "failures": _NAMED,
        "skips": _NAMED,
        "degraded": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "string"}, "maxItems": LISTED_IDS},
        "job_url": {"type": "string"},
    },
}
UPLOADING = (
    _query("name", {"type": "string"}, "The file's name, where the body is a file"),
    _query("collection", {"type": "string"}, "Where its memories go: one that there is"),
    _query("new_collection", {"type": "string"}, "Or the name of a new one, open to everybody"),
    _query("type", {"type": "string"}, "Their type, where the file says none"),
    _query("topics", {"type": "string"}, "Topics for all of them, apart by commas"),
    _query(
        "differing",
        {"enum": list(DIFFERING)},
        "What to do with a file that says something else than its note from a folder: keep that "
        "note and name the file (the default), replace the note, or add another",
    ),
    _query("dry_run", {"type": "string"}, "1: only say what would happen"),
)
"""In a multipart form these are fields, and the files are named file."""
_BINARY: Schema = {"type": "string", "format": "binary"}
UPLOAD: Mapping[str, Schema] = {
    "multipart/form-data": {
        "type": "object",
        "properties": {
            "file": {"type": "array", "items": _BINARY, "minItems": 1},
            **{one["name"]: one["schema"] for one in UPLOADING if one["name"] != "name"},
        },
        "required": ["file"],
    },
    "application/octet-stream": _BINARY,
}

OPERATIONS = (
    Operation(
        "GET", BASE + ".json", "search", "search", "Search", SEARCH, {200: FOUND}, SEARCHING,
        (QUERY, SHAPE, *OPTIONS),
    ),
    Operation(
        "POST", BASE + ".json", "searchPosted", "search",
        "Search, with a query that stands in no address", SEARCH, {200: FOUND}, SEARCHING,
        (SHAPE,), ref("SearchRequest"), {"q": "spare key", "limit": 3},
    ),
    Operation(
        "GET", BASE + ".csv", "searchCsv", "search", "The rows of a search as CSV", SEARCH,
        {200: "text/csv"}, SEARCHING, (QUERY, *OPTIONS),
    ),
    Operation(
        "POST", BASE + ".csv", "searchCsvPosted", "search",
        "The same, with a query that stands in no address", SEARCH, {200: "text/csv"}, SEARCHING,
        (), ref("SearchRequest"), {"q": "spare key"},
    ),
    Operation(
        "GET", BASE + "/memories.json", "listMemories", "memories", "List memories, newest first",
        READ, {200: "MemoryPage"}, ANYWHERE, LISTING,
    ),
    Operation(
        "POST", BASE + "/memories.json", "addMemories", "memories",
        "Add one memory or many: all of them, or none", WRITE,
        {200: "AddedMemories", 201: "AddedMemories"}, WRITING, (), NEW,
        {"text": "The ferry leaves at nine", "topics": ["travel"], "type": "fact"},
    ),
    Operation(
        "POST", BASE + "/memories/edit.json", "changeMemories", "memories",
        "Change many memories: all of them, or none", WRITE, {200: "Memories"}, WRITING, (),
        CHANGES, {"memories": [{"id": "6f1c2d3e-8a4b-4c5d-9e6f-7a8b9c0d1e2f", "title": "Ferries"}]},
    ),
    Operation(
        "POST", BASE + "/memories/delete.json", "deleteMemories", "memories",
        "Delete many memories for good", WRITE, {200: "Deleted"}, WRITING, (), IDS,
        {"ids": ["6f1c2d3e-8a4b-4c5d-9e6f-7a8b9c0d1e2f"]},
    ),
    Operation(
        "GET", MEMORY + ".json", "getMemory", "memories", "One memory", READ, {200: "Memories"},
    ),
    Operation(
        "PATCH", MEMORY + ".json", "changeMemory", "memories",
        "Change a memory: what is not named stays", WRITE, {200: "Memories"}, (*WRITING, 412),
        (IF_MATCH,), ref("MemoryChange"), {"title": "Ferries", "version": 1},
    ),
    Operation(
        "DELETE", MEMORY + ".json", "deleteMemory", "memories", "Delete a memory for good", WRITE,
        {200: "Done"}, (*WRITING, 412), (IF_MATCH,),
    ),
    Operation(
        "POST", MEMORY + "/done.json", "completeMemory", "memories", "Mark a memory as completed",
        WRITE, {200: "Memories"}, WRITING,
    ),
    Operation(
        "POST", MEMORY + "/reopen.json", "reopenMemory", "memories", "Mark a memory as open again",
        WRITE, {200: "Memories"}, WRITING,
    ),
    Operation(
        "POST", MEMORY + "/publish.json", "publishMemory", "memories",
        "Copy a memory into another collection; again gives the same copy",
        "hybrid-decrypt where it is and hybrid-write where it goes", {200: "Memories"}, WRITING, (),
        {**_named("collection", {"type": "string", "minLength": 1}), "additionalProperties": True},
        {"collection": "team"},
    ),
    Operation(
        "GET", BASE + "/collections.json", "listCollections", "collections",
        "The collections that the asker may use", ANY, {200: "Collections"},
    ),
    Operation(
        "POST", BASE + "/collections.json", "createCollection", "collections",
        "Make a collection, open or the asker's own", "hybrid-write on the database",
        {201: "Collections"}, WRITING, (), NEW_COLLECTION, {"name": "team", "private": True},
    ),
    Operation(
        "GET", COLLECTION + ".json", "getCollection", "collections", "One collection", ANY,
        {200: "Collections"},
    ),
    Operation(
        "PATCH", COLLECTION + ".json", "changeCollection", "collections",
        "Rename a collection, or choose its members",
        "to own it; hybrid-write to rename an open one",
        {200: "Collections"}, WRITING, (), COLLECTION_CHANGE, {"members": {"bob": "reader"}},
    ),
    Operation(
        "PUT", COLLECTION + "/members/{actor}.json", "setMember", "collections",
        "Give an actor a role", "to own the collection", {200: "Member"}, WRITING, (),
        _named("role", {"enum": list(ROLES)}), {"role": "reader"},
    ),
    Operation(
        "DELETE", COLLECTION + "/members/{actor}.json", "removeMember", "collections",
        "Take an actor's role away", "to own the collection", {200: "Member"}, WRITING,
    ),
    Operation(
        "GET", BASE + "/audit.json", "listAudit", "audit", "Who opened how much, newest first",
        AUDIT, {200: "AuditPage"}, ANYWHERE, (*AUDITING, *AUDIT_PAGE),
    ),
    Operation(
        "GET", BASE + "/audit.csv", "auditCsv", "audit", "The same as CSV, oldest first", AUDIT,
        {200: "text/csv"}, ANYWHERE, AUDITING,
    ),
    Operation(
        "POST", BASE + "/import.json", "upload", "import",
        "Import files: a multipart form, or one file as the body whose name is given",
        WRITE, {202: IMPORT_JOB}, WRITING, UPLOADING, contents=UPLOAD,
    ),
    Operation(
        "GET", BASE + "/import/{job}.json", "followImport", "import", "How far an import is",
        WRITE, {200: IMPORT_JOB},
    ),
    Operation(
        "DELETE", BASE + "/import/{job}.json", "stopImport", "import",
        "Stop an import after the file that it is at", WRITE, {200: IMPORT_JOB},
    ),
)  # fmt: skip
