"""Ctrl-C: one line, and the exit code that shells know."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from memory_store.cli import Commands, main


class Interrupting(io.RawIOBase):
    """Standard input on which somebody presses Ctrl-C."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("search", ["-"]),
        ("ask", ["-"]),
        ("add", ["-"]),
        ("import", ["-"]),
        ("eval", ["--queries", "-", "--qrels", __file__]),
    ],
)
def test_ctrl_c_is_one_line_and_130(vault: Any, command: str, words: list[str]) -> None:
    given = [command, str(vault.path), "--key-file", str(vault.key_file), *words]
    result = CliRunner().invoke(main, given, input=io.BufferedReader(Interrupting()))
    assert result.exit_code == 130, result.output
    assert result.stderr.startswith("Stopped.")
    assert result.stderr.count("\n") == 1


def heeding_signals() -> None:
    """As a terminal starts a command: what runs in the background ignores the signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_running_command_is_stopped_by_the_signal(vault: Any, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    os.mkfifo(queries)
    command = [sys.executable, "-m", "memory_store", "eval", str(vault.path), "--key-file"]
    files = ["--queries", str(queries), "--qrels", __file__]
    with subprocess.Popen(
        [*command, str(vault.key_file), *files],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeding_signals,
    ) as running:
        waiting = os.open(queries, os.O_WRONLY)  # returns once the command reads
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=300)
        os.close(waiting)
    assert (running.returncode, told) == (130, "Stopped.\n")


def test_ctrl_c_at_a_prompt_counts_too_and_no_is_an_answer() -> None:
    @click.command()
    def sure() -> None:
        click.confirm("Sure?", abort=True, err=True)

    class Asking(Commands):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            return sure

    def answer(typed: Any) -> tuple[int, str]:
        result = CliRunner().invoke(Asking(), ["sure"], input=typed)
        return result.exit_code, result.stderr.splitlines()[-1]

    assert answer(io.BufferedReader(Interrupting())) == (130, "Sure? [y/N]: Stopped.")
    assert answer("n\n") == (1, "Aborted.")
