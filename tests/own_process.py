"""Programs in a process of their own, until they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any


def ended(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program that has ended: its status, and the text that it printed.

    ``options`` are those of ``subprocess.run``. A program that hangs is killed after five minutes.
    """
    usual = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    return subprocess.run([str(one) for one in command], **{**usual, **options})


def python(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The same of this Python."""
    return ended(sys.executable, *words, **options)
