"""What a memory is, before the store has it, in it, and unopened.

Boundary: drafts, edits and memories hold opened (plain) text. They live for one call, are never
cached by this package and never logged.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from memory_store.errors import BadInputError, together
from memory_store.records.refusals import refusal
from memory_store.records.visibility import ForSearchers, UnlessStrict

TYPES = (
    "fact",
    "note",
    "preference",
    "decision",
    "task",
    "path",
    "summary",
    "result",
    "code",
    "conversation",
    "document",
    "message",
    "bookmark",
)
"""The kinds of memory. Each also exists as ``<type>_done``, for completed ones."""

DONE_SUFFIX = "_done"
BY = "by"  # the key of the metadata that names the assistant that wrote a memory


def base_type(kind: str) -> str:
    """The type of the same memory, not completed: ``task`` for ``task_done``."""
    return kind.removesuffix(DONE_SUFFIX)


def check_types(names: Iterable[str], there: Container[str]) -> None:
    """Raise BadInputError for a name that is no type, and that no memory ``there`` has."""
    for name in names:
        if base_type(name) not in TYPES and name not in there:
            raise BadInputError(f"type: {name!r} is not one of {', '.join(TYPES)}", "type")


def _meant(description: str) -> Meta:
    return Meta(description=description)


class MemoryDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller or an importer knows of a memory before the store has it.

    ``None`` means "not said": the store fills in an id, times, a type and a collection.
    Times are ISO 8601 text. ``ref`` is the record's name in its source, ``source`` the source root.
    """

    text: Annotated[str, _meant("Verbatim, Markdown")]
    title: str | None = None
    type: str | None = None
    topics: tuple[str, ...] = ()
    collection: str | None = None
    id: str | None = None
    ref: str | None = None
    source: str | None = None
    created: str | None = None
    updated: str | None = None
    valid_from: Annotated[str | None, _meant("2024-05-01")] = None
    valid_to: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    parent: Annotated[str | None, _meant("Id: a result's task")] = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class MemoryChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change to one memory: what is ``None`` stays as it was.

    ``valid_from`` and ``valid_to`` are taken away by an empty text. ``add_topics`` and
    ``remove_topics`` change the topics that are there, after ``topics`` has replaced them. With
    ``expected_version`` (``version`` in JSON) it is refused when the memory has another by then.
    """

    id: str
    text: str | None = None
    title: str | None = None
    type: str | None = None
    topics: tuple[str, ...] | None = None
    add_topics: tuple[str, ...] = ()
    remove_topics: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    collection: str | None = None
    expected_version: Annotated[int | None, _meant("As it was read")] = field(
        default=None, name="version"
    )


R = TypeVar("R", bound=Struct)


def read_record(record: type[R], values: Any) -> R:
    """The record that a JSON object or keywords make; ``None`` is "not said".

    Raises BadInputError naming all wrong fields as the record spells them in JSON.
    """
    if not isinstance(values, Mapping):
        raise BadInputError("a JSON object expected", "body")
    said = {name: value for name, value in values.items() if value is not None}
    errors: list[BadInputError] = []
    while True:
        try:
            made = msgspec.convert(said, record)
            break
        except msgspec.ValidationError as error:
            place, reason = refusal(error, record)
            name = place if place in said else re.split(r"\W", place)[0]
            if name not in {one.parameter for one in errors}:
                errors.append(BadInputError(f"{place}: {reason}", name))
            if name not in said:  # needed: looked for last
                break
            del said[name]  # and what else is wrong?
    if errors:
        raise together(errors) from None
    return made


class Original(Struct, frozen=True):
    """The file that a memory was read from, where it was kept: its name, how many bytes it has, and
    their SHA-256. ``token`` finds them in the vault (empty: they are not in this copy)."""

    name: str
    bytes: int
    sha256: str
    token: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What there is to be said of it, as JSON-ready data."""
        return {"name": self.name, "bytes": self.bytes, "sha256": self.sha256}


class Memory(Struct, frozen=True):
    """One opened memory. Times are ISO 8601 UTC; ``version`` grows by one with every edit.

    ``supersedes`` is the id of the memory that it replaced, ``superseded_by`` of the one that
    replaced it; that one ended its validity, ``valid_to``.
    """

    id: ForSearchers[str]
    collection: str
    type: UnlessStrict[str]
    title: str
    text: str
    topics: tuple[str, ...]
    created: UnlessStrict[str]
    updated: UnlessStrict[str]
    version: ForSearchers[int] = 1
    ref: str | None = None
    source: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    parent: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    original: Original | None = None

    @property
    def by(self) -> str | None:
        """The assistant that wrote it, where one did."""
        found = self.metadata.get(BY)
        return found if isinstance(found, str) and found else None

    def as_dict(self) -> dict[str, Any]:
        """The memory as JSON-ready data, keys in a fixed order."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        values["original"] = self.original.as_dict() if self.original is not None else None
        return {**values, "topics": list(self.topics), "metadata": dict(self.metadata)}


class SealedMemory(Memory, frozen=True):
    """A memory that was not opened: its id, collection and version, and the type and the times
    where the file has them in clear. All else is empty, and nothing was held against the seals."""


class MemoryHead(Struct, frozen=True):
    """What can be said of a memory without opening its body.

    ``content`` is the id of its body. ``topics`` pairs each topic's keyed hash (hex, as in the
    table ``memory_topics``) with the topic.
    """

    id: str
    collection: str
    title: str
    content: str
    topics: Mapping[str, str] = field(default_factory=dict)
    ref: str | None = None


class Addition(Struct, frozen=True):
    """A memory that was to be added; ``unchanged`` when it was there already, just as given."""

    memory: Memory
    unchanged: bool = False


class Reference(Struct, frozen=True):
    """What a judgement may call a memory: its ``id``, and its ``ref`` in its source.

    Memories of equal ``content`` (a number) hold the same text: a search returns one of them.
    """

    id: str
    ref: str | None
    content: int
