"""Veiled tags: a permutation under a key, and nothing but whole tags."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from memory_store.crypto.keys import SecretKey
from memory_store.crypto.veiling import Veil
from memory_store.errors import MemoryStoreError

KEY = b"v" * 32


@given(st.binary(min_size=16, max_size=16))
def test_a_veiled_tag_is_aes_of_it_and_can_be_unveiled(tag: bytes) -> None:
    veil = Veil(SecretKey(KEY))
    stored = Cipher(algorithms.AES256(KEY), modes.ECB()).encryptor().update(tag)
    assert veil.veiled(tag) == stored
    assert veil.bare(stored) == tag
    assert Veil(SecretKey(b"w" * 32)).veiled(tag) != stored


@pytest.mark.parametrize("length", [0, 8, 15, 17, 32])
def test_what_is_no_tag_is_refused(length: int) -> None:
    veil = Veil(SecretKey(KEY))
    for way in (veil.veiled, veil.bare):
        with pytest.raises(ValueError, match=rf"^a tag has 16 bytes, not {length}$"):
            way(bytes(length))


def test_a_wiped_veil_has_no_key() -> None:
    secret = SecretKey(KEY)
    buffer, veil = secret.buffer, Veil(secret)
    veil.wipe()
    assert bytes(buffer) == bytes(32)
    with pytest.raises(MemoryStoreError, match="wiped"):
        veil.veiled(bytes(16))
