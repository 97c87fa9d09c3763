"""What the tables of statements observe with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from bench import Bench

from memory_store.store import MemoryStore


@pytest.fixture
def bench(make_store: Callable[..., MemoryStore], private_folders: Path) -> Bench:
    """A bench whose vaults are locked afterwards."""
    return Bench(make_store)
