"""One write at a time: transactions, and the clean-up that makes a deletion real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from memory_store.sqlite import BUSY_SECONDS, sqlite3


class CatchesUp(Protocol):
    """Keys that others may have replaced since they were read."""

    def catch_up(self, connection: sqlite3.Connection) -> None: ...


@contextmanager
def transaction(connection: sqlite3.Connection, keys: CatchesUp | None = None) -> Iterator[None]:
    """Everything inside is written, or nothing. Waits for other writers (busy time-out).

    ``keys``, with which something is to be sealed inside, are first brought up to date.
    """
    connection.execute("begin immediate")
    try:
        if keys is not None:
            keys.catch_up(connection)
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("rollback")
        raise


@contextmanager
def reading(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Everything read inside is of one moment. Within a transaction it is that one's."""
    if connection.in_transaction:
        yield connection
        return
    connection.execute("begin")
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def keep_log(connection: sqlite3.Connection) -> None:
    """Write through a log (WAL) from now on: readers never wait, and one who may only read needs
    not undo what a killed program left.

    Copies that SQLite makes (``vacuum into``) and other tools may have left the file another way.
    While others have it open, or the disk is full, it stays as it is until the next opening.
    """
    with suppress(sqlite3.OperationalError):
        (mode,) = connection.execute("pragma journal_mode").fetchone()
        if mode != "wal":
            connection.execute("pragma busy_timeout = 200")
            try:
                connection.execute("pragma journal_mode = wal").fetchone()
            finally:
                connection.execute(f"pragma busy_timeout = {int(BUSY_SECONDS * 1_000)}")


def erase_traces(connection: sqlite3.Connection) -> bool:
    """After a deletion: empty the write-ahead log, where old pages would stay readable.

    ``secure_delete`` overwrites the pages in the file itself. Readers that are at work keep the
    log alive; the next deletion, or the last connection to close, empties it then. Returns whether
    the log is empty.
    """
    (busy, *_) = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    return not busy
