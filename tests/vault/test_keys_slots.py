"""What opens a vault can be added, removed and replaced; what was removed opens nothing again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.errors import (
    BadInputError,
    LockedError,
    NotFoundError,
    TamperedError,
    WrongKeyError,
)
from memory_store.scopes import Scope
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.shares import Share
from memory_store.vault.slots import Secret

Make = Callable[..., MemoryStore]
PASSPHRASE = "five words that no one says"


@pytest.mark.parametrize(
    "secret",
    [
        *Secret.typed(PASSPHRASE),
        Share("default", 1, "", "", 0, epoch=0, before=None, dedupe=PASSPHRASE.encode()),
    ],
    ids=["a secret", "a share"],
)
def test_what_is_secret_is_printed_neither_by_python_nor_by_rich(secret: Secret | Share) -> None:
    assert PASSPHRASE not in f"{secret!r} {secret} {list(secret.__rich_repr__())}"


def test_a_passphrase_that_was_added_opens_the_vault_beside_the_key_file(
    make_store: Make, key_file: Path
) -> None:
    store = make_store()
    store.add("The spare key is under the fern.")
    slot = store.keys.add(passphrase=PASSPHRASE)
    assert (slot.kind, slot.opened) == ("passphrase", False)
    for secret in ({"passphrase": PASSPHRASE}, {"key_file": key_file}):
        with MemoryStore.open(store.path, **secret) as again:  # type: ignore[arg-type]
            assert len(again.list()) == 1


def test_the_list_says_which_key_opened_the_vault(make_store: Make) -> None:
    store = make_store()
    _, code = store.keys.add_recovery_code()
    with MemoryStore.open(store.path, recovery_code=code) as again:
        slots = again.keys.list()
    assert sorted(slot.kind for slot in slots) == ["key-file", "recovery", "recovery"]
    assert [slot.kind for slot in slots if slot.opened] == ["recovery"]


@pytest.mark.in_a_file
def test_a_removed_key_opens_nothing_and_leaves_no_trace_in_the_file(make_store: Make) -> None:
    store = make_store()
    slot = store.keys.add(passphrase=PASSPHRASE)
    wrapped = wrapped_in(store.path, slot.id)
    store.keys.remove(slot.id[:8])
    with pytest.raises(WrongKeyError):
        MemoryStore.open(store.path, passphrase=PASSPHRASE)
    files = store.path.parent.glob(f"{store.path.name}*")
    assert not [file.name for file in files if wrapped in file.read_bytes()]


def test_the_last_key_cannot_be_removed(make_store: Make) -> None:
    store = make_store()
    first, second = store.keys.list()
    store.keys.remove(second.id)
    with pytest.raises(BadInputError, match="last one"):
        store.keys.remove(first.id)
    assert [slot.id for slot in store.keys.list()] == [first.id]


@pytest.mark.parametrize("given", ["", "ffffffff-0000", "zz", "%"])
def test_what_names_no_key_removes_none(make_store: Make, given: str) -> None:
    store = make_store()
    with pytest.raises(NotFoundError):
        store.keys.remove(given)
    assert len(store.keys.list()) == 2


@pytest.mark.in_a_file
def test_a_removed_key_that_was_put_back_into_the_file_is_refused(make_store: Make) -> None:
    store = make_store()
    slot = store.keys.add(passphrase=PASSPHRASE)
    connection = connect(store.path)
    row = connection.execute("select * from vault_slots where id = ?", (slot.id,)).fetchone()
    store.keys.remove(slot.id)
    connection.execute(f"insert into vault_slots values ({', '.join('?' * len(row))})", row)
    connection.close()
    with pytest.raises(TamperedError, match="put back"):
        MemoryStore.open(store.path, passphrase=PASSPHRASE)


def test_a_caller_who_opened_the_vault_with_a_key_that_is_removed_must_unlock_again(
    make_store: Make,
) -> None:
    store = make_store()
    slot, code = store.keys.add_recovery_code()
    with MemoryStore.open(store.path, recovery_code=code) as other:
        store.keys.remove(slot.id)
        with pytest.raises(LockedError, match="removed"):
            other.add("Written with a key that is gone.")
    assert store.verify()["failures"] == []


@pytest.mark.in_a_file
def test_exactly_one_key_is_added_at_a_time(make_store: Make, tmp_path: Path) -> None:
    store = make_store()
    for given in ({}, {"passphrase": PASSPHRASE, "key_file": tmp_path / "other" / "a.key"}):
        with pytest.raises(BadInputError, match="give one key"):
            store.keys.add(**given)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="8 characters"):
        store.keys.add(passphrase="short")
    with pytest.raises(BadInputError, match="folder"):
        store.keys.add(key_file=store.path.with_name("beside.key"))


def test_some_collections_alone_say_nothing_of_keys(make_store: Make) -> None:
    store = make_store()
    some = store.limited_to(Scope.of(store.collections.names()))
    for call in (
        some.keys.list,
        some.keys.add_recovery_code,
        some.keys.rotate_root,
        some.keys.rotate,
    ):
        with pytest.raises(BadInputError, match="whole vault"):
            call()


def test_a_new_root_key_leaves_the_key_in_use_and_a_new_recovery_code(
    make_store: Make, key_file: Path
) -> None:
    store = make_store()
    store.add("Kept through it all.")
    _, old_code = store.keys.add_recovery_code()
    gone, code = store.keys.rotate_root()
    assert [slot.kind for slot in gone.removed] == ["recovery", "recovery"]
    with pytest.raises(WrongKeyError):
        MemoryStore.open(store.path, recovery_code=old_code)
    for secret in ({"recovery_code": code}, {"key_file": key_file}):
        with MemoryStore.open(store.path, **secret) as again:  # type: ignore[arg-type]
            assert [memory.text for memory in again.list()] == ["Kept through it all."]
            assert again.verify()["failures"] == []
    store.add("And the one who did it goes on.")
    store.keys.rotate()
    assert store.verify()["failures"] == []


def test_who_keeps_the_old_root_key_gets_no_further(make_store: Make) -> None:
    store = make_store()
    with MemoryStore.open(store.path, recovery_code=store.keys.add_recovery_code()[1]) as other:
        store.keys.rotate_root()
        for call in (other.collections.list, lambda: other.add("x"), lambda: other.search("x")):
            with pytest.raises(LockedError, match="replaced"):
                call()
    assert store.verify()["failures"] == []


def wrapped_in(path: Path, slot: str) -> bytes:
    """The wrapped root key of a slot, as it stands in the file."""
    connection = connect(path)
    try:
        return bytes(
            connection.execute("select wrapped from vault_slots where id = ?", (slot,)).fetchone()[
                0
            ]
        )
    finally:
        connection.close()
