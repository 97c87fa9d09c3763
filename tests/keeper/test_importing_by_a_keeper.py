"""Imports that a keeper does, beside other commands, for a command that shows how far they are."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import GeneratorType
from typing import Any

import pytest
from keeping_open import KeptOpen, Printed, by_itself, by_keeper, start, until

from memory_store.keeper import client
from memory_store.keeper.client import KEY_FILE_VARIABLE
from memory_store.keeper.frames import BrokenError
from memory_store.store import MemoryStore

IDS = re.compile(rb'"[0-9a-f]{8}-[0-9a-f-]{27}"|[a-z]+[.]db')


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to import, which is where the commands are called."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nThe weir is mended.\n")
    (folder / "broken.md").write_text("---\n:bad: [\n---\nThe mill")
    (folder / "picture.bin").write_bytes(b"\xff\xfe\x00")
    monkeypatch.chdir(folder)
    return folder


def test_a_keeper_imports_as_the_command_does(
    kept: KeptOpen,
    notes: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = kept.path.with_name("same.db")
    store, _ = MemoryStore.create(path, key_file=kept.key_file)
    store.lock()
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")  # so only the keeper can open the other one

    def printed(name: Path, *words: str) -> Printed:
        code, out, err = by_itself(capfdbinary, "import", str(name), *words)
        return code, IDS.sub(b"", out), IDS.sub(b"", err)

    for words in (
        ["../notes", "--json"],
        ["0.md", "broken.md", "picture.bin"],
        [".", "--verbose", "--dry-run"],
        ["gone.md"],
        ["--type", "bogus", "0.md"],
        ["--bogus"],
        [],
    ):
        asked = printed(kept.path, *words)
        with monkeypatch.context() as here:
            here.setenv("MEMORY_STORE_KEEPER", "off")
            here.setenv("MEMORY_STORE_KEY_FILE", str(kept.key_file))
            assert asked == printed(path, *words), words
    found = by_keeper(capfdbinary, "search", str(kept.path), "weir", "--mode", "keyword")
    assert found[1].count(b"Note") == 3


def test_a_keeper_follows_folders_while_it_answers_until_its_caller_goes(
    kept: KeptOpen, notes: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = str(kept.path)
    steps = client.followed(["watch", name, "."])
    assert isinstance(steps, GeneratorType)
    imported = 0

    def report() -> Any:
        return next(said for step, said in steps if step == "report")[0]

    while imported < 4:  # what was written just now is read when it has settled
        said = report()
        imported += said["imported"] + said["unchanged"]
    assert by_keeper(capfdbinary, "search", name, "weir")[0] == 0
    (notes / "new.md").write_text("The dam is closed.")
    assert report()["imported"] == 1
    assert b"new" in by_keeper(capfdbinary, "search", name, "dam", "--mode", "keyword")[1]
    steps.close()
    until(lambda: (kept.status() or {})["idle"] != 0.0)


def test_what_an_import_leaves_in_words_is_embedded_at_once(
    kept: KeptOpen, notes: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = str(kept.path)
    (notes / "late.md").write_text("The sluice was opened by hand.")
    steps = client.followed(["import", name, "late.md", "--no-embed"])
    assert isinstance(steps, GeneratorType)
    (report,) = [said for step, said in steps if step == "report"]
    assert report[0]["imported"] == 1

    def lacking() -> bool:
        found = json.loads(by_keeper(capfdbinary, "search", name, "sluice", "--json")[1])
        return any("meaning" in line for line in found["degraded"])

    until(lambda: not lacking())


def test_who_stops_looking_on_is_told_that_the_keeper_goes_on_and_it_does(
    kept: KeptOpen, notes: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Takes over a second: a process is started, and a few hundred notes are embedded."""
    many, lines = notes / "many", []
    many.mkdir()
    for number in range(300):
        (many / f"{number}.md").write_text(f"The dyke {number} is grazed by sheep. " * 60)
    command = [sys.executable, "-m", "memory_store", "import", str(kept.path), str(many)]
    passed = {name: value for name, value in os.environ.items() if name != KEY_FILE_VARIABLE}
    with subprocess.Popen(command, env=passed, stderr=subprocess.PIPE, text=True) as importing:
        assert importing.stderr is not None
        for line in importing.stderr:
            lines.append(line)
            if "by words and topics now" in line:  # once: what it says at last is alike
                importing.send_signal(signal.SIGINT)
    assert importing.returncode == 130, lines
    said = "".join(lines)
    assert said.count("the process that keeps the vault open goes on") == 2, said
    assert "reindex" not in said

    def embedded() -> bool:
        capfdbinary.readouterr()
        code, out, _ = by_keeper(capfdbinary, "search", str(kept.path), "dyke", "--json")
        found = {} if code is None else json.loads(out)  # where the machine is too busy
        assert code is None or found["totals"]["total"] >= 300
        return bool(found) and "not-embedded" not in found["degraded_codes"]

    until(embedded, 120)


