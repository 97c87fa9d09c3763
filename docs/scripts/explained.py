"""Runs the example of how-it-works/explaining.md: a new vault of eight notes, with small models.

The models are those of the tests, a bag of words each: they show the stages, not what real models
can do. Times depend on the machine and are left out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from memory_store.cli import main
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from tiny_embedder import build as build_tiny_embedder
from tiny_reranker import build as build_tiny_reranker

NOTES = (
    (
        "note",
        "Spare keys",
        "The spare key of the car hangs in the hall, behind the coats.",
        "2025-03-02",
    ),
    ("task_done", "Cut another key", "Have one more spare key cut for the car.", "2025-02-11"),
    ("preference", "Where keys go", "A key goes on the blue hook, always.", "2024-10-01"),
    ("summary", "The automobile", "Papers, tyres and insurance of the automobile.", "2025-05-20"),
    ("note", "Garage", "The car is at the garage until Friday.", "2025-06-03"),
    ("decision", "Letting the flat", "The agent gets no spare key of the flat.", "2025-01-15"),
    ("note", "Rain barrels", "They fill in one night of April weather.", "2025-04-09"),
    ("note", "Sourdough", "It wants a warm corner and a day of patience.", "2024-12-27"),
)

VARYING = (
    (r"[\d,]+ ms$", "… ms"),
    (r"^(\w+ *?) +\d+\.\d +\d+\.\d(?=  |$)", lambda found: f"{found[1]:<7}       …       …"),
    (r"^ +\d+\.\d +\d+\.\d$", f"{'':<7}       …       …"),
    (r"^( {20,}\w+ +\d+ +\S+ +\S+) +\d+\.\d$", r"\1   …"),
    (r"(?<=last) +ms$", "  ms"),
)
"""Times of the machine, and tokens sealed with the vault's own keys."""
ID_END = "0000000-0000-4000-8000-000000000000"


@cache
def made() -> tuple[tempfile.TemporaryDirectory[str], dict[str, str]]:
    """A folder with the vault and the models, and the environment in which to search it."""
    folder = tempfile.TemporaryDirectory()
    root = Path(folder.name)
    build_tiny_embedder(root / "embedder")
    reranker = root / "ms-marco-TinyBERT-L-2-v2"
    build_tiny_reranker(reranker)
    environment = {
        "MEMORY_STORE_KEY_FILE": str(root / "keys" / "notes.key"),
        "MEMORY_STORE_MODEL": str(root / "embedder"),
        "MEMORY_STORE_RERANKER": str(reranker),
        "MEMORY_STORE_OFFLINE": "1",
        "COLUMNS": "96",
        **{f"MEMORY_STORE_{name}": str(root / name) for name in ("CACHE", "CONFIG", "STATE")},
    }
    before = dict(os.environ)
    os.environ.update(environment)
    store, _ = MemoryStore.create(
        root / "notes.db",
        key_file=environment["MEMORY_STORE_KEY_FILE"],
        embedder=str(root / "embedder"),
    )
    with store:
        store.add_many(
            MemoryDraft(text, type=kind, title=title, created=day, id=f"{n}{ID_END}")
            for n, (kind, title, text, day) in enumerate(NOTES, 1)
        )
    os.environ.clear()
    os.environ.update(before)
    return folder, environment


def example(*arguments: str) -> str:
    """A ``memory-store search`` and what it prints, as a block of Markdown without times."""
    folder, environment = made()
    shown = [f"'{a}'" if " " in a else a for a in arguments]
    result = CliRunner().invoke(
        main, ["search", f"{folder.name}/notes.db", *arguments], env=environment
    )
    if result.exception:
        raise result.exception
    printed = result.output.rstrip()
    for pattern, constant in VARYING:
        printed = re.sub(pattern, constant, printed, flags=re.MULTILINE)
    command = f"$ memory-store search notes.db {' '.join(shown)}"
    return f"```\n{command}\n{printed}\n```"


if __name__ == "__main__":
    print(example(*sys.argv[1:]))
