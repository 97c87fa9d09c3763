"""Wycheproof's test vectors, through the primitives as this package calls them.

They are read from the folder that ``VECTORS`` names (``testvectors_v1`` of C2SP/wycheproof lies in
its sub-folder ``wycheproof``). No vector is left out: one that a primitive will not even take (a
nonce of a length that no sealed value has) must be refused.
"""

from __future__ import annotations

import hmac as constant_time
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import NONCE_BYTES, SUITE_NAMES, TAG_BYTES, SealingKey

Vector = dict[str, Any]


def vectors(name: str) -> Iterator[tuple[Vector, Vector]]:
    """Each test of a file with the group that it stands in."""
    folder = os.environ.get("VECTORS")
    if not folder:
        pytest.skip("set VECTORS to the folder that holds wycheproof/*.json to run its vectors")
    data = json.loads((Path(folder) / "wycheproof" / name).read_text())
    for group in data["testGroups"]:
        for test in group["tests"]:
            yield group, test


def hexed(test: Vector, *names: str) -> list[bytes]:
    return [bytes.fromhex(test[name]) for name in names]


@pytest.mark.parametrize(
    ("suite", "name", "count", "ours"),
    [
        ("aes-256-gcm", "aes_gcm_test.json", 316, 66),
        ("aes-256-gcm-siv", "aes_gcm_siv_test.json", 202, 103),
        ("chacha20-poly1305", "chacha20_poly1305_test.json", 325, 316),
    ],
)
def test_suites(suite: str, name: str, count: int, ours: int) -> None:
    """``ours`` have the sizes of a sealed value: a key of 32 bytes, a nonce of 12, a tag of 16."""
    tried = sized = 0
    for _, test in vectors(name):
        key, nonce, aad, message, ciphertext, tag = hexed(
            test, "key", "iv", "aad", "msg", "ct", "tag"
        )
        like_ours = (len(key), len(nonce), len(tag)) == (32, NONCE_BYTES, TAG_BYTES)
        sealed, opened = ciphertext + tag, bytearray(len(ciphertext))
        try:
            cipher = SealingKey(SecretKey(key)).cipher(SUITE_NAMES[suite])
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
    """The derivation of every key from another."""
    tried = 0
    for _, test in vectors("hkdf_sha256_test.json"):
        secret, salt, info, expected = hexed(test, "ikm", "salt", "info", "okm")
        derived = bytearray(test["size"])
        if test["result"] == "invalid":
            with pytest.raises(ValueError, match="larger than"):
                HKDF(hashes.SHA256(), test["size"], salt=salt, info=info)
        else:
            HKDF(hashes.SHA256(), test["size"], salt=salt or None, info=info).derive_into(
                secret, derived
            )
            assert bytes(derived) == expected, test["tcId"]
        tried += 1
    assert tried == 86


def test_hmac() -> None:
    """What keyed hashes are made by: a state that is copied, fed, and cut to a length."""
    tried = 0
    for group, test in vectors("hmac_sha256_test.json"):
        key, message, tag = hexed(test, "key", "msg", "tag")
        state = hmac.HMAC(key, hashes.SHA256()).copy()
        state.update(message)
        made = state.finalize()[: group["tagSize"] // 8]
        same = constant_time.compare_digest(made, tag)
        assert same == (test["result"] == "valid"), test["tcId"]
        tried += 1
    assert tried == 174


def test_x25519() -> None:
    """The agreement within the key encapsulation of grants; all-zero results are refused."""
    tried = 0
    for _, test in vectors("x25519_test.json"):
        private, public, shared = hexed(test, "private", "public", "shared")
        ours = X25519PrivateKey.from_private_bytes(private)
        if any(shared):
            agreed = ours.exchange(X25519PublicKey.from_public_bytes(public))
            assert agreed == shared, test["tcId"]
        else:
            with pytest.raises(ValueError, match="shared key"):
                ours.exchange(X25519PublicKey.from_public_bytes(public))
        tried += 1
    assert tried == 518


def test_ed25519() -> None:
    """The signatures of grants."""
    tried = 0
    for group, test in vectors("ed25519_test.json"):
        message, signature = hexed(test, "msg", "sig")
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(group["publicKey"]["pk"]))
        try:
            public.verify(signature, message)
            assert test["result"] == "valid", test["tcId"]
        except InvalidSignature:
            assert test["result"] == "invalid", test["tcId"]
        tried += 1
    assert tried == 151
