"""JSON schemas of what the API takes and answers, made from the records themselves.

A field that is added to a record is in the description of the API from then on.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memory_store.host import NO, RECIPES, YES, as_schema, shown_to_searchers
from memory_store.records import (
    Decision,
    ExistsRequest,
    Memory,
    MemoryChange,
    MemoryDraft,
    SearchRequest,
    SearchResult,
    WordsRequest,
)

from ..search.api import COMPACT_KEYS
from .answers import AddedMemory, CompactRow, Row
from .requests import NamedMemoryChange

Schema = dict[str, Any]
What = Any
"""A record, or a tuple of records of which it is one."""

REQUESTS = {
    one.__name__
    for one in (
        *(SearchRequest, MemoryDraft, MemoryChange, NamedMemoryChange),
        *(Decision, ExistsRequest, WordsRequest),
    )
}
"""Records in which null is "not said"."""

WITHHELD = (Row, CompactRow, Memory, AddedMemory)
"""Records in which null is what their asker may not see."""

SOMETIMES = {"SearchAnswer": {"explain", "why", "budget"}}
LEFT_OUT = {
    "Row": {"title_highlights"},
    "CompactRow": {*SearchResult.__struct_fields__} - {*COMPACT_KEYS},
    "SearchAnswer": {"holding"},
    "MemoryChange": {"id"},
}
"""Fields of a record that its JSON may lack, and those that it never has."""

MEANT: Mapping[str, Schema] = {
    "meta": {"type": "object", "additionalProperties": {"type": "string"}},
    "recipe": {"enum": list(RECIPES)},
}
IN_QUERY: Mapping[str, Schema] = {
    "meta": {"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}},
    "narrow": {"items": {"type": "string", "pattern": "^[a-z]+:"}},
}
"""Options of a search that a JSON body and a query string spell in their own way."""


class Described:
    """The schemas of records, and of what they hold: ``components`` by name."""

    def __init__(self, whats: Iterable[What]) -> None:
        records = [one for what in whats for one in _alternatives(what)]
        found, self.components = msgspec.json.schema_components(
            records, schema_hook=as_schema, ref_template="#/components/schemas/{name}"
        )
        self._schemas = dict(zip(records, found, strict=True))
        for name, schema in self.components.items():
            schema.pop("title", None)
            schema["description"] = _plain(schema["description"])
            if "properties" in schema:
                _as_sent(name, schema)
        for record in WITHHELD:
            properties = self.components[record.__name__]["properties"]
            for name in properties.keys() - shown_to_searchers(record, strict=True):
                properties[name] = nullable(properties[name])

    def of(self, what: What) -> Schema:
        """The schema of a record, or of one of several."""
        (first, *more) = (self._schemas[one] for one in _alternatives(what))
        return {"anyOf": [first, *more]} if more else first


def _alternatives(what: What) -> Sequence[Any]:
    return what if isinstance(what, tuple) else (what,)


def _as_sent(name: str, schema: Schema) -> None:
    """Say of a record's fields which are always there, and where null may stand."""
    properties, required = schema["properties"], {*schema.get("required", ())}
    for left_out in LEFT_OUT.get(name, ()):
        properties.pop(left_out, None)
    for field, one in properties.items():
        if "default" not in one:
            continue
        del one["default"]
        if name in REQUESTS and field != "q":
            properties[field] = nullable({**one, **MEANT.get(field, {})})
        elif name not in REQUESTS:
            required.add(field)
    kept = [one for one in properties if one in required - SOMETIMES.get(name, set())]
    schema["required"] = kept


def _plain(docstring: str) -> str:
    return inspect.cleandoc(docstring).replace("``None``", "null").replace("``", "`")


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "anyOf" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    null = {"type": "null"}
    return {**schema, "anyOf": [*(one for one in schema["anyOf"] if one != null), null]}


def parameter(name: str, schema: Schema, description: str) -> Schema:
    """A parameter in an address."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def options(*names: str) -> tuple[Schema, ...]:
    """Options of a search as parameters."""
    (_,), found = msgspec.json.schema_components([SearchRequest])
    made = []
    for name in names:
        schema = found["SearchRequest"]["properties"][name]
        description = schema.pop("description")
        del schema["default"]
        schema = schema.get("anyOf", [schema])[0]
        if schema.get("type") == "boolean":
            schema = {"enum": sorted((YES | NO) - {""})}
        schema |= {**MEANT, **IN_QUERY}.get(name, {})
        made.append(parameter(name, schema, description))
    return tuple(made)
