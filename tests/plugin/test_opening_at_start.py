"""Opening at start: which key opens a vault when Datasette starts, and what stops the start."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import StartupError

from memory_store.store import MemoryStore

from .conftest import PASSPHRASE, Filled, Serve, Served, plain_datasette
from .test_unlocking import unlocked


async def test_a_key_file_in_the_environment_opens_what_it_fits(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    MemoryStore.create(tmp_path / "vaults" / "other.db", passphrase=PASSPHRASE)[0].close()
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(filled.key_file))
    served = await serve(filled.path, tmp_path / "vaults" / "other.db")
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200
    assert (await served.get(".json?q=tomatoes")).status_code == 403
    other = Served(served.datasette, "other").by("root")
    assert (await other.get(".json?q=tomatoes")).status_code == 423


async def test_a_passphrase_in_the_environment_opens_what_it_fits(
    filled: Filled,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    served = await serve(filled.path)
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200
    assert "notes: open, by MEMORY_STORE_PASSPHRASE" in capsys.readouterr().err


@pytest.mark.in_a_file
async def test_the_keyring_of_the_system_opens_a_vault(
    model: Path, tmp_path: Path, serve: Serve, os_keyring: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "vaults").mkdir()
    made, _ = MemoryStore.create(tmp_path / "vaults" / "notes.db", keyring=True)
    made.close()
    served = await serve(made.path, options={"notes": {"keyring": True}})
    assert (await served.by("root").get(".json?q=x")).status_code == 200
    assert "notes: open, by the key in the OS keyring" in capsys.readouterr().err


async def test_a_missing_keyring_package_is_said_with_what_mends_it(
    filled: Filled,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("memory_store.session.credentials.find_spec", lambda name: None)
    served = await serve(filled.path, options={"notes": {"keyring": True}})
    reported = capsys.readouterr().err
    assert "notes: locked" in reported
    assert "pip install 'datasette-hybrid[keyring]'" in reported
    assert (await served.by("root").get(".json?q=x")).status_code == 423


async def test_the_first_configured_key_that_fits_opens(
    filled: Filled,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NOTES_SECRET", PASSPHRASE)
    settings = {"key-file": "/nowhere/none.key", "passphrase": {"$env": "NOTES_SECRET"}}
    served = await serve(filled.path, options={"notes": settings})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200
    reported = capsys.readouterr().err
    assert "notes: open, by the configured passphrase" in reported
    assert PASSPHRASE not in reported


async def test_a_locked_vault_is_named_at_start(
    filled: Filled, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    await serve(filled.path)
    assert capsys.readouterr().err.count("notes: locked: no key") == 1


async def test_a_passphrase_may_come_from_a_variable(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_SECRET", PASSPHRASE)
    served = await serve(filled.path, options={"notes": {"passphrase": {"$env": "NOTES_SECRET"}}})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200


async def test_a_missing_or_wrong_configured_key_leaves_the_vault_locked_and_says_why(
    filled: Filled, serve: Serve, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = await serve(filled.path, options={"notes": {"key-file": str(tmp_path / "none.key")}})
    assert "none.key" in capsys.readouterr().err
    assert (await served.by("root").get("?q=x")).status_code == 423
    assert "none.key" in (await served.by("root").get("?q=x")).text
    assert "none.key" not in (await served.get("?q=x")).text
    assert (await (await unlocked(served)).get("?q=tomatoes")).status_code == 200


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"passphrase": "four small grey herons"}, "passphrase"),
        ({"passphrase": 20240101}, "passphrase"),
        ({"passphrase": ["four small grey herons"]}, "passphrase"),
        ({"passphrase": {"value": "four small grey herons"}}, "passphrase"),
        ({"passphrase": {"$env": ["four small grey herons"]}}, "passphrase"),
        ({"passphrase": {"$env": "NOTES", "value": "four small grey herons"}}, "passphrase"),
        ({"passphrase": {}}, "passphrase"),
        ({"passphrase": ""}, "passphrase"),
        ({"four small grey herons": None}, "option"),
        ({"password": 20240101}, "password"),
        ({"key-file": {"value": "four small grey herons"}}, "key-file"),
        ({"key-file": 20240101}, "key-file"),
        ({"recovery-code": "ABCD-EFGH"}, "recovery-code"),
        ({"key": "c2VjcmV0"}, "key"),
        ({"key-file": "q" * 43 + "="}, "key-file"),
        ({"keyfile": "/x"}, "keyfile"),
        ({"idle-minutes": "soon"}, "idle-minutes"),
        ({"idle-minutes": float("nan")}, "idle-minutes"),
        ({"absolute-hours": -1}, "absolute-hours"),
        ({"absolute-hours": True}, "absolute-hours"),
        ({"keyring": "yes"}, "keyring"),
        ({"audit": {"dayz": 3}}, "audit"),
        ({"audit": {"days": "three"}}, "days"),
        ({"audit": {"events": 0}}, "events"),
        ({"audit": 400}, "audit"),
        ({"table-function": "sometimes"}, "table-function"),
        ({"allow": {"hybrid-serch": True}}, "allow"),
    ],
)
async def test_a_bad_or_secret_configuration_stops_the_start(
    filled: Filled, model: Path, options: dict[str, Any], culprit: str
) -> None:
    configured = {"plugins": {"datasette-hybrid": {"databases": {"notes": options}}}}
    with pytest.raises(StartupError) as refusal:
        await plain_datasette((filled.path,), configured).invoke_startup()
    assert culprit in str(refusal.value)
    assert "notes" in str(refusal.value)
    shown = with_locals(refusal.value)
    assert not [secret for secret in ("herons", "20240101", "q" * 43) if secret in shown]


def test_it_is_said_on_the_terminal_without_a_traceback(filled: Filled, tmp_path: Path) -> None:
    config = tmp_path / "metadata.json"
    options = {"notes": {"keyfile": "/x"}}
    config.write_text(json.dumps({"plugins": {"datasette-hybrid": {"databases": options}}}))
    words = [sys.executable, "-m", "datasette", filled.path, "-m", config, "--get", "/"]
    refused = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    assert refused.returncode == 1
    assert "Error: datasette-hybrid: databases: notes: keyfile: no such option" in refused.stderr
    assert "Traceback" not in refused.stderr


def with_locals(error: BaseException) -> str:
    """The traceback below the test itself, with the local variables of every frame."""
    below = error.__traceback__.tb_next if error.__traceback__ else None
    reported = traceback.TracebackException(type(error), error, below, capture_locals=True)
    assert reported.stack
    return "".join(reported.format(chain=True))


@pytest.mark.parametrize("word", ["auto", "off", False])
async def test_the_reserved_option_is_taken_by_its_words(
    filled: Filled, serve: Serve, word: Any
) -> None:
    settings = {"key-file": {"$file": str(filled.path.with_name("path.txt"))}}
    filled.path.with_name("path.txt").write_text(f"{filled.key_file}\n")
    served = await serve(filled.path, options={"notes": {**settings, "table-function": word}})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200


async def test_a_file_that_is_no_text_leaves_the_vault_locked(
    filled: Filled, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = filled.path.with_name("secret.bin")
    secret.write_bytes(b"herons\xff\xfe")
    served = await serve(filled.path, options={"notes": {"passphrase": {"$file": str(secret)}}})
    assert (await served.by("root").get(".json?q=x")).status_code == 423
    assert "passphrase" in capsys.readouterr().err
