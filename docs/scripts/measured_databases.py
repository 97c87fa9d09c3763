"""Writes what a vault in a database takes, in how-to/postgres.md, from what the benchmark wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "figures"
FIGURES = FOLDER / "databases.json"
IN_A_FILE = FOLDER / "two_checkouts.json"
MOST_IN_A_FILE = 1.02


def ratios() -> str:
    """The conditions, a line for each ratio (bold: misses its target), and what copies took."""
    found: dict[str, Any] = json.loads(FIGURES.read_text())
    lines = [f"{found['conditions']}:\n", *map(_line, found["ratios"])]
    copies = [f"{one['seconds']:.0f} s to a {one['to']}" for one in found["copies"]]
    if copies:
        memories = found["copies"][0]["memories"]
        lines.append(f"\nCopying {memories:,} memories took {' and '.join(copies)}.")
    if found.get("batches"):
        lines[-1] += f" Its batches take {found['batches']:.2f} of rows one by one (target .8)."
    if IN_A_FILE.exists():
        lines.append(_in_a_file(json.loads(IN_A_FILE.read_text())))
    return "\n".join(lines)


def _in_a_file(found: list[dict[str, Any]]) -> str:
    """What it cost a vault in a file that there is another place for one."""
    told = (
        f"{one['work']} {_bold(one['ratio'], MOST_IN_A_FILE)} "
        f"(half of the turns {one['low']:.2f} to {one['high']:.2f})"
        for one in found
    )
    return (
        "\nA vault in a file takes so many times the processor time that it took before there were "
        f"others (target {MOST_IN_A_FILE}): {'; '.join(told)}."
    )


def _line(one: dict[str, Any]) -> str:
    return f"* {one['name']}: {_bold(one['clock'], one['target'])} (target {one['target']:g})"


def _bold(ratio: float, target: float) -> str:
    return f"**{ratio:.2f}**" if ratio > target else f"{ratio:.2f}"
