"""What each tool answers: a record for each, which makes its schema, and how it is kept short.

Most hold fields of a record that every surface shares (:class:`Shared`): what these are filled
with, and their schemas, are that record's.

Boundary: what memories say stands in fields for it (``title``, ``text``, ``preview``, ``place``,
``topics``, ``landscape``, the ``name`` of a region and the like), never in ``note``, ``may``,
``withheld`` or ``cut``, which are constants.
"""

# Annotations are not postponed: the schemas are made from them.

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from memory_store.records import Landscape, LandscapeRegion, Memory, SearchResponse, SearchResult
from memory_store.records.code import CodeText
from memory_store.text.token_count import tokens

CUT = "to fit the budget"
MOST_SAID = 1_000  # characters of an error
HALF = MOST_SAID // 2 - 2

Answer = TypeVar("Answer", bound=Struct)


NAMED = {"continue": "next"}
"""Fields of an answer that have another name in their record: that of the argument they are for."""


class Shared(Struct, frozen=True, omit_defaults=True):
    """Holds the fields of ``record`` that it names, and some of its own."""

    record: ClassVar[type[Struct]]

    @classmethod
    def of(cls, record: Struct, **own: Any) -> Self:
        """What is answered of a record. Where that says nothing, so does the answer."""
        said = {name: getattr(record, name, None) for name in cls.__struct_fields__}
        return cls(**{name: value for name, value in said.items() if value is not None} | own)


class Listed(Shared, frozen=True, omit_defaults=True):
    record = Memory
    id: str
    title: str = ""
    created: str = ""
    due: str = ""


class Result(Shared, frozen=True, omit_defaults=True):
    """A search's result, or of a memory that may not be read what may be known of it."""

    record = SearchResult
    id: str
    title: str = ""
    preview: str = ""
    place: str = ""  # of the preview: a page, a sheet, a turn, a heading, lines of a file
    start: int = 0  # where the preview begins in the text, which memory_read takes
    complete: bool | None = None
    score: float | None = None
    type: str = ""
    created: str = ""
    topics: Sequence[str] = ()
    collection: str = ""
    superseded_by: str = ""
    by: str = ""
    because: str = ""


class Area(Shared, frozen=True, omit_defaults=True):
    """A region of the landscape: topics that stand together, named by the first; or memories of a
    folder, or near in meaning, with the words that are frequent in them."""

    record = LandscapeRegion
    name: str
    memories: int
    topics: Mapping[str, int] = {}
    words: Sequence[str] = ()
    open_tasks: int = 0
    first: str = ""
    last: str = ""
    newest: Sequence[Listed] = ()


class Mapped(Shared, frozen=True, omit_defaults=True):
    record = Landscape
    memories: int
    regions: Sequence[Area] = ()
    others: int = 0
    other_topics: Mapping[str, int] = {}
    without: int = 0
    cut: str = ""


class Started(Struct, frozen=True, omit_defaults=True):
    note: str
    may: str
    memories: int
    withheld: str = ""
    collections: dict[str, int] = {}
    landscape: dict[str, Sequence[str]] = {}
    preferences: Sequence[Listed] = ()
    open_tasks: Sequence[Listed] = ()
    newest: Sequence[Listed] = ()
    since_you_came: str = ""
    new: Sequence[Listed] = ()
    found: Sequence[Result] = ()
    cut: str = ""


class Found(Shared, frozen=True, omit_defaults=True):
    record = SearchResponse
    results: Sequence[Result | Sequence[Any]]
    counts: str = ""
    columns: Sequence[str] = ()
    certain: int | None = None
    continue_: str = field(default="", name="continue")
    nearest: str = ""
    degraded: Sequence[str] = ()
    topics: Mapping[str, int] = {}
    cut: str = ""


class Whole(Shared, frozen=True, omit_defaults=True):
    """A memory, or its text from ``start`` to ``next_start``."""

    record = Memory
    id: str
    title: str = ""
    type: str = ""
    created: str = ""
    due: str = ""
    steps: str = ""
    topics: Sequence[str] = ()
    collection: str = ""
    valid_from: str = ""
    valid_to: str = ""
    supersedes: str = ""
    parent: str = ""
    superseded_by: str = ""
    version: int | None = None
    text: str = ""
    metadata: Mapping[str, Any] = {}
    next_start: int | None = None


class WasRead(Whole, frozen=True, omit_defaults=True):
    linked: dict[str, str] = {}  # id → title: what it links to, and what links to it


class WereRead(Struct, frozen=True, omit_defaults=True):
    memories: Sequence[WasRead]
    not_read: int = 0


class Listing(Struct, frozen=True, omit_defaults=True):
    tasks: Sequence[Whole]
    cut: str = ""


class Added(Struct, frozen=True, omit_defaults=True):
    id: str = ""
    added: bool = True
    already_known: Sequence[Listed] = ()
    may_replace: Sequence[Listed] = ()


class WereAdded(Struct, frozen=True, omit_defaults=True):
    memories: Sequence[Added]
    note: str = ""
    cut: str = ""


class Updated(Shared, frozen=True, omit_defaults=True):
    record = Memory
    id: str
    version: int | None = None
    supersedes: str = ""
    deleted: bool = False
    title: str = ""
    type: str = ""
    topics: Sequence[str] = ()
    valid_to: str = ""
    note: str = ""
    cut: str = ""


class Shown(Shared, frozen=True, omit_defaults=True):
    """Lines of a file."""

    record = CodeText
    file: str
    line: int
    end_line: int
    text: str = ""
    next: str = ""
    hash: str = ""
    unchanged: bool = False
    opened: int = 0


def size(answer: Any) -> int:
    """Tokens of an answer, or a part of one, as JSON: exactly where a library counts them."""
    return tokens(as_json(answer))


def as_json(value: Any) -> str:
    """A value as JSON. Half a surrogate pair, which a text may hold, is no character: ``?``."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        plain = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        return whole(plain)


def whole(text: str) -> str:
    """A text without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode()


def in_short(message: str) -> str:
    """The words of an error: what it quotes may be as long as a call."""
    cut = message if len(message) <= MOST_SAID else f"{message[:HALF]} … {message[-HALF:]}"
    return whole(cut)


def within(answer: Answer, budget: int, lists: Sequence[str]) -> Answer:
    """An answer without the last entries of its ``lists``, the first list first, until it fits."""
    for name in lists:
        if size(answer) <= budget:
            break
        entries = getattr(answer, name)
        as_dict = isinstance(entries, dict)
        pairs = [*entries.items()] if as_dict else [*entries]

        def shortened(count: int) -> Answer:
            some = pairs[:count]  # noqa: B023 - used at once
            return replace(answer, **{name: dict(some) if as_dict else some, "cut": CUT})  # noqa: B023

        answer = shortened(most(len(pairs), lambda n: size(shortened(n)) <= budget))
    return answer


def most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``limit`` that fits, where all smaller ones do, too; else 0."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
