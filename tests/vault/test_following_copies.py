"""A copy follows a vault that other processes write to, until it takes its place."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from postgres_server import Server

from memory_store import MemoryStore
from memory_store.addresses import vault_path
from memory_store.records import MemoryDraft
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import columns_of
from memory_store.vault.storage.transfer import TABLES, Follow, copy_vault

Make = Callable[..., MemoryStore]
WRITER = """
import sys
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
with MemoryStore.open(sys.argv[1], key_file=sys.argv[2]) as store:
    for number in range(6):
        drafts = [MemoryDraft(text=f"heron {number} {n}", topics=["weir"]) for n in range(8)]
        made = store.add_many(drafts, embed=False)
        store.edit(made[0].id, text=f"lease {number}")
        store.delete(made[1].id)
        if number == 3:
            store.keys.rotate()
    store.trash.empty()
"""


@pytest.fixture
def ways(
    request: pytest.FixtureRequest,
    make_store: Make,
    postgres: Server,
    key_file: Path,
    tiny_model: Path,
    tmp_path: Path,
) -> Iterator[tuple[MemoryStore, Path]]:
    """A vault with memories, and a place where none is: one of them in a database."""
    store, target = make_store(), vault_path(postgres.address())
    if request.param == "to a file":
        copy_vault(store.path, target)
        store = MemoryStore.open(target, key_file=key_file, embedder=str(tiny_model))
        target = tmp_path / "copy.db"
    store.add_many([MemoryDraft(text=f"first {n}") for n in range(40)])
    yield store, target
    store.lock()


def check_equal(store: MemoryStore, target: Path, key: Path) -> None:
    """Every row is there byte for byte, and what it says can be read."""
    with closing(Storage.open(store.path)) as one, closing(Storage.open(target)) as other:
        for table in TABLES:
            query = f"select {', '.join(columns_of(table))} from {table}"
            rows, copied = (
                {tuple(row) for row in here.engine.execute(query).fetchall()}
                if here.engine.has(table)
                else set()
                for here in (one, other)
            )
            assert rows == copied, table
    with MemoryStore.open(target, key_file=key) as copy:
        assert copy.verify(full=True)["failures"] == []
        assert {one.id: one.text for one in copy.every()} == {
            one.id: one.text for one in store.every()
        }
        assert copy.search("first", mode="keyword").rows
        assert copy.older() is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ways", ["to a database", "to a file"], indirect=True)
def test_what_another_process_writes_is_in_the_copy(
    ways: tuple[MemoryStore, Path], key_file: Path
) -> None:
    """Added, edited and deleted memories, and keys that are replaced meanwhile."""
    store, target = ways
    commits: list[int] = []

    def told(commit: int, rows: int) -> None:
        if not commits:
            threading.Thread(target=write).start()
        commits.append(commit)

    def write() -> None:
        words = [sys.executable, "-c", WRITER, str(store.path), str(key_file)]
        subprocess.run(words, check=True)
        follow.stop.set()

    follow = Follow(told)
    copied = copy_vault(store.path, target, follow=follow)
    assert len(commits) > 1
    assert commits == sorted(commits)
    assert copied.commit >= commits[-1] > commits[0]
    assert (copied.behind, copied.rows["memories"]) == (False, 40 + 6 * 7)
    check_equal(store, target, key_file)


def test_what_is_written_while_it_is_compared_is_said_or_waited_for(
    make_store: Make, key_file: Path, tmp_path: Path
) -> None:
    store = make_store()
    store.add("first")
    left = iter(["while it was compared"])

    def progress(name: str, done: int, total: int | None) -> None:
        for text in left if name == "compared memories" else ():
            store.add(text)

    follow = Follow(lambda commit, rows: None, idle=0.01)
    assert not copy_vault(store.path, tmp_path / "copy.db", progress, follow).behind
    check_equal(store, tmp_path / "copy.db", key_file)
    left = iter(["again"])
    behind = copy_vault(store.path, tmp_path / "behind.db", progress)
    assert (behind.behind, behind.rows["memories"]) == (True, 2)


@pytest.mark.parametrize("ways", ["to a file"], indirect=True)
def test_a_copy_that_follows_waits_for_a_database_that_is_away(
    ways: tuple[MemoryStore, Path], key_file: Path, postgres: Server
) -> None:
    """Takes seconds: the server is started anew."""
    store, target = ways
    faults = iter([True])
    heard: list[str] = []

    def progress(name: str, done: int, total: int | None) -> None:
        for _ in faults if name == "compared memories" else ():
            postgres.stop("immediate")
            postgres.start()
            heard.append("restarted")

    def told(commit: int, rows: int) -> None:
        heard.append("copied")
        if len(heard) == 4:
            store.add("written when it was back")

    follow = Follow(told, heard.append, idle=0.01)
    copied = copy_vault(store.path, target, progress, follow)
    assert heard[:2] == ["copied", "restarted"]
    assert "the database is away" in heard[2]
    assert {*heard[3:]} == {"copied"}
    assert (copied.behind, copied.rows["memories"]) == (False, 41)
    check_equal(store, target, key_file)


@contextmanager
def copying(source: Path, target: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, once it follows."""
    words = [sys.executable, "-m", "memory_store", "copy", str(source), str(target), "--follow"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as command:
        assert command.stderr is not None
        assert "follows what is written" in command.stderr.readline()
        yield command


@pytest.mark.parametrize("ways", ["to a database"], indirect=True)
def test_a_killed_copy_goes_on_and_ctrl_c_finishes_it(
    ways: tuple[MemoryStore, Path], key_file: Path
) -> None:
    """Takes seconds: the command is started twice."""
    store, target = ways
    with copying(store.path, target) as command:
        store.add("before it was killed")
        command.send_signal(signal.SIGKILL)
    store.delete(store.list(limit=1)[0].id)
    with copying(store.path, target) as command:
        store.add("the heron came last")
        command.send_signal(signal.SIGINT)
        said, told = command.communicate(timeout=60)
    assert command.returncode == 0, told
    assert "of them earlier, all read back and equal: complete up to commit" in said
    assert f"Nothing was written since: let programs use {target}" in told
    check_equal(store, target, key_file)
