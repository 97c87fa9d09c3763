"""The command at a real (pseudo) terminal: prompts, bold words, progress; and Ctrl-C."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import at_terminal
import click
import pytest
from click.testing import CliRunner
from typing_commands import Vault, run

from memory_store.cli import Commands

PASSPHRASE = "correct horse battery staple"
BOLD = "\x1b[1m"


def session(
    words: Sequence[str],
    answers: Sequence[str] = (),
    *,
    echoed: bool = False,
    question: str = ": ",
    stop_at: str = "",
    **environment: str,
) -> tuple[str, int]:
    """Type ``memory-store WORDS…`` at a terminal; see ``at_terminal.session``."""
    command = [sys.executable, "-m", "memory_store", *words]
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    return at_terminal.session(
        command, variables, answers, echoed=echoed, question=question, stop_at=stop_at
    )


def test_matching_words_are_bold(vault: Vault) -> None:
    words = ["search", str(vault.path), "lease", "--mode", "keyword"]
    shown, code = session([*words, "--key-file", str(vault.key_file)])
    assert code == 0, shown
    assert f"{BOLD}lease" in shown


def test_a_long_memory_is_shown_by_the_pager_and_a_short_one_is_not(
    vault: Vault, tmp_path: Path
) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged with $LESSHISTFILE; cat\n")
    pager.chmod(0o700)
    found = {}
    for name, text in {"short": "Bins on Tuesday", "long": "line\n" * 300 + "the end"}.items():
        added = vault.run("add", text)
        words = ["get", str(vault.path), added.stdout.split()[0]]
        words += ["--key-file", str(vault.key_file)]
        found[name], code = session(words, PAGER=str(pager), LINES="24")
        assert code == 0, found[name]
    assert "paged with -" in found["long"]
    assert "the end" in found["long"]
    assert "Bins on Tuesday" in found["short"]
    assert "paged" not in found["short"]


def test_a_file_is_linked_at_a_terminal_and_nowhere_else(vault: Vault, notes: Path) -> None:
    file = next(notes.glob("*.md"))
    words = ["get", str(vault.path), file.name, "--key-file", str(vault.key_file)]
    link = f"\x1b]8;;file://{file}\x1b\\{file.name}\x1b]8;;\x1b\\"
    shown, code = session(words)
    assert code == 0, shown
    assert link in shown
    listed, _ = session(["sources", *words[1:2], *words[3:]])
    assert f"file://{notes}\x1b\\" in listed
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain, _ = session(words, **environment)
        assert "\x1b]8" not in plain
    assert "\x1b" not in vault.run("get", file.name).stdout


def test_a_path_cannot_end_the_link_that_it_stands_in(vault: Vault, tmp_path: Path) -> None:
    folder = tmp_path / "a \x1b\\\x1b]52;c;eA==\x07 folder"
    folder.mkdir()
    (folder / "note.md").write_text("Bins on Tuesday")
    vault.run("import", str(folder), "--no-embed")
    words = ["get", str(vault.path), "note.md", "--key-file", str(vault.key_file)]
    shown, code = session(words)
    assert code == 0, shown
    assert "%1B" in shown
    assert "\x1b]52" not in shown
    assert "\x07" not in shown


def test_a_reader_gets_the_next_page_and_no_token(vault: Vault) -> None:
    words = ["search", str(vault.path), "lease Lisbon bread", "--mode", "keyword", "--limit", "1"]
    shown, code = session([*words, "--key-file", str(vault.key_file)])
    assert code == 0, shown
    assert "more: --page 2" in shown
    assert "--continue" not in shown


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_switched_off(vault: Vault, environment: dict[str, str]) -> None:
    words = ["search", str(vault.path), "lease", "--mode", "keyword"]
    shown, code = session([*words, "--key-file", str(vault.key_file)], **environment)
    assert code == 0, shown
    assert "lease" in shown
    assert "\x1b" not in shown


def test_a_vault_is_made_and_opened_with_a_typed_passphrase(tmp_path: Path) -> None:
    path = str(tmp_path / "typed.db")
    made, code = session(["init", path], [PASSPHRASE, PASSPHRASE])
    assert code == 0, made
    recovery = re.search(r"^ +((?:[A-Z2-7]{4}-)+[A-Z2-7]{4})\r?$", made, re.MULTILINE)
    assert recovery is not None
    for answer in (PASSPHRASE, recovery[1]):
        shown, code = session(["stats", path], [answer])
        assert code == 0, shown
        assert answer not in shown
    shown, code = session(["stats", path], ["a slip", PASSPHRASE])
    assert code == 0, shown
    assert "Try again" in shown
    shown, code = session(["stats", path], ["something else"] * 3)
    assert code == 3, shown
    said = "MEMORY_STORE_PASSPHRASE does not open it."
    words = ["stats", path]
    shown, code = session(words, ["a slip", PASSPHRASE], MEMORY_STORE_PASSPHRASE="of another vault")
    assert code == 0, shown
    assert shown.count(said) == 1
    assert shown.index(said) < shown.index("Passphrase or")


def test_a_slip_in_the_recovery_code_is_asked_again_where_the_device_key_is_gone(
    tmp_path: Path,
) -> None:
    path, state = str(tmp_path / "typed.db"), tmp_path / "private" / "state"
    made, _ = session(["init", path], [PASSPHRASE, PASSPHRASE])
    recovery = re.search(r"^ +((?:[A-Z2-7]{4}-)+[A-Z2-7]{4})\r?$", made, re.MULTILINE)
    assert recovery is not None
    (state / "device-keys").rename(state / "elsewhere")
    asks = "Recovery code for typed.db: "
    shown, code = session(["stats", path], [PASSPHRASE, "a slip", recovery[1]], question=asks)
    assert code == 0, shown
    assert shown.count("or open it with the recovery code") == 1, shown
    assert shown.count("That is not the recovery code. Try again") == 2
    shown, code = session(["stats", path], ["a slip"] * 3, question=asks)
    assert code == 3, shown


def test_import_shows_its_progress_and_clears_it(empty_vault: Vault, notes: Path) -> None:
    words = ["import", str(empty_vault.path), str(notes), "--no-embed"]
    shown, code = session([*words, "--key-file", str(empty_vault.key_file)])
    assert code == 0, shown
    assert "\r\x1b[K" in shown
    assert shown.rstrip().splitlines()[-1].lstrip("\r\x1b[K").startswith("imported 5")


def test_delete_asks_first(vault: Vault) -> None:
    memory = vault.json("list", "--type", "fact")[0]
    words = ["delete", str(vault.path), memory["id"], "--key-file", str(vault.key_file)]
    shown, code = session(words, ["n"], echoed=True)
    assert code == 1
    assert memory["title"] in shown
    assert vault.json("get", memory["id"])["id"] == memory["id"]
    assert session(words, ["y"], echoed=True)[1] == 0
    assert vault.run("get", memory["id"]).exit_code == 1


def test_an_answer_is_shown_as_it_arrives(vault: Vault, tmp_path: Path) -> None:
    words = ["ask", str(vault.path), "--key-file", str(vault.key_file), "lease of the flat"]
    shown, code = session([*words, "--model", "echo"], LLM_USER_PATH=str(tmp_path / "llm"))
    assert code == 0, shown
    answer, _, after = shown.rpartition("echo was sent")
    assert "ends on 31 May" in answer, "echo says what it was given"
    assert " of them" in after


class Interrupting(io.RawIOBase):
    """Standard input at a terminal where Ctrl-C is pressed."""

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
    result = run(*given, input=io.BufferedReader(Interrupting()))
    assert result.exit_code == 130, result.output
    *before, last = result.stderr.splitlines()
    assert last.startswith("Stopped.")
    # `ask` says first that there is no language model; a slow machine shows how far an import is
    assert command == "ask" or [line for line in before if line != "0 of 1"] == []


def test_reindex_stopped_says_what_is_kept_and_how_to_go_on(
    empty_vault: Vault, tmp_path: Path
) -> None:
    """Takes some seconds: what is embedded is long, so that there is time to stop it."""
    for number in range(80):
        (tmp_path / f"{number}.txt").write_text(f"The dyke {number} is grazed by sheep. " * 12)
    empty_vault.run("import", *map(str, sorted(tmp_path.glob("*.txt"))), "--no-embed")
    words = ["reindex", str(empty_vault.path), "--key-file", str(empty_vault.key_file)]
    shown, code = session(words, stop_at="64 of 80")
    assert code == 130, shown
    again = f"memory-store reindex {empty_vault.path}"
    assert f"Stopped at 64 of 80. What was done is kept. To go on: {again}\r\n" in shown
    assert empty_vault.run("reindex").stdout == "16 memories embedded\n"


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
        _, reported = running.communicate(timeout=300)
        os.close(waiting)
    assert (running.returncode, reported) == (130, "Stopped.\n")


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


EDITORS = {
    "changes": "file.write_text(file.read_text() + 'Signed twice.' + chr(10))",
    "leaves": "pass",
    "fails": "file.write_text('Half'); sys.exit(1)",
    "late": """subprocess.run([sys.executable, '-m', 'memory_store', 'edit', *sys.argv[1:3],
    '--key-file', sys.argv[3], '--text', 'Newer'], check=True, stdout=subprocess.DEVNULL)
