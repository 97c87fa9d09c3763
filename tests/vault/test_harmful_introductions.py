"""Introductions that are signed as they should be, and would harm others in the vault."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace
from stopping import stopped

from memory_store.actions.key_sharing import Introduction
from memory_store.crypto.identities import identity_of, signature, strongest_kem
from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.settings import KeyHolder
from memory_store.vault.slots import PASSPHRASE, Secret, made_slot

Make = Callable[..., MemoryStore]
COSTLY = {"memory_kib": 1_048_576, "iterations": 64, "lanes": 1}


def introduction(store: MemoryStore, name: str = "Mallory", **changes: Any) -> bytes:
    """What Mallory introduces himself with, a part of his key slot changed before he signed it."""
    root, vault = SecretKey.generate(), bytes.fromhex(store.vault_id)
    identity = identity_of(root, strongest_kem())
    secret = Secret(PASSPHRASE, passphrase="a passphrase of mallory")
    slot = replace(made_slot(vault, identity.principal(), secret, root, b"p" * 32), **changes)
    reported = Introduction(vault, name, identity, (slot,))
    data = {
        "memory-store introduction": 1,
        "vault": store.vault_id,
        "name": name,
        "keys": text(identity.encoded()),
        "slots": [{n: text(v) if isinstance(v, bytes) else v for n, v in asdict(slot).items()}],
        "signature": text(signature(root, reported.message())),
    }
    return json.dumps(data).encode()


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_same_introduction_without_a_change_is_taken(make_store: Make) -> None:
    owner = make_store()
    owner.collections.create("work")
    assert owner.keys.share("work", introduction(owner)).name == "Mallory"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": "nothing that anybody can read", "created": ""},
        {"parameters": json.dumps(COSTLY), "created": ""},
        {"parameters": '{"memory_kib": 8, "iterations": 1, "lanes": 1}'},
        {"salt": b"short"},
        {"commitment": b""},
        {"wrapped": b""},
        {"kind": "another"},
    ],
    ids=lambda changes: next(iter(changes.items())),
)
def test_a_key_slot_that_would_keep_others_out_is_refused(
    make_store: Make, changes: dict[str, Any]
) -> None:
    """The owner's passphrase would be tried on it, too: with an error, or for minutes."""
    owner = make_store()
    owner.collections.create("work")
    with pytest.raises(BadInputError, match="slot"):
        owner.keys.share("work", introduction(owner, **changes))
    assert owner.keys.holders() == []


def test_no_one_takes_the_place_of_another_of_the_same_number(make_store: Make) -> None:
    """A number is 47 bits of the public keys: hours of work find others that have it."""
    owner = make_store()
    owner.collections.create("work")
    data = introduction(owner)
    number = owner.keys.introduced(data).principal
    vault = owner._opened.vault
    with vault.writing() as storage, storage.transaction(vault.keyring):
        bob = KeyHolder(number, "Bob", "00" * 32)
        vault.change_settings(storage, holders=(bob,))
    with pytest.raises(BadInputError, match="the number of 'Bob'"):
        owner.keys.share("work", data)
    assert [one.name for one in owner.keys.holders()] == ["Bob"]


def test_a_name_that_is_the_number_of_another_names_the_other(make_store: Make) -> None:
    owner = make_store()
    owner.collections.create("work")
    bob = owner.keys.share("work", introduction(owner, "Bob"))
    mallory = introduction(owner, str(bob.principal))
    owner.keys.share("work", mallory)
    owner.keys.revoke(str(bob.principal))
    assert [one.name for one in owner.keys.holders()] == [str(bob.principal)]
    assert owner.keys.holders()[0].principal != bob.principal


@pytest.mark.in_a_file
def test_what_another_process_shares_during_a_revocation_is_taken_back_too(
    make_store: Make, key_file: Path, tiny_model: Path
) -> None:
    owner = make_store()
    for name in ("work", "plans"):
        owner.collections.create(name)
    owner.keys.share("work", introduction(owner))
    owner.keys.rotate("work")
    with stopped() as stop:
        owner.keys.rotate("work", progress=stop)
    with MemoryStore.open(owner.path, key_file=key_file, embedder=str(tiny_model)) as other:
        shared: list[str] = []

        def share_more(*_: object) -> None:
            if not shared:  # while the revocation finishes the key that was being made
                shared.append(other.keys.share("plans", "Mallory").name)

        owner.keys.revoke("Mallory", progress=share_more)
    assert shared == ["Mallory"]
    assert owner.keys.holders() == []
    with closing(connect(owner.path, read_only=True)) as connection:
        left = connection.execute("select 1 from vault_collection_keys where principal != 0")
        assert left.fetchall() == []
