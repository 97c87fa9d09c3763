"""Verification holds the index against the memories: what would be found is what is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from typing_commands import run

from memory_store.index.segment import IndexEntry, build
from memory_store.records import Memory
from memory_store.session import comparison
from memory_store.session.indexer import Indexer
from memory_store.session.sealed_segments import write_index_segment
from memory_store.store import MemoryStore
from memory_store.vault.rows import Origin
from memory_store.vault.segments import REINDEXED

Change = Callable[[IndexEntry], IndexEntry]


def otherwise(store: MemoryStore, memory: Memory, change: Change) -> None:
    """Write a memory's index entry as an actor who has the key may: with something else in it."""
    vault = store._opened.vault
    preparer = Indexer(vault, store._opened.embedders.load)
    collection = vault.collections.find(memory.collection)
    kept = replace(memory, collection=collection)
    (item,) = preparer.prepare([(kept, Origin())])
    entry = replace(change(item.entry), row_tag=vault.row_tags([memory.id])[memory.id])
    model = preparer.model(collection)
    with vault.writing() as connection, connection.transaction(vault.keyring):
        connection.segments.log(collection, [memory.id], REINDEXED)
        segment = build([entry], model.dimensions)
        write_index_segment(connection, vault.keyring.of(collection), segment, model.mark)
    preparer.close()


CHANGES: dict[str, Change] = {
    "words": lambda entry: replace(
        entry, body_terms=entry.body_terms.and_once(np.array([12345], np.uint64))
    ),
    "text": lambda entry: replace(entry, content_tag=bytes(16)),
    "type": lambda entry: replace(entry, type="decision"),
    "topics": lambda entry: replace(entry, topics=(bytes(16),)),
    "created": lambda entry: replace(entry, created=0.0),
    "updated": lambda entry: replace(entry, updated=0.0),
    "valid_to": lambda entry: replace(entry, valid_to=0.0),
    "passages": lambda entry: replace(entry, windows=((0, 9_999),) * len(entry.windows)),
    "vectors": lambda entry: replace(entry, vectors=-entry.vectors),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_entry_that_says_something_else_is_named_and_reindexing_all_mends_it(
    store: MemoryStore, what: str
) -> None:
    memory = store.add("The ledger is reconciled on Fridays.", title="Ledger", topics=["work"])
    store.add("A bystander in the garden.")
    assert store.verify(full=True)["failures"] == []
    otherwise(store, memory, CHANGES[what])
    (failure,) = store.verify(full=True)["failures"]
    assert memory.id in failure
    assert what in failure
    assert "memory-store reindex --all" in failure
    store.reindex()
    assert store.verify(full=True)["failures"]
    assert store.reindex(whole=True) == 2
    assert store.verify(full=True)["failures"] == []
    assert store.get(memory.id) == memory


def test_phrases_are_compared_too(store: MemoryStore) -> None:
    memory = store.add("The ledger is reconciled on Fridays.")
    otherwise(store, memory, lambda entry: replace(entry, pairs=np.array([1 << 40], np.uint64)))
    (failure,) = store.verify()["failures"]
    assert "words" in failure


def test_the_report_says_how_many_were_compared(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "WORDS_COMPARED", 5)
    monkeypatch.setattr(comparison, "VECTORS_COMPARED", 2)
    for number in range(8):
        store.add(f"The ledger {number} is reconciled on Fridays.")
    assert store.verify()["compared"] == {"entries": 8, "words": 5, "vectors": 2, "left": ""}
    assert store.verify(full=True)["compared"] == {
        "entries": 8, "words": 8, "vectors": 8, "left": ""
    }  # fmt: skip


def test_without_the_model_no_vectors_are_compared_and_the_report_says_why(
    store: MemoryStore, key_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add("The ledger is reconciled on Fridays.")
    store.lock()
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(key_file.parent / "no-model"))
    arguments = ["verify", str(store.path), "--key-file", str(key_file), "--full"]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "the words of 1; no vectors" in done.output


def test_a_text_in_another_language_or_code_or_with_a_new_title_is_as_it_was(
    store: MemoryStore,
) -> None:
    """What is analysed in another way, or keeps vectors of an earlier title, is no failure."""
    store.add("def tie_up(boat): return knot(boat)", type="code", ref="quay.py")
    store.add("Die Größe der Dachkammer beträgt drei Meter, und die Tür ist alt.")
    store.add("海の近くの家")
    memory = store.add("The weir is opened in March, when the snow melts.", title="Weir")
    store.edit(memory.id, title="Something quite different about boats and oars")
    store.add("The weir is opened in March, when the snow melts.", title="Again")
    store.add("", title="A title alone")
    assert np.all(store._opened.vault.snapshot().alive.sum() == 6)
    assert store.verify(full=True)["failures"] == []
