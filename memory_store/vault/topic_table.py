"""The table of hashed topics, taken out of the file and made anew, batch by batch.

Boundary: to make it anew the heads of memories are opened, one at a time; keyed hashes are written.

Who has the file reads in this table which memories share a topic, and how many do. With some
knowledge of the notes that names topics (``benchmarks/topic_attacks.py`` measures how many), so a
vault may do without it: its topics are then in the sealed heads and the opened index alone.

Each function works inside the caller's transaction. Whoever writes a memory meanwhile writes what
the settings say in that transaction: no row from the first moment of the one, each from the first
moment of the other. So what was looked at once need not be looked at again.
"""

from __future__ import annotations

from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import Keyring
from memory_store.vault.rows import Known, open_head, read_rows, topic_tags
from memory_store.vault.topic_hashes import Done, write_topics

CLEARED = 512  # rows that are deleted in a transaction
RESTORED = 128  # memories whose hashes are made in a transaction: about 10 ms of others' time


def rows(connection: sqlite3.Connection) -> int:
    """How many rows there are."""
    (count,) = connection.execute("select count(*) from memory_topics").fetchone()
    return int(count)


def memories(connection: sqlite3.Connection) -> int:
    """How many memories there are."""
    (count,) = connection.execute("select count(*) from memories").fetchone()
    return int(count)


def clear(connection: sqlite3.Connection, below: int) -> Done:
    """Delete some rows, whosever they are, from the end of the table to its beginning.

    Returns where to go on, ``None`` at the end, and how many were deleted. A page that lost its
    rows is overwritten as it becomes free. What stays of the table and its indexes are their first
    pages, which SQLite overwrites when everything is deleted without a condition.
    """
    gone = connection.execute(
        """
        delete from memory_topics where rowid in
            (select rowid from memory_topics order by rowid desc limit ?)
        """,
        (CLEARED,),
    ).rowcount
    if not gone:
        connection.execute("delete from memory_topics")
    return (below if gone else None), gone


def restore(connection: sqlite3.Connection, keyring: Keyring, known: Known, below: int) -> Done:
    """Write the hashes of some memories, from the end of the table to its beginning.

    Returns where to go on, ``None`` at the end, and how many memories were done. Raises
    TamperedError for one whose head does not open, or is not the one that was written last.
    """
    found = connection.execute(
        "select rowid, id from memories where rowid < ? order by rowid desc limit ?",
        (below, RESTORED),
    ).fetchall()
    readable = set(keyring.readable())
    for row in read_rows(connection, [memory for _, memory in found]).values():
        if row.collection in readable:
            keys = keyring.of(row.collection)
            topics = open_head(keyring, row, known)["topics"]
            write_topics(connection, keys, row.id, topic_tags(keys, topics))
    return (found[-1][0] if found else None), len(found)
