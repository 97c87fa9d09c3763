"""Public identities: exactly which keys, and what opens, signs and is refused."""

from __future__ import annotations

import hashlib
import re

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from rfc5869 import hkdf

from memory_store.crypto import identities
from memory_store.crypto.identities import (
    HYBRID,
    X25519,
    Identity,
    fingerprint,
    identity_of,
    opened,
    signature,
    strongest_kem,
)
from memory_store.crypto.keys import SecretKey
from memory_store.errors import FormatError, TamperedError

ROOT = b"r" * 32
INFO = b"vault|collection|1"
KEMS = (X25519, HYBRID) if strongest_kem() == HYBRID else (X25519,)
each_kem = pytest.mark.parametrize("kem", KEMS)


def root(byte: bytes = b"r") -> SecretKey:
    return SecretKey(byte * 32)


def private(label: str) -> bytes:
    return hkdf(ROOT, b"memory-store/1/" + label.encode() + b"\x00")


def test_the_keys_are_derived_from_the_root_key_by_label() -> None:
    verify = Ed25519PrivateKey.from_private_bytes(private("identity-sign")).public_key()
    exchange = X25519PrivateKey.from_private_bytes(private("identity-x25519")).public_key()
    expected = exchange.public_bytes_raw() + verify.public_bytes_raw()
    assert identity_of(root(), X25519).encoded() == b"\x01\x00\x20" + expected


def test_the_hybrid_is_chosen_where_the_library_has_it() -> None:
    try:
        from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

        MLKEM768PrivateKey.generate()
    except (ImportError, UnsupportedAlgorithm):
        assert strongest_kem() == X25519
    else:
        assert strongest_kem() == HYBRID == 0x647A


@pytest.mark.skipif(len(KEMS) == 1, reason="this OpenSSL has no ML-KEM")
def test_the_hybrid_has_an_ml_kem_key_before_that() -> None:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey

    seed = private("identity-mlkem-d") + private("identity-mlkem-z")
    assert identities._halves(root(), HYBRID)[0].private_bytes_raw() == seed  # z shows nowhere else
    lattice = MLKEM768PrivateKey.from_seed_bytes(seed).public_key().public_bytes_raw()
    ordinary = identity_of(root(), X25519)
    identity = identity_of(root(), HYBRID)
    assert identity.encoded() == b"\x01\x64\x7a" + lattice + ordinary.encoded()[3:]
    assert len(identity.encoded()) == 3 + 1_184 + 32 + 32


@each_kem
def test_an_identity_is_read_as_it_was_written(kem: int) -> None:
    identity = identity_of(root(), kem)
    assert Identity.decoded(identity.encoded()) == identity
    assert (
        identity.digest()
        == hashlib.sha256(b"memory-store/1/identity\x00" + identity.encoded()).digest()
    )
    assert identity.principal() == int.from_bytes(identity.digest()[26:], "big") | 1


@each_kem
def test_what_is_no_identity_is_refused(kem: int) -> None:
    whole = identity_of(root(), kem).encoded()
    for data in (b"", whole[:2], b"\x00" + whole[1:], b"\x02" + whole[1:]):
        with pytest.raises(FormatError, match=r"^this is no identity that this version can read$"):
            Identity.decoded(data)
    strange = [b"\x01\x00\x10" + bytes(length) for length in (0, 31, 32, 33, 64)]
    for data in (whole[:3], whole[:-1], whole + b"\x00", b"\x01\x00\x10" + whole[3:], *strange):
        with pytest.raises(FormatError, match=r"^this identity has keys of a kind that this"):
            Identity.decoded(data)


def test_a_fingerprint_is_eight_groups_of_five_digits() -> None:
    digest = b"".join(
        n.to_bytes(4, "big") for n in (0, 1, 99_999, 100_000, 123_456, 2**32 - 1, 7, 8)
    )
    assert fingerprint(digest) == "00000 00001 99999 00000 23456 67295 00007 00008"
    identity = identity_of(root(), X25519)
    assert identity.fingerprint() == fingerprint(identity.digest())
    assert re.fullmatch(r"(\d{5} ){7}\d{5}", identity.fingerprint())


@each_kem
def test_what_is_sealed_for_a_person_opens_for_him_alone(kem: int) -> None:
    sealed = identity_of(root(), kem).sealed(bytearray(b"collection key"), INFO)
    assert opened(root(), kem, sealed, INFO, "a grant") == bytearray(b"collection key")
    complaint = r"^a grant: not sealed for this key, or changed since$"
    with pytest.raises(TamperedError, match=complaint):
        opened(root(b"s"), kem, sealed, INFO, "a grant")
    with pytest.raises(TamperedError, match=complaint):
        opened(root(), kem, sealed, INFO + b"2", "a grant")
    for blob in (b"", sealed[:20], sealed[:-1], bytes([sealed[0] ^ 1]) + sealed[1:], sealed + b"x"):
        with pytest.raises(TamperedError, match=complaint):
            opened(root(), kem, blob, INFO, "a grant")


def test_sealing_is_hpke_in_base_mode() -> None:
    """RFC 9180 by the library, called directly: the same private key opens it."""
    sealed = identity_of(root(), X25519).sealed(b"collection key", INFO)
    suite = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
    ours = X25519PrivateKey.from_private_bytes(private("identity-x25519"))
    assert suite.decrypt(sealed, ours, INFO) == b"collection key"
    assert len(sealed) == 32 + len(b"collection key") + 16


def test_a_key_encapsulation_no_one_knows_is_refused() -> None:
    strange = Identity(0x0010, bytes(65), bytes(32))
    with pytest.raises(
        FormatError, match=r"^this machine cannot use the key encapsulation 0x0010$"
    ):
        strange.sealed(b"", INFO)


def test_a_signature_is_held_against_signer_and_message() -> None:
    identity = identity_of(root(), X25519)
    signed = signature(root(), b"message")
    assert Ed25519PrivateKey.from_private_bytes(private("identity-sign")).sign(b"message") == signed
    identity.check_signature(signed, b"message", "a grant")
    stranger = identity_of(root(b"s"), X25519)
    for who, proof, message in (
        (stranger, signed, b"message"),
        (identity, signed, b"massage"),
        (identity, signed[:-1], b"message"),
        (identity, bytes(64), b"message"),
        (identity, b"", b"message"),
    ):
        with pytest.raises(TamperedError, match=r"^a grant: not signed by whom it says$"):
            who.check_signature(proof, message, "a grant")
