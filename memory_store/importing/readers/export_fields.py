"""What the readers of exports share: times as they come, topics within the limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memory_store.dates import parse_time
from memory_store.errors import BadInputError
from memory_store.importing.drafts import TOPIC_LENGTH, TOPIC_LIMIT

MICRO = 1_000_000  # microseconds of a second
FIRST = 631_152_000  # 1990 in seconds since 1970: a smaller number in an export is no time
DATE_DIGITS = (8, 12, 14)


def moment(value: Any) -> str | None:
    """Seconds since 1970, or a date as text, as ISO 8601; None for what is neither.

    A number of 8, 12 or 14 digits as text is a date like ``20240501``.
    """
    wanted = value.strip() if isinstance(value, str) else value
    if isinstance(wanted, str) and wanted.isdecimal() and len(wanted) not in DATE_DIGITS:
        wanted = int(wanted)
    try:
        wanted = int(wanted) if isinstance(wanted, float) else wanted
        small = isinstance(wanted, int) and wanted < FIRST
        return None if small or wanted in (None, "") else parse_time(wanted)
    except (BadInputError, ValueError, OverflowError, OSError):
        return None


def microseconds(value: Any) -> str | None:
    """Microseconds since 1970 as ISO 8601; None for what is none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return moment(value // MICRO) if whole else None


def topics_of(names: Iterable[Any]) -> tuple[str, ...]:
    """Names as topics, each once: those that a memory may have."""
    found = (str(name).strip().lstrip("#").strip() for name in names if name is not None)
    short = dict.fromkeys(name for name in found if 0 < len(name) <= TOPIC_LENGTH)
    return tuple(short)[:TOPIC_LIMIT]


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def kept(values: dict[str, Any]) -> dict[str, Any]:
    """Metadata without what says nothing."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
