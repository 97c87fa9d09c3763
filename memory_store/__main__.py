"""``python -m memory_store``, and the ``memory-store`` script.

A keeper is asked first, before anything else is imported: where one does the command, this process
needs neither NumPy nor a model.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


def run() -> None:
    """Do what the command line says, here or where the vault is kept open."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: a vault would be opened in its place
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (until the program ends)

    from memory_store.keeper.client import answered

    code = answered(sys.argv[1:], _page, _editing)
    if code is None:
        from memory_store.cli import main

        main(prog_name="memory-store")
    sys.exit(code)


def _page(lines: list[str]) -> None:
    from memory_store.cli.pager import show

    show(lines, lambda: None)  # no vault is open here


def _editing(text: str) -> AbstractContextManager[Callable[[], str]]:
    from memory_store.cli.editor import editing

    return editing(text)


if __name__ == "__main__":
    run()
