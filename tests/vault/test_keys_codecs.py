"""What keys are shared by, as bytes: read as it was written, and refused once anything changed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.crypto.identities import (
    HYBRID,
    KEY_LENGTHS,
    X25519,
    Identity,
    identity_of,
    opened,
    signature,
    strongest_kem,
)
from memory_store.crypto.keys import SecretKey
from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.collection_keys import Bundle, CollectionKeys
from memory_store.vault.grants import GrantPlace, make_grant, open_grant
from memory_store.vault.shares import Share, read_share, write_share
from memory_store.vault.storage import Storage

REFUSED = (TamperedError, FormatError)
KEMS = (X25519, HYBRID) if strongest_kem() == HYBRID else (X25519,)
each_kem = pytest.mark.parametrize("kem", KEMS)
FLIPS = 400  # of the bits of a hybrid grant, which has ten thousand; of the others each one

numbers = st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def flipped(data: bytes, most: int = 10**6) -> Iterator[bytes]:
    """``data`` with one bit changed: every bit, or so many by lot and all of the first bytes."""
    bits = range(len(data) * 8)
    chosen = bits if len(bits) <= most else [*bits[:64], *random.Random(1).sample(bits, most)]
    for bit in chosen:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def cut(data: bytes) -> Iterator[bytes]:
    """Every beginning and every end of ``data``, and more than all of it."""
    yield from (data[:length] for length in range(len(data)))
    yield from (data[start:] for start in range(1, len(data), 5))
    yield from (data + b"\x00", data + data)


def all_refused(read: Callable[[bytes], Any], changed: Iterable[bytes]) -> None:
    for data in changed:
        with pytest.raises(REFUSED):
            read(data)


# -- identities -----------------------------------------------------------------------------


@given(st.sampled_from(sorted(KEY_LENGTHS)), st.randoms(use_true_random=False))
def test_an_identity_is_read_as_it_was_written(kem: int, chance: random.Random) -> None:
    identity = Identity(kem, chance.randbytes(KEY_LENGTHS[kem]), chance.randbytes(32))
    assert Identity.decoded(identity.encoded()) == identity
    all_refused(Identity.decoded, cut(identity.encoded()))


@given(st.binary(max_size=1_300))
def test_bytes_are_an_identity_or_refused(data: bytes) -> None:
    try:
        assert Identity.decoded(data).encoded() == data
    except FormatError as error:
        assert "identity" in str(error)  # noqa: PT017 - to be one is as good


@each_kem
def test_an_identity_with_another_bit_is_another_person(kem: int) -> None:
    root = SecretKey(b"r" * 32)
    identity = identity_of(root, kem)
    whole, signed = identity.encoded(), signature(root, b"message")
    for changed in flipped(whole, FLIPS):
        try:
            other = Identity.decoded(changed)
        except FormatError:
            continue
        assert other.digest() != identity.digest()
        assert other.fingerprint() != identity.fingerprint()
        if other.verify_key != identity.verify_key:
            with pytest.raises(TamperedError):
                other.check_signature(signed, b"message", "a grant")


@given(st.binary(max_size=200), st.binary(max_size=100))
@settings(max_examples=30)
def test_what_is_sealed_for_an_identity_opens_whole_or_not_at_all(
    content: bytes, info: bytes
) -> None:
    root = SecretKey(b"r" * 32)
    sealed = identity_of(root, X25519).sealed(content, info)

    def read(data: bytes) -> bytearray:
        return opened(root, X25519, data, info, "a grant")

    assert read(sealed) == content
    all_refused(read, flipped(sealed, 100))
    all_refused(read, cut(sealed[:100]))


# -- grants -----------------------------------------------------------------------------------


def granted(
    kem: int, vault: bytes = b"v" * 16, collection: str = "c", epoch: int = 1, principal: int = 7
) -> tuple[SecretKey, GrantPlace, Bundle, bytes]:
    """The recipient's root key, where a grant stands, what is granted, and the grant."""
    owner, alice = SecretKey(b"o" * 32), SecretKey(b"a" * 32)
    public = identity_of(owner, X25519), identity_of(alice, kem)
    place = GrantPlace(vault, collection, epoch, principal, *public)
    bundle = Bundle.first(SecretKey(b"k" * 32)).next()
    return alice, place, bundle, make_grant(owner, place, bundle)


