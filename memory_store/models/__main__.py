"""``python -m memory_store.models distill FOLDER --texts PATH``: a static model of your own.

Boundary: reads the text files that are named, and writes a new folder. Uses no network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_store.errors import MemoryStoreError
from memory_store.models.distill import distil


def texts_in(path: Path) -> Iterator[str]:
    """The texts of a file, or of the files in a folder that are UTF-8."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            try:
                yield file.read_text("utf-8")
            except UnicodeDecodeError:
                continue  # an image, or another file without text


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the model, and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m memory_store.models", description=__doc__)
    distill = parser.add_subparsers(required=True).add_parser("distill", help="make a static model")
    distill.add_argument("folder", type=Path, help="where it is written; a new folder")
    distill.add_argument("--texts", type=Path, required=True, help="texts whose words are counted")
    distill.add_argument("--model", help="the sentence model that it is made of")
    given = parser.parse_args(arguments)
    try:
        tokens = distil(given.folder, texts_in(given.texts), given.model)
    except (MemoryStoreError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(f"{tokens:,} tokens in {given.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
