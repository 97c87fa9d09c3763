"""What the readers of exports share: times as they come, topics within the limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memory_store.dates import parse_time
from memory_store.errors import BadInputError
from memory_store.importing.drafts import TOPIC_LENGTH, TOPIC_LIMIT

MICRO = 1_000_000  # microseconds of a second


def moment(value: Any) -> str | None:
    """Seconds since 1970, or a date as text, as ISO 8601; None for what is neither."""
    wanted = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    try:
        wanted = int(wanted) if isinstance(wanted, float) else wanted
        return None if wanted in (None, "", 0) else parse_time(wanted)
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


def kept(values: dict[str, Any]) -> dict[str, Any]:
    """Metadata without what says nothing."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