def test_what_is_piped_in_is_imported_beside_other_commands(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    records = [{"id": f"pipe-{n}", "text": f"The siphon {n} is primed."} for n in range(2_000)]
    given = "\n".join(map(json.dumps, records)).encode()
    words = ["import", str(kept.path), "-", "--no-embed", "--json"]
    passed = {name: value for name, value in os.environ.items() if name != KEY_FILE_VARIABLE}
    command = [sys.executable, "-m", "memory_store", *words]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    asked = 0
    with subprocess.Popen(command, env=passed, **pipes) as importing:
        thread = threading.Thread(target=importing.stdin.write, args=(given,))
        thread.start()
        thread.join()
        importing.stdin.close()
        while importing.poll() is None:
            assert by_keeper(capfdbinary, "search", str(kept.path), "lease")[0] == 0
            asked += 1
        report = json.loads(importing.stdout.read())
    assert (importing.returncode, report["imported"]) == (0, 2_000)
    assert asked > 3
    found = by_keeper(capfdbinary, "search", str(kept.path), "siphon 1234", "--mode", "keyword")
    assert b"The siphon 1234 is primed" in found[1]


def test_a_lock_ends_what_a_keeper_follows(vault: KeptOpen, tmp_path: Path, notes: Path) -> None:
    store, _ = MemoryStore.create(tmp_path / "other.db", key_file=vault.key_file)
    store.lock()
    other = start(tmp_path / "other.db", vault.key_file)
    steps = client.followed(["watch", str(other.path), "."])
    assert isinstance(steps, GeneratorType)
    next(steps)
    other.lock()
    with pytest.raises(BrokenError):
        list(steps)


def test_a_passphrase_in_the_environment_opens_the_vault_beside_the_keeper_and_nothing_is_doubled(
    vault: KeptOpen, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A key that a caller has is used and not sent; so two processes follow one folder here."""
    folder = tmp_path / "followed"
    folder.mkdir()
    path, key_file = tmp_path / "spoken.db", vault.key_file.with_name("spoken.key")
    store, _ = MemoryStore.create(path, key_file=key_file)
    with store:
        store.keys.add(passphrase="a long spoken sentence", device_key=False)
    kept = start(path, key_file)
    spoken = os.environ | {"MEMORY_STORE_PASSPHRASE": "a long spoken sentence"}
    command = [sys.executable, "-m", "memory_store", "watch", str(path), str(folder), "--json"]
    beside = subprocess.Popen(command, env=spoken, stdout=subprocess.PIPE)
    steps = client.followed(["watch", str(path), str(folder)])
    assert isinstance(steps, GeneratorType)

    def listen() -> None:
        with suppress(BrokenError):  # it is locked in the end
            list(steps)

    heard = threading.Thread(target=listen, daemon=True)
    heard.start()
    assert beside.stdout is not None
    assert beside.stdout.readline(), "it looked through the folder"
    for number in range(60):
        (folder / f"{number}.md").write_text(f"The weir has the gate {number}.")
        if number % 3 == 1:
            (folder / f"{number - 1}.md").rename(folder / f"moved {number}.md")
        if number % 3 == 2:
            (folder / f"{number}.md").unlink()

    def listed() -> list[str]:
        code, out, _ = by_keeper(capfdbinary, "list", str(path), "--json", "-n", "200")
        assert code == 0
        return sorted(row["ref"] for row in json.loads(out))

    until(lambda: listed() == sorted(one.name for one in folder.iterdir()), 60)
    beside.send_signal(signal.SIGINT)
    beside.stdout.close()
    assert beside.wait(20) == 0
    kept.lock()
    heard.join(20)
    with MemoryStore.open(path, key_file=key_file) as store:
        assert sorted(str(one.ref) for one in store.every()) == sorted(os.listdir(folder))
        assert store.verify()["failures"] == []
