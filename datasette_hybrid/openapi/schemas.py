"""JSON schemas of what the API takes and answers, made from the records themselves.

A field that is added to a record is in the description of the API from then on; what can only be
said in words is written here.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from memory_store.host import (
    NO,
    RECIPES,
    ROLES,
    YES,
    AuditEvent,
    Stages,
    Total,
    Verdict,
    shown_to_searchers,
)
from memory_store.records import (
    DONE_SUFFIX,
    OPTION_NAMES,
    OPTIONS,
    TYPES,
    Memory,
    MemoryDraft,
    MemoryEdit,
    Passage,
    SearchRequest,
    SearchResponse,
    SearchResult,
)

from ..collections import ACTIONS, CollectionView
from ..memories import posted
from ..search.api import COMPACT_KEYS

Schema = dict[str, Any]

ID = {"type": "string", "description": "Random id (UUID)"}
TIME = "ISO 8601, in UTC"
SCALARS: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
MEMORY_TYPES = [*TYPES, *(f"{name}{DONE_SUFFIX}" for name in TYPES)]

REQUEST: Schema = msgspec.json.schema_components([SearchRequest])[1][SearchRequest.__name__]
(_STAGE, _VERDICT), EXPLANATION = msgspec.json.schema_components(
    [Stages, Verdict], ref_template="#/components/schemas/{name}"
)
PATTERNS = {"meta": "^[^=]+=", "narrow": "^[a-z]+:"}
"""Of texts that a query string holds of an option."""

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
        shown = shown_to_searchers(record, strict=True)
        properties = {
            name: schema if name in shown else nullable(schema)
            for name, schema in properties.items()
        }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _asked(name: str) -> Schema:
    """A field of the request as the record has it, and what only a server knows of it."""
    schema: Schema = dict(REQUEST["properties"][name])
    del schema["default"]
    return schema | {"recipe": {"enum": list(RECIPES)}}.get(name, {})


def option(name: str) -> Schema:
    """The schema of a search's option in a JSON body: null, as everywhere, is "not said"."""
    schema = _asked(name)
    if OPTIONS[name].pairs:
        schema |= {"type": "object", "additionalProperties": {"type": "string"}}
        return nullable({key: schema[key] for key in schema if key != "items"})
    if OPTIONS[name].kind is bool:
        return {"enum": [True, False, 1, 0, None], "description": schema["description"]}
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None], "type": ["string", "null"]}
    return schema if "anyOf" in schema else nullable(schema)


def option_parameter(name: str) -> Schema:
    """The same option in a query string."""
    schema = _asked(name)
    description = schema.pop("description")
    if "anyOf" in schema:
        schema = schema["anyOf"][0]
    if OPTIONS[name].kind is bool:
        schema = {"enum": sorted((YES | NO) - {""})}
    elif name in PATTERNS:
        schema["items"] = {"type": "string", "pattern": PATTERNS[name]}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _search_request() -> Schema:
    query = {key: value for key, value in REQUEST["properties"]["q"].items() if key != "default"}
    properties = {"q": query, **{name: option(name) for name in OPTION_NAMES}}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _search_answer() -> Schema:
    schema = of_record(SearchResponse)
    properties = {"ok": {"const": True}, **schema["properties"]}
    properties["next_url"] = {"type": ["string", "null"]}
    properties["explain"] = {"type": "array", "items": _STAGE}
    properties["why"], properties["budget"] = _VERDICT, {"type": "object"}
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
        **EXPLANATION,
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
