"""When a keeper ends, and what is left: nothing that is open, and a vault that is sound."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from keeping_open import KeptOpen, by_keeper, is_running, start, until

from memory_store.cli import main
from memory_store.errors import BadInputError
from memory_store.keeper import address, client
from memory_store.keeper.address import folder
from memory_store.keeper.launch import socket_for
from memory_store.store import MemoryStore

Starts = Callable[..., tuple[KeptOpen, int]]


@pytest.fixture
def begin(vault: KeptOpen, tmp_path: Path) -> Iterator[Starts]:
    """Starts a keeper of a copy of the vault; gives it, and its process."""
    started: list[KeptOpen] = []

    def begin(**limits: float) -> tuple[KeptOpen, int]:
        path = tmp_path / "copy.db"
        shutil.copy(vault.path, path)
        started.append(start(path, vault.key_file, **limits))
        return started[0], started[0].process()

    yield begin
    for one in started:
        one.lock()


def gone(kept: KeptOpen, process: int) -> bool:
    return not is_running(process) and not os.path.exists(kept.socket)


def test_unlock_and_lock_say_what_they_do(
    vault: KeptOpen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "copy.db"
    shutil.copy(vault.path, path)
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.output

    assert "is open to your commands, until nothing has asked for 30 min" in run(
        "unlock", str(path), "--idle", "30"
    )
    assert "is open already" in run("unlock", str(path))
    assert f"{path}, by process" in run("doctor", str(path))
    assert run("lock", str(path)) == f"{path} is locked.\n"
    assert run("lock", str(path)) == f"{path} was not open.\n"
    assert run("lock") == "No vault was kept open.\n"


def test_sigterm_locks(begin: Starts) -> None:
    kept, process = begin()
    os.kill(process, signal.SIGTERM)
    until(lambda: gone(kept, process))


def test_a_keeper_that_nothing_asks_ends(begin: Starts) -> None:
    kept, process = begin(idle=3)
    until(lambda: gone(kept, process))


@pytest.mark.sampled(0)
def test_a_keeper_ends_after_the_longest_time_though_it_is_asked(
    begin: Starts, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    kept, process = begin(longest=4)

    def asked_and_gone() -> bool:
        by_keeper(capfdbinary, "list", str(kept.path))
        return gone(kept, process)

    until(asked_and_gone)


def test_a_vault_that_is_replaced_is_not_answered_from(begin: Starts, vault: KeptOpen) -> None:
    kept, process = begin()
    other = kept.path.with_name("other.db")
    shutil.copy(vault.path, other)
    os.replace(other, kept.path)
    until(lambda: gone(kept, process))


def test_logging_out_takes_the_socket_away_and_that_locks(begin: Starts) -> None:
    kept, process = begin()
    os.unlink(kept.socket)
    until(lambda: gone(kept, process))


def test_a_killed_keeper_leaves_a_socket_that_the_next_one_takes(
    begin: Starts, vault: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    kept, process = begin()
    os.kill(process, signal.SIGKILL)
    until(lambda: not is_running(process))
    assert os.path.exists(kept.socket)
    assert by_keeper(capfdbinary, "list", str(kept.path))[0] is None
    again = start(kept.path, vault.key_file)
    assert again.socket == kept.socket
    assert by_keeper(capfdbinary, "list", str(kept.path))[0] == 0
    with MemoryStore.open(kept.path, key_file=vault.key_file) as store:
        assert store.verify()["failures"] == []


def test_a_write_that_was_not_answered_is_not_done_twice(
    begin: Starts, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, process = begin()
    usual = client.receive

    def killed_before_the_answer(*arguments: object, **options: object) -> tuple[bytes, bytes]:
        if not options:  # the first one is that it is being worked on
            os.kill(process, signal.SIGKILL)
            until(lambda: not is_running(process))
        return usual(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "receive", killed_before_the_answer)
    code, _, err = by_keeper(capfdbinary, "add", str(kept.path), "once")
    assert code == 1
    assert b"Look whether it was done" in err


def test_no_secret_is_where_other_programs_can_read_it(
    vault: KeptOpen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc")
    path, secret = tmp_path / "secret.db", "a passphrase of five words"
    store, _ = MemoryStore.create(path, passphrase=secret, device_key=False)
    store.lock()
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", secret)
    assert CliRunner().invoke(main, ["unlock", str(path)]).exit_code == 0
    kept = KeptOpen(path, vault.key_file, socket_for(path))
    process = kept.process()
    try:
        for what in ("cmdline", "environ"):
            content = Path(f"/proc/{process}/{what}").read_bytes()
            assert content
            assert secret.encode() not in content
        limits = Path(f"/proc/{process}/limits").read_text().splitlines()
        assert (
            next(line for line in limits if line.startswith("Max core")).split()[4:6] == ["0"] * 2
        )
        for stream in range(3):
            assert os.readlink(f"/proc/{process}/fd/{stream}") == os.devnull
    finally:
        kept.lock()


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_folder_that_others_may_enter_is_refused(
    vault: KeptOpen, mode: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    open_to_all = tmp_path / "run"
    open_to_all.mkdir()
    open_to_all.chmod(mode)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(open_to_all))
    with pytest.raises(BadInputError, match="chmod 700"):
        socket_for(vault.path)
    assert client.connected() is None


def test_without_a_runtime_folder_sockets_lie_in_the_state_folder(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(address, "RUNTIME_FOLDER", "/nowhere/{}")
    found = folder(make=True)
    assert found == os.path.join(os.environ["MEMORY_STORE_STATE"], "run")
    assert os.stat(found).st_mode & 0o777 == 0o700


def test_a_keeper_that_follows_folders_keeps_the_vault_as_they_are_until_it_is_locked(
    vault: KeptOpen,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    path, notes = tmp_path / "copy.db", tmp_path / "watched"
    shutil.copy(vault.path, path)
    notes.mkdir()
    (notes / "weir.md").write_text("The weir is mended.")
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        return result.output

    run("import", str(path), str(notes), "--no-embed")
    assert "until nothing has asked" in run("unlock", str(path))
    process = KeptOpen(path, vault.key_file, socket_for(path)).process()
    assert "follows its sources, for 12 h" in run("unlock", str(path), "--watch", "--idle", "0.01")
    kept = KeptOpen(path, vault.key_file, socket_for(path))
    try:
        assert kept.process() != process  # the one before did not follow
        assert "is open already, and follows" in run("unlock", str(path))

        def found(words: str) -> bool:
            return b"followed" in by_keeper(capfdbinary, "search", str(path), words)[1]

        (notes / "followed.md").write_text("The dam is closed.")
        until(lambda: found("dam closed"))
        assert (kept.status() or {})["idle"] == 0.0  # it counts as use
        (notes / "followed.md").unlink()
        until(lambda: not found("dam closed"))
        process = kept.process()
    finally:
        kept.lock()
    until(lambda: gone(kept, process))
    (notes / "later.md").write_text("The sluice is open.")
    with MemoryStore.open(path, key_file=vault.key_file) as store:
        assert [one.title for one in store.list()].count("later") == 0
