"""The kinds of extra parts that a segment has; see :mod:`memory_store.index.extras`."""

from __future__ import annotations

from memory_store.index.extras import ExtraKind
from memory_store.index.lexicon import LEXICON
from memory_store.index.names import NAMES
from memory_store.index.outlines import OUTLINES
from memory_store.index.places import PLACES
from memory_store.index.topic_parents import TOPIC_PARENTS
from memory_store.index.trigrams import TRIGRAMS

KINDS: dict[str, ExtraKind] = {
    kind.name: kind for kind in (LEXICON, NAMES, OUTLINES, PLACES, TOPIC_PARENTS, TRIGRAMS)
}
"""Name → kind. The name stands in clear in the file, and never changes."""
