"""Lists the rooms of the house for ARCHITECTURE.md, from the top down, by their own docstrings."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rooms() -> str:
    """A table of the layers of the import contract: each with what its first sentence says."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(one["layers"] for one in contracts if one["type"] == "layers")
    lines = ["| room | what is in it |", "|---|---|"]
    lines.append(f"| [`datasette_hybrid`](datasette_hybrid) | {_summary('datasette_hybrid')} |")
    for module in " | ".join(layers).split(" | "):
        if module != "__main__":
            place = f"memory_store/{module}"
            path = place if (ROOT / place).is_dir() else f"{place}.py"
            lines.append(f"| [`{module}`]({path}) | {_summary(path)} |")
    return "\n".join(lines)


def _summary(path: str) -> str:
    file = ROOT / path
    source = (file / "__init__.py" if file.is_dir() else file).read_text("utf-8")
    first = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "`").replace(":class:", "").replace("|", "\\|")
