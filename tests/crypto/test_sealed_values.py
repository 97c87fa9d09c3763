"""Sealed values: what they keep, what they refuse, and what they give away."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import fields, replace

import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_store.crypto.blinding import Blinder, Tagger
from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import (
    HEADER,
    LENGTH,
    SUITES,
    OpenCounter,
    Place,
    SealingKey,
    padded_length,
    seal,
    sealed_epoch,
    unseal,
)
from memory_store.errors import FormatError, MemoryStoreError, TamperedError

PLACE = Place(b"v" * 16, "collection", "memories", "head", "row", 3)


def key(suite: int = 1, epoch: int = 0) -> SealingKey:
    return SealingKey(SecretKey(bytes(range(32))), suite=suite, epoch=epoch)


@given(st.binary(max_size=5_000), st.sampled_from(sorted(SUITES)), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_what_was_sealed_opens_to_the_same_bytes(content: bytes, suite: int, epoch: int) -> None:
    blob = seal(key(suite, epoch), PLACE, content)
    assert bytes(unseal(key(suite, epoch), PLACE, blob)) == content
    assert sealed_epoch(blob, PLACE) == epoch


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_every_flipped_bit_is_refused(suite: int) -> None:
    blob = seal(key(suite), PLACE, b"the boat is called Tern")
    for position in range(len(blob) * 8):
        changed = bytearray(blob)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises((TamperedError, FormatError)):
            unseal(key(suite), PLACE, bytes(changed))


def test_every_cut_is_refused() -> None:
    blob = seal(key(), PLACE, b"the boat is called Tern")
    for length in range(len(blob)):
        with pytest.raises(TamperedError):
            unseal(key(), PLACE, blob[:length])
    with pytest.raises(TamperedError):
        unseal(key(), PLACE, blob + b"\x00")


@pytest.mark.parametrize("name", [field.name for field in fields(Place)])
def test_a_value_moved_to_another_place_is_refused(name: str) -> None:
    blob = seal(key(), PLACE, b"text")
    other = {"vault": b"w" * 16, "version": 4}.get(name, "other")
    with pytest.raises(TamperedError, match="changed, cut or moved"):
        unseal(key(), replace(PLACE, **{name: other}), blob)


def test_parts_of_a_place_cannot_run_into_one_another() -> None:
    one = Place(b"v", "ab", "c", "d", "e")
    other = Place(b"v", "a", "bc", "d", "e")
    assert one.encoded() != other.encoded()


def test_another_key_is_refused_without_a_hint() -> None:
    blob = seal(key(), PLACE, b"secret text")
    with pytest.raises(TamperedError) as refusal:
        unseal(SealingKey(SecretKey.generate()), PLACE, blob)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_equal_contents_never_look_alike() -> None:
    blobs = {seal(key(), PLACE, b"same") for _ in range(500)}
    assert len(blobs) == 500


def test_a_newer_format_is_named() -> None:
    blob = b"\x02" + seal(key(), PLACE, b"text")[1:]
    with pytest.raises(FormatError, match="format 2"):
        unseal(key(), PLACE, blob)


@given(st.integers(0, 2**26))
def test_padding_hides_lengths_and_costs_little(length: int) -> None:
    padded = padded_length(length)
    assert padded >= max(length, 64)
    assert padded <= max(64, length * 1.12 + 1)
    assert padded_length(padded) == padded


def test_short_notes_have_one_length() -> None:
    assert len({len(seal(key(), PLACE, b"x" * size)) for size in range(60)}) == 1


def test_padding_that_is_not_ours_is_refused() -> None:
    """A key holder who seals junk by another program gets a typed error, not an exception."""
    ours = key()
    header = seal(ours, PLACE, b"")[: HEADER.size]
    junk = LENGTH.pack(2**31) + bytes(60)
    sealed = ours.cipher(1).encrypt(header[-12:], junk, header + PLACE.encoded())
    with pytest.raises(TamperedError, match="padding"):
        unseal(ours, PLACE, header + sealed)


def test_what_is_opened_is_counted_by_column() -> None:
    counter = OpenCounter()
    blob = seal(key(), PLACE, b"x")
    for _ in range(3):
        unseal(key(), PLACE, blob, counter)
    assert counter.counts == Counter({"memories.head": 3})


def test_keys_are_never_shown_or_written() -> None:
    import pickle

    secret = SecretKey(b"k" * 32)
    shown = f"{secret!r} {SealingKey(secret)!r}"
    assert "kkk" not in shown
    assert b"k".hex() * 3 not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_a_wiped_key_is_zero_and_useless() -> None:
    secret = SecretKey(b"k" * 32)
    buffer = secret.buffer
    secret.wipe()
    assert bytes(buffer) == bytes(32)
    with pytest.raises(MemoryStoreError, match="wiped"):
        secret.derive("body")


def test_subkeys_are_hkdf_sha256_of_a_labelled_purpose() -> None:
    info = b"memory-store/1/body\x00context"
    expected = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(b"r" * 32)
    assert bytes(SecretKey(b"r" * 32).derive("body", b"context").buffer) == expected


def test_tags_are_hmac_sha256_of_length_prefixed_parts() -> None:
    state = hmac.HMAC(b"t" * 32, hashes.SHA256())
    state.update(b"\x00\x00\x00\x02ab\x00\x00\x00\x01c")
    expected = state.finalize()[:16]
    assert Tagger(SecretKey(b"t" * 32)).tag(b"ab", b"c") == expected
    assert Tagger(SecretKey(b"t" * 32)).tag(b"a", b"bc") != expected


@given(st.lists(st.text(min_size=1, max_size=8), min_size=2, max_size=40))
def test_pair_hashes_are_those_of_each_adjacent_pair(stems: list[str]) -> None:
    blinder = Blinder(SecretKey(b"b" * 32))
    terms = [blinder.term("en", stem) for stem in stems]
    pairs = blinder.pairs(terms).tolist()
    assert pairs == [blinder.pair(a, b) for a, b in itertools.pairwise(terms)]


def test_hashes_differ_by_key_language_and_purpose() -> None:
    one, other = Blinder(SecretKey(b"1" * 32)), Blinder(SecretKey(b"2" * 32))
    assert one.term("en", "gift") != one.term("de", "gift")
    assert one.term("en", "gift") != other.term("en", "gift")
    assert one.topic("gift") != other.topic("gift")
    assert one.topic("gift")[:8] != one.term("en", "gift").to_bytes(8, "little")
