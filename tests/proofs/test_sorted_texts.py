"""What SQL sorts or keeps for later is in no temporary file, which would hold texts as they are."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin.conftest import Filled, Serve

from memory_store.access import KEY_HOLDER
from memory_store.records import MemoryDraft
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.store import MemoryStore

CANARY = "Quagga number"
TEXTS = 600
IN_MEMORY = 2  # https://sqlite.org/pragma.html#pragma_temp_store
LONG = "of a very long tale " * 250
"""So that all of them are more than the 2 MB that SQLite sorts in memory."""
DESCRIPTORS = Path("/proc/self/fd")
SORTS = (
    "select memory_text(id) said from memories order by said",
    "select memory_text(id) said, count(*) from memories group by said",
    "select memory_text(id) said from memories union select 'a'",
    "with kept as materialized (select memory_text(id) said from memories) "
    "select a.said from kept a, kept b",
)

pytestmark = pytest.mark.skipif(
    not DESCRIPTORS.is_dir(), reason="this system does not show which files a process holds open"
)


@pytest.fixture
def long_texts(filled: Filled) -> Iterator[MemoryStore]:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        drafts = [MemoryDraft(f"{CANARY} {number} {LONG}") for number in range(TEXTS)]
        store.add_many(drafts, embed=False)
        yield store


def leaked_while(connection: Any, sql: str) -> int:
    """How many texts stand in files that have no name any more, once the first row has come."""
    cursor = connection.execute(sql)
    assert cursor.fetchone()
    found = 0
    for one in DESCRIPTORS.iterdir():
        try:
            nameless = os.readlink(one).endswith(" (deleted)")
            found += one.read_bytes().count(CANARY.encode()) if nameless else 0
        except OSError:  # the listing itself, a socket
            continue
    cursor.close()
    return found


@pytest.mark.parametrize("sql", SORTS, ids=["sorted", "grouped", "united", "kept"])
def test_texts_that_sql_sorts_are_in_no_file(long_texts: MemoryStore, sql: str) -> None:
    connection = sqlite3.connect(long_texts.path)
    register(connection, lambda _: StoreAndGrants(long_texts, KEY_HOLDER))
    assert leaked_while(connection, sql) == 0
    connection.execute("pragma temp_store = file")  # the counter-proof: this is what it would be
    assert leaked_while(connection, sql) > 10
    connection.close()


@pytest.mark.parametrize("database", ["notes", "_memory"])
async def test_what_datasette_sorts_stays_in_memory(
    filled: Filled, serve: Serve, database: str
) -> None:
    served = await serve(filled.path, options=filled.options(), crossdb=True)
    connected = served.datasette.databases[database]

    def kept(connection: Any) -> Any:
        return connection.execute("pragma temp_store").fetchone()[0]

    assert await connected.execute_fn(kept) == IN_MEMORY
