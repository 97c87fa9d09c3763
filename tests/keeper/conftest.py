"""One vault that a keeper has open, for all tests of a module; none may end it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from keeping_open import KeptOpen, short_folder, start
from private import private_below

from memory_store.store import MemoryStore

NOTES = {
    "Lease of the flat": "The lease of the flat in Lisbon ends on 31 May. The deposit is 900.",
    "Rye bread": "Feed the sourdough in the evening. Bake at 240 degrees with steam.",
    "Three days in Lisbon": "Tram 28 early in the morning, before the queues. Pastéis in Belém.",
    "Backups": "Restic runs every night at two and keeps thirty daily snapshots.",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Path]:
    """Folders of their own, no key of the person who runs the tests; the folder of vaults."""
    folder = tmp_path_factory.mktemp("kept")
    with private_below(folder) as patch, short_folder() as runtime:
        for name in ("RERANKER", "KEEPER"):
            patch.delenv(f"MEMORY_STORE_{name}", raising=False)
        patch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        (folder / "vaults").mkdir()
        yield folder / "vaults"


@pytest.fixture(scope="module")
def vault(environment: Path) -> KeptOpen:
    """A vault with four notes, and the key file that opens it; no keeper yet."""
    path, key_file = environment / "notes.db", environment.parent / "keys" / "notes.key"
    store, _ = MemoryStore.create(path, key_file=key_file)
    with store:
        for title, text in NOTES.items():
            store.add(text, title=title, topics=["home"], collection="personal")
    return KeptOpen(path, key_file, "")


@pytest.fixture(scope="module")
def kept(vault: KeptOpen, environment: Path) -> Iterator[KeptOpen]:
    """The same vault, open in a keeper. Commands name its key file by the variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
        kept = start(vault.path, vault.key_file)
        yield kept
        kept.lock()
    assert not os.path.exists(kept.socket)
