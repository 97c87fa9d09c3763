"""The landscape of a vault: its memories in regions, each with what stands there.

Boundary: names of topics and folders, words and titles are opened text. They live for one call, are
never cached by this package and never logged.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from memory_store.records.json_record import JsonRecord


class Landmark(Struct, frozen=True):
    """A memory that stands for others: its id, its title and the day it was created."""

    id: str
    title: str
    created: str


class LandscapeRegion(Struct, frozen=True):
    """Memories that belong together.

    By ``kind``: ``topic`` is topics that stand together and lie near in meaning, the one it is
    named by first; ``folder`` what lies in a folder, and ``meaning`` what lies near in meaning, of
    memories that have no topic. ``words`` are frequent here and rare elsewhere. ``topics`` counts
    the memories of each, ``types`` those of each type; ``first`` and ``last`` are the days of its
    oldest and newest memory. ``x``, ``y`` and ``radius`` are its place on a map of 1,000 by 640.
    """

    name: str
    memories: int
    topics: Mapping[str, int]
    open_tasks: int = 0
    types: Mapping[str, int] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    newest: tuple[Landmark, ...] = ()
    x: float = 0.0
    y: float = 0.0
    radius: float = 0.0
    kind: str = "topic"
    words: tuple[str, ...] = ()


class Landscape(JsonRecord, frozen=True):
    """The regions of all ``memories``, the largest first.

    ``others`` counts the memories of regions too small to be shown, ``other_topics`` the topics
    that name those; ``without`` counts memories in no region: without topic and folder, and near to
    none.
    """

    memories: int
    regions: tuple[LandscapeRegion, ...]
    others: int = 0
    other_topics: Mapping[str, int] = field(default_factory=dict)
    without: int = 0
