"""Copies of one vault on several devices, and a drive between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_store.cli.backup import copy_vault
from memory_store.records import Memory
from memory_store.records.sync import SyncReport
from memory_store.store import MemoryStore
from memory_store.vault.bundles import CHANGES, found_in

Said = Mapping[str, tuple[Any, ...]]


def said(memory: Memory) -> tuple[Any, ...]:
    """All of a memory that every device must agree on: not the version, which each counts."""
    values = memory.as_dict()
    return tuple(str(values[name]) for name in sorted(values) if name not in ("version", "id"))


def held(store: MemoryStore) -> Said:
    """Memory → what it says, of everything in a vault."""
    return {memory.id: said(memory) for memory in store.every()}


class Devices:
    """Each has its own copy of a vault, in a folder of its own."""

    def __init__(self, first: MemoryStore, key_file: Path, folder: Path) -> None:
        self.first, self.key_file, self.folder = first, key_file, folder
        self.drive = folder / "drive"
        self.drive.mkdir()
        self.opened: list[MemoryStore] = []

    def another(self, name: str) -> MemoryStore:
        """A copy of the first device's vault as it is now."""
        path = self.folder / name / "notes.db"
        path.parent.mkdir()
        copy_vault(self.first.path, path)
        self.opened.append(MemoryStore.open(path, key_file=self.key_file))
        return self.opened[-1]

    def close(self) -> None:
        for store in self.opened:
            store.lock()

    def sync(self, *stores: MemoryStore) -> list[SyncReport]:
        """Each exchanges with the drive, one after another."""
        return [store.sync_with_folder(self.drive, embed=False) for store in stores]

    def files(self) -> list[Path]:
        """The files of changes on the drive, not those of keys."""
        found, _ = found_in(self.drive)
        return sorted(one.path for one in found if one.kind == CHANGES)
