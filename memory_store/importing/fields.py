"""The known fields of front matter and of rows: from keys and values to a memory draft.

One reading serves every source, so a note, a JSON line and a table row that say the same become
the same memory. What has no field of its own is kept in ``metadata``; nothing is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct

from memory_store.dates import parse_time
from memory_store.errors import BadInputError
from memory_store.importing.drafts import TOPIC_LENGTH, TOPIC_LIMIT
from memory_store.importing.front_matter import Plain, as_data, deeper_than
from memory_store.records import DONE_SUFFIX, TYPES, MemoryDraft
from memory_store.text.plain_json import refuse_constant

MAX_METADATA_DEPTH = 200  # levels; below what Python's recursion allows here and in the store

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
_KNOWN_TYPES = frozenset(TYPES) | {kind + DONE_SUFFIX for kind in TYPES}


class FieldError(Exception):
    """A field's value cannot be taken. ``key`` is the key as its author wrote it."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


class Record(Struct):
    """Fields on their way to a draft: each is taken out once, the rest becomes metadata.

    A record that carries a UUID as ``id`` together with the key ``ref`` is one of our own exports
    and is taken at its word: topics as they are, ``ref`` even when null, ``source`` as the source
    root. Elsewhere ``source`` is metadata, since web clippers keep a URL there, and a row's ``id``
    is its name in its source. A ``ref`` given here (a primary key) wins over all of them.
    """

    values: dict[str, Any]
    is_row: bool = False
    ref: str | None = None

    @property
    def is_export(self) -> bool:
        """Whether this record was written by ``memory-store export``."""
        return self.ref is None and "ref" in self.values and _is_uuid(self.values.get("id"))

    def draft(self, text: str) -> MemoryDraft:
        """The memory draft; ``text`` is its text. Raises :class:`FieldError`."""
        exported = self.is_export
        names = _spellings(self.values)
        taken: dict[str, Any] = {}
        if self.ref is not None:
            names.pop("ref", None)
            taken["ref"] = self.ref
        name = self._row_name(names) if self.is_row and not exported else None
        for wanted, field in FIELDS.items():
            for key in (names[k] for k in field.keys if k in names):
                self._take(wanted, key, field.exported if exported else field.read, taken)
        if name is not None and taken.setdefault("ref", name[1]) == name[1]:
            self.values.pop(name[0], None)  # as ref, it need not be metadata too
        nested = taken.pop("metadata", {})
        metadata = {key: as_data(value) for key, value in self.values.items()} | nested
        return MemoryDraft(text=text, metadata=metadata, **taken)

    def _row_name(self, names: Mapping[str, str]) -> tuple[str, str] | None:
        """The key and the text of a row's own name in its source: its ``id`` (or ``_id``)."""
        for key in (names[k] for k in FIELDS["id"].keys if k in names):
            value = self.values[key]
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value):
                return key, str(value)
        return None

    def _take(self, name: str, key: str, read: FieldReader, taken: dict[str, Any]) -> None:
        """Move one key into its field, unless its value is not of that kind."""
        if name in taken and name != "topics":
            return
        try:
            value = read(self.values[key], key)
        except BadInputError as error:
            raise FieldError(key, str(error)) from None
        if value is _NOT_OURS:
            return
        if name == "topics":
            value = tuple(dict.fromkeys((*taken.get(name, ()), *value)))
            if len(value) > TOPIC_LIMIT:
                raise FieldError(key, f"{key}: over {TOPIC_LIMIT} topics")
        del self.values[key]
        if value is not None:
            taken[name] = value


FieldReader = Callable[[Any, str], Any]  # of a value and its key, as they are written
_NOT_OURS = object()  # the value belongs to another program's field of that name: it is metadata


def split_topics(value: Any, key: str = "topics") -> tuple[str, ...]:
    """Topics from a list, or from text separated by commas or else by spaces; ``#`` is dropped.

    Raises :class:`BadInputError` for anything that is not text.
    """
    if _is_null(value):
        return ()
    if isinstance(value, list):
        topics = [_topic(item, key) for item in value]
    elif isinstance(value, (str, int, float)):
        text = str(value).strip()
        if text.startswith("[") and text.endswith("]"):
            try:  # ["a", "b"] as a table holds it, or [a, b] quoted by hand
                return split_topics(json.loads(text), key)
            except (ValueError, RecursionError):
                return split_topics([part.strip(" '\"") for part in text[1:-1].split(",")], key)
        topics = [_topic(part, key) for part in (text.split(",") if "," in text else text.split())]
    else:
        raise BadInputError(f"{key}: topics are a list or text", key)
    return tuple(dict.fromkeys(topic for topic in topics if topic))


