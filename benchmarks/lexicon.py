"""What the lexicon costs: its size, and what unlocking and a first slip of spelling take.

    python -m benchmarks.lexicon [--notes 10000]

Generated notes, without vectors; processor time, the least of three. The lexicon is sealed apart
and opened when it is first asked for: unlocking reads none of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.corpus import write_corpus
from benchmarks.report import shown_bytes, shown_time
from memory_store.index.layout import arrays_in
from memory_store.search.query.spelling import nearest
from memory_store.session.extras import lexicons
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

BYTES = "select sum(length(sealed)) from vault_segment_parts where kind = 'lexicon'"
SLIP = "thruogh"  # for through
TIMES = 3


def measured(path: Path, key_file: Path) -> tuple[list[float], int, int]:
    """Seconds to unlock, to open the lexicon, and to correct a word; its words, and its bytes in
    memory."""
    began = time.process_time()
    with MemoryStore.open(path, key_file=key_file) as store:
        vault = store._opened.vault
        snapshot = vault.snapshot()
        unlocked = time.process_time()
        held = list(lexicons(vault, snapshot))
        opened = time.process_time()
        assert nearest(SLIP, held) == "through"
        corrected = time.process_time()
        words = sum(len(lexicon.words) for _, lexicon in held)
        size = sum(one.nbytes for _, lexicon in held for one in arrays_in(vars(lexicon)))
    return [unlocked - began, opened - unlocked, corrected - opened], words, size


def main() -> None:
    """Make the vault, measure it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--notes", type=int, default=10_000)
    notes = parser.parse_args().notes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = write_corpus(folder / "notes", notes)
        path, key_file = folder / "vault" / "notes.db", folder / "notes.key"
        path.parent.mkdir()
        store, _ = MemoryStore.create(path, key_file=key_file)
        with store:
            store.import_paths(folder / "notes", embed=False)
        connection = connect(path, read_only=True)
        sealed = int(connection.execute(BYTES).fetchone()[0])
        connection.close()
        runs = [measured(path, key_file) for _ in range(TIMES)]
        unlock, opening, correcting = (
            min(times) for times in zip(*(one[0] for one in runs), strict=True)
        )
        _, words, size = runs[0]
        print(f"{notes:,} notes, {shown_bytes(corpus.text_bytes)} of text")
        print(f"in the file: {shown_bytes(sealed)}, {sealed / corpus.text_bytes:.3f} × the text")
        print(f"in memory, once it is asked for: {shown_bytes(size)}, {words:,} words")
        print(f"unlock: {shown_time(unlock)}, of which the lexicon 0")
        print(f"first asked for: {shown_time(opening)}; a slip then: {shown_time(correcting)}")


if __name__ == "__main__":
    main()
