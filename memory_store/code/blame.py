"""Who changed the parts of a source file last, as its memory's metadata says it.

Boundary: reads metadata of opened memories and keeps nothing. What others wrote into it is data:
what is no such list says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

BLAME = "blame"
"""The key of the metadata."""
MOST_BYTES = 50_000  # as JSON: half of what metadata may take


class Change(Struct, frozen=True):
    """The last change of some lines (they count from 1): its author, and its day."""

    line: int
    end_line: int
    author: str
    date: str


def as_metadata(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """Changes as metadata, in the order of their lines, as many as there is room for."""
    kept, left = [], MOST_BYTES
    for one in changes:
        said = asdict(one)
        left -= len(json.dumps(said)) + 2
        if left < 0:
            break
        kept.append(said)
    return kept


def changes_in(metadata: Mapping[str, Any]) -> Sequence[Change]:
    """The changes that a memory's metadata tells; none where it tells none."""
    try:
        return convert(metadata.get(BLAME, ()), list[Change])
    except ValidationError:
        return ()


def last_change(metadata: Mapping[str, Any], line: int, end_line: int) -> Change | None:
    """The newest change of what some lines are a part of."""
    found = [one for one in changes_in(metadata) if one.line <= end_line and line <= one.end_line]
    return max(found, key=lambda one: one.date, default=None)
