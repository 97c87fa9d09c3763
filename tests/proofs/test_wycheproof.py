"""Wycheproof's test vectors, through the functions by which this package calls the primitives.

They are read from the folder that ``VECTORS`` names (``testvectors_v1`` of C2SP/wycheproof lies in
its sub-folder ``wycheproof``); without it ``make proofs`` says at its end that they were skipped.
No vector is left out: one that a primitive will not even take (a nonce of a length that no sealed
value has) must be refused.
"""

from __future__ import annotations

import hmac as constant_time
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from memory_store.crypto.blinding import keyed_state
from memory_store.crypto.identities import X25519, Identity, suite
from memory_store.crypto.keys import SecretKey, expand
from memory_store.crypto.sealing import NONCE_BYTES, TAG_BYTES, SealingKey
from memory_store.errors import TamperedError

Vector = dict[str, Any]

CONTENT, INFO = b"a collection's key", b"what a grant is bound to"


def vectors(name: str) -> Iterator[tuple[Vector, Vector]]:
    """Each test of a file with the group that it stands in."""
    folder = os.environ.get("VECTORS")
    if not folder:
        pytest.skip("Wycheproof was not run: VECTORS names no folder that holds wycheproof/*.json")
    data = json.loads((Path(folder) / "wycheproof" / name).read_text())
    for group in data["testGroups"]:
        for test in group["tests"]:
            yield group, test


def hexed(test: Vector, *names: str) -> list[bytes]:
    return [bytes.fromhex(test[name]) for name in names]


@pytest.mark.parametrize(
    ("suite", "name", "count", "ours"),
    [
        (1, "aes_gcm_test.json", 316, 66),
        (2, "aes_gcm_siv_test.json", 202, 103),
        (3, "chacha20_poly1305_test.json", 325, 316),
    ],
)
def test_ciphers(suite: int, name: str, count: int, ours: int) -> None:
    """``ours`` have the sizes of a sealed value: a key of 32 bytes, a nonce of 12, a tag of 16."""
    tried = sized = 0
    for _, test in vectors(name):
        key, nonce, aad, message, ciphertext, tag = hexed(
            test, "key", "iv", "aad", "msg", "ct", "tag"
        )
        like_ours = (len(key), len(nonce), len(tag)) == (32, NONCE_BYTES, TAG_BYTES)
        sealed, opened = ciphertext + tag, bytearray(len(ciphertext))
        try:
            cipher = SealingKey(SecretKey(key)).cipher(suite)
            cipher.decrypt_into(nonce, memoryview(sealed), aad, opened)
            assert test["result"] == "valid", test["tcId"]
            assert bytes(opened) == message
            assert cipher.encrypt(nonce, message, aad) == sealed
        except InvalidTag:
            assert test["result"] == "invalid", test["tcId"]
        except ValueError:
            assert not like_ours, f"{test['tcId']}: of our sizes, yet not taken"
        tried, sized = tried + 1, sized + like_ours
    assert (tried, sized) == (count, ours)


def test_hkdf() -> None:
    """The derivation of every key from another. None of ours is given a salt."""
    tried = ours = 0
    for _, test in vectors("hkdf_sha256_test.json"):
        secret, salt, info, expected = hexed(test, "ikm", "salt", "info", "okm")
        derived = bytearray(test["size"])
        try:
            if salt:
                HKDF(hashes.SHA256(), test["size"], salt, info).derive_into(secret, derived)
            else:
                expand(bytearray(secret), info, derived)
                ours += 1
            assert (test["result"], bytes(derived)) == ("valid", expected), test["tcId"]
        except ValueError:
            assert test["result"] == "invalid", test["tcId"]
        tried += 1
    assert (tried, ours) == (86, 23)


def test_hmac() -> None:
    """What keyed hashes are made by: a state that is copied, fed, and cut to a length."""
    tried = 0
    for group, test in vectors("hmac_sha256_test.json"):
        key, message, tag = hexed(test, "key", "msg", "tag")
        state = keyed_state(SecretKey(key)).copy()
        state.update(message)
        made = state.finalize()[: group["tagSize"] // 8]
        same = constant_time.compare_digest(made, tag)
        assert same == (test["result"] == "valid"), test["tcId"]
        tried += 1
    assert tried == 174


def extract(suite_id: bytes, salt: bytes, label: bytes, content: bytes) -> bytes:
    """LabeledExtract of RFC 9180, section 4."""
    return constant_time.digest(salt, b"HPKE-v1" + suite_id + label + content, "sha256")


def expanded(suite_id: bytes, secret: bytes, label: bytes, info: bytes, size: int) -> bytes:
    """LabeledExpand of the same section."""
    labelled = size.to_bytes(2, "big") + b"HPKE-v1" + suite_id + label + info
    return HKDFExpand(hashes.SHA256(), size, labelled).derive(secret)


def sealed_by_agreement(agreed: bytes, sent: bytes, receiver: bytes) -> bytes:
    """HPKE's message for a receiver with whom ``agreed`` was agreed on (sections 4.1 and 5.1)."""
    kem = b"KEM" + X25519.to_bytes(2, "big")
    whole = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (X25519, 1, 2))
    prk = extract(kem, b"", b"eae_prk", agreed)
    shared = expanded(kem, prk, b"shared_secret", sent + receiver, 32)
    context = b"\x00" + extract(whole, b"", b"psk_id_hash", b"")
    context += extract(whole, b"", b"info_hash", INFO)
    secret = extract(whole, shared, b"secret", b"")
    key = expanded(whole, secret, b"key", context, 32)
    nonce = expanded(whole, secret, b"base_nonce", context, 12)
    return sent + AESGCM(key).encrypt(nonce, CONTENT, b"")


def test_x25519() -> None:
    """The agreement within HPKE, by which grants are sealed: what each vector's shared secret seals
    is opened by its private key, and where that secret is all zeros, nothing is.
    """
    tried = 0
    for _, test in vectors("x25519_test.json"):
        private, public, shared = hexed(test, "private", "public", "shared")
        ours = X25519PrivateKey.from_private_bytes(private)
        receiver = ours.public_key().public_bytes_raw()
        sealed = sealed_by_agreement(shared, public, receiver)
        if any(shared):
            assert suite(X25519).decrypt(sealed, ours, INFO) == CONTENT, test["tcId"]
        else:
            with pytest.raises(InvalidTag):
                suite(X25519).decrypt(sealed, ours, INFO)
        tried += 1
    assert tried == 518


def test_ed25519() -> None:
    """The signatures of grants."""
    tried = 0
    for group, test in vectors("ed25519_test.json"):
        message, signature = hexed(test, "msg", "sig")
        signer = Identity(X25519, bytes(32), bytes.fromhex(group["publicKey"]["pk"]))
        try:
            signer.check_signature(signature, message, "a grant")
            assert test["result"] == "valid", test["tcId"]
        except TamperedError:
            assert test["result"] == "invalid", test["tcId"]
        tried += 1
    assert tried == 151
