"""Tracebacks without variables.

Boundary: where ``rich`` is installed, Datasette prints every local variable of every frame when a
page of its own breaks, and when the process ends by an error. Queries and opened texts are among
them. With this plugin, tracebacks name lines and exceptions only, as they do without ``rich``.
"""

from __future__ import annotations

import sys

from datasette import handle_exception


def print_no_variables() -> None:
    """From now on, in this process. Safe to call again."""
    handle_exception.rich = None
    if sys.excepthook.__module__.startswith("rich."):
        sys.excepthook = sys.__excepthook__
