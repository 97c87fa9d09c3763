"""Two people share a collection of one file, each with a key of his own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from stopping import stopped

from memory_store.crypto.identities import identity_of, strongest_kem
from memory_store.crypto.keys import SecretKey
from memory_store.errors import (
    BadInputError,
    MemoryStoreError,
    NotFoundError,
    TamperedError,
    WrongKeyError,
)
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.collection_keys import Bundle
from memory_store.vault.grants import GrantPlace, make_grant

Make = Callable[..., MemoryStore]
SHARED, HIDDEN = "work", "diary"


@dataclass(frozen=True)
class Two:
    """A vault, its owner's open store, and how Alice opens it."""

    owner: MemoryStore
    key_file: Path
    model: Path

    def alice(self) -> MemoryStore:
        return MemoryStore.open(self.owner.path, key_file=self.key_file, embedder=str(self.model))


@pytest.fixture
def two(make_store: Make, tmp_path: Path, tiny_model: Path) -> Two:
    owner = make_store()
    for number in range(6):
        owner.add(f"Ledger {number} of the pump.", topics=["ledgers"], collection=SHARED)
        owner.add(f"Pump dream {number}.", topics=["dreams"], collection=HIDDEN)
    alice = Two(owner, tmp_path / "keys" / "alice.key", tiny_model)
    data, _, _ = MemoryStore.introduce(owner.path, "Alice", key_file=alice.key_file)
    owner.keys.share(SHARED, data)
    return alice


def test_she_sees_what_is_shared_and_nothing_else(two: Two) -> None:
    hidden = two.owner.list(collection=HIDDEN)[0]
    with two.alice() as alice:
        assert [one.name for one in alice.collections.list()] == [SHARED]
        assert {memory.collection for memory in alice.list()} == {SHARED}
        assert len(alice.search("pump").rows) == 6
        assert alice.topics() == {"ledgers": 6}
        assert alice.stats()["memories"] == 6
        assert alice.verify()["failures"] == []
        for call in (
            lambda: alice.get(hidden.id),
            lambda: alice.list(collection=HIDDEN),
            lambda: alice.search("pump", collection=HIDDEN),
            lambda: alice.edit(hidden.id, text="mine"),
        ):
            with pytest.raises((NotFoundError, BadInputError)):
                call()
    assert len(two.owner.list(collection=HIDDEN)) == 6


def test_what_one_writes_the_other_finds_at_once(two: Two) -> None:
    with two.alice() as alice:
        written = alice.add("Ledger of Alice, on valves.")
        assert [row.id for row in two.owner.search("valves", mode="keyword").rows] == [written.id]
        two.owner.edit(written.id, text="Ledger of both, on gauges.")
        assert [row.id for row in alice.search("gauges", mode="keyword").rows] == [written.id]
        assert alice.verify()["failures"] == two.owner.verify()["failures"] == []


def test_an_equal_text_of_hers_gets_the_same_vectors_and_body(two: Two) -> None:
    bodies = two.owner.stats()["contents"]
    with two.alice() as alice:
        alice.add("Ledger 1 of the pump.")
    assert two.owner.stats()["contents"] == bodies


def test_she_has_none_of_the_owners_rights(two: Two) -> None:
    with two.alice() as alice:
        for call in (
            lambda: alice.collections.create("mine"),
            lambda: alice.keys.rotate(),
            lambda: alice.keys.rotate_root(),
            lambda: alice.keys.share(SHARED, "Alice"),
            lambda: alice.keys.revoke("Alice"),
            alice.keys.holders,
            alice.trail.events,
            lambda: alice.collections.change_members(SHARED, {"alice": "owner"}),
            lambda: alice.collections.set(SHARED, analyser="de"),
        ):
            with pytest.raises(BadInputError, match="only the owner"):
                call()
        alice.trail.keep([], days=0, most=1)
    assert two.owner.verify()["failures"] == []


def test_she_keeps_keys_of_her_own(two: Two) -> None:
    with two.alice() as alice:
        slot = alice.keys.add(passphrase="a passphrase of hers")
        assert len(alice.keys.list()) == 2
    with MemoryStore.open(two.owner.path, passphrase="a passphrase of hers") as again:
        assert len(again.list()) == 6
        again.keys.remove(slot.id)
    assert len(two.owner.keys.list()) == 2


