"""The tools of an assistant: what a model sees of each, what it needs, and the call of one.

Boundary: a tool reaches nothing but what its :class:`Assistant` offers. Names, descriptions and
schemas are constants. A refusal names the argument and what to do instead, never a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from memory_store.assistants import code, reads, writes
from memory_store.assistants.answers import (
    NAMED,
    Found,
    Listing,
    Mapped,
    Shared,
    Shown,
    Started,
    Updated,
    WasRead,
    WereAdded,
    WereRead,
    as_json,
)
from memory_store.assistants.arguments import (
    Add,
    Find,
    Read,
    Start,
    Survey,
    Tasks,
    Update,
    taken,
    with_parts,
)
from memory_store.assistants.assistant import ORDER, RIGHTS, Access, Assistant, RefusedError
from memory_store.assistants.reads import DATA
from memory_store.errors import (
    BadInputError,
    ConflictError,
    DeletedError,
    MemoryStoreError,
    NotFoundError,
)
from memory_store.records.degraded import as_schema


class Tool(Struct, frozen=True):
    """One tool: what a model sees of it, what it takes, gives and needs, and what it does."""

    name: str
    description: str
    takes: type[Struct]
    gives: type[Struct]
    work: Callable[[Assistant, Any], Struct]
    needs: Access = "read"
    of_code: bool = False
    destructive: bool = False
    idempotent: bool = True

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, without references."""
        found: dict[str, Any] = _without_null(_schema(self.takes))
        return found

    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the answer, without references. What is not known is left out of it, so
        nothing in it is null. A record is described once, with the first tool that gives it."""
        if next(one for one in TOOLS if one.gives is self.gives) is not self:
            return {"type": "object"}
        found: dict[str, Any] = _without_null(_schema(self.gives))
        return found


def tools_of(assistant: Assistant) -> list[Tool]:
    """The tools that an assistant is offered: those that its rights are enough for, and those on
    source code where it may read some."""
    with_code = code.has_code(assistant)
    return [tool for tool in TOOLS if _may(assistant, tool) and (with_code or not tool.of_code)]


FAULT = "something went wrong inside the memory store; memory-store doctor"


def answered(
    assistant: Assistant, name: str, arguments: Mapping[str, Any] | None
) -> dict[str, Any]:
    """:func:`call` for a model: of a fault nothing is said but that there was one, for its words
    may quote a memory. Raises MemoryStoreError alone."""
    try:
        return call(assistant, name, arguments)
    except MemoryStoreError:
        raise
    except Exception:  # noqa: BLE001 - of any kind
        raise MemoryStoreError(FAULT) from None


def call(assistant: Assistant, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a tool answers. Raises MemoryStoreError, saying what to do instead."""
    tool = next((one for one in TOOLS if one.name == name), None)
    if tool is None:
        raise BadInputError(no_such_tool(assistant, name), "name")
    if not _may(assistant, tool):
        raise RefusedError(
            f"{name}: this connection may {RIGHTS[assistant.access]}. The user can allow more: "
            "memory-store mcp --write, or on a server the permission hybrid-write"
        )
    try:
        assistant.spend(len(as_json(arguments).encode()))
    except RecursionError:
        raise BadInputError(f"{name}: arguments: lists in lists, too deep", "arguments") from None
    try:
        given = taken(tool.takes, arguments or {})
    except BadInputError as error:
        raise BadInputError(f"{name}: {error}", "arguments") from None
    try:
        answer: dict[str, Any] = msgspec.json.decode(as_json(tool.work(assistant, given)))
    except DeletedError as error:
        remedy = f"memory-store trash restore {error.memory_id}"
        raise NotFoundError(f"{error}. The user can put it back: {remedy}") from None
    except NotFoundError as error:
        raise error if tool.of_code else NotFoundError(f"{error}; {SEARCH}") from None
    except ConflictError as error:
        raise ConflictError(f"{error}; memory_read says what it is now", error.ids) from None
    except BadInputError as error:
        following = NEXT.get(error.parameter or "")
        if following is None or following in str(error):
            raise
        raise BadInputError(f"{error}; {following}", error.parameter) from None
    return answer


SEARCH = "memory_search finds ids"
NEXT = {
    "collection": "memory_start lists them",
    "continue": "without it the search begins anew",
    "like": SEARCH,
    "parent": SEARCH,
}
"""What to do about an argument that was refused."""


def no_such_tool(assistant: Assistant, name: str) -> str:
    """What is said to a caller that asks for a tool that is not there."""
    names = ", ".join(tool.name for tool in tools_of(assistant))
    return f"there is no tool {name!r}; there is: {names}"


