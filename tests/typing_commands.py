"""Typing ``memory-store`` commands in a test, as a person would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from memory_store.cli import main


@dataclass(frozen=True)
class Vault:
    """A vault on disk and the key file that opens it."""

    path: Path
    key_file: Path
    recovery_code: str

    def run(self, command: str, *words: str, **settings: Any) -> Result:
        """``memory-store COMMAND DB WORDS… --key-file …`` as a person would type it."""
        return run(command, str(self.path), "--key-file", str(self.key_file), *words, **settings)

    def json(self, command: str, *words: str) -> Any:
        """The same with ``--json``: what it printed, parsed. Fails unless the exit code is 0."""
        result = self.run(command, *words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


def run(*words: str, **settings: Any) -> Result:
    """``memory-store WORDS…``; anything but an orderly exit fails the test."""
    result = CliRunner().invoke(main, list(words), prog_name="memory-store", **settings)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
