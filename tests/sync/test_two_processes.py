"""The command as two machines run it: at the same time, and killed on the way.

A start of Python takes half a second: commands that run alone share this process, each with the
environment of its machine.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from at_terminal import session
from click.testing import Result
from typing_commands import run


def typed(environment: dict[str, str], *words: str) -> Result:
    """What the command does with these variables of ``memory-store``, and no others."""
    others = {name: None for name in os.environ if "MEMORY_STORE" in name}
    return run(*words, env={**others, **environment})


class Machine:
    """A home of its own, and a vault in it."""

    def __init__(self, folder: Path, key_file: Path, drive: Path) -> None:
        folder.mkdir()
        self.vault, self.key_file, self.drive = folder / "notes.db", key_file, drive
        kept = {name: value for name, value in os.environ.items() if "MEMORY_STORE" not in name}
        folders = {f"MEMORY_STORE_{one}": str(folder / one) for one in ("STATE", "CONFIG", "CACHE")}
        self.environment = {**kept, **folders, "HOME": str(folder), "MEMORY_STORE_OFFLINE": "1"}

    def line(self, command: str, *words: str) -> list[str]:
        return [command, str(self.vault), *words, "--key-file", str(self.key_file)]

    def start(self, command: str, *words: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "memory_store", *self.line(command, *words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(line, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def typed(self, command: str, *words: str) -> Result:
        return typed(self.environment, *self.line(command, *words))

    def run(self, command: str, *words: str) -> str:
        result = self.typed(command, *words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def sync(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.run("sync", str(self.drive), "--no-embed", "--json", *words)
        )
        return found

    def texts(self) -> list[str]:
        rows = self.run("export", "-", "--ndjson").splitlines()
        return sorted(json.loads(row)["text"] for row in rows)


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Machine, Machine]:
    """Two, the second of which has joined the first."""
    drive = tmp_path / "drive"
    drive.mkdir()
    desk, phone = (
        Machine(tmp_path / name, tmp_path / "keys" / "notes.key", drive) for name in ("desk", "ph")
    )
    desk.run("init")
    desk.run("add", "The lease ends in June.", "--title", "Lease")
    desk.sync()
    phone.sync("--join")
    return desk, phone


def test_a_person_joins_syncs_and_reads_what_happened(machines: tuple[Machine, Machine]) -> None:
    desk, phone = machines
    assert phone.texts() == ["The lease ends in June."]
    (memory,) = json.loads(phone.run("list", "--json"))
    phone.run("edit", memory["id"], "--text", "The lease ends in July.")
    desk.run("edit", memory["id"], "--text", "The lease ends in August.")
    desk.run("sync", str(desk.drive), "--no-embed")
    said = phone.run("sync", str(phone.drive), "--no-embed")
    assert "1 memory changed on two devices; both versions stay" in said
    assert memory["id"][:8] in said
    assert "Changed on two devices at once (1)" in phone.run("review")
    desk.sync()
    assert desk.texts() == phone.texts() == ["The lease ends in August.", "The lease ends in July."]


def test_one_file_that_was_cut_is_named_and_taken_when_it_is_whole(
    machines: tuple[Machine, Machine],
) -> None:
    desk, phone = machines
    before = {*desk.drive.iterdir()}
    desk.run("add", "The key is with Harper.")
    desk.sync()
    (new,) = {*desk.drive.iterdir()} - before
    whole = new.read_bytes()
    new.write_bytes(whole[:300])
    said = phone.run("sync", str(phone.drive), "--no-embed")
    assert "1 file has not arrived yet, or not whole" in said
    assert new.name in said
    new.with_name(f"{new.stem} (conflicted copy).sealed").write_bytes(whole)
    assert phone.sync()["added"] == 1
    new.write_bytes(whole)
    assert (phone.sync()["added"], phone.sync()["ignored"]) == (0, [])


def test_the_folder_of_the_last_time_need_not_be_named(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    desk, phone = machines
    phone.run("add", "The key is with Harper.")
    assert json.loads(phone.run("sync", "--no-embed", "--json"))["sent"] == 1
    other = tmp_path / "other"
    other.mkdir()
    phone.run("sync", str(other), "--no-embed")
    said = phone.run("sync", "--no-embed")
    assert said.startswith(f"With {other}, as the last time:\n0 memories sent;")
    assert "1 added" in desk.run("sync", "--no-embed")
    assert str(desk.drive).encode() not in desk.vault.read_bytes()
    other.rename(tmp_path / "gone")
    refused = phone.typed("sync")
    assert str(other) in refused.stderr
    assert refused.exit_code == 1


def test_a_vault_without_a_folder_and_one_put_elsewhere_ask_for_it(
    machines: tuple[Machine, Machine],
) -> None:
    desk, _ = machines
    asked = "this vault has no folder yet"
    moved = desk.vault.with_name("moved.db")
    desk.vault.rename(moved)
    desk.vault = moved
    refused = desk.typed("sync", "--no-embed")
    assert asked in refused.stderr
    assert refused.exit_code == 2
    desk.run("sync", str(desk.drive), "--no-embed")
    assert "as the last time" in desk.run("sync", "--no-embed")


def test_on_a_new_machine_the_usual_vault_is_joined_and_until_then_that_is_said(
    machines: tuple[Machine, Machine],
) -> None:
    desk, _ = machines
    home = desk.drive.parent / "new"
    home.mkdir()
    new = {**desk.environment, "HOME": str(home), "XDG_DATA_HOME": str(home / "share")}
    new |= {f"MEMORY_STORE_{one}": str(home / one) for one in ("STATE", "CONFIG", "CACHE")}
    key = ("--key-file", str(desk.key_file))
    missing = typed(new, "sync", str(desk.drive), *key)
    assert missing.exit_code == 1
    assert missing.stderr.endswith(f"memory-store sync {desk.drive} --join\n"), missing.stderr
    joined = typed(new, "sync", str(desk.drive), "--join", "--no-embed", *key)
    assert joined.exit_code == 0, joined.stderr
    assert "The lease ends in June." in typed(new, "get", "Lease", *key).stdout


def test_a_passphrase_that_needs_another_machine_asks_for_the_recovery_code(tmp_path: Path) -> None:
    drive, phrase = tmp_path / "drive", "a long spoken sentence"
    drive.mkdir()
    kept = {name: value for name, value in os.environ.items() if "MEMORY_STORE" not in name}

    def machine(name: str) -> dict[str, str]:
        (home := tmp_path / name).mkdir()
        kinds = ("STATE", "CONFIG", "CACHE", "DATA")
        folders = {f"MEMORY_STORE_{one}": str(home / one) for one in kinds}
        return kept | folders | {"HOME": str(home), "MEMORY_STORE_OFFLINE": "1", "TERM": "dumb"}

    old, new = machine("old"), machine("new")
    spoken = {"MEMORY_STORE_PASSPHRASE": phrase}
    made = json.loads(typed(old | spoken, "init", "--passphrase", "--json").stdout)
    assert typed(old | spoken, "add", "The lease ends in June.").exit_code == 0
    assert typed(old | spoken, "sync", str(drive)).exit_code == 0
    join = [sys.executable, "-m", "memory_store", "sync", str(drive), "--join", "--no-embed"]
    shown, code = session(join, new, [phrase, "nonsense", made["recovery_code"]])
    assert code == 0, shown
    assert "Join with the recovery code or a key file" in " ".join(shown.split())
    alone = typed(machine("third") | spoken, "sync", str(drive), "--join")
    assert (alone.exit_code, "keys device restore" in alone.stderr) == (3, True)


def test_what_cannot_be_synced_is_said_in_one_line(
    machines: tuple[Machine, Machine], tmp_path: Path
) -> None:
    desk, phone = machines
    (tmp_path / "plain.txt").write_text("no vault")
    for words, said in (
        ((str(tmp_path / "nowhere"),), "no such folder, and no vault"),
        ((str(tmp_path / "plain.txt"),), "neither a folder nor a vault"),
        ((str(phone.vault), "--whole"), "--whole is for a folder"),
        ((str(desk.vault),), "is this vault itself"),
        ((str(desk.drive), "--join"), "exists already"),
    ):
        refused = desk.typed("sync", *words)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert said in refused.stderr


@pytest.mark.soak
def test_both_at_the_same_time(machines: tuple[Machine, Machine]) -> None:
    desk, phone = machines
    desk.run("add", "From the desk.")
    phone.run("add", "From the phone.")
    started = [one.start("sync", str(one.drive), "--no-embed") for one in machines]
    for process in started:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    for one in machines:
        one.sync()
    desk.sync()
    assert desk.texts() == phone.texts()
    assert len(desk.texts()) == 3


@pytest.mark.soak
def test_killed_at_any_moment_it_goes_on_with_the_next(machines: tuple[Machine, Machine]) -> None:
    desk, phone = machines
    draw, killed, began = random.Random(1), 0, time.monotonic()
    desk.start("sync", str(desk.drive), "--no-embed").communicate(timeout=60)
    usual = time.monotonic() - began
    for number in range(6):
        desk.run("add", f"From the desk: {number}.")
        for one in machines:
            process = one.start("sync", str(one.drive), "--no-embed")
            time.sleep(draw.uniform(0.3, 1.1) * usual)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            killed += process.returncode == -signal.SIGKILL
    for one in (*machines, *machines):
        one.sync()
    assert killed
    assert desk.texts() == phone.texts()
    assert len(desk.texts()) == 7
    for one in machines:
        one.run("verify")
