"""JSON schemas of what the API takes and answers, made from the records themselves.

A field that is added to a record is in the description of the API from then on; what can only be
said in words is written here.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from memory_store.actions.trail import Total
from memory_store.records import (
    DONE_SUFFIX,
    LIMIT_DEEP,
    MAX_QUERY_CHARACTERS,
    MODES,
    STATUSES,
    TYPES,
    Memory,
    MemoryDraft,
    MemoryEdit,
    Passage,
    SearchOptions,
    SearchResponse,
    SearchResult,
)
from memory_store.search.recipes import RECIPES
from memory_store.sql.options import NO, OPTION_NAMES, YES
from memory_store.sql.permitted import SHOWN
from memory_store.vault.audit_events import AuditEvent
from memory_store.vault.members import ROLES

from ..collections import ACTIONS, CollectionView
from ..memories import posted
from ..search.api import COMPACT_KEYS

Schema = dict[str, Any]

ID = {"type": "string", "description": "Random id (UUID)"}
TIME = "ISO 8601, in UTC"
SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
MEMORY_TYPES = [*TYPES, *(f"{name}{DONE_SUFFIX}" for name in TYPES)]

OPTIONS: Mapping[str, tuple[str, Schema]] = {
    "mode": ("How to search", {"enum": list(MODES)}),
    "deep": ("A wider candidate pool; needs two keywords at least", {}),
    "limit": ("Results of a page: up to 32, deep up to 100", {"minimum": 1, "maximum": LIMIT_DEEP}),
    "collection": ("Names or ids of collections", {}),
    "type": ("Types of memories", {}),
    "topic": ("Topics, any of which a memory has", {}),
    "status": ("Open memories, done ones, or all", {"enum": list(STATUSES)}),
    "meta": ("Metadata: KEY=VALUE", {}),
    "since": ("Created from then on: a date, a time, or a span such as 7d", {}),
    "until": ("Created until then", {}),
    "min_score": ("Least score of a result", {"minimum": 0, "maximum": 1}),
    "narrow": ("Values of facets: FACET:VALUE", {}),
    "recipe": ("The ranking", {"enum": list(RECIPES)}),
    "reranker": ("A reranking model, by its name", {}),
    "rerank": ("Whether to rerank where the recipe does", {}),
    "expander": ("The language model that the server's configuration names, or none", {}),
    "expand": ("Whether to ask a language model for other wordings, where one is configured", {}),
    "sealed": ("Open the memories that are returned, and no other", {}),
    "like": ("Id of a memory: others like it", {}),
    "budget": ("Most tokens of all texts returned", {"minimum": 1}),
    "budget_ms": ("Most milliseconds to take", {"minimum": 1}),
    "continue": ("`next` of the page before", {}),
    "explain": ("Tell what each stage did", {}),
    "why": ("Id of a memory: say why it is, or is not, among the results", {}),
}
"""Each option of a search: what it is, and what its schema holds besides its type."""

FOR_PAGES = ("title_highlights", "holding")
"""Fields of an answer that no JSON has."""


def of_type(annotation: Any) -> Schema:
    """The schema of a type as the records annotate their fields."""
    if annotation in SCALARS:
        return {"type": SCALARS[annotation]}
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        (held,) = (one for one in inside if one is not types.NoneType)
        return nullable(of_type(held))
    if origin is tuple:
        if len(inside) == 2 and inside[1] is Ellipsis:
            return {"type": "array", "items": of_type(inside[0])}
        pair = {"minItems": len(inside), "maxItems": len(inside)}
        return {"type": "array", "items": of_type(inside[0]), **pair}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        values = {} if inside[1] is Any else of_type(inside[1])
        return {"type": "object", "additionalProperties": values or True}
    if annotation is Passage:
        return {"$ref": "#/components/schemas/Passage"}
    if annotation is SearchResult:
        return {"$ref": "#/components/schemas/Row"}
    return {"type": "object"}


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema if "null" in kinds else {**schema, "type": [*kinds, "null"]}


def of_record(record: type[Struct], *, sealed: bool = False) -> Schema:
    """An object with a record's fields, all of them there.

    ``sealed``: what somebody without the decrypt grant may not see may be null.
    """
    hints = get_type_hints(record)
    told = [one for one in record.__struct_fields__ if one not in FOR_PAGES]
    properties = {name: of_type(hints[name]) for name in told}
    if sealed:
        properties = {
            name: schema if name in SHOWN else nullable(schema)
            for name, schema in properties.items()
        }
    return {"type": "object", "properties": properties, "required": list(properties)}


def option(name: str) -> Schema:
    """The schema of a search's option in a JSON body."""
    field = "continue_" if name == "continue" else name
    annotation = get_type_hints(SearchOptions)[field]
    description, more = OPTIONS[name]
    if name == "meta":
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if annotation is bool:
        return {"enum": [True, False, 1, 0, None], "description": description}
    said = {**of_type(annotation), **more}
    if "enum" in said:  # null, as everywhere, is "not said"
        said = {"enum": [*said["enum"], None]}
    return {**nullable(said), "description": description} if "type" in said else said


def option_parameter(name: str) -> Schema:
    """The same option in a query string."""
    field = "continue_" if name == "continue" else name
    annotation = get_type_hints(SearchOptions)[field]
    description, more = OPTIONS[name]
    said: Schema
    if annotation is bool:
        said = {"enum": sorted((YES | NO) - {""})}
    elif get_origin(annotation) is tuple:
        said = {"type": "array", "items": {"type": "string"}}
        if name == "meta":
            said["items"]["pattern"] = "^[^=]+="
        elif name == "narrow":
            said["items"]["pattern"] = "^[a-z]+:"
    else:
        held = [one for one in get_args(annotation) or (annotation,) if one in SCALARS]
        said = {"type": SCALARS[held[0]], **more}
    return {"name": name, "in": "query", "description": description, "schema": said}


