"""From a draft, as a caller or a file gives it, to a memory as the store keeps it.

Boundary: plain text passes through; nothing is kept. Errors name the field, never its content.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from memory_store.dates import epoch, format_time, parse_time
from memory_store.errors import BadInputError, checked_each
from memory_store.importing.notes import first_heading, hashtags
from memory_store.records import DONE_SUFFIX, TYPES, Memory, MemoryDraft, base_type
from memory_store.text.canonical import canonical_text, normalise_topic, whole_characters
from memory_store.text.plain_json import mended

TEXT_LIMIT = 50_000_000  # characters of one memory; an import refuses larger files as well
TITLE_LIMIT = 1_000
TOPIC_LIMIT = 200  # topics of one memory
TOPIC_LENGTH = 200
METADATA_LIMIT = 100_000  # bytes as JSON
METADATA_DEPTH = 200  # lists and objects in one another: what Python reads wherever it stands
DEFAULT_TYPE = "note"


def now() -> str:
    """The present moment as the store writes times: ISO 8601 in UTC."""
    return format_time(datetime.now(UTC))


def checked_type(given: str | None) -> str:
    """A memory's type, ``note`` unless given. Raises BadInputError for an unknown one."""
    kind = (given or DEFAULT_TYPE).strip().lower()
    if base_type(kind) not in TYPES:
        raise BadInputError(f"no type {given!r}; there is: {', '.join(TYPES)}", "type")
    return kind


def clean_topics(topics: Iterable[str]) -> tuple[str, ...]:
    """Topics without ``#`` and doubles (as normalised), in order. Raises for too many, too long."""
    found: dict[str, str] = {}
    for topic in topics:
        shown = canonical_text(str(topic)).strip().lstrip("#").strip()
        normalised = normalise_topic(shown)
        if len(shown) > TOPIC_LENGTH:
            raise BadInputError(f"a topic is longer than {TOPIC_LENGTH} characters", "topics")
        if normalised:
            found.setdefault(normalised, shown)
    if len(found) > TOPIC_LIMIT:
        raise BadInputError(f"{len(found)} topics on one memory; {TOPIC_LIMIT} at most", "topics")
    return tuple(found.values())


def with_hashtags(topics: Iterable[str], text: str, before: str = "") -> tuple[str, ...]:
    """Topics, and after them the ``#hashtags`` of a text, as far as there is room for them.

    Those of the text ``before`` a change are not added again: a topic that was taken off stays off.
    A hashtag left out is still a word of the text.
    """
    found: dict[str, str] = {}
    for topic in topics:
        found.setdefault(normalise_topic(str(topic)), topic)
    no_news = {normalise_topic(topic) for topic in hashtags(before, TOPIC_LIMIT)}
    for topic in hashtags(text, TOPIC_LIMIT):
        normalised = normalise_topic(topic)
        if normalised and normalised not in no_news and len(found) < TOPIC_LIMIT:
            found.setdefault(normalised, topic)
    return tuple(found.values())


def with_text_topics(draft: MemoryDraft) -> MemoryDraft:
    """The draft with the ``#hashtags`` of its text as topics, too."""
    text = canonical_text(draft.text) if "#" in draft.text else ""
    return replace(draft, topics=with_hashtags(draft.topics, text))


def new_memory(draft: MemoryDraft, collection: str) -> Memory:
    """A memory that its writer adds: :func:`memory_from_draft` with the ``#hashtags`` of its text.

    Raises BadInputError for one that ends before it begins. An import keeps such a one.
    """
    memory = memory_from_draft(with_text_topics(draft), collection)
    refuse_backwards(memory)
    return memory


def ends_before_it_begins(one: Memory | MemoryDraft) -> bool:
    """Whether ``valid_to`` is before ``valid_from``: so an old file says, or a successor made it
    so that begins before the memory that it replaces."""
    if not (one.valid_from and one.valid_to):
        return False
    return epoch(one.valid_to) < epoch(one.valid_from)


def refuse_backwards(memory: Memory) -> None:
    """Raise BadInputError, naming both fields, for a memory that ends before it begins."""
    if ends_before_it_begins(memory):
        raise BadInputError(
            f"valid_to: {memory.valid_to} is before valid_from, {memory.valid_from}", "valid_to"
        )


