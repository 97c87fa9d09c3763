"""Vaults in files that nothing may be written to are searched, and writing says why not."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from own_process import ended

from memory_store.errors import ReadOnlyError
from memory_store.session.credentials import secrets_to_open
from memory_store.session.unlock import open_vault
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.storage.file_access import file_access

pytestmark = pytest.mark.in_a_file  # what may be done with it, the system says

SEARCH_AND_WRITE = """
import sys
from memory_store import MemoryStore
from memory_store.errors import ReadOnlyError
store = MemoryStore.open(sys.argv[1], key_file=sys.argv[2])
print(len(store.search("harbour").rows))
try:
    store.add("more")
except ReadOnlyError as refusal:
    print(refusal)
store.lock()
"""
AS_ANYBODY = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")
"""Before a command of root's: without the right to write wherever root likes."""

without_the_right = pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and not shutil.which("setpriv")),
    reason="root writes wherever it likes, and setpriv is not there to prevent it",
)


def opened(path: Path, key_file: Path, **access: bool) -> MemoryStore:
    secrets = secrets_to_open(
        path, key_file=key_file, passphrase=None, recovery_code=None, keyring=False
    )
    return MemoryStore(open_vault(path, secrets, file_access(path, **access)))


@pytest.mark.parametrize("way", ["immutable", "nolock"])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_what_is_served_for_reading_alone_is_searched_and_not_written(
    make_store: Callable[..., MemoryStore], key_file: Path, way: str, journal: str
) -> None:
    store = make_store()
    store.add("The harbour freezes over", title="Ice")
    store.lock()
    connect(store.path).execute(f"pragma journal_mode = {journal}")
    before = store.path.read_bytes()
    again = opened(store.path, key_file, **{way: True})
    assert [row.title for row in again.search("harbour").rows] == ["Ice"]
    for write in (
        lambda: again.add("more"),
        lambda: again.delete(again.list()[0].id),
        lambda: again.collections.create("work"),
        lambda: again.collections.rename("personal", "mine"),
        lambda: again.trail.keep([], days=1, most=1),
    ):
        with pytest.raises(ReadOnlyError, match=r"nothing can be written to notes\.db"):
            write()
    again.lock()
    assert store.path.read_bytes() == before


@without_the_right
@pytest.mark.parametrize("frozen", ["file", "folder"])
def test_a_file_or_folder_without_the_right_to_write_is_searched_and_not_written(
    make_store: Callable[..., MemoryStore], key_file: Path, frozen: str
) -> None:
    store = make_store()
    store.add("The harbour freezes over", title="Ice")
    store.lock()
    place = store.path if frozen == "file" else store.path.parent
    place.chmod(0o444 if frozen == "file" else 0o555)
    said = searched_and_written(store.path, key_file)
    place.chmod(0o755)
    assert said == ["1", f"nothing can be written to notes.db: its {frozen} is read-only"]


@without_the_right
def test_a_file_that_may_be_written_again_says_what_beside_it_may_not(
    make_store: Callable[..., MemoryStore], key_file: Path
) -> None:
    store = make_store()
    store.add("The harbour freezes over", title="Ice")
    store.lock()
    store.path.chmod(0o444)
    searched_and_written(store.path, key_file)  # SQLite makes the log's files as the vault's is
    store.path.chmod(0o644)
    said = searched_and_written(store.path, key_file)
    assert said == ["1", "nothing can be written to notes.db: notes.db-shm beside it is read-only"]
    store.path.with_name("notes.db-shm").chmod(0o644)
    assert searched_and_written(store.path, key_file) == ["1"]


def searched_and_written(path: Path, key_file: Path) -> list[str]:
    command = [sys.executable, "-c", SEARCH_AND_WRITE, str(path), str(key_file)]
    done = ended(*(AS_ANYBODY if os.geteuid() == 0 else ()), *command)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()
