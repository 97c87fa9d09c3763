"""The documentation shows the help that the commands print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.cli import COMMANDS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_help_in_the_documentation_is_current() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", str(DOCUMENT)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"memory-store {name} " in result.stdout.partition("\n\n")[2]
