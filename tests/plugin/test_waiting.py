"""A request that waits (for a disk, a keyring, a batch) waits alone: other pages are answered."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid.configuration import DatabaseSettings
from datasette_hybrid.vaults.registry import vaults_of
from datasette_hybrid.vaults.vault import Vault
from memory_store.errors import LockedError
from memory_store.scopes import EVERYTHING
from memory_store.session.whole_vault import LOCK_PATIENCE
from memory_store.sqlite import BUSY_SECONDS
from memory_store.store import MemoryStore

from .conftest import Filled, Serve, Served
from .test_unlocking import Clock, clock

__all__ = ["clock"]

LONG = 60.0  # seconds: until something is wrong
SEARCH = ".json?q=tomatoes"


def seconds(call: Callable[[], Any]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


async def elsewhere(served: Served) -> int:
    """The status of a page that has nothing to do with any vault."""
    answer = served.datasette.client.get("/-/versions.json")
    return int((await asyncio.wait_for(answer, LONG)).status_code)


async def test_a_database_that_another_program_has_locked_is_not_waited_for(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.db"
    writer = sqlite3.connect(plain, isolation_level=None)
    writer.execute("create table articles (title text)")
    served = await serve(filled.path, plain)
    writer.execute("insert into articles values ('changed since')")
    writer.execute("begin exclusive")
    vaults = vaults_of(served.datasette)
    assert seconds(vaults.all) < BUSY_SECONDS / 2
    assert [vault.database for vault in vaults.all()] == ["notes"]
    writer.close()


KEEPING = """
import sqlite3, sys
kept = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in ("pragma locking_mode = exclusive", "begin exclusive", "create table more (a)"):
    kept.execute(statement)
print("kept", flush=True)
sys.stdin.read()
kept.rollback()
"""


def test_a_vault_that_another_program_keeps_to_itself_is_not_waited_for_nor_forgotten(
    filled: Filled, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = DatabaseSettings("notes", key_file=str(filled.key_file))
    vault = Vault("notes", filled.path, settings)
    vault.open_configured()
    assert vault.membership()
    clock.forward(minutes=20)
    assert not vault.locked
    assert vault.membership(), "known while its keys rest"
    assert not vault.is_open
    words = [sys.executable, "-c", KEEPING, filled.path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"kept\n"
        filled.path.touch()  # as a write to it does at some time
        assert seconds(vault.follow_file) < BUSY_SECONDS / 2
        assert seconds(vault.membership) < BUSY_SECONDS / 2
        assert vault.membership() is None, "members could not be read"
        assert not vault.strict, "it is the same file"
        other.communicate(b"")
    assert vault.membership()
    assert vault.use(EVERYTHING).search("tomatoes").rows
    assert "exchanged" not in capsys.readouterr().err
    vault.lock()


@pytest.mark.in_a_file
async def test_while_a_keyring_asks_its_owner_other_pages_come_and_the_vault_can_be_locked(
    model: Path, tmp_path: Path, serve: Serve, os_keyring: dict[tuple[str, str], str], clock: Clock
) -> None:
    keyring = pytest.importorskip("keyring", reason="the keyring extra is not installed")
    (tmp_path / "vaults").mkdir()
    made, _ = MemoryStore.create(tmp_path / "vaults" / "notes.db", keyring=True)
    made.close()
    served = await serve(made.path, options={"notes": {"keyring": True}})
    vault = served.vault
    assert (await served.by("root").get(SEARCH)).status_code == 200
    asked, answered, usual = threading.Event(), threading.Event(), keyring.get_keyring()

    class Asking(keyring.backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            asked.set()
            answered.wait(LONG)
            return usual.get_password(service, username)  # type: ignore[no-any-return]

        def set_password(self, service: str, username: str, password: str) -> None:
            usual.set_password(service, username, password)

    keyring.set_keyring(Asking())
    clock.forward(minutes=20)
    assert await elsewhere(served) == 200
    assert not vault.is_open
    search = asyncio.ensure_future(served.by("root").get(SEARCH))
    assert await asyncio.to_thread(asked.wait, LONG)
    assert await elsewhere(served) == 200
    vault.lock()
    answered.set()
    assert (await search).status_code == 423, "what was locked meanwhile stays locked"
    assert not vault.is_open


async def test_a_lock_that_waits_for_a_batch_holds_up_no_other_page(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    served = await serve(filled.path, options=filled.options())
    vault = served.vault
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "note.md").write_text("Peas climb whatever stands beside them.")
    begun, go_on = threading.Event(), threading.Event()

    def embedded(done: int, of: int) -> None:
        begun.set()
        go_on.wait(LONG)

    def import_more() -> None:
        with pytest.raises(LockedError):
            vault.use(EVERYTHING).import_paths([tmp_path / "more"], embedded=embedded)

    importing = asyncio.ensure_future(asyncio.to_thread(import_more))
    assert await asyncio.to_thread(begun.wait, LONG)
    locking = asyncio.ensure_future(asyncio.to_thread(vault.lock))
    while not vault.locked:
        await asyncio.sleep(0.01)
    assert seconds(vault.membership) < LOCK_PATIENCE / 2
    assert not locking.done()
    go_on.set()
    await asyncio.gather(importing, locking)


@pytest.mark.in_a_file
async def test_a_clock_that_no_one_hears_goes_on(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(filled.path, options=filled.options())
    closed = io.StringIO()
    closed.close()
    filled.path.rename(filled.path.with_suffix(".away"))
    with monkeypatch.context() as silent:
        silent.setattr("sys.stderr", closed)
        vaults_of(served.datasette).rest_where_due()
    assert not served.vault.is_open
