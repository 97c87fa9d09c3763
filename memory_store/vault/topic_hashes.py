"""The hashes of topics as they stand in the file, and how a change of keys replaces them.

Boundary: keyed hashes in, keyed hashes out; no topic is opened.

Whoever asks the file for a topic asks for one hash, and must never find half of its memories. So a
change of keys first *fills*: beside each hash it puts the one of the new epoch, batch by batch,
while everybody goes on asking for the former ones, which are all there. Then it *drains*: from one
moment on everybody asks for the new ones, which are all there by then, and the former are deleted.
A row of ``vault_settings`` says in clear that a collection is being filled, and which epoch to ask
for; whoever writes a memory meanwhile writes both hashes. Nothing is believed of that row but this.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.errors import TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.collection_keys import CollectionKeys

END = 2**63 - 1  # behind the last row
BATCH = 512  # rows of topics that are looked at in a transaction: about 10 ms of others' time
FILLING = "topics "  # before the collection's id: the name of the row that says so
_SETTING = "select cast(value as integer) from vault_settings where name = ?"
_SOME = """
    with some as (
        select rowid as place, memory, topic from memory_topics
        where rowid < :below order by rowid desc limit :most
    )
    select place, memory, topic, collection is :collection
    from some left join memories on id = memory
"""

Row = tuple[str, bytes]  # a memory and a hash
Done = tuple["int | None", int]


def write_topics(
    connection: sqlite3.Connection, keys: CollectionKeys, memory: str, tags: Iterable[bytes]
) -> None:
    """Store the topics of a memory by their tags (inside the caller's transaction)."""
    epochs = dict.fromkeys((keys.epoch, asked_epoch(connection, keys)))
    _insert(connection, [(memory, keys.stored(tag, epoch)) for tag in tags for epoch in epochs])


def asked_epoch(connection: sqlite3.Connection, keys: CollectionKeys) -> int:
    """The epoch whose hashes of a collection's topics are all there."""
    if keys.epoch == 0:
        return 0
    row = connection.execute(_SETTING, (FILLING + keys.collection,)).fetchone()
    return row[0] if row is not None and keys.holds(row[0]) else keys.epoch


def begin_filling(connection: sqlite3.Connection, collection: str, epoch: int) -> None:
    """Note that hashes are asked for in that epoch until all are there in the next."""
    connection.execute(
        "insert or replace into vault_settings (name, value) values (?, ?)",
        (FILLING + collection, str(epoch)),
    )


def end_filling(connection: sqlite3.Connection, collection: str) -> None:
    """Note that the hashes of a collection are those of its newest epoch."""
    connection.execute("delete from vault_settings where name = ?", (FILLING + collection,))


def fill(connection: sqlite3.Connection, keys: CollectionKeys, below: int) -> Done:
    """Add the new epoch's hashes to some rows, from the end of the table to its beginning.

    New rows come behind those that were looked at. Returns where to go on, ``None`` at the end, and
    how many were added.
    """
    former, newest = asked_epoch(connection, keys), keys.epoch
    if former == newest:
        return None, 0
    place, rows = _some(connection, keys, below)
    if place is None:
        end_filling(connection, keys.collection)
        return None, 0
    exchanged = cache(keys.exchanged)
    present = _all_of(connection, rows)
    missing = [
        (memory, exchanged(topic, former, newest))
        for memory, topic in rows
        if (memory, exchanged(topic, newest, former)) not in present  # else it is a new one
    ]
    added = [row for row in missing if row not in present]
    _insert(connection, added)
    return place, len(added)


def drain(connection: sqlite3.Connection, keys: CollectionKeys, below: int) -> Done:
    """Delete former epochs' hashes from some rows, beside which the new one's stand.

    As :func:`fill`, after it: while others fill, nothing is done.
    """
    newest = keys.epoch
    formers = [epoch for epoch in keys.bundles() if epoch != newest]
    if not formers or asked_epoch(connection, keys) != newest:
        return None, 0
    place, rows = _some(connection, keys, below)
    exchanged = cache(keys.exchanged)
    present = _all_of(connection, rows)
    left = [
        (memory, topic)
        for memory, topic in rows
        if any((memory, exchanged(topic, former, newest)) in present for former in formers)
    ]
    connection.executemany("delete from memory_topics where memory = ? and topic = ?", left)
    return place, len(left)


STEPS = (fill, drain)
"""What replaces the hashes of a collection, in this order."""


def _some(
    connection: sqlite3.Connection, keys: CollectionKeys, below: int
) -> tuple[int | None, list[Row]]:
    """The next rows towards the beginning of the table: the last one's place, and the collection's
    among them. So many are looked at, whosever they are, that the time is bounded."""
    given = {"below": below, "most": BATCH, "collection": keys.collection}
    found = connection.execute(_SOME, given).fetchall()
    rows = [(memory, topic) for _, memory, topic, mine in found if mine]
    for memory, topic in rows:
        if not isinstance(topic, bytes) or len(topic) != TAG_BYTES:  # a thief may have written it
            raise TamperedError(f"memory_topics of {memory}: not a hash")
    return min((place for place, *_ in found), default=None), rows


def _all_of(connection: sqlite3.Connection, rows: Iterable[Row]) -> set[Row]:
    """Every hash of the memories of those rows."""
    select = "select memory, topic from memory_topics where memory = ?"
    memories = dict.fromkeys(memory for memory, _ in rows)
    return {row for memory in memories for row in connection.execute(select, (memory,))}


def _insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    connection.executemany(
        "insert or ignore into memory_topics (memory, topic) values (?, ?)", rows
    )