def test_several_collections_can_be_shared_and_taken_back_one_by_one(two: Two) -> None:
    shared = two.owner.keys.share(HIDDEN, "Alice")
    assert shared.collections == (SHARED, HIDDEN)
    with two.alice() as alice:
        assert len(alice.search("pump", limit=32).rows) == 12
        two.owner.keys.revoke("Alice", SHARED)
        assert {row.collection for row in alice.search("pump").rows} == {HIDDEN}
        assert alice.verify()["failures"] == []
    assert [one.collections for one in two.owner.keys.holders()] == [(HIDDEN,)]


def test_a_new_key_of_the_collection_is_hers_too(two: Two) -> None:
    with two.alice() as alice:
        before = [row.id for row in alice.search("pump").rows]
        two.owner.keys.rotate()
        assert [row.id for row in alice.search("pump").rows] == before
        alice.add("Written under the new key.")
        assert alice.verify()["failures"] == []
    with two.alice() as alice:
        assert len(alice.list()) == 7


def test_once_revoked_her_key_opens_nothing_and_what_is_written_then_is_sealed_from_her(
    two: Two,
) -> None:
    with two.alice() as alice:
        held = alice._opened.vault.keyring.of(alice.collections.list()[0].id).bundle.secret.buffer[
            :
        ]
        two.owner.keys.revoke("Alice")
        for call in (alice.collections.list, lambda: alice.add("x"), lambda: alice.search("pump")):
            with pytest.raises(MemoryStoreError):
                call()
    with pytest.raises(WrongKeyError):
        two.alice()
    collection = next(i for i, n in two.owner.collections.names().items() if n == SHARED)
    keys = two.owner._opened.vault.keyring.of(collection)
    assert keys.epoch == 1
    assert keys.bundle.secret.buffer != held
    assert two.owner.keys.holders() == []
    assert two.owner.verify()["failures"] == []


def test_a_revocation_that_was_stopped_goes_on_with_rotate(two: Two) -> None:
    with stopped() as stop:
        two.owner.keys.revoke("Alice", progress=stop)
    assert two.owner.keys.unfinished() == [SHARED]
    with pytest.raises(WrongKeyError):
        two.alice()
    assert [one.resumed for one in two.owner.keys.rotate(SHARED)] == [True]
    assert two.owner.verify()["failures"] == []


def test_a_new_root_key_of_the_owner_shares_nothing_any_more(two: Two) -> None:
    gone, _ = two.owner.keys.rotate_root()
    assert gone.no_longer_shared == ("Alice",)
    two.owner.keys.rotate()
    with pytest.raises(WrongKeyError):
        two.alice()
    data, _, _ = MemoryStore.introduce(two.owner.path, "Alice", key_file=two.key_file)
    two.owner.keys.share(SHARED, data)
    with two.alice() as alice:
        assert len(alice.list()) == 6


def test_both_see_the_same_two_fingerprints(two: Two, tmp_path: Path) -> None:
    _, bob, owner = MemoryStore.introduce(two.owner.path, "Bob", key_file=tmp_path / "k" / "b.key")
    assert owner == two.owner.keys.identity().fingerprint
    assert len(owner.split()) == 8
    assert bob.fingerprint != owner
    with two.alice() as alice:
        (known,) = two.owner.keys.holders()
        assert alice.keys.identity().fingerprint == known.fingerprint


# -- forgeries ----------------------------------------------------------------------------


