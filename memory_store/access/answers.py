"""What an asker who may not read sees of an answer: what each of its fields says of itself.

Boundary: a field is withheld unless its annotation in :mod:`memory_store.records` shows it, so a
new one is until that is decided.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from memory_store.errors import ModelError
from memory_store.records import Memory, SearchResponse, SearchResult
from memory_store.records.degraded import Code, Degraded
from memory_store.records.explanation import Expand, Verdict
from memory_store.records.visibility import for_searchers, shown_to_searchers
from memory_store.search.degraded import A_PATH, without_commands
from memory_store.search.degraded import for_searchers as lines_for_searchers

COUNTED_UNLESS_STRICT = frozenset({"type", "status", "created"})
COUNTED = frozenset({"collection", "topic"})
"""Facets. Names are sealed: these are counted in the collections alone that the asker may read."""
NO_MODEL = (
    "meaning cannot be searched here now, because this server cannot use the model for it; tell "
    "the person who runs the server"
)


def shown_to_readers(response: SearchResponse, *, owner: bool) -> SearchResponse:
    """An answer without what a language model was sent: that is for the holder of the key.

    Commands that mend something, and paths of this machine, are for the vault's ``owner``.
    """
    stages = tuple(
        replace(stage, sent=UNSET) if isinstance(stage, Expand) else stage
        for stage in response.explain
    )
    degraded = response.degraded if owner else without_commands(response.degraded)
    return replace(response, explain=stages, degraded=degraded)


def warning_shown(warning: str, *, owner: bool) -> str:
    """A warning about the vault's file: its path, and what to do, are for the ``owner``."""
    line = Degraded(Code.FILE, warning.partition(". After a backup")[0])
    return warning if owner else without_commands([line])[0].sentence


def model_error_shown(error: ModelError, *, owner: bool) -> ModelError:
    """The error of a model: which it is, where it lies and what mends it are for the ``owner``."""
    return error if owner else type(error)(NO_MODEL, "")


def import_lines_shown(lines: Iterable[str], *, owner: bool, reader: bool) -> list[str]:
    """What an import went without. Commands that mend it, and paths, are for the vault's ``owner``.

    A line that names a collection says what was there before: it is for its ``reader``.
    """
    shown = []
    for line in lines:
        if isinstance(line, Degraded):
            if line.names and not reader:
                continue
            if not owner:
                (line,) = without_commands([line])
        shown.append(line)
    return shown


def shown_unread(
    response: SearchResponse, *, strict: bool, readable: Container[str] = ()
) -> SearchResponse:
    """A new answer with what may be seen of another one; whole rows of ``readable`` ids."""
    counted = COUNTED if strict else COUNTED | COUNTED_UNLESS_STRICT
    return replace(
        for_searchers(response, strict=strict),
        rows=tuple(
            row if row.id in readable else for_searchers(row, strict=strict)
            for row in response.rows
        ),
        facets={name: counts for name, counts in response.facets.items() if name in counted},
        degraded=without_commands(lines_for_searchers(response.degraded)),
        why=None if response.why is None else _verdict(response.why, strict=strict),
    )


def _verdict(why: Verdict, *, strict: bool) -> Verdict:
    """Without the reason, which may say that two memories have the same content, or what the opened
    text holds; unless that is what the asker gave."""
    from memory_store.search.explain.verdict import IDS_ONLY

    seen = for_searchers(why, strict=strict)
    return replace(seen, reason=IDS_ONLY) if why.reason == IDS_ONLY else seen


def row_data(row: SearchResult, *, strict: bool, titled: bool = False) -> dict[str, Any]:
    """A result of a search as JSON data, with null for all that its asker may not see.

    ``titled``: for a table that is read as it is, where first words stand in for a missing title.
    """
    if not row.collection:  # sealed ones have none
        return without_text(row, strict=strict)
    data = row.as_dict()
    return {**data, "title": row.shown_title} if titled else data


def with_text(memory: Memory, *, owner: bool) -> dict[str, Any]:
    """A memory as JSON data for its reader. Of the path that it came from, the last name: the
    folders of a machine are for the vault's ``owner``."""
    data = memory.as_dict()
    if not owner and A_PATH.match(memory.source or ""):
        data["source"] = re.split(r"[/\\]", data["source"].rstrip("/\\"))[-1]
    return data


def without_text(record: Memory | SearchResult, *, strict: bool) -> dict[str, Any]:
    """A result or a memory as JSON data, with null for all that its asker may not see."""
    shown = shown_to_searchers(type(record), strict=strict)
    return {name: value if name in shown else None for name, value in record.as_dict().items()}
