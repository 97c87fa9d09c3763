"""What a keeper does not do: then the command opens the vault itself. Nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_itself, by_keeper

from memory_store.cli import COMMANDS
from memory_store.keeper import client
from memory_store.keeper.frames import ASKED, EXIT, MOST_ANSWERED, YOURSELF, receive, send
from memory_store.store import MemoryStore

OF_KEYS = ("unlock", "lock", "init", "keys", "settings", "serve", "doctor", "verify", "backup")


@pytest.mark.parametrize("name", OF_KEYS)
def test_commands_that_are_not_listed_are_not_sent(
    kept: KeptOpen, name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert name in COMMANDS
    assert by_keeper(capfdbinary, name, str(kept.path))[0] is None


def test_one_that_needs_the_key_says_that_what_is_kept_open_is_for_others(
    kept: KeptOpen,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE", raising=False)
    code, _, said = by_itself(capfdbinary, "verify", str(kept.path))
    assert (code, b"for everyday commands: this one needs the key" in said) == (3, True), said
    store, _ = MemoryStore.create(tmp_path / "other.db", key_file=kept.key_file)
    store.lock()
    code, _, said = by_itself(capfdbinary, "verify", str(tmp_path / "other.db"))
    assert (code, b"for everyday commands" in said) == (3, False), said


@pytest.mark.parametrize(
    "name",
    sorted({*COMMANDS} - {*client.READS, *client.WRITES, *client.FINDS, *client.FOLLOWS}),
)
def test_a_keeper_refuses_them_when_they_are_sent_all_the_same(kept: KeptOpen, name: str) -> None:
    assert _sent(kept, name, str(kept.path)) == (YOURSELF, b"command")


def test_nobody_is_let_in_by_a_keeper(kept: KeptOpen) -> None:
    words = ("collections", str(kept.path), "members", "personal", "--add", "mallory=admin")
    assert _sent(kept, *words)[0] == YOURSELF
    with MemoryStore.open(kept.path, key_file=kept.key_file) as store:
        assert not store.collections.members("personal")


def test_no_token_is_made_by_a_keeper(kept: KeptOpen) -> None:
    assert _sent(kept, "searches", "save", str(kept.path), "todo", "tomatoes")[0] == EXIT
    assert _sent(kept, "searches", "feed", str(kept.path), "todo") == (YOURSELF, b"a feed")
    with MemoryStore.open(kept.path, key_file=kept.key_file) as store:
        assert [one.feed for one in store.searches.list()] == [""]


def test_another_vault_is_another_keepers(kept: KeptOpen, tmp_path: Path) -> None:
    store, _ = MemoryStore.create(tmp_path / "other.db", key_file=kept.key_file)
    store.lock()
    assert _sent(kept, "list", str(tmp_path / "other.db")) == (YOURSELF, b"vault")


def test_a_key_that_the_caller_names_is_used(
    kept: KeptOpen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.key"
    assert _sent(kept, "list", str(kept.path), "--key-file", str(other)) == (YOURSELF, b"vault")
    assert _sent(kept, "list", str(kept.path), "--passphrase") == (YOURSELF, b"vault")
    assert _sent(kept, "list", str(kept.path), "--key-file", str(kept.key_file))[0] != YOURSELF
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(other))
    assert _sent(kept, "list", str(kept.path)) == (YOURSELF, b"key")
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "correct horse")
    assert client.connected() is None


def test_a_passphrase_to_be_is_not_sent(kept: KeptOpen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_STORE_NEW_PASSPHRASE", "an unusual tune for five herons")
    assert "herons" not in str(client.facts(["list"]))
    assert _sent(kept, "list", str(kept.path))[0] == EXIT


@pytest.mark.parametrize("variable", ["MEMORY_STORE_MODEL", "MEMORY_STORE_RERANKER", "TZ"])
def test_other_variables_would_give_other_answers(
    kept: KeptOpen, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "other")
    assert _sent(kept, "list", str(kept.path)) == (YOURSELF, b"variables")


def test_it_can_be_switched_off(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert by_keeper(capfdbinary, "--no-keeper", "list", str(kept.path))[0] is None
    monkeypatch.setenv("MEMORY_STORE_KEEPER", "off")
    assert by_keeper(capfdbinary, "list", str(kept.path))[0] is None


def test_other_code_is_not_asked_and_that_is_said_once(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = client.facts
    monkeypatch.setattr(client, "facts", lambda words: {**usual(words), "package": "/elsewhere"})
    code, out, err = by_keeper(capfdbinary, "list", str(kept.path))
    assert (code, out) == (None, b"")
    assert b"another version" in err
    assert b"memory-store unlock" in err


def _sent(kept: KeptOpen, *words: str) -> tuple[bytes, bytes]:
    """The answer to a command that is sent without looking whether it may be; the last frame."""
    asked = {**client.facts(words), "kind": "command", "terminal": client.terminal()}
    with kept.connect() as connection:
        send(connection, ASKED, json.dumps(asked).encode())
        answer = receive(connection, MOST_ANSWERED, seconds=20)
        while answer[0] not in (YOURSELF, b"X"):
            answer = receive(connection, MOST_ANSWERED, seconds=20)
        return answer