@given(st.sampled_from(KEMS), st.binary(max_size=32), names, numbers, numbers)
@settings(max_examples=50)
def test_a_grant_opens_for_its_place_and_recipient_alone(
    kem: int, vault: bytes, collection: str, epoch: int, principal: int
) -> None:
    alice, place, bundle, grant = granted(kem, vault, collection, epoch, principal)
    read = open_grant(alice, place, grant)
    assert read.secret == bundle.secret
    assert read.encoded(epoch) == bundle.encoded(epoch)
    for elsewhere in (
        replace(place, vault=vault + b"\x00"),
        replace(place, collection=f"{collection}x"),
        replace(place, epoch=epoch ^ 1),
        replace(place, principal=principal ^ 1),
        replace(place, recipient=place.owner),
        replace(place, owner=place.recipient),
    ):
        with pytest.raises(TamperedError):
            open_grant(alice, elsewhere, grant)
    with pytest.raises(TamperedError):
        open_grant(SecretKey(b"o" * 32), place, grant)


@each_kem
def test_a_grant_with_another_bit_or_length_is_refused(kem: int) -> None:
    alice, place, _, grant = granted(kem)

    def read(data: bytes) -> Bundle:
        return open_grant(alice, place, data)

    all_refused(read, flipped(grant, FLIPS))
    all_refused(read, cut(grant))


@given(st.binary(max_size=400))
def test_no_bytes_are_a_grant_by_chance(data: bytes) -> None:
    alice, place, _, _ = granted(X25519)
    with pytest.raises(REFUSED):
        open_grant(alice, place, b"\x02\x00\x20" + data)


# -- shares -----------------------------------------------------------------------------------

shares = st.builds(
    Share,
    profile=st.sampled_from(("default", "strict")),
    analyser=numbers,
    embedder=names,
    fingerprint=names,
    dimensions=numbers,
    epoch=numbers,
    before=st.none() | numbers,
    dedupe=st.binary(max_size=32),
    choice=st.dictionaries(names, names | numbers, max_size=3),
    name=names,
    revision=numbers,
)
ROOT = SecretKey(b"o" * 32)
OWNERS = identity_of(ROOT, X25519)


def a_share_table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table vault_shares (collection text primary key, sealed blob)")
    return connection


def keys_of(vault: bytes = b"v" * 16, collection: str = "c") -> CollectionKeys:
    return CollectionKeys(vault, collection, 0, Bundle.first(SecretKey(b"k" * 32)))


@given(shares)
@settings(max_examples=25)
def test_a_share_is_read_as_it_was_written_and_refused_once_it_changed(share: Share) -> None:
    connection, keys = a_share_table(), keys_of()
    write_share(Storage(connection), keys, share, ROOT)
    assert read_share(Storage(connection), keys, OWNERS) == share
    ((sealed,),) = connection.execute("select sealed from vault_shares").fetchall()

    def read(data: bytes) -> Share:
        connection.execute("update vault_shares set sealed = ?", (data,))
        return read_share(Storage(connection), keys, OWNERS)

    all_refused(read, flipped(sealed, 200))
    all_refused(read, (sealed[:length] for length in range(0, len(sealed), 7)))
    connection.close()


@pytest.mark.parametrize(
    "reported",
    [
        *(b"", b"[]", b"{}", b"\xff", b'{"profile": 3}', b'{"choice": {"": ' + b"[" * 99_999),
        b"\x03" + b"s" * 64 + b'{"choice": {"": ' + b"[" * 99_999,
    ],
    ids=["nothing", "a list", "no field", "no text", "a number", "deep", "deep and signed"],
)
def test_who_reads_a_collection_can_write_no_share_that_breaks_who_opens_it(
    reported: bytes,
) -> None:
    connection, keys = a_share_table(), keys_of()
    sealed = keys.seal("share", keys.place("vault_shares", "sealed", "c"), reported)
    connection.execute("insert into vault_shares values ('c', ?)", (sealed,))
    with pytest.raises(FormatError, match="vault_shares of c"):
        read_share(Storage(connection), keys, OWNERS)
    connection.close()


