"""What a vault of real texts takes, part by part: bytes of its file per byte of Markdown.

    python -m benchmarks.natural shared/evals/scifact/corpus.jsonl [--notes 2000]
    python -m benchmarks.natural NOTES

writes the texts of a development set as Markdown files, or takes a folder of notes. It imports them
with the windows that the embedding model makes of them and random vectors, which take as many bytes
as real ones.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.vaults import import_with_random_vectors
from memory_store.models.embedder import load_embedder
from memory_store.sqlite import connect

PARTS = {
    "vectors": "select sum(length(vectors)) from vault_segments",
    "word entries": "select sum(length(main)) from vault_segments",
    "pairs of words": "select sum(length(pairs)) from vault_segments",
    "bodies": "select sum(length(body)) from memory_bodies",
    "heads": "select sum(length(head)) from memories",
}
"""The sealed columns."""
UNUSED = "select sum(unused) from dbstat where name in ({})"
BY_NOTE = "select name from dbstat group by name having count(*) > 1"
SMALL = "select sum(pgsize) from dbstat where name not in ({})"


def write_notes(texts: Path, folder: Path, notes: int) -> int:
    """The first ``notes`` records of an NDJSON file as Markdown files. Returns their bytes."""
    total = 0
    folder.mkdir()
    with texts.open(encoding="utf-8") as lines:
        for number, line in enumerate(islice(lines, notes)):
            record = json.loads(line)
            content = f"# {record['title']}\n\n{record['text']}\n".encode()
            (folder / f"{number:06}.md").write_bytes(content)
            total += len(content)
    return total


def shares(vault: Path, text_bytes: int) -> Mapping[str, float]:
    """Each part's share, the whole first, as multiples of the text."""
    connection = connect(vault, read_only=True)
    try:
        sizes = {name: connection.execute(query).fetchone()[0] for name, query in PARTS.items()}
        kinds = connection.execute(
            "select kind, sum(length(sealed)) from vault_segment_parts group by kind"
        )
        sizes |= dict(kinds)
        sizes["half-filled pages"] = connection.execute(UNUSED.format(BY_NOTE)).fetchone()[0]
        sizes["tables of one page"] = connection.execute(SMALL.format(BY_NOTE)).fetchone()[0] or 0
    finally:
        connection.close()
    whole = vault.stat().st_size
    sizes = {"whole file": whole, **sizes, "ids, tags, indexes": whole - sum(sizes.values())}
    return {name: size / text_bytes for name, size in sizes.items()}


def bytes_of(folder: Path) -> int:
    """What the Markdown files in a folder take."""
    return sum(path.stat().st_size for path in folder.rglob("*.md"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the vault in a folder of its own, and print the table."""
    parser = argparse.ArgumentParser(description="Measure what a vault of real texts takes.")
    parser.add_argument("texts", type=Path, help="folder of notes, or NDJSON with title and text")
    parser.add_argument("--notes", type=int, default=2_000)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memory-store-bench-") as name:
        folder = Path(name)
        notes = given.texts if given.texts.is_dir() else folder / "notes"
        if notes is given.texts:
            text_bytes = bytes_of(notes)
        else:
            text_bytes = write_notes(given.texts, notes, given.notes)
        (folder / "keys").mkdir()
        vault, key_file = folder / "natural.db", folder / "keys" / "bench.key"
        import_with_random_vectors(vault, key_file, notes, load_embedder())
        for part, share in shares(vault, text_bytes).items():
            print(f"{part:>18}  {share:5.2f} × {text_bytes / 1e6:.1f} MB of text")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
