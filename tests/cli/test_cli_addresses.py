"""An address of a database shows its password nowhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typing_commands import run

from memory_store import MemoryStore
from memory_store.errors import MemoryStoreError

SECRET = "kestrel-9021"
WITH_PASSWORD = (
    f"postgresql://ann:{SECRET}@db.invalid/notes",
    f"postgres://:{SECRET}@db.invalid:5432/notes",
    f"postgresql://ann:{SECRET}@{SECRET}@db.invalid/notes",
    f"postgresql://ann:a b{SECRET}@db.invalid/notes",
    f"postgresql://db.invalid/notes?user=ann&password={SECRET}",
)
COMMANDS = ("search {} lease", "get {} 00", "init {} --keyring", "list {}", "import {} .", "add {}")


@pytest.mark.parametrize("address", WITH_PASSWORD)
def test_a_password_in_an_argument_is_refused_and_not_quoted(
    address: str, private_folders: Path
) -> None:
    for command in COMMANDS:
        words = [address if word == "{}" else word for word in command.split()]
        answer = run(*words)
        assert answer.exit_code == 2
        assert "PGPASSWORD" in answer.output
        assert SECRET not in answer.output
    kept = [file for file in private_folders.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in kept)


@pytest.mark.parametrize("address", WITH_PASSWORD[:3])
def test_no_error_quotes_the_password_of_an_address(
    address: str, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MemoryStoreError) as refused:
        MemoryStore.open(address, passphrase="a heron at the weir")
    assert SECRET not in repr(refused.value) + str(refused.value)
    assert SECRET not in repr(refused.value.__cause__) + repr(refused.value.__context__)
    monkeypatch.setenv("MEMORY_STORE_DB", address)
    for words in (["list"], ["search", "lease"], ["doctor", "--json"]):
        answer = run(*words)
        assert SECRET not in answer.output, answer.output


def test_without_its_extra_the_message_names_it(
    private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if ".storage.postgres" in one]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    answer = run("list", "postgresql://ann@db.invalid/notes")
    assert (answer.exit_code, "datasette-hybrid[postgres]" in answer.output) == (1, True)


def test_an_address_among_other_words_stays_what_it_is(
    key_file: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    assert run("init", "--key-file", str(key_file)).exit_code == 0
    text = "the address is postgresql://ann@db.invalid/notes"
    assert run("add", text).exit_code == 0
    assert text in json.loads(run("list", "--json").output)[0]["text"]