def _search_request() -> Schema:
    query = {"type": "string", "maxLength": MAX_QUERY_CHARACTERS, "description": "The query"}
    properties = {"q": query, **{name: option(name) for name in OPTION_NAMES}}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _search_answer() -> Schema:
    schema = of_record(SearchResponse)
    properties = {"ok": {"const": True}, **schema["properties"]}
    properties["next_url"] = {"type": ["string", "null"]}
    properties["explain"] = {"type": "array", "items": {"type": "object"}}
    for name in ("why", "budget"):
        properties[name] = {"type": "object"}
    required = [name for name in properties if name not in ("explain", "why", "budget")]
    return {"type": "object", "properties": properties, "required": required}


def _compact() -> Schema:
    row = of_record(SearchResult, sealed=True)["properties"]
    short = {
        "type": "object",
        "properties": {name: row[name] for name in COMPACT_KEYS},
        "required": list(COMPACT_KEYS),
    }
    count = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    return {
        "type": "array",
        "prefixItems": [
            {"type": "array", "items": short},
            {"type": "string"},
            {"type": "array", "items": count},
        ],
        "minItems": 3,
        "maxItems": 3,
    }


def _new_memory() -> Schema:
    properties = of_record(MemoryDraft)["properties"]
    properties = {name: nullable(schema) for name, schema in properties.items()}
    properties["text"] = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "properties": {name: properties[name] for name in sorted(posted.NEW_FIELDS)},
        "required": ["text"],
        "additionalProperties": False,
    }


def _edit(*, by_id: bool) -> Schema:
    properties = of_record(MemoryEdit)["properties"]
    properties["version"] = properties.pop("expected_version")
    chosen = {name: nullable(properties[name]) for name in sorted(posted.EDIT_FIELDS)}
    if by_id:
        chosen = {"id": {"type": "string"}, **chosen}
    return {
        "type": "object",
        "properties": chosen,
        "required": ["id"] if by_id else [],
        "minProperties": 1,
        "additionalProperties": False,
    }


def _error() -> Schema:
    memory = {"type": ["object", "null"]}
    return {
        "type": "object",
        "properties": {
            "ok": {"const": False},
            "error": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "parameter": {"type": "string", "description": "What was wrong"},
            "current": {**memory, "description": "On a conflict: the memory as it is now"},
            "yours": {"description": "On a conflict: what was sent"},
            "conflicts": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["ok", "error", "errors", "status"],
    }


def rows_of(name: str, **more: Schema) -> Schema:
    """``{"ok": true, "rows": […]}`` of a schema, with further properties."""
    item = {"$ref": f"#/components/schemas/{name}"}
    properties = {"ok": {"const": True}, "rows": {"type": "array", "items": item}, **more}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _memory() -> Schema:
    return of_record(Memory, sealed=True)


def _added() -> Schema:
    unchanged = {"type": "boolean", "description": "It was there already, as it was sent"}
    schema = _memory()
    return {
        **schema,
        "properties": {**schema["properties"], "unchanged": unchanged},
        "required": [*schema["required"], "unchanged"],
    }


def _collection() -> Schema:
    schema = of_record(CollectionView)
    schema["properties"]["permissions"]["items"] = {"enum": list(ACTIONS)}
    return schema


def _event() -> Schema:
    schema = of_record(AuditEvent)
    who = {"type": "string", "description": "The actor, or what stands for one"}
    alike = "Alike uses within a minute that this event stands for, the first at its time"
    times = {"type": "integer", "minimum": 1, "description": alike}
    return {
        **schema,
        "properties": {**schema["properties"], "who": who, "times": times},
        "required": [*schema["required"], "who"],
    }


def schemas() -> dict[str, Schema]:
    """Every schema that the description of an operation refers to, by name."""
    role = {"enum": list(ROLES)}
    deleted = {"ok": {"const": True}, "deleted": {"type": "integer"}}
    member = {
        "ok": {"const": True},
        "actor": {"type": "string"},
        "role": {"anyOf": [role, {"type": "null"}]},
    }
    totals = {"type": "array", "items": {"$ref": "#/components/schemas/AuditTotal"}}
    trail: dict[str, Schema] = {
        "totals": totals,
        "next": {"type": ["integer", "null"]},
        "next_url": {"type": ["string", "null"]},
        "truncated": {"type": "boolean"},
    }
    page = {"next": {"type": ["string", "null"]}, "next_url": {"type": ["string", "null"]}}
    return {
        "Error": _error(),
        "Passage": of_record(Passage),
        "Row": of_record(SearchResult, sealed=True),
        "SearchRequest": _search_request(),
        "SearchAnswer": _search_answer(),
        "CompactAnswer": _compact(),
        "Memory": _memory(),
        "AddedMemory": _added(),
        "NewMemory": _new_memory(),
        "MemoryChange": _edit(by_id=False),
        "NamedMemoryChange": _edit(by_id=True),
        "MemoryPage": rows_of("Memory", **page, truncated={"type": "boolean"}),
        "Memories": rows_of("Memory"),
        "AddedMemories": rows_of("AddedMemory"),
        "Done": {"type": "object", "properties": {"ok": {"const": True}}, "required": ["ok"]},
        "Deleted": {"type": "object", "properties": deleted, "required": list(deleted)},
        "Collection": _collection(),
        "Collections": rows_of("Collection"),
        "AuditEvent": _event(),
        "AuditTotal": of_record(Total),
        "AuditPage": rows_of("AuditEvent", **trail),
        "Member": {"type": "object", "properties": member, "required": list(member)},
    }
