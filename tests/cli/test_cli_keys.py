"""Which key opens a vault, and what a key file must be."""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from typing_commands import Vault, run

from memory_store import LockedError, WrongKeyError, open_store

PASSPHRASE = "correct horse battery staple"
RECOVERY_CODE = re.compile(r"^\s+([A-Z2-7]{4}-)+[A-Z2-7]{4}$")
SECRETS = {"passphrase", "keyring", "recovery", "recovery_code", "password"}


@pytest.fixture
def phrase_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A vault that a passphrase opens."""
    path = tmp_path / "phrase.db"
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    result = run("init", str(path), "--passphrase")
    assert result.exit_code == 0, result.output
    return path


def another_key(folder: Path, mode: int = 0o600) -> Path:
    """A valid key file that opens nothing."""
    file = folder / "another.key"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(base64.b64encode(os.urandom(32)) + b"\n")
    file.chmod(mode)
    return file


def test_the_environment_names_a_key_and_keeps_no_passphrase(
    vault: Vault, phrase_vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "MEMORY_STORE_PASSPHRASE" not in os.environ, "init read it"
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    assert run("list", str(vault.path)).exit_code == 0
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    assert run("list", str(phrase_vault)).exit_code == 0, "another vault's key file is passed over"
    assert "MEMORY_STORE_PASSPHRASE" not in os.environ


def test_a_wrong_key_file_option_is_final(
    phrase_vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    wrong = another_key(tmp_path / "keys")
    result = run("list", str(phrase_vault), "--key-file", str(wrong))
    assert (result.exit_code, result.stdout) == (3, "")
    assert str(wrong) in result.stderr
    assert phrase_vault.name in result.stderr


def test_a_wrong_passphrase_exits_with_three_and_is_not_repeated(
    phrase_vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "wrong but secret")
    result = run("list", str(phrase_vault))
    assert result.exit_code == 3
    assert result.stderr.startswith("Error: ")
    assert "wrong but secret" not in result.output


def test_no_key_at_all_exits_with_three_and_says_what_to_give(vault: Vault) -> None:
    result = run("list", str(vault.path))
    assert result.exit_code == 3
    assert "--key-file" in result.stderr
    with pytest.raises(LockedError):
        open_store(vault.path)


def test_the_prompt_takes_the_passphrase_or_the_recovery_code(
    vault: Vault, phrase_vault: Path
) -> None:
    for path, answer in ((phrase_vault, PASSPHRASE), (vault.path, vault.recovery_code.lower())):
        with open_store(path, ask_passphrase=lambda answer=answer: answer) as store:
            assert not store.locked
        with pytest.raises(WrongKeyError):
            open_store(path, ask_passphrase=lambda: "no idea")


def test_an_existing_key_file_may_open_a_second_vault(vault: Vault, tmp_path: Path) -> None:
    before = vault.key_file.read_bytes()
    second = tmp_path / "second.db"
    assert run("init", str(second), "--key-file", str(vault.key_file)).exit_code == 0
    assert vault.key_file.read_bytes() == before
    assert run("list", str(second), "--key-file", str(vault.key_file)).exit_code == 0


def test_a_key_file_beside_the_database_is_refused(tmp_path: Path) -> None:
    result = run("init", str(tmp_path / "notes.db"), "--key-file", str(tmp_path / "notes.key"))
    assert result.exit_code == 2
    assert "notes.key" in result.stderr
    assert not (tmp_path / "notes.key").exists()
    assert not (tmp_path / "notes.db").exists()


def test_a_key_file_linked_from_elsewhere_into_the_folder_is_refused(
    vault: Vault, tmp_path: Path
) -> None:
    beside = tmp_path / "beside.key"
    beside.write_bytes(vault.key_file.read_bytes())
    beside.chmod(0o600)
    link = tmp_path / "keys" / "link.key"
    link.symlink_to(beside)
    assert run("list", str(vault.path), "--key-file", str(link)).exit_code == 2


def test_a_key_file_that_is_lost_leads_to_the_recovery_code(vault: Vault) -> None:
    vault.key_file.unlink()
    result = run("list", str(vault.path), "--key-file", str(vault.key_file))
    assert result.exit_code == 2
    assert "No such file or directory. If yours is lost, leave it out" in result.stderr


def test_a_key_file_others_can_read_is_refused_with_the_remedy(vault: Vault) -> None:
    vault.key_file.chmod(0o644)
    result = run("list", str(vault.path), "--key-file", str(vault.key_file))
    assert result.exit_code == 2
    assert "chmod 600" in result.stderr


@pytest.mark.parametrize(
    "content", [None, b"", b"\x00" * 32, b"c2hvcnQ=\n", b"not base64!\n", b"A" * 100_000]
)
def test_a_file_that_holds_no_key_is_named(vault: Vault, content: bytes | None) -> None:
    assert stat.S_IMODE(vault.key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(vault.key_file.parent.stat().st_mode) == 0o700
    file = vault.key_file.with_name("odd.key")
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)
    result = run("list", str(vault.path), "--key-file", str(file))
    assert (result.exit_code, "odd.key" in result.stderr) == (2, True)


def test_a_key_file_that_is_a_pipe_does_not_hang(vault: Vault) -> None:
    pipe = vault.key_file.with_name("pipe.key")
    os.mkfifo(pipe, 0o600)
    assert run("list", str(vault.path), "--key-file", str(pipe)).exit_code == 2


@pytest.mark.parametrize("content", [None, b"", b"just text", b"SQLite format 3\0" + b"\0" * 84])
def test_what_is_no_vault_is_said_before_a_key_is_asked_for(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "odd.db"
    if content is not None:
        path.write_bytes(content)
    result = run("list", str(path))
    assert result.exit_code == 1
    assert "odd.db" in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_option_of_any_command_takes_a_secret_as_its_value() -> None:
    import click

    from memory_store.cli import COMMANDS, main

    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        for one in (command, *getattr(command, "commands", {}).values()):
            for parameter in one.params:
                if parameter.name in SECRETS:
                    assert isinstance(parameter, click.Option)
                    assert parameter.is_flag


def test_a_key_is_added_listed_and_removed_in_the_terminal(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    monkeypatch.setenv("MEMORY_STORE_NEW_PASSPHRASE", PASSPHRASE)
    added = run("keys", "add", str(vault.path), "--passphrase")
    assert added.exit_code == 0, added.output
    assert "MEMORY_STORE_NEW_PASSPHRASE" not in os.environ
    listed = run("keys", "list", str(vault.path)).stdout
    assert PASSPHRASE not in added.output + listed
    (slot,) = (line.split()[0] for line in listed.splitlines() if "passphrase" in line)
    assert any("key file" in line and "now" in line for line in listed.splitlines())
    removed = run("keys", "remove", str(vault.path), slot)
    assert removed.stdout.startswith(f"Removed {slot}")
    assert "passphrase" not in run("keys", "list", str(vault.path)).stdout


def test_a_new_recovery_code_is_said_once(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    reported = json.loads(run("keys", "add", str(vault.path), "--recovery", "--json").stdout)
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    with open_store(vault.path, ask_passphrase=lambda: reported["recovery_code"]) as store:
        assert len(store.list()) == 5
    old = next(
        s for s in vault_keys(vault) if s["kind"] == "recovery" and s["id"] != reported["id"]
    )
    gone = run("keys", "remove", str(vault.path), old["id"], "--key-file", str(vault.key_file))
    assert gone.exit_code == 0, gone.output
    with pytest.raises(WrongKeyError):
        open_store(vault.path, ask_passphrase=lambda: vault.recovery_code)
    assert reported["recovery_code"] not in json.dumps(vault_keys(vault))


def test_keys_are_replaced_in_the_terminal_and_the_search_finds_as_before(vault: Vault) -> None:
    before = vault.json("search", "lease", "--mode", "keyword")["rows"]
    opening = ("--key-file", str(vault.key_file))
    done = run("keys", "rotate", str(vault.path), *opening)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == "Sealed personal under a new key (number 1)"
    root = run("keys", "rotate", str(vault.path), "--root", "--json", *opening)
    reported = json.loads(root.stdout)
    assert [slot["kind"] for slot in reported["removed"]] == ["recovery"]
    assert vault.json("search", "lease", "--mode", "keyword")["rows"] == before
    with open_store(vault.path, ask_passphrase=lambda: reported["recovery_code"]) as store:
        assert store.verify()["failures"] == []


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_new_recovery_code_is_said_also_where_other_keys_cannot_be_replaced(
    vault: Vault, form: tuple[str, ...]
) -> None:
    with closing(sqlite3.connect(vault.path)) as connection, connection:
        connection.execute("update memories set head = zeroblob(length(head)) where rowid = 1")
    opening = ("--key-file", str(vault.key_file))
    failed = run("keys", "rotate", str(vault.path), "--root", *form, *opening)
    assert failed.exit_code != 0
    (code,) = [line.strip() for line in failed.output.splitlines() if RECOVERY_CODE.search(line)]
    with open_store(vault.path, ask_passphrase=lambda: code) as store:
        assert store.keys.unfinished() != []


def test_a_collection_is_shared_and_taken_back_in_the_terminal(
    vault: Vault, tmp_path: Path
) -> None:
    opening = ("--key-file", str(vault.key_file))
    alice = tmp_path / "keys" / "alice.key"
    hers, file = ("--key-file", str(alice)), tmp_path / "alice.json"
    reported = run("keys", "introduce", str(vault.path), str(file), "--name", "Alice", *hers)
    assert reported.exit_code == 0, reported.output
    fingerprint, owner = (
        line.partition(":")[2].strip() for line in reported.stdout.splitlines()[-2:]
    )
    assert run("keys", "identity", str(vault.path), *opening).stdout.strip() == owner
    share = ("keys", "share", str(vault.path), "personal", "--with", str(file), *opening)
    for words in ((), ("--fingerprint", owner)):
        refused = run(*share, *words)
        assert refused.exit_code == 2
        assert "--fingerprint" in refused.stderr
    for said in (f"you gave '{owner}'", f"introduction has '{fingerprint}'", "Ask Alice by voice"):
        assert said in refused.stderr
    early = run("list", str(vault.path), *hers)
    assert early.exit_code == 3
    assert "wrong key file" in early.stderr
    assert "only while something in it is shared with you" in early.stderr
    assert run(*share, "--fingerprint", fingerprint).exit_code == 0
    assert len(json.loads(run("list", str(vault.path), "--json", *hers).stdout)) == 5
    listed = run("keys", "holders", str(vault.path), *opening).stdout
    assert listed == f"Alice  ({fingerprint})  personal\n"
    revoked = run("keys", "revoke", str(vault.path), "Alice", *opening)
    assert revoked.stdout == "personal is shared with Alice no longer\n"
    assert run("list", str(vault.path), *hers).exit_code == 3
    assert "nobody" in run("keys", "revoke", str(vault.path), "nobody", *opening).stderr


def test_a_collection_is_deleted_in_the_terminal_once_that_is_sure(vault: Vault) -> None:
    opening = ("--key-file", str(vault.key_file))
    vault.json("collections", "create", "affairs")
    run("add", str(vault.path), "A secret.", "--collection", "affairs", *opening)
    asked = run("collections", str(vault.path), "delete", "affairs", *opening)
    assert (asked.exit_code, "--yes" in asked.stderr) == (2, True)
    unknown = run("collections", str(vault.path), "delete", "nothing", *opening)
    assert unknown.exit_code != 0
    assert "no collection 'nothing'" in unknown.stderr
    done = vault.json("collections", "delete", "affairs", "--yes")
    assert [one["name"] for one in done] == ["personal"]
    assert vault.json("search", "secret", "--mode", "keyword")["rows"] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add",), "say which key to add"),
        (("add", "--recovery", "--passphrase"), "say which key to add"),
        (("remove", "ffffffff"), "no key slot 'ffffffff'"),
        (("rotate", "nowhere"), "no collection 'nowhere'"),
        (("rotate", "personal", "--root"), "name no collection"),
    ],
)
def test_what_cannot_be_done_with_keys_is_said(
    vault: Vault, words: tuple[str, ...], says: str
) -> None:
    command, *more = words
    opening = ("--key-file", str(vault.key_file))
    result = run("keys", command, str(vault.path), *more, *opening)
    assert result.exit_code in (1, 2)
    assert says in result.stderr
    assert len(vault_keys(vault)) == 2


def vault_keys(vault: Vault) -> list[dict[str, str]]:
    """What ``keys list`` says."""
    result = run("keys", "list", str(vault.path), "--key-file", str(vault.key_file), "--json")
    listed: list[dict[str, str]] = json.loads(result.stdout)
    return listed
