"""What is left out where damaged memories may be: what damage made unreadable, and nothing else."""

from __future__ import annotations

import pytest

from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore


@pytest.mark.in_a_file
def test_a_fault_of_the_program_is_raised_and_no_memory_is_called_damaged(
    store: MemoryStore,
) -> None:
    for number in range(70):  # more than are read at once
        store.add(f"Number {number}.")
    damaged: dict[str, str] = {}
    every = store.every(damaged=damaged.__setitem__)
    next(every)
    store._opened.vault.reader().close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        list(every)
    assert damaged == {}