def memory_from_draft(draft: MemoryDraft, collection: str) -> Memory:
    """A new memory of version 1: canonical text, checked type, topics and times.

    One of which only the last change is known was created no later.
    """
    kept = checked_each(
        {
            "id": lambda: checked_id(draft.id) if draft.id else str(uuid.uuid4()),
            "type": lambda: checked_type(draft.type),
            "text": lambda: _text(draft),
            "topics": lambda: clean_topics(draft.topics),
            "created": lambda: optional_time(draft.created, "created"),
            "updated": lambda: optional_time(draft.updated, "updated"),
            "valid_from": lambda: optional_time(draft.valid_from, "valid_from"),
            "valid_to": lambda: optional_time(draft.valid_to, "valid_to"),
            "metadata": lambda: checked_metadata(draft.metadata),
        }
    )
    title = draft.title if draft.title is not None else first_heading(kept["text"])
    title = " ".join(canonical_text(title or "").split())[:TITLE_LIMIT]
    created = kept["created"] or kept["updated"] or now()
    return Memory(
        **kept | {"created": created, "updated": kept["updated"] or created},
        collection=collection,
        title=title,
        ref=_whole(draft.ref),
        source=draft.source,  # a path leads back to its file by the bytes of its name
        supersedes=_whole(draft.supersedes),
        superseded_by=_whole(draft.superseded_by),
        parent=_whole(draft.parent),
    )


def _text(draft: MemoryDraft) -> str:
    text = checked_text(draft.text)
    if not text.strip() and not canonical_text(draft.title or "").split():
        raise BadInputError("an empty memory: it has neither text nor title", "text")
    return text


def checked_id(given: str) -> str:
    """A memory id in its one spelling. Raises BadInputError unless it is a UUID."""
    try:
        return str(uuid.UUID(given))
    except ValueError:
        raise BadInputError(f"an id is a UUID; {given[:64]!r} is none", "id") from None


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """Metadata as plain JSON data. Raises BadInputError when it is none, too large or too deep."""
    try:
        encoded = json.dumps(dict(metadata), default=str, allow_nan=False)
        plain = json.loads(encoded)
    except (TypeError, ValueError, RecursionError):
        raise BadInputError("metadata must be an object of plain values", "metadata") from None
    if len(encoded) > METADATA_LIMIT:
        raise BadInputError(
            f"metadata of {len(encoded):,} bytes; {METADATA_LIMIT:,} at most", "metadata"
        )
    level: list[Any] = [plain]
    for _ in range(METADATA_DEPTH):
        level = [inner for one in level for inner in _values_of(one)]
    if any(isinstance(one, dict | list) for one in level):
        raise BadInputError(f"metadata is nested over {METADATA_DEPTH} levels", "metadata")
    return dict(mended(plain))


def _values_of(plain: Any) -> Iterable[Any]:
    return plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list) else ()


def _whole(given: str | None) -> str | None:
    return None if given is None else whole_characters(given)


def done_type(kind: str) -> str:
    """The type of the same memory, completed."""
    return kind if kind.endswith(DONE_SUFFIX) else kind + DONE_SUFFIX


def checked_text(given: str) -> str:
    """A memory's text as it is kept. Raises BadInputError for one that is too long."""
    text = canonical_text(given)
    if len(text) > TEXT_LIMIT:
        raise BadInputError(f"a text of {len(text):,} characters; {TEXT_LIMIT:,} at most", "text")
    return text


def checked_title(given: str) -> str:
    """A title on one line. Raises BadInputError for one that is too long."""
    title = " ".join(canonical_text(given).split())
    if len(title) > TITLE_LIMIT:
        raise BadInputError(
            f"a title of {len(title):,} characters; {TITLE_LIMIT:,} at most", "title"
        )
    return title


def optional_time(given: str | None, parameter: str) -> str | None:
    """A point in time, or ``None`` for nothing said. Raises BadInputError naming ``parameter``."""
    return parse_time(given, parameter=parameter) if given and given.strip() else None


def next_version(memory: Memory, **changes: Any) -> Memory:
    """The memory with changes, one version on, updated now."""
    return replace(memory, version=memory.version + 1, updated=now(), **changes)
