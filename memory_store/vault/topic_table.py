"""The table of hashed topics, taken out of the file and made anew, batch by batch.

Boundary: to make it anew the heads of memories are opened, one at a time; keyed hashes are written.

Who has the file reads in this table which memories share a topic, and how many do. With some
knowledge of the notes that names topics (``benchmarks/topic_attacks.py`` measures how many), so a
vault may do without it: its topics are then in the sealed heads and the opened index alone.

Each function works inside the caller's transaction. A memory that is written meanwhile is
written as the settings say in that transaction: no row from the first moment of the one, each from
the first moment of the other. So what was looked at once need not be looked at again.
"""

from __future__ import annotations

from collections import defaultdict

from memory_store.vault.keyring import Keyring
from memory_store.vault.rows import Known, open_head, topic_tags
from memory_store.vault.storage import Storage
from memory_store.vault.topic_hashes import Done, write_topics

CLEARED = 512  # rows that are deleted in a transaction
RESTORED = 128  # memories whose hashes are made in a transaction: about 10 ms of others' time


def clear(storage: Storage, below: int) -> Done:
    """Delete some rows, whosever they are, from the end of the table to its beginning.

    Returns where to go on, ``None`` at the end, and how many were deleted.
    """
    gone = storage.topics.clear(CLEARED)
    return (below if gone else None), gone


def restore(storage: Storage, keyring: Keyring, known: Known, below: int) -> Done:
    """Write the hashes of some memories, from the end of the table to its beginning.

    Returns where to go on, ``None`` at the end, and how many memories were done. Raises
    TamperedError for one whose head does not open, or is not the one that was written last.
    """
    place, found = storage.memories.before(below, RESTORED)
    readable = set(keyring.readable())
    topics: dict[str, dict[str, list[bytes]]] = defaultdict(dict)
    for row in storage.memories.rows(found).values():
        if row.collection in readable:
            head = open_head(keyring, row, known)
            tags = topic_tags(keyring.of(row.collection), head["topics"])
            topics[row.collection][row.id] = tags
    for collection, tagged in topics.items():
        write_topics(storage, keyring.of(collection), tagged)
    return place, len(found)
