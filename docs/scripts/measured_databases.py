"""Writes what a vault in a database takes, in how-to/postgres.md, from what the benchmark wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parents[1] / "figures" / "databases.json"


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
    return "\n".join(lines)


def _line(one: dict[str, Any]) -> str:
    said = f"{one['clock']:.2f}"
    said = f"**{said}**" if one["clock"] > one["target"] else said
    return f"* {one['name']}: {said} (target {one['target']:g})"
