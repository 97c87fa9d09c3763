"""Topic parents: what each document's topics lie below, as an extra part of a segment.

Boundary: keyed hashes and row numbers; no topic.

``home/attic`` lies below ``home``. A document's record holds the keyed hashes of all that its
topics lie below, so that ``topic:home`` finds it. They are beside the topics, not among them: what
counts, lists or names topics knows those that were given alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.extras import RecordRows, Records
from memory_store.index.layout import Segment

BELOW = "/"


class TopicParents(Struct, frozen=True, array_like=True):
    """A document's record: the distinct keyed hashes, 16 bytes each."""

    hashes: bytes = b""


TOPIC_PARENTS = Records("topic_parents", TopicParents)


def parents(topics: Iterable[str]) -> Iterator[str]:
    """What normalised topics lie below: ``home`` and ``home/attic`` of ``home/attic/box``."""
    for topic in topics:
        for at, letter in enumerate(topic):
            if letter == BELOW and at:
                yield topic[:at]


def rows_below(segment: Segment, topic: bytes) -> npt.NDArray[np.intp]:
    """The rows of a segment, of dead documents too, with a topic below that one (a keyed hash)."""
    extra = segment.extra(TOPIC_PARENTS.name)
    found: list[int] = []
    if isinstance(extra, RecordRows):
        data = extra.data.tobytes()
        at = data.find(topic)
        while at >= 0:  # sixteen keyed bytes stand nowhere by accident
            found.append(at)
            at = data.find(topic, at + len(topic))
        found = (np.searchsorted(extra.offsets, found, "right") - 1).tolist()
    return np.array(found, np.intp)
