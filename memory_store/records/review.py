"""What a person may want to put in order: memories that say the same, that may contradict, that are
over, that have no topic.

Boundary: titles, beginnings of texts and topics are opened text. They live for one call, are never
cached by this package and never logged.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memory_store.records.json_record import JsonRecord


class Reviewed(Struct, frozen=True):
    """A memory in short. ``begins`` is the beginning of its text, ``suggested`` are topics that
    memories near to it have, ``ref`` is its name in its source."""

    id: str
    title: str
    type: str
    created: str
    collection: str
    topics: tuple[str, ...] = ()
    begins: str = ""
    valid_to: str | None = None
    suggested: tuple[str, ...] = ()
    ref: str | None = None


class ReviewedPair(Struct, frozen=True):
    """Two memories, the newer first, and how near they are: their cosine, 1 for the same words."""

    newer: Reviewed
    older: Reviewed
    near: float


class SuggestedTopic(Struct, frozen=True):
    """A topic, and how many of the memories near to one have it."""

    topic: str
    neighbours: int


class Review(JsonRecord, frozen=True):
    """Pairs and memories to look at.

    ``conflicts``: a memory that was changed on two devices at once, and the version that lost
    (``older``). ``same``: pairs that say nearly the same. ``apart``: near ones with a topic in
    common, of which the newer may replace the older. ``over``: valid no longer, without a
    successor. ``untagged``: without a topic. ``counts`` are how many of each there are,
    ``compared`` how many memories, the newest, were held against each other.
    """

    same: tuple[ReviewedPair, ...]
    apart: tuple[ReviewedPair, ...]
    over: tuple[Reviewed, ...]
    untagged: tuple[Reviewed, ...]
    counts: dict[str, int]
    compared: int
    conflicts: tuple[ReviewedPair, ...] = ()


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a pair, or of one memory, by ``do``.

    With a pair, ``newer`` and ``older``: ``keep`` both, ``merge`` them, or ``supersede`` the
    older. With one, its ``id``: ``delete`` it, call it ``valid`` again, or add ``topics``.
    """

    do: Literal["keep", "merge", "supersede", "delete", "valid", "topics"]
    newer: str = ""
    older: str = ""
    id: str = ""
    topics: tuple[str, ...] = ()
