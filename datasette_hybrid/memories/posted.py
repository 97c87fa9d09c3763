"""From posted JSON to memories: drafts of new ones and changes to those there are.

Boundary: text from a stranger, checked for its kind here and for its content in the store.
Refusals name rows and fields, never what a memory says.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memory_store.errors import BadInputError, checked_each
from memory_store.host import checked_change, checked_id, checked_rows, drafts, read_json
from memory_store.records import MemoryChange, MemoryDraft, read_record

MANY = 1_000
"""Memories of one request: they are embedded and written together, about 15 ms each."""

EMPTIED_BY_NULL = frozenset({"valid_from", "valid_to", "title"})
"""Of a change: null takes these away; of every other field null says nothing."""

NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl")


def rows_of(value: Any, name: str = "memories") -> tuple[list[Any], bool]:
    """The rows of a posted value, and whether it was one alone, outside of any list.

    Raises :class:`BadInputError` for none, or too many.
    """
    if isinstance(value, dict) and set(value) == {name}:
        value = value[name]
        if not isinstance(value, list):
            raise BadInputError(f"{name}: a list expected", name)
    rows = value if isinstance(value, list) else [value]
    if not rows:
        raise BadInputError(f"{name}: at least one expected", name)
    if len(rows) > MANY:
        raise BadInputError(f"{name}: {len(rows):,} in one request; {MANY:,} at most", name)
    return rows, not isinstance(value, list)


def rows_of_lines(body: bytes) -> list[Any]:
    """The values of NDJSON, one a line. Raises :class:`BadInputError` naming the line."""
    values = []
    for number, line in enumerate(body.splitlines(), start=1):
        if line.strip():
            try:
                values.append(read_json(line))
            except (ValueError, RecursionError):
                raise BadInputError(f"body: line {number} is not JSON", "body") from None
    return values


def drafts_of(rows: Sequence[Any]) -> list[MemoryDraft]:
    """New memories. A ``parent`` or ``supersedes`` may name another row's ``ref``.

    Raises :class:`BadRowsError` naming every wrong row.
    """
    found = checked_rows(rows, _draft)
    by_ref = {draft.ref: draft.id for draft in found if draft.ref is not None}
    return checked_rows(found, lambda draft: _related(draft, by_ref))


def edits_of(rows: Sequence[Any]) -> list[MemoryChange]:
    """Changes, each with the ``id`` of its memory. Raises :class:`BadRowsError`."""
    return checked_rows(rows, lambda row: edit_of(row, _id_of(row)))


def edit_of(row: Any, memory_id: str) -> MemoryChange:
    """A change to one memory. Raises :class:`BadInputError` naming the field."""
    emptied = [name for name in EMPTIED_BY_NULL & {*_object(row)} if row[name] is None]
    edit = read_record(MemoryChange, {**row, **dict.fromkeys(emptied, ""), "id": memory_id})
    if not row.keys() - {"id", "version"}:
        raise BadInputError("nothing to change", "body")
    checked_change(edit)
    return edit


def ids_of(value: Any) -> list[str]:
    """The ids in ``{"ids": […]}`` or a list. Raises :class:`BadInputError`."""
    if isinstance(value, dict) and set(value) != {"ids"}:
        raise BadInputError("ids: a list of ids expected, and nothing beside it", "ids")
    ids, _ = rows_of(value, "ids")
    for number, one in enumerate(ids):
        if not isinstance(one, str):
            raise BadInputError(f"ids[{number}]: text expected", f"ids[{number}]")
    return list(dict.fromkeys(ids))


def _draft(row: Any) -> MemoryDraft:
    given = {**_object(row), "text": row.get("text") or ""}
    draft: MemoryDraft = checked_each(
        {
            "draft": lambda: read_record(MemoryDraft, given),
            "text": lambda: _needed(given["text"]),
        }
    )["draft"]
    drafts.new_memory(draft, "")
    return replace(draft, id=checked_id(draft.id) if draft.id else str(uuid.uuid4()))


def _needed(text: Any) -> None:
    if isinstance(text, str) and not text.strip():
        raise BadInputError("text: a memory needs some text", "text")


def _related(draft: MemoryDraft, by_ref: Mapping[str, str | None]) -> MemoryDraft:
    """The draft with relations that name memories by id: those of other rows by their refs."""
    relations: dict[str, Any] = {}
    for name in ("parent", "supersedes", "superseded_by"):
        named = getattr(draft, name)
        if named is not None:
            relations[name] = by_ref.get(named) or _id(named, name)
    return replace(draft, **relations)


def _id(value: str, name: str) -> str:
    try:
        uuid.UUID(value)
    except ValueError:
        sentence = "names neither an id nor the ref of a row in this request"
        raise BadInputError(sentence, name) from None
    return value


def _id_of(row: Any) -> str:
    given = _object(row).get("id")
    if not isinstance(given, str) or not given:
        raise BadInputError("which memory? Its id is expected", "id")
    return given


def _object(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise BadInputError("a JSON object expected", "body")
    return row
