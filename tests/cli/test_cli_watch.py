"""``memory-store watch`` as a process beside others that have the vault open."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from typing_commands import Vault, run

from memory_store.store import MemoryStore

PATIENCE = 30.0  # seconds, for a machine that is busy with other tests


def test_it_writes_beside_an_open_vault_and_stops_clean_with_ctrl_c(
    empty_vault: Vault, tmp_path: Path
) -> None:
    """Starts a process, which takes a second."""
    notes = tmp_path / "notes"
    notes.mkdir()
    command = [sys.executable, "-m", "memory_store", "watch", str(empty_vault.path), str(notes)]
    command += ["--key-file", str(empty_vault.key_file), "--no-embed", "--json", "--topic", "home"]
    with (
        MemoryStore.open(empty_vault.path, key_file=empty_vault.key_file) as store,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run,
        ExitStack() as stack,
    ):
        assert run.stdout is not None
        assert run.stderr is not None
        stack.callback(run.kill)  # else a failure would wait for it
        assert json.loads(run.stdout.readline())["imported"] == 0
        (notes / "lease.md").write_text("The lease ends in May.")
        began = time.monotonic()
        while not store.search("lease", mode="keyword").rows:
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.02)
        (row,) = store.search("lease", mode="keyword").rows
        assert row.topics == ("home",)
        assert json.loads(run.stdout.readline())["imported"] == 1
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == "Stopped. What was imported is kept.\n"
        assert run.wait() == 0
        assert os.listdir(notes) == ["lease.md"]


def test_a_terminal_shows_what_is_followed_and_what_changes(
    empty_vault: Vault, tmp_path: Path
) -> None:
    """Starts a process, which takes a second."""
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("lease", "rent"):
        (notes / f"{name}.md").write_text(f"The {name} ends in May.")
        os.utime(notes / f"{name}.md", (1.7e9, 1.7e9))  # long ago: the first look reads it
    command = [sys.executable, "-m", "memory_store", "watch", str(empty_vault.path), str(notes)]
    command += ["--key-file", str(empty_vault.key_file)]
    ours, terminal = pty.openpty()
    with subprocess.Popen(command, stdout=terminal, stderr=terminal) as run, ExitStack() as stack:
        os.close(terminal)
        stack.callback(run.kill)
        shown = ""

        def until(words: str) -> None:
            nonlocal shown
            end = time.monotonic() + PATIENCE
            while words not in shown:
                assert time.monotonic() < end, shown
                if select.select([ours], [], [], 0.1)[0]:
                    shown += os.read(ours, 65_536).decode()

        until("imported 2\r\n")
        until(f"Following {notes} until you press Ctrl-C.")
        (notes / "lease.md").rename(notes / "let.md")
        until("renamed: lease.md is let.md now")
        (notes / "let.md").unlink()
        until("gone, now in the trash: ")
        until("pruned 1\r\n")
        shutil.rmtree(notes)
        until("not there now; its memories are kept, and it is followed again when it is back")
        run.send_signal(signal.SIGINT)
        until("Stopped. What was imported is kept.")
        assert run.wait() == 0
    os.close(ours)


def test_a_folder_that_is_not_there_is_named(empty_vault: Vault) -> None:
    result = empty_vault.run("watch", "/nowhere/at/all")
    assert result.exit_code == 2
    assert "nothing to watch: /nowhere/at/all: no such file or folder" in result.stderr


def test_a_missing_extra_is_said_before_the_vault_is_opened(
    empty_vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)  # as if it were not installed
    said = run("watch", str(empty_vault.path), "--key-file", str(tmp_path / "nowhere"), ".")
    assert said.exit_code == 1
    assert "datasette-hybrid[watch]" in said.stderr
