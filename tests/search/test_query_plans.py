"""What filters by table in SQL uses an index, and no index is asked once for every row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from memory_store.index.vec0_vectors import Vec0Vectors
from memory_store.sqlite import ExtensionUnavailable, connect
from memory_store.store import MemoryStore

pytestmark = pytest.mark.in_a_file  # plans of SQLite

SEALED_TABLES = "memories|memory_bodies|memory_topics|memory_sources"
READS: dict[str, Callable[[MemoryStore], Any]] = {
    "a list": lambda store: store.list(
        collection="personal", type="note", topic="house", since="2020", status="open", limit=3
    ),
    "one memory": lambda store: store.get(store.list(limit=1)[0].id),
    "the beginning of an id": lambda store: store.get(store.list(limit=1)[0].id[:13]),
    "a ref": lambda store: store.get("3"),
    "topics of a collection": lambda store: store.topics(collection="personal"),
    "a filtered search": lambda store: store.search(
        "spare key", collection="personal", type="note", topic="house", since="2020"
    ),
    "a list by filters": lambda store: store.search("topic:house", meta={"a": "b"}),
    "a pattern": lambda store: store.search("spare", mode="literal"),
    "statistics": lambda store: store.collections.list(),
}


@pytest.mark.parametrize("name", READS)
def test_no_read_goes_through_a_whole_table(notes: MemoryStore, name: str) -> None:
    statements: list[str] = []
    reader = notes._opened.vault.reader()._connection
    READS[name](notes)  # what is read once for all later ones is read now
    reader.set_trace_callback(statements.append)
    READS[name](notes)
    reader.set_trace_callback(None)
    selected = [one for one in statements if re.search(rf"from ({SEALED_TABLES})\b", one)]
    assert selected
    connection = connect(notes.path, read_only=True)
    for statement in selected:
        for _, _, _, step in connection.execute(f"explain query plan {statement}"):
            assert not re.match(rf"SCAN ({SEALED_TABLES})(?! USING)", step), (statement, step)


def test_a_change_of_keys_sorts_no_collection_for_each_of_its_batches(notes: MemoryStore) -> None:
    statements: list[str] = []
    with notes._opened.vault.writing() as storage:
        writer = storage._connection
    writer.set_trace_callback(statements.append)
    notes.keys.rotate()
    writer.set_trace_callback(None)
    batches = [one for one in statements if "order by rowid limit" in one]
    assert batches
    for statement in batches:
        plan = connect(notes.path, read_only=True).execute(f"explain query plan {statement}")
        assert not [step for _, _, _, step in plan if "ORDER BY" in step], statement


def test_vectors_are_asked_once_for_all_rows_of_a_filter(notes: MemoryStore) -> None:
    context = notes.search_context()
    try:
        index = Vec0Vectors(context.snapshot)
    except ExtensionUnavailable as error:
        pytest.skip(str(error))
    (one,) = index.lengths.values()
    connection, statements = one.table.connection, []
    connection.set_trace_callback(statements.append)
    mask = context.snapshot.alive.copy()
    mask[2:] = False
    index.search(notes.embedder().embed_query("key"), 2, mask)
    connection.set_trace_callback(None)
    (statement,) = [one for one in statements if "match" in one]
    assert "rowid in" in statement
    steps = [row[3] for row in connection.execute(f"explain query plan {statement}")]
    (scan,) = [step for step in steps if "windows" in step]
    assert scan.endswith("[___")  # sqlite-vec takes the list as a whole
