"""Whole commands, from an empty process to the answer on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from benchmarks.measuring import commands_side_by_side
from benchmarks.report import Line

COLD_STARTS = 7
JUDGED_SIZE = 10_000  # the targets are for so many notes: a start unlocks all of them
BARE_IMPORTS = "import click, cryptography, numpy"


class Started(Struct, frozen=True):
    """What the commands search: a vault of words, and one with vectors where there is a model."""

    size: int
    key_file: Path
    words: Path
    query: str
    vectors: Path | None = None

    def commands(self) -> Mapping[str, list[str]]:
        """Every command by name, ours and those it is held against."""
        python = sys.executable
        ours = [python, "-m", "memory_store"]
        commands = {
            "click": [python, "-c", "import click"],
            "help": [*ours, "--help"],
            "bare": [python, "-c", BARE_IMPORTS],
            "keyword": [*ours, "search", str(self.words), self.query, "--mode", "keyword"],
        }
        if self.vectors is not None:
            commands["hybrid"] = [*ours, "search", str(self.vectors), self.query, "--no-rerank"]
        return commands

    def environment(self) -> Mapping[str, str]:
        """The key, and compiled modules kept between starts, as they are where it is installed."""
        return {
            "MEMORY_STORE_KEY_FILE": str(self.key_file),
            "PYTHONDONTWRITEBYTECODE": "",
        }


def cold_lines(started: Started) -> Iterator[Line]:
    """The help, a search by words, and one by meaning too."""
    taken = commands_side_by_side(started.commands(), COLD_STARTS, started.environment())
    bare, judged = (BARE_IMPORTS, taken["bare"]), started.size <= JUDGED_SIZE
    yield Line(
        "memory-store --help, cold",
        started.size,
        taken["help"],
        "import click",
        taken["click"],
        "< 150 ms",
        0.150,
        "wall",
    )
    yield Line(
        "keyword search, cold",
        started.size,
        taken["keyword"],
        *bare,
        "≤ 150 ms above its peer at 10 k",
        taken["bare"].cpu + 0.150 if judged else None,
    )
    if "hybrid" in taken:
        yield Line(
            "hybrid search, cold",
            started.size,
            taken["hybrid"],
            *bare,
            "< 900 ms at 10 k",
            0.9 if judged else None,
            "wall",
        )
