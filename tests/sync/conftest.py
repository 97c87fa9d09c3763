"""Two devices that share a drive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # devices

from devices import Devices

from memory_store.store import MemoryStore


@pytest.fixture
def devices(store: MemoryStore, key_file: Path, tmp_path: Path) -> Iterator[Devices]:
    made = Devices(store, key_file, tmp_path)
    yield made
    made.close()


@pytest.fixture
def phone(devices: Devices) -> MemoryStore:
    """The second device. ``store`` is the first."""
    return devices.another("phone")