def test_an_introduction_that_was_changed_is_refused(two: Two, tmp_path: Path) -> None:
    data, _, _ = MemoryStore.introduce(two.owner.path, "Bob", key_file=tmp_path / "k" / "b.key")
    reported = json.loads(data)
    slot = reported["slots"][0]
    changed: list[dict[str, Any]] = [
        {**reported, "name": "Rob"},
        {**reported, "vault": "00" * 16},
        {**reported, "signature": reported["signature"][:-8] + "AAAAAAA="},
        {**reported, "slots": []},
        {**reported, "slots": [{**slot, "salt": "A" * 22 + "=="}]},
        {**reported, "slots": [{**slot, "principal": 0}]},
        {**reported, "keys": reported["keys"][:8] + "AAAA" + reported["keys"][12:]},
        {**reported, "memory-store introduction": 2},
    ]
    for other in changed:
        with pytest.raises((TamperedError, BadInputError)):
            two.owner.keys.share(SHARED, json.dumps(other).encode())
    assert len(two.owner.keys.holders()) == 1


def tampered(two: Two, statement: str, *values: object) -> None:
    connection = connect(two.owner.path)
    assert connection.execute(statement, values).rowcount == 1
    connection.close()


@pytest.mark.in_a_file
def test_a_grant_by_another_person_is_refused(two: Two) -> None:
    """A caller who writes to the file gives Alice a key that he knows, to read what she writes."""
    with two.alice() as alice:
        ring = alice._opened.vault.keyring
        collection = alice.collections.list()[0].id
        storage = alice._opened.vault.reader()
        both = ring.owner_identity(storage), ring.identity(storage)
        place = GrantPlace(ring.vault, collection, 0, ring.principal, *both)
        forged = make_grant(SecretKey.generate(), place, Bundle.first(SecretKey.generate()))
    where = "where principal != 0"
    tampered(two, f"update vault_collection_keys set wrapped = ? {where}", forged)
    with pytest.raises(TamperedError, match="not signed"):
        two.alice()


@pytest.mark.in_a_file
def test_another_owners_keys_in_the_file_are_refused(two: Two) -> None:
    other = identity_of(SecretKey.generate(), strongest_kem())
    replaced = "update vault_identities set public = ? where principal = 0"
    tampered(two, replaced, other.encoded())
    with pytest.raises(TamperedError, match="another person"):
        two.alice()


@pytest.mark.in_a_file
def test_another_recipients_keys_in_the_file_get_no_new_grant(two: Two) -> None:
    other = identity_of(SecretKey.generate(), strongest_kem())
    replaced = "update vault_identities set public = ? where principal != 0"
    tampered(two, replaced, other.encoded())
    with pytest.raises(TamperedError, match="another person"):
        two.owner.keys.rotate(SHARED)


@pytest.mark.in_a_file
def test_a_grant_for_one_collection_is_none_for_another(two: Two) -> None:
    two.owner.keys.share(HIDDEN, "Alice")
    connection = connect(two.owner.path)
    (a, first), (b, second) = connection.execute(
        "select collection, wrapped from vault_collection_keys where principal != 0"
    ).fetchall()
    swap = "update vault_collection_keys set wrapped = ? where collection = ? and principal != 0"
    connection.executemany(swap, [(second, a), (first, b)])
    connection.close()
    with pytest.raises(TamperedError, match="not signed"):
        two.alice()


@pytest.mark.in_a_file
def test_an_older_grant_that_was_put_back_is_refused(two: Two) -> None:
    connection = connect(two.owner.path)
    row = connection.execute("select * from vault_collection_keys where principal != 0").fetchone()
    two.owner.keys.rotate(SHARED)
    connection.execute("insert into vault_collection_keys values (?, ?, ?, ?)", row)
    connection.close()
    with pytest.raises(TamperedError, match="put back"):
        two.alice()


@pytest.mark.in_a_file
def test_grants_and_slots_of_the_revoked_put_back_open_nothing_new(two: Two) -> None:
    """He kept an older file, and writes his rows into the newer one."""
    tables = ("vault_slots", "vault_collection_keys", "vault_identities", "vault_shares")
    connection = connect(two.owner.path)
    kept = {
        table: connection.execute(
            f"select * from {table}" + ("" if table == "vault_shares" else " where principal != 0")
        ).fetchall()
        for table in tables
    }
    two.owner.keys.revoke("Alice")
    two.owner.add("Nothing for her eyes.", collection=SHARED)
    for table, rows in kept.items():
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"insert into {table} values ({marks})", rows)
    connection.close()
    with pytest.raises(TamperedError), two.alice() as alice:
        alice.list()