def test_a_share_signed_by_another_or_of_another_vault_collection_or_revision_is_refused() -> None:
    connection = a_share_table()
    share = Share("strict", 1, "", "", 0, 0, None, b"d" * 32, name="work", revision=7)

    def moved(change: Callable[[bytes], bytes], *, to: CollectionKeys) -> None:
        write_share(Storage(connection), keys_of(), share, ROOT)
        ((sealed,),) = connection.execute("select sealed from vault_shares").fetchall()
        here, there = (
            one.place("vault_shares", "sealed", one.collection) for one in (keys_of(), to)
        )
        content = change(bytes(keys_of().unseal("share", here, sealed)))
        connection.execute(
            "update vault_shares set collection = ?, sealed = ?",
            (to.collection, to.seal("share", there, content)),
        )
        read_share(Storage(connection), to, OWNERS)

    moved(lambda content: content, to=keys_of())
    with pytest.raises(TamperedError, match="not signed by"):
        moved(lambda content: content, to=keys_of(vault=b"w" * 16))
    connection.execute("delete from vault_shares")
    with pytest.raises(TamperedError, match="not signed by"):
        moved(lambda content: content, to=keys_of(collection="d"))
    connection.execute("delete from vault_shares")
    for field in (b"strict", b'"revision":7', b'"name":"work"'):
        changed = field.replace(b"strict", b"default").replace(b"7", b"8").replace(b"wo", b"fo")
        with pytest.raises(TamperedError, match="not signed by"):
            moved(lambda content, a=field, b=changed: content.replace(a, b), to=keys_of())
    write_share(Storage(connection), keys_of(), share, SecretKey(b"m" * 32))
    with pytest.raises(TamperedError, match="not signed by"):
        read_share(Storage(connection), keys_of(), OWNERS)
    connection.close()


# -- introductions ----------------------------------------------------------------------------


@pytest.fixture
def introduced(make_store: Callable[..., MemoryStore], tmp_path: Path) -> tuple[MemoryStore, bytes]:
    """A vault, and what a person introduces himself to its owner with."""
    owner = make_store()
    owner.keys.identity()
    data, _, _ = MemoryStore.introduce(owner.path, "Älice", key_file=tmp_path / "k" / "a.key")
    return owner, data


def test_an_introduction_with_another_bit_is_refused_or_says_the_same(
    introduced: tuple[MemoryStore, bytes],
) -> None:
    """Some bits of base64 and JSON mean nothing; whatever means something is signed."""
    owner, data = introduced
    holder, refused = owner.keys.introduced(data), 0
    for changed in flipped(data, 1_500):
        try:
            assert owner.keys.introduced(changed) == holder
        except (BadInputError, TamperedError):
            refused += 1
    assert refused > 1_400


def test_a_part_of_an_introduction_is_none(introduced: tuple[MemoryStore, bytes]) -> None:
    owner, data = introduced
    whole = data.rstrip()
    for length in range(0, len(whole), 3):
        with pytest.raises(BadInputError, match="no introduction"):
            owner.keys.introduced(whole[:length])


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 19_000,
        b'{"a":' * 3_000,
        b"1e999",
        b"NaN",
        b"\xff\xfe",
        {"slots": 5},
        {"slots": ["principal"]},
        {"slots": [None]},
        {"principal": float("inf")},
        {"principal": "9" * 5_000},
        {"kind": "\ud800"},
        {"id": "\ud800"},
        {"salt": "é"},
        {"keys": None},
        {"name": "\ud800"},
        {"vault": "zz"},
        {"signature": 5},
    ],
    ids=repr,
)
def test_whatever_is_no_introduction_is_bad_input(
    introduced: tuple[MemoryStore, bytes], hostile: bytes | dict[str, Any]
) -> None:
    owner, data = introduced
    if isinstance(hostile, dict):
        reported = json.loads(data)
        of_a_slot = hostile.keys() <= reported["slots"][0].keys()
        (reported["slots"][0] if of_a_slot else reported).update(hostile)
        hostile = json.dumps(reported).encode()
    with pytest.raises(BadInputError):
        owner.keys.introduced(hostile)


@given(data=st.binary(max_size=200))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_are_an_introduction_by_chance(
    introduced: tuple[MemoryStore, bytes], data: bytes
) -> None:
    with pytest.raises(BadInputError):
        introduced[0].keys.introduced(data)
