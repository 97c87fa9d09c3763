"""Writes the list of proofs of trust/security.md from the first sentence of each test module."""

from __future__ import annotations

import ast
from pathlib import Path

PROOFS = Path(__file__).parents[2] / "tests" / "proofs"
ELSEWHERE = ("test_nodes.py", "test_public_clients.py")
"""What they hold is said on the pages about PostgreSQL and assistants."""


def proofs() -> str:
    """Each promise, and the module that holds it."""
    modules = [one for one in sorted(PROOFS.glob("test_*.py")) if one.name not in ELSEWHERE]
    rows = ["| what it shows | in `tests/` |", "|---|---|"]
    return "\n".join([*rows, *(f"| {_promise(one)} | `proofs/{one.name}` |" for one in modules)])


def _promise(module: Path) -> str:
    """The first paragraph of the module's docstring, on one line, without its full stop."""
    text = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".").replace("``", "`")
