"""Draws and lists the rooms of the house for ARCHITECTURE.md, from the top down.

Floors and rooms are those of the import contract, what a room is for is its own docstring.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


PARTS = {
    "datasette_hybrid": "surfaces: decode a request, render an answer",
    "access": "who may ask what, and what they see",
    "unlocking": "a vault is opened, and what can be done with it",
    "search": "finding, and bringing in",
    "session": "the opened vault: keys, index, reader, writer",
    "vault": "the file, and the arrays in memory",
    "records": "what all rooms use",
}
"""The first room of each part of the house, and what the part is for."""


def drawing() -> str:
    """The parts of the house as boxes, one below the other; each line in one is a floor."""
    floors = [["datasette_hybrid"], *(floor.split(" | ") for floor in _layers("memory_store"))]
    shown = [[one for one in floor if one != "__main__"] for floor in floors]
    width = max(len(" · ".join(floor)) for floor in shown) + 2
    lines = ["```text"]
    for floor in filter(None, shown):
        part = next((words for room, words in PARTS.items() if room in floor), "")
        if part:
            lines.append(f"├{'─' * width}┤" if lines[1:] else f"┌{'─' * width}┐")
        lines.append(f"│ {' · '.join(floor):<{width - 1}}│ {part}".rstrip())
    return "\n".join([*lines, f"└{'─' * width}┘", "```"])


def _layers(package: str) -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    found: list[str] = next(
        one["layers"]
        for one in contracts
        if one["type"] == "layers" and one.get("containers") == [package]
    )
    return found


def rooms() -> str:
    """A table of the rooms of more than one module: each with what its first sentence says."""
    layers = _layers("memory_store")
    lines = ["| room | what is in it |", "|---|---|"]
    lines.append(f"| [`datasette_hybrid`](datasette_hybrid) | {_summary('datasette_hybrid')} |")
    for module in " | ".join(layers).split(" | "):
        path = f"memory_store/{module}"
        if (ROOT / path).is_dir():
            lines.append(f"| [`{module}`]({path}) | {_summary(path)} |")
    return "\n".join(lines)


def _summary(path: str) -> str:
    file = ROOT / path
    source = (file / "__init__.py" if file.is_dir() else file).read_text("utf-8")
    first = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace(":class:", "").replace("|", "\\|")
