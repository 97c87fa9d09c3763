"""The cache of query expansions: sealed, bounded, and never in a search's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_store.crypto.keys import SecretKey
from memory_store.errors import LockedError
from memory_store.session.creation import create_vault
from memory_store.session.unlock import open_vault
from memory_store.session.verification import verify
from memory_store.session.whole_vault import WholeVault
from memory_store.sqlite import connect
from memory_store.vault import expansions
from memory_store.vault.slots import KEY_FILE, Secret
from memory_store.vault.storage import Storage

KEY = bytes(range(32))
QUESTION = ("where is the boat", "a model", "en")


def secret() -> Secret:
    return Secret(KEY_FILE, key=SecretKey(KEY))


@pytest.fixture
def make(tmp_path: Path, private_folders: Path) -> Callable[..., WholeVault]:
    def make(profile: str = "default") -> WholeVault:
        return create_vault(tmp_path / f"{profile}.db", [secret()], profile)

    return make


def rows(vault: WholeVault) -> list[tuple[int, bytes, bytes]]:
    return list(expansions.stored(vault.reader()))


def again(vault: WholeVault) -> WholeVault:
    vault.lock()
    return open_vault(vault.path, [secret()])


def test_what_was_kept_is_found_again_after_locking(make: Callable[..., WholeVault]) -> None:
    vault = make()
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    for _ in range(2):
        assert vault.expansions.find(vault.reader(), *QUESTION) == b"lex: dinghy"
        assert vault.expansions.find(vault.reader(), *QUESTION[:2], "de") is None
        vault = again(vault)


def test_nothing_of_question_or_answer_stands_in_the_file(make: Callable[..., WholeVault]) -> None:
    vault = make()
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    files = vault.path.parent.glob("default.db*")
    content = b"".join(file.read_bytes() for file in files)
    assert not any(word in content for word in (b"boat", b"dinghy", b"a model"))
    assert len(rows(vault)) == 1


def test_the_question_is_not_run_together_from_its_parts(make: Callable[..., WholeVault]) -> None:
    vault = make()
    vault.expansions.keep(b"one", "ab", "c")
    assert vault.expansions.find(vault.reader(), "a", "bc") is None


def test_the_newest_are_kept(
    make: Callable[..., WholeVault], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansions, "MOST_KEPT", 3)
    vault = make()
    for number in (0, 1, 2, 0, 3):  # asked again, the first one is new again
        vault.expansions.keep(b"x", str(number))
    assert len(rows(vault)) == 3
    for _ in range(2):
        kept = [n for n in range(4) if vault.expansions.find(vault.reader(), str(n))]
        assert kept == [0, 2, 3]
        vault = again(vault)


def test_a_strict_vault_keeps_them_in_memory_only(make: Callable[..., WholeVault]) -> None:
    vault = make("strict")
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    assert rows(vault) == []
    assert vault.expansions.find(vault.reader(), *QUESTION) == b"lex: dinghy"
    vault = again(vault)
    assert vault.expansions.find(vault.reader(), *QUESTION) is None


def test_a_vault_without_the_table_gets_it_with_the_first_entry(
    make: Callable[..., WholeVault],
) -> None:
    vault = make()
    vault.lock()
    with connect(vault.path) as old:
        old.execute("drop table vault_expansions")
    vault = open_vault(vault.path, [secret()])
    assert vault.expansions.find(vault.reader(), *QUESTION) is None
    assert verify(vault)["failures"] == []
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    assert len(rows(vault)) == 1


def test_while_a_person_writes_memory_has_to_do(make: Callable[..., WholeVault]) -> None:
    vault = make()
    other = connect(vault.path)
    other.execute("begin immediate")
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    assert vault.expansions.find(vault.reader(), *QUESTION) == b"lex: dinghy"
    other.execute("rollback")
    assert rows(vault) == []


def test_on_a_full_disk_memory_has_to_do(make: Callable[..., WholeVault]) -> None:
    vault = make()
    with no_room_for_files():
        vault.expansions.keep(b"lex: dinghy", *QUESTION)
    assert vault.expansions.find(vault.reader(), *QUESTION) == b"lex: dinghy"
    assert rows(vault) == []


@contextmanager
def no_room_for_files() -> Iterator[None]:
    """Nothing may be written meanwhile, not even by root: no file may have a byte."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_a_changed_or_moved_entry_is_as_good_as_none_and_verify_tells(
    make: Callable[..., WholeVault],
) -> None:
    vault = make()
    vault.expansions.keep(b"one", "first")
    vault.expansions.keep(b"two", "second")
    assert verify(vault)["failures"] == []
    with connect(vault.path) as hostile:  # swap the two answers
        first, second = (row[2] for row in rows(vault))
        hostile.execute("update vault_expansions set sealed = ? where sequence = 1", (second,))
        hostile.execute("update vault_expansions set sealed = ? where sequence = 2", (first,))
    vault = again(vault)
    assert vault.expansions.find(vault.reader(), "first") is None
    reported = verify(vault)["failures"]
    assert [line.split(":")[0] for line in reported] == ["expansion 1", "expansion 2"]
    vault.expansions.keep(b"one", "first")
    assert vault.expansions.find(vault.reader(), "first") == b"one"


@pytest.mark.parametrize("value", [b"", b"short", 10**12, "text", bytes(200)])
def test_whatever_stands_in_the_table_a_search_goes_on(
    make: Callable[..., WholeVault], value: object
) -> None:
    vault = make()
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    vault.lock()
    with connect(vault.path) as hostile:
        ((tag,),) = hostile.execute("select tag from vault_expansions").fetchall()
        hostile.execute("drop table vault_expansions")
        hostile.execute("create table vault_expansions (sequence integer, tag, sealed)")
        hostile.execute("insert into vault_expansions values (1, ?, ?)", (tag, value))
    vault = open_vault(vault.path, [secret()])
    assert vault.expansions.find(vault.reader(), *QUESTION) is None
    assert len(verify(vault)["failures"]) == 1


def test_a_locked_vault_says_nothing(make: Callable[..., WholeVault]) -> None:
    vault = make()
    vault.expansions.keep(b"lex: dinghy", *QUESTION)
    storage = Storage.open(vault.path)
    vault.lock()
    for use in (
        lambda: vault.expansions.find(storage, *QUESTION),
        lambda: vault.expansions.keep(b"x", *QUESTION),
    ):
        with pytest.raises(LockedError):
            use()
