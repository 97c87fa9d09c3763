"""What a vault takes on disk, beside its text."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Amount
from memory_store.store import MemoryStore

MOST_OF_TEXT = 4.0  # times the text, with vectors


def file_line(
    called: str, path: Path, notes: int, text_bytes: int, limit: float | None = None
) -> Amount:
    """The whole file."""
    target = "" if limit is None else f"< {limit:.0f} ×"
    size = path.stat().st_size
    return Amount(f"database size, {called}", notes, size, "the text", text_bytes, target, limit)


def index_line(called: str, store: MemoryStore, notes: int, text_bytes: int) -> Amount:
    """Its sealed index alone, which does not depend on whether the texts are there."""
    sealed = int(store.stats()["index_bytes"])
    return Amount(f"sealed index, {called}", notes, sealed, "the text", text_bytes)