def _may(assistant: Assistant, tool: Tool) -> bool:
    return ORDER.index(assistant.access) >= ORDER.index(tool.needs)


_DESCRIBED = {"Listed": Started, "Result": Found, "Whole": WereRead}
"""Records whose fields are listed once: in the answer of the tool that is for them."""
_EXPLAINED = {"SearchRequest": Find}
"""Records whose fields are explained once: with the tool that is for them."""


def _schema(record: type[Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([record])
    shared: tuple[type[Shared], ...] = (*Shared.__subclasses__(), WasRead)
    for one in shared:
        if (known := components.get(one.__name__)) is not None:
            known["properties"] = _of_record(one.record, known["properties"])
    for name, answer in _DESCRIBED.items():
        if name in components and record is not answer:
            components[name] = {"type": "object"}
    for name, arguments in _EXPLAINED.items():
        if name in components and record is not arguments:
            for field in components[name]["properties"].values():
                field.pop("description", None)
    found: dict[str, Any] = _inlined(with_parts(record, components), components, set())
    return found


def _of_record(record: type[Struct], own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an answer, with what its record says of those that it takes. What is a record
    itself is an answer of its own."""
    _, components = msgspec.json.schema_components([record], schema_hook=as_schema)
    theirs = components[record.__name__]["properties"]
    return {
        name: said if "$ref" in str(said) else theirs.get(NAMED.get(name, name), said)
        for name, said in own.items()
    }


def _without_null(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_null(one) for one in schema if one != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    inside = {name: _without_null(value) for name, value in schema.items()}
    several = inside.get("anyOf", ())
    if len(several) == 1:
        del inside["anyOf"]
        inside |= several[0]
    return inside


def _inlined(schema: Any, components: Mapping[str, Any], seen: set[str]) -> Any:
    """A schema with what it refers to in its place, the first time, and without what a model has
    no use for."""
    if isinstance(schema, list):
        return [_inlined(one, components, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = {"type": "object"} if name in seen else components[name]
        seen.add(name)
    dropped = {"title", "additionalProperties", "default"}
    if schema.get("type") == "object":
        dropped |= {"description"}  # the record's own: its fields say enough
    dropped |= {name for name, value in schema.items() if name == "required" and not value}
    inside = {name: value for name, value in schema.items() if name not in dropped}
    if "properties" in schema:
        inside["properties"] = {
            name: _inlined(value, components, seen) for name, value in schema["properties"].items()
        }
        return inside
    return {name: _inlined(value, components, seen) for name, value in inside.items()}


TOOLS: tuple[Tool, ...] = (
    Tool(
        "memory_start",
        "Call once at the start: preferences, topics, open tasks and "
        f"what is new in the user's memories. {DATA}",
        Start,
        Started,
        reads.start,
    ),
    Tool(
        "memory_search",
        "Search the user's memories (notes, decisions, tasks, facts) by words and meaning. "
        f"Where complete is false, memory_read has the whole text. {DATA}",
        Find,
        Found,
        reads.find,
    ),
    Tool(
        "memory_landscape",
        f"Map of what is in the memories. {DATA}",
        Survey,
        Mapped,
        reads.survey,
    ),
    Tool("memory_read", f"Read memories whole, by id. {DATA}", Read, WereRead, reads.read),
    Tool("tasks", "List tasks, what is due first.", Tasks, Listing, reads.tasks),
    Tool(
        "code_context",
        "What a repository is: where it begins, what is used most.",
        code.Context,
        code.Told,
        code.context,
        of_code=True,
    ),
    Tool(
        "code_outline",
        "Definitions of a file with lines, and imports.",
        code.Outline,
        code.Told,
        code.outline,
        of_code=True,
    ),
    Tool(
        "code_symbols",
        "Where a name is defined and used.",
        code.Symbols,
        code.Told,
        code.symbols,
        of_code=True,
    ),
    Tool(
        "code_impact",
        "Files that depend on a file or symbol: steps, path, lines.",
        code.Impact,
        code.Told,
        code.impact,
        of_code=True,
    ),
    Tool(
        "code_read",
        f"Lines of a file; next says where to go on. {DATA}",
        code.Lines,
        Shown,
        code.read,
        of_code=True,
    ),
    Tool(
        "memory_add",
        "Remember something for the user, word for word. Says what is already known, and "
        "what it may replace (then memory_update with supersede).",
        Add,
        WereAdded,
        writes.add,
        needs="append",
        idempotent=False,
    ),
    Tool(
        "memory_update",
        "Change, complete, supersede or delete one memory.",
        Update,
        Updated,
        writes.update,
        needs="write",
        destructive=True,
        idempotent=False,
    ),
)
"""All tools, in the order in which a model sees them."""
