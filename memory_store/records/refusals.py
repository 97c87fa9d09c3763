"""What msgspec refuses, in plain words: which field is meant, and what would do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

from msgspec import Struct
from msgspec.structs import fields

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
_BOUNDS = {">=": "of at least", "<=": "of at most"}
_UNITS = {"str": " characters", "array": " entries"}
_EXPECTED = re.compile(r"Expected `(\w+)[^`]*`(?: of length)?(?: ([<>]=) (\d+))?")
_NO_CHOICE = "Invalid enum value "
_PLACE = re.compile(r" - at `\$\.?(.*)`$")


def refusal(error: Exception, record: type[Struct]) -> tuple[str, str]:
    """The place in a record that ``msgspec.convert`` refused, as it is spelled in JSON, and why."""
    message, place = str(error), ""
    if found := _PLACE.search(message):
        message, place = message[: found.start()], found[1]
    if wanted := _EXPECTED.match(message):
        kind, bound, number = wanted.groups()
        unit = _UNITS.get(kind, "")
        if number == "1" and unit:
            return place, "needed, not empty"
        limit = f" {_BOUNDS[bound]} {int(number):,}{unit}" if bound else ""
        return place, f"{_KINDS.get(kind, kind)}{limit} expected"
    known = {one.encode_name: one.type for one in fields(record)}
    if message.startswith(_NO_CHOICE) and place in known:
        choices = get_args(get_args(known[place])[0]) or get_args(known[place])
        return place, f"{message.removeprefix(_NO_CHOICE)} is not one of {', '.join(choices)}"
    name = message.partition("`")[2].rpartition("`")[0]
    if not name:
        return place, message
    if "missing" in message:
        return name, f"needed in {place}" if place else "needed"
    return name, no_such_field(place, known)


def no_such_field(place: str, known: Iterable[str]) -> str:
    """Why a field is refused that a record does not have; ``place`` is empty for the whole."""
    return f"no such field in {place}" if place else f"no such field; there are {', '.join(known)}"
