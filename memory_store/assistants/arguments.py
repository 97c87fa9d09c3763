"""What each tool takes: fields of the records that every surface shares, and a few of its own.

A tool names the fields that it takes of a record (:func:`part`). Their kinds, limits and
descriptions are the record's: in the tool's schema and where its arguments are checked.

Boundary: descriptions are constants. None of them quotes a memory.
"""

# Annotations are not postponed: the schemas are made from them.

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from memory_store.errors import BadInputError, checked_each, together
from memory_store.records import MemoryChange, MemoryDraft, SearchRequest
from memory_store.records.memories import read_record
from memory_store.records.refusals import no_such_field, refusal
from memory_store.records.request import read_request

BUDGET, LEAST_BUDGET, MOST_BUDGET = 2_000, 150, 20_000  # tokens of an answer
MOST_AT_ONCE = 50  # memories in one call

Budget = Annotated[int, Meta(ge=LEAST_BUDGET, le=MOST_BUDGET)]
Names = list[str]
T = TypeVar("T", bound=Struct)

SPELLED = {"q": "query"}
"""Names of a record's fields in JSON that a model would not understand, and what it sees."""


class Part(Struct, frozen=True):
    """Fields of ``record`` by the names that a model sees. ``usual`` is what some of them are where
    nothing is said, if something else than the record says; ``bare`` are those whose names say
    enough to a model."""

    record: type[Struct]
    names: tuple[str, ...]
    usual: Mapping[str, Any]
    bare: tuple[str, ...]

    def spelled(self) -> Iterator[tuple[str, str]]:
        """Each name that a model sees, and the record's own in JSON."""
        own = {spelled: field for field, spelled in SPELLED.items()}
        for name in self.names:
            yield name, own.get(name, name)


def part(*names: str, bare: tuple[str, ...] = (), **usual: Any) -> Meta:
    """Marks an argument of a tool that is made of those fields of its record."""
    return Meta(extra={"names": names, "usual": usual, "bare": bare})


class Start(Struct, frozen=True):
    asked: Annotated[SearchRequest, part("query")]
    budget: Budget = BUDGET


class Survey(Struct, frozen=True):
    asked: Annotated[SearchRequest, part("as_of")]
    budget: Budget = BUDGET


class Find(Struct, frozen=True):
    asked: Annotated[
        SearchRequest,
        part(
            *("query", "mode", "language", "limit", "collection", "type", "topic", "status"),
            *("since", "until", "as_of", "superseded", "by", "like", "deep", "explain", "continue"),
            bare=("collection", "status", "until", "explain"),
        ),
    ]
    budget: Annotated[Budget, Meta(description="Tokens at most")] = BUDGET
    format: Literal["shorter", "json", "compact"] = "shorter"


class Read(Struct, frozen=True):
    ids: Annotated[Names, Meta(min_length=1, max_length=20)]
    asked: Annotated[SearchRequest, part("as_of")]
    start: Annotated[int, Meta(ge=0, description="From next_start, or a result's start")] = 0
    budget: Budget = 2 * BUDGET


class New(Struct, frozen=True):
    draft: Annotated[
        MemoryDraft,
        part(
            *("text", "title", "type", "topics", "collection", "parent", "valid_from", "valid_to"),
            type="fact",
        ),
    ]
    due: str = ""


