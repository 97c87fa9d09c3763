"""What a user types into the form for a memory: read, checked field by field, shown again.

Boundary: holds text on its way into the vault, or back to the user who typed it, and to no other.
"""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_store.errors import BadInputError
from memory_store.host import drafts, normalise_topic
from memory_store.records import Memory, MemoryChange, MemoryDraft

from ..requests.frame import sentence as in_words
from ..search.forms import last

TEXT_LIMIT = 2_000_000
"""Characters of one memory on a page: a long book. More comes in as a file."""
FORM_LIMIT = 12 * TEXT_LIMIT
"""Bytes of the form: each character is twelve of them at most, so it can be shown again."""
MIDNIGHT = "T00:00:00Z"
LABELS = {
    "title": "Title",
    "type": "Type",
    "collection": "Collection",
    "topics": "Topics",
    "valid_from": "Valid from",
    "valid_to": "Valid to",
}
FIELDS = ("text", "title", "type", "collection", "topics", "valid_from", "valid_to")


@dataclass(frozen=True)
class Typed:
    """The fields of the form as text. ``id`` is the memory's, chosen when the form was first shown.

    ``version`` is the one that was changed (empty for a new memory).
    """

    text: str = ""
    title: str = ""
    type: str = "note"
    collection: str = ""
    topics: str = ""
    valid_from: str = ""
    valid_to: str = ""
    id: str = ""
    version: str = ""

    @property
    def unfolded(self) -> bool:
        """Whether the fields that are folded away say something."""
        return bool(self.valid_from or self.valid_to)


@dataclass(frozen=True)
class Checked:
    """What a form says, as the store takes it; or, by field, what is wrong with it."""

    values: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    def draft(self, memory_id: str) -> MemoryDraft:
        """A new memory. An empty title is one not said: the first heading then is the title."""
        said = {name: value for name, value in self.values.items() if value}
        return MemoryDraft(id=memory_id, **{"text": "", **said})

    def edit(self, memory_id: str, version: int) -> MemoryChange:
        """The change to that version of a memory."""
        return MemoryChange(memory_id, expected_version=version, **self.values)


def blank(given: Mapping[str, Any]) -> Typed:
    """An empty form; a link may choose what is harmless in an address: kind, place and topics."""
    return Typed(
        type=last(given, "type") or "note",
        collection=last(given, "collection"),
        topics=last(given, "topics"),
        id=str(uuid.uuid4()),
    )


def typed(given: Mapping[str, Any]) -> Typed:
    """The form as it was sent."""
    return Typed(**{name: last(given, name) for name in (*FIELDS, "id", "version")})


def typed_of(memory: Memory, collection: str) -> Typed:
    """The form for a memory as it is; ``collection`` is its id."""
    return Typed(
        text=memory.text,
        title=memory.title,
        type=memory.type,
        collection=collection,
        topics=joined(memory.topics),
        valid_from=(memory.valid_from or "").removesuffix(MIDNIGHT),
        valid_to=(memory.valid_to or "").removesuffix(MIDNIGHT),
        id=memory.id,
        version=str(memory.version),
    )


def checked(form: Typed) -> Checked:
    """Check every field, so that all problems are named at once."""
    checks: dict[str, Callable[[], Any]] = {
        "text": lambda: _text(form.text),
        "title": lambda: drafts.checked_title(form.title),
        "type": lambda: drafts.checked_type(form.type),
        "topics": lambda: drafts.clean_topics(split(form.topics)),
        "valid_from": lambda: drafts.optional_time(form.valid_from, "valid_from") or "",
        "valid_to": lambda: drafts.optional_time(form.valid_to, "valid_to") or "",
    }
    values: dict[str, Any] = {"collection": form.collection or None}
    problems: dict[str, str] = {}
    for name, check in checks.items():
        try:
            values[name] = check()
        except BadInputError as error:
            problems[name] = sentence(error)
    if not problems and not values["text"].strip():
        problems["text"] = "Write something first."
    return Checked(values, problems)


def same(form: Typed, memory: Memory, collection: str) -> bool:
    """Whether a memory is just as the form says, so that nothing is left to save."""
    said, kept = checked(form), checked(typed_of(memory, collection))
    if said.problems:
        return False
    tags = {normalise_topic(topic) for topic in drafts.with_hashtags((), memory.text)}

    def as_kept(values: Mapping[str, Any], others: set[str]) -> dict[str, Any]:
        """The values with topics of any order and spelling, the ``others`` added."""
        return {**values, "topics": {*map(normalise_topic, values["topics"]), *others}}

    topics = set(map(normalise_topic, kept.values["topics"]))
    return as_kept(said.values, tags & topics) == as_kept(kept.values, set())


def joined(topics: Sequence[str]) -> str:
    """Topics as one line, separated by commas; a topic that holds one stands in quotes."""
    return ", ".join(_cell(topic) for topic in topics)


def _cell(topic: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([topic])
    return line.getvalue()


def split(line: str) -> list[str]:
    """The topics of such a line."""
    rows = list(csv.reader([" ".join(line.split())], skipinitialspace=True))
    return [topic.strip() for topic in (rows[0] if rows else []) if topic.strip()]


def _text(given: str) -> str:
    text = drafts.checked_text(given)
    if len(text) > TEXT_LIMIT:
        raise BadInputError(
            f"These are {len(text):,} characters; a page takes {TEXT_LIMIT:,}. "
            "Import it as a file instead."
        )
    return text


def sentence(error: Exception) -> str:
    """A refusal as a sentence to stand beside its field, whose name it need not say again."""
    parameter = getattr(error, "parameter", None)
    plain = str(error).removeprefix(f"{parameter}: ")
    return in_words(plain.replace("valid_from", f"\u201c{LABELS['valid_from']}\u201d"))


def version(form: Typed) -> int:
    """The version that the form changes. Raises BadInputError for a form made by hand."""
    if not form.version.isascii() or not form.version.isdigit():
        raise BadInputError("version: a whole number expected", "version")
    return int(form.version)


def differences(theirs: Typed, mine: Typed, names: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Label, their value and mine, of each field besides the text that is not the same."""
    found = []
    for name, label in LABELS.items():
        values = [getattr(form, name) for form in (theirs, mine)]
        if name == "topics":
            values = [joined(drafts.clean_topics(split(value))) for value in values]
        if name == "collection":
            values = [names.get(value, value) for value in values]
        if values[0] != values[1]:
            found.append((label, values[0], values[1]))
    return found