def _topic(value: Any, key: str) -> str:
    if isinstance(value, (list, dict)):
        raise BadInputError(f"{key}: a topic is a word, not a list or a mapping", key)
    topic = "" if _is_null(value) else str(value).strip().lstrip("#").strip().strip("/").strip()
    if len(topic) > TOPIC_LENGTH:
        raise BadInputError(f"{key}: a topic of over {TOPIC_LENGTH} characters", key)
    return topic


def _spellings(values: Mapping[str, Any]) -> dict[str, str]:
    """Compared form → key as written; the first spelling wins, the other stays metadata."""
    names: dict[str, str] = {}
    for key in values:
        names.setdefault(re.sub(r"[\s-]", "_", key.strip().lower()), key)
    return names


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, Plain) and as_data(value) is None)


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def _id(value: Any, key: str) -> Any:
    return str(UUID(value)) if _is_uuid(value) else _NOT_OURS


def _text(value: Any, key: str) -> Any:
    """Short text, exactly as written; numbers too (a title may be ``1984``)."""
    if _is_null(value):
        return None
    if isinstance(value, (dict, list)):
        return _NOT_OURS
    return str(value).strip() or None


def _type(value: Any, key: str) -> Any:
    """One of our types; ``type: post`` is Hugo's and stays metadata."""
    word = value.strip().lower() if isinstance(value, str) else None
    return word if word in _KNOWN_TYPES else _NOT_OURS


def _time(value: Any, key: str) -> Any:
    if _is_null(value) or (isinstance(value, str) and not value.strip()):
        return None
    return parse_time(str(value) if isinstance(value, str) else value, parameter=key)


def _metadata(value: Any, key: str) -> Any:
    value = as_data(value)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return _NOT_OURS
        if deeper_than(value, MAX_METADATA_DEPTH):
            return _NOT_OURS
    return as_data(value) if isinstance(value, dict) else _NOT_OURS


def _verbatim(value: Any, key: str) -> Any:
    """Text to the letter; without quotes it was edited by hand, and ``null`` means null."""
    return None if _is_null(value) else str(value)


def _verbatim_topics(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        return split_topics(value, key)
    return tuple(str(topic) for topic in value)


class Field(NamedTuple):
    """The ``keys`` a field is read from, best first, and how: ``exported`` if we wrote it."""

    keys: tuple[str, ...]
    read: FieldReader
    exported: FieldReader


FIELDS: Mapping[str, Field] = {
    "id": Field(("id", "_id"), _id, _id),
    "ref": Field(("ref",), _text, _verbatim),
    "source": Field(("source",), lambda value, key: _NOT_OURS, _verbatim),
    "collection": Field(("collection",), _text, _verbatim),
    "type": Field(("type",), _type, _verbatim),
    "title": Field(("title",), _text, _verbatim),
    "topics": Field(("topics", "topic", "tags", "tag", "keywords"), split_topics, _verbatim_topics),
    "created": Field(
        ("created", "created_at", "date", "date_created", "created_time", "creation_date"),
        *(_time, _time),
    ),
    "updated": Field(
        (
            *("updated", "updated_at", "modified", "modified_at", "lastmod"),
            *("last_modified", "date_modified", "date_updated"),
        ),
        *(_time, _time),
    ),
    "valid_from": Field(("valid_from",), _time, _time),
    "valid_to": Field(("valid_to",), _time, _time),
    "supersedes": Field(("supersedes",), _id, _verbatim),
    "superseded_by": Field(("superseded_by",), _id, _verbatim),
    "parent": Field(("parent",), _id, _verbatim),
    "metadata": Field(("metadata",), _metadata, _metadata),
}
"""The known fields (ours; then the keys of Hugo, Jekyll, Obsidian, Zettlr).

Keys are compared without case, and ``-`` and spaces count as ``_``.
"""