class Add(Struct, frozen=True):
    memories: Annotated[list[New], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    if_new: Annotated[bool, Meta(description="Leave out what is known")] = False


class Update(Struct, frozen=True):
    change: Annotated[
        MemoryChange,
        part(
            *("id", "version", "text", "title", "type", "add_topics", "remove_topics", "valid_to"),
        ),
    ]
    due: str | None = None
    tick: Annotated[list[int], Meta(description="Steps (- [ ]) to tick, from 1")] = []
    done: Annotated[bool | None, Meta(description="Complete, or open again")] = None
    supersede: Annotated[
        str | None, Meta(description="New text: the old one stays, valid until now")
    ] = None
    publish: Annotated[str, Meta(description="Copy it into this collection")] = ""
    delete: Annotated[bool, Meta(description="Into the trash; needs version")] = False


class Tasks(Struct, frozen=True):
    asked: Annotated[SearchRequest, part("status", "topic", "collection", status="open")]
    due_by: Annotated[str, Meta(description="2024-05-31, or 7d: within a week")] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    budget: Budget = BUDGET


def taken(kind: type[T], given: Mapping[str, Any]) -> T:
    """What a tool is given. Raises BadInputError naming the argument as a model spells it."""
    try:
        return msgspec.convert(_with_records(kind, given, ""), kind)
    except msgspec.ValidationError as error:
        place, reason = refusal(error, kind)
        raise BadInputError(f"{place or 'arguments'}: {reason}", place) from None


def names_of(kind: type[Struct]) -> list[str]:
    """The names of all that a tool takes, or one of the many things that it takes."""
    found: list[str] = []
    for name, (_, shared) in _arguments(kind):
        found += shared.names if shared is not None else [name]
    return found


def parts_of(kind: type[Struct]) -> list[Part]:
    """The parts of records that a tool takes."""
    return [shared for _, (_, shared) in _arguments(kind) if shared is not None]


def with_parts(kind: type[Struct], components: dict[str, Any]) -> dict[str, Any]:
    """The schema of what a tool takes: the fields of its records stand among its own.

    ``components`` are the schemas of all records by name; those of what is taken in lists are
    changed in the same way.
    """
    schema = components[kind.__name__]
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, (inner, shared) in _arguments(kind):
        if inner is not None:
            components[inner.__name__] = with_parts(inner, components)
        if shared is None:
            properties[name] = schema["properties"][name]
            required += [name] * (name in schema.get("required", ()))
            continue
        whole = components[shared.record.__name__]
        for spelled, field in shared.spelled():
            properties[spelled] = dict(whole["properties"][field])
            if spelled in shared.bare:
                properties[spelled].pop("description", None)
            required += [spelled] * (field in whole.get("required", ()))
    return {**schema, "properties": properties, "required": required}


def _arguments(kind: type[Struct]) -> Iterator[tuple[str, tuple[type[Struct] | None, Part | None]]]:
    """Each argument by name: what it is a list of, if that takes parts of records, and what part
    of a record it is itself."""
    for one in fields(kind):
        hint, shared = one.type, None
        if get_origin(hint) is Annotated:
            hint, *meta = get_args(hint)
            extra = next((it.extra for it in meta if it.extra), None)
            if extra is not None:
                shared = Part(hint, **extra)
        inner = get_args(hint)[0] if get_origin(hint) is list else None
        takes_parts = isinstance(inner, type) and issubclass(inner, Struct)
        yield one.encode_name, (inner if takes_parts else None, shared)


def _with_records(kind: type[Struct], given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """What was given, with the records that some of it makes. Raises BadInputError."""
    known = names_of(kind)
    checks: dict[str, Callable[[], Any]] = {"": partial(_refuse_unknown, given, known, place)}
    for name, (inner, shared) in _arguments(kind):
        if shared is not None:
            checks[name] = partial(_record, shared, given, place)
        elif name in given:
            checks[name] = partial(_several, inner, name, given[name])
    made = checked_each(checks)
    del made[""]
    return made


def _refuse_unknown(given: Iterable[str], known: Sequence[str], place: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        names = ", ".join(unknown)
        raise BadInputError(f"{names}: {no_such_field(place, known)}", unknown[0])


def _several(inner: type[Struct] | None, name: str, value: Any) -> Any:
    """A list of what takes parts of records, with these made; any other value as it is."""
    if inner is None or not isinstance(value, list):
        return value
    made = checked_each(
        {
            str(number): partial(_with_records, inner, one, f"{name}[{number}]")
            for number, one in enumerate(value[: MOST_AT_ONCE + 1])
            if isinstance(one, Mapping)
        }
    )
    return [made.get(str(number), one) for number, one in enumerate(value[: MOST_AT_ONCE + 1])]


def _record(shared: Part, given: Mapping[str, Any], place: str) -> Struct:
    said: dict[str, Any] = dict(shared.usual)
    for name, field in shared.spelled():
        value = given.get(name)
        if value is not None and (value != "" or shared.record is MemoryChange):
            said[field] = value
    try:
        if shared.record is SearchRequest:
            return read_request(said, loose=False)
        return read_record(shared.record, said)
    except BadInputError as error:
        within = f"{place}." if place else ""
        raise together(
            [BadInputError(within + _respelled(said), name) for name, said in error.each]
        ) from None


def _respelled(message: str) -> str:
    return re.sub(rf"^({'|'.join(SPELLED)})\b", lambda it: SPELLED[it[1]], message)
