"""How far an import is, while a batch is embedded too; and the same vectors however it is cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memory_store.importing import batch
from memory_store.session import entries
from memory_store.store import MemoryStore

WORDS = ("car", "holiday", "money", "dog", "supper", "house")


def folder(path: Path, notes: int) -> Path:
    path.mkdir()
    for number in range(notes):
        text = " ".join(WORDS[(number + i) % len(WORDS)] for i in range(1 + 9 * number))
        (path / f"{number:02}.md").write_text(f"Note {number}. {text}")
    return path


def test_files_are_done_by_and_by_while_their_batch_is_embedded(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "EMBEDDED_AT_ONCE", 4)
    monkeypatch.setattr(batch, "BATCH_SECONDS", 600)
    steps: list[tuple[int, int | None]] = []
    windows: list[tuple[int, int]] = []
    report = store.import_paths(
        folder(tmp_path / "notes", 12),
        progress=lambda name, done, total: steps.append((done, total)),
        embedded=lambda done, total: windows.append((done, total)),
    )
    assert report.imported == 12
    assert {total for _, total in steps} == {12}
    done = [done for done, _ in steps]
    assert done == sorted(done)
    assert len(set(done)) > 4, done
    assert (done[0], done[-1]) == (0, 12)
    (total,) = {total for _, total in windows}
    assert [done for done, _ in windows] == [*range(0, total, 4), total]


def test_vectors_are_the_same_however_a_batch_is_cut(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [one.read_text() for one in folder(tmp_path / "notes", 40).iterdir()]
    contents = {str(number).encode(): ("Title", text) for number, text in enumerate(texts)}
    cut = entries.embed_contents(store.embedder(), contents)
    monkeypatch.setattr(entries, "EMBEDDED_AT_ONCE", 10_000)
    whole = entries.embed_contents(store.embedder(), contents)
    for tag in contents:
        assert cut[tag].spans == whole[tag].spans
        assert np.array_equal(cut[tag].vectors, whole[tag].vectors)