file.write_text('Mine')""",
}


def edit_at_terminal(
    vault: Vault, folder: Path, editor: str, answers: Sequence[str] = ()
) -> tuple[str, int, Path]:
    """Edit the first memory by a program as editor: what was shown, the code, the file it had."""
    program, seen = folder / "editor.py", folder / "seen"
    program.write_text(
        "import pathlib, subprocess, sys\n"
        "file = pathlib.Path(sys.argv[-1])\n"
        f"pathlib.Path({str(seen)!r}).write_text(f'{{file}} {{file.stat().st_mode & 0o777:o}}')\n"
        f"{EDITORS[editor]}\n"
    )
    id = vault.json("list")[0]["id"]
    words = [sys.executable, program, vault.path, id, vault.key_file]
    command = " ".join(str(word) for word in words)
    shown, code = session(
        ["edit", str(vault.path), id, "--key-file", str(vault.key_file)],
        answers,
        echoed=True,
        EDITOR=command,
        VISUAL="",
    )
    file, mode = seen.read_text().split()
    assert mode == "600"
    return shown, code, Path(file)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder in memory here")
def test_an_editor_gets_the_text_in_memory_alone_and_writes_it_back(
    vault: Vault, tmp_path: Path
) -> None:
    before = vault.json("list")[0]
    shown, code, file = edit_at_terminal(vault, tmp_path, "leaves")
    assert (code, vault.json("list")[0]["version"]) == (0, before["version"]), shown
    assert "is as it was, version 1" in shown
    shown, code, file = edit_at_terminal(vault, tmp_path, "fails")
    assert "ended with an error, so nothing is changed" in shown
    assert (code, vault.json("list")[0]["version"]) == (1, before["version"]), shown
    shown, code, file = edit_at_terminal(vault, tmp_path, "changes")
    assert code == 0, shown
    after = vault.json("get", before["id"])
    assert after["text"] == before["text"] + "Signed twice."
    assert after["version"] == before["version"] + 1
    assert not file.parent.exists(), "the file and its folder are wiped"
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    assert {mount[1]: mount[2] for mount in mounts}[str(file.parent.parent)] == "tmpfs"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no folder in memory here")
def test_an_editor_writes_over_no_newer_version_unasked(vault: Vault, tmp_path: Path) -> None:
    id = vault.json("list")[0]["id"]
    shown, code, file = edit_at_terminal(vault, tmp_path, "late", ["n"])
    assert (code, vault.json("get", id)["text"]) == (1, "Newer"), shown
    assert "Not saved:" in shown
    assert not file.parent.exists()
