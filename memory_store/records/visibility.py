"""Who sees a field of an answer, written beside the field.

Boundary: a field without such a word is for those who may read alone. So a new field is withheld
from searchers until it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

T = TypeVar("T")
R = TypeVar("R", bound=Struct)


class Seen(Enum):
    """By whom a field is seen, besides those who may read the memory."""

    BY_SEARCHERS = "by searchers"  # the file shows it anyhow, or it is a place among answers
    UNLESS_STRICT = "by searchers, unless the vault seals types and times"
    IN_PART = "by searchers in part: memory_store.access takes the rest out"


ForSearchers = Annotated[T, Seen.BY_SEARCHERS]
UnlessStrict = Annotated[T, Seen.UNLESS_STRICT]
InPart = Annotated[T, Seen.IN_PART]


@cache
def visibility(record: type[Struct]) -> Mapping[str, Seen | None]:
    """By whom each field of a record is seen; ``None``: only by those who may read."""
    hints = get_type_hints(record, include_extras=True)
    said = {name: getattr(hints[name], "__metadata__", ()) for name in record.__struct_fields__}
    return {
        name: next((one for one in words if isinstance(one, Seen)), None)
        for name, words in said.items()
    }


@cache
def shown_to_searchers(record: type[Struct], *, strict: bool) -> frozenset[str]:
    """The fields that an asker sees whole who may search, but not read."""
    whole = {Seen.BY_SEARCHERS} if strict else {Seen.BY_SEARCHERS, Seen.UNLESS_STRICT}
    return frozenset(name for name, seen in visibility(record).items() if seen in whole)


@cache
def _withheld(record: type[Struct]) -> Mapping[str, Any]:
    """What stands in each field where it is not shown: its default, or nothing of its kind."""
    hints = get_type_hints(record)
    values: dict[str, Any] = {}
    for one in fields(record):
        hint = hints[one.name]
        if one.default is not NODEFAULT:
            values[one.name] = one.default
        elif one.default_factory is not NODEFAULT:
            values[one.name] = one.default_factory()
        else:
            values[one.name] = None if NoneType in get_args(hint) else (get_origin(hint) or hint)()
    return values


def for_searchers(record: R, *, strict: bool) -> R:
    """The record with what an asker sees of it who may search, but not read.

    Of a field that is seen in part nothing is left but records, with what is seen of them.
    """
    shown, withheld = shown_to_searchers(type(record), strict=strict), _withheld(type(record))
    values: dict[str, Any] = {}
    for name, seen in visibility(type(record)).items():
        if name in shown:
            continue
        inside = getattr(record, name) if seen is Seen.IN_PART else None
        if isinstance(inside, Struct):
            values[name] = for_searchers(inside, strict=strict)
        elif isinstance(inside, tuple) and all(isinstance(one, Struct) for one in inside):
            values[name] = tuple(for_searchers(one, strict=strict) for one in inside)
        else:
            values[name] = withheld[name]
    return replace(record, **values)
