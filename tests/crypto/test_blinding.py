"""Keyed hashes: exactly which, and that they are gone after a wipe."""

from __future__ import annotations

import hmac
import io
import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from rfc5869 import hkdf

from memory_store.crypto.blinding import STREAM_BLOCK, Blinder, Tagger, TaggerApart, Veil
from memory_store.crypto.keys import SecretKey
from memory_store.errors import MemoryStoreError

KEY, VEIL_KEY = b"t" * 32, b"v" * 32


def prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def subkey(label: str) -> bytes:
    return hkdf(KEY, b"memory-store/1/" + label.encode() + b"\x00")


def block(key: bytes, data: bytes) -> bytes:
    """AES-256 of one block."""
    return Cipher(algorithms.AES256(key), modes.ECB()).encryptor().update(data)


@given(st.lists(st.binary(max_size=40), max_size=4), st.integers(1, 32))
def test_tags_are_hmac_sha256_of_length_prefixed_parts(parts: list[bytes], length: int) -> None:
    digest = hmac.digest(KEY, prefixed(*parts), "sha256")
    tagger = Tagger(SecretKey(KEY))
    assert tagger.tag(*parts, length=length) == digest[:length]
    assert tagger.tag(*parts) == digest[:16]  # and the state was not used up


def test_parts_cannot_run_into_one_another() -> None:
    tagger = Tagger(SecretKey(KEY))
    assert tagger.tag(b"ab", b"c") != tagger.tag(b"a", b"bc")


@pytest.mark.parametrize("length", [0, 1, STREAM_BLOCK, STREAM_BLOCK + 1, 2 * STREAM_BLOCK + 7])
def test_a_stream_is_tagged_after_its_parts_and_an_empty_one(length: int) -> None:
    content = bytes(range(256)) * (length // 256 + 1)
    content = content[:length]
    expected = hmac.digest(KEY, prefixed(b"content", b"shape", b"") + content, "sha256")[:16]
    tagger = Tagger(SecretKey(KEY))
    assert tagger.tag_stream(io.BytesIO(content), b"content", b"shape") == expected
    assert tagger.tag_stream(io.BytesIO(b"")) == hmac.digest(KEY, prefixed(b""), "sha256")[:16]


def test_a_stream_is_read_in_blocks() -> None:
    """However large a file is, a megabyte of it is in memory."""

    class Endless(io.RawIOBase):
        left = 3 * STREAM_BLOCK

        def read(self, size: int = -1, /) -> bytes:
            assert 0 < size <= STREAM_BLOCK
            taken = min(size, self.left)
            self.left -= taken
            return bytes(taken)

    Tagger(SecretKey(KEY)).tag_stream(Endless())  # type: ignore[arg-type]


def test_a_wiped_tagger_has_no_key_and_tags_nothing() -> None:
    secret = SecretKey(KEY)
    buffer, tagger = secret.buffer, Tagger(secret)
    tagger.wipe()
    assert bytes(buffer) == bytes(32)
    with pytest.raises(AttributeError):
        tagger.tag(b"part")


@given(st.text(max_size=8), st.text(max_size=12))
def test_a_term_is_8_bytes_of_hmac_of_its_language_and_stem(language: str, stem: str) -> None:
    digest = hmac.digest(subkey("term"), prefixed(language.encode(), stem.encode()), "sha256")
    assert Blinder(SecretKey(KEY)).term(language, stem) == int.from_bytes(digest[:8], "little")


@given(st.text(max_size=20))
def test_a_topic_is_16_bytes_of_hmac(topic: str) -> None:
    digest = hmac.digest(subkey("topic"), prefixed(topic.encode()), "sha256")
    assert Blinder(SecretKey(KEY)).topic(topic) == digest[:16]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_pair_is_8_bytes_of_aes_over_both_terms(first: int, second: int) -> None:
    both = first.to_bytes(8, "little") + second.to_bytes(8, "little")
    expected = int.from_bytes(block(subkey("pair"), both)[:8], "little")
    assert Blinder(SecretKey(KEY)).pair(first, second) == expected


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=40))
def test_pair_hashes_are_those_of_each_adjacent_pair(stems: list[str]) -> None:
    blinder = Blinder(SecretKey(b"b" * 32))
    terms = [blinder.term("en", stem) for stem in stems]
    pairs = blinder.pairs(terms)
    assert pairs.dtype == np.uint64
    assert pairs.tolist() == [blinder.pair(a, b) for a, b in itertools.pairwise(terms)]


@pytest.mark.parametrize("terms", [(), (7,)])
def test_less_than_two_terms_have_no_pairs(terms: tuple[int, ...]) -> None:
    pairs = Blinder(SecretKey(KEY)).pairs(terms)
    assert (pairs.shape, pairs.dtype) == ((0,), np.uint64)


def test_hashes_differ_by_key_language_and_purpose() -> None:
    one, other = Blinder(SecretKey(b"1" * 32)), Blinder(SecretKey(b"2" * 32))
    assert one.term("en", "gift") != one.term("de", "gift")
    assert one.term("en", "gift") != other.term("en", "gift")
    assert one.topic("gift") != other.topic("gift")
    assert one.topic("gift")[:8] != one.term("en", "gift").to_bytes(8, "little")


def test_a_wiped_blinder_has_no_keys() -> None:
    blinder = Blinder(SecretKey(KEY))
    blinder.term("en", "oar")
    pair_key = blinder._pairs._secret.buffer
    blinder.wipe()
    assert bytes(pair_key) == bytes(32)
    for hashing in (lambda: blinder.term("en", "oar"), lambda: blinder.topic("oar")):
        with pytest.raises(AttributeError):
            hashing()


def test_tags_apart_equal_no_others_and_end_with_the_key() -> None:
    whole = Tagger(SecretKey(bytes(32)))
    apart, other = (TaggerApart(whole, b"apart", writer) for writer in (b"eve", b"bob"))
    stream = b"content"
    assert apart.tag(b"file", b"a") == whole.tag(b"apart", b"eve", b"file", b"a")
    made = [one.tag(b"file", b"a") for one in (whole, apart, other)]
    made += [one.tag_stream(io.BytesIO(stream), b"file") for one in (whole, apart, other)]
    assert len(set(made)) == 6
    apart.wipe()
    with pytest.raises(AttributeError):
        whole.tag(b"file")
    with pytest.raises(AttributeError):
        other.tag(b"file")


@given(st.binary(min_size=16, max_size=16))
def test_a_veiled_tag_is_aes_of_it_and_can_be_unveiled(tag: bytes) -> None:
    veil = Veil(SecretKey(VEIL_KEY))
    stored = Cipher(algorithms.AES256(VEIL_KEY), modes.ECB()).encryptor().update(tag)
    assert veil.veiled(tag) == stored
    assert veil.bare(stored) == tag
    assert Veil(SecretKey(b"w" * 32)).veiled(tag) != stored


@pytest.mark.parametrize("length", [0, 8, 15, 17, 32])
def test_what_is_no_tag_is_refused(length: int) -> None:
    veil = Veil(SecretKey(VEIL_KEY))
    for way in (veil.veiled, veil.bare):
        with pytest.raises(ValueError, match=rf"^a tag has 16 bytes, not {length}$"):
            way(bytes(length))


def test_a_wiped_veil_has_no_key() -> None:
    secret = SecretKey(VEIL_KEY)
    buffer, veil = secret.buffer, Veil(secret)
    veil.wipe()
    assert bytes(buffer) == bytes(32)
    with pytest.raises(MemoryStoreError, match="wiped"):
        veil.veiled(bytes(16))
