"""Sealed values: exactly which bytes, what they refuse, and what they give away."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV, ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import (
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
NAMED = r"^memories\.head of row: "
SECRET = bytes(range(32))
PRIMITIVES = {1: AESGCM, 2: AESGCMSIV, 3: ChaCha20Poly1305}
LEAST_BLOB = 18 + 64 + 16


def key(suite: int = 1, epoch: int = 0) -> SealingKey:
    return SealingKey(SecretKey(SECRET), suite=suite, epoch=epoch)


def prefixed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def crafted(padded: bytes, *, suite: int = 1, format: int = 1, epoch: int = 0) -> bytes:
    """What another program, which has the key, would seal for ``PLACE``."""
    nonce = bytes(range(100, 112))
    header = struct.pack(">BBI", format, suite, epoch) + nonce
    cipher = PRIMITIVES.get(suite, AESGCM)(SECRET)
    return header + cipher.encrypt(nonce, padded, header + PLACE.encoded())


def test_a_place_is_its_six_parts_each_after_its_length() -> None:
    version = (3).to_bytes(8, "big")
    assert PLACE.encoded() == prefixed(
        b"v" * 16, b"collection", b"memories", b"head", b"row", version
    )
    assert replace(PLACE, row="Größe").encoded() == prefixed(
        b"v" * 16, b"collection", b"memories", b"head", "Größe".encode(), version
    )
    assert Place(b"", "", "", "", "").version == 0
    assert str(PLACE) == "memories.head of row"


def test_any_number_that_sqlite_holds_can_stand_in_a_place() -> None:
    """A thief's −1 is refused as every other change, not stumbled over."""
    blob = seal(key(), PLACE, b"text")
    for version in (-1, -(2**63), 2**63 - 1):
        with pytest.raises(TamperedError, match="changed, cut or moved"):
            unseal(key(), replace(PLACE, version=version), blob)


@pytest.mark.parametrize("version", [None, "3", 3.0])
def test_a_version_that_is_no_whole_number_is_refused(version: object) -> None:
    with pytest.raises(TamperedError, match=f"{NAMED}its version is no number$"):
        unseal(key(), replace(PLACE, version=version), seal(key(), PLACE, b"text"))  # type: ignore[arg-type]


@pytest.mark.parametrize("suite", sorted(PRIMITIVES))
@given(
    content=st.binary(max_size=3_000),
    epoch=st.integers(0, 2**32 - 1),
    kind=st.sampled_from([bytes, bytearray, memoryview]),
)
def test_a_sealed_value_is_header_ciphertext_and_tag(
    suite: int, content: bytes, epoch: int, kind: type
) -> None:
    blob = seal(key(suite, epoch), PLACE, kind(content))
    header, nonce = blob[:18], blob[6:18]
    assert header[:6] == bytes([1, suite]) + epoch.to_bytes(4, "big")
    padded = PRIMITIVES[suite](SECRET).decrypt(nonce, blob[18:], header + PLACE.encoded())
    written = len(content).to_bytes(4, "big") + content
    assert padded == written + bytes(padded_length(len(written)) - len(written))
    assert bytes(unseal(key(suite, epoch), PLACE, blob)) == content
    assert sealed_epoch(blob, PLACE) == epoch


def test_keys_seal_under_aes_gcm_in_epoch_0_unless_said() -> None:
    assert seal(SealingKey(SecretKey(SECRET)), PLACE, b"")[:6] == b"\x01\x01\x00\x00\x00\x00"


def test_a_key_opens_what_was_sealed_under_another_suite() -> None:
    ours = key(1)
    for suite in PRIMITIVES:
        assert bytes(unseal(ours, PLACE, seal(key(suite), PLACE, b"text"))) == b"text"
    assert ours.cipher(3) is ours.cipher(3)  # made once
    assert ours.cipher(3) is not ours.cipher(2)


@pytest.mark.parametrize("suite", sorted(PRIMITIVES))
def test_every_flipped_bit_is_refused(suite: int) -> None:
    blob = seal(key(suite), PLACE, b"the boat is called Tern")
    for position in range(len(blob) * 8):
        changed = bytearray(blob)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises((TamperedError, FormatError), match=NAMED):
            unseal(key(suite), PLACE, bytes(changed))


def test_every_cut_is_refused() -> None:
    blob = seal(key(), PLACE, b"the boat is called Tern" * 9)
    for length in range(len(blob)):
        complaint = "too short" if length < LEAST_BLOB else "changed, cut or moved"
        with pytest.raises(TamperedError, match=f"{NAMED}{complaint}"):
            unseal(key(), PLACE, blob[:length])
    with pytest.raises(TamperedError, match=f"{NAMED}changed, cut or moved since it was sealed$"):
        unseal(key(), PLACE, blob + b"\x00")


@pytest.mark.parametrize("cell", [None, "text", 7, 1.5])
def test_a_cell_that_is_no_blob_is_refused(cell: object) -> None:
    with pytest.raises(TamperedError, match=f"{NAMED}not a sealed value$"):
        unseal(key(), PLACE, cell)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", Place.__struct_fields__)
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
    assert len(blobs) == len({blob[6:18] for blob in blobs}) == 500


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_format_is_named(version: int) -> None:
    with pytest.raises(FormatError, match=f"sealed in format {version}; this version reads 1$"):
        unseal(key(), PLACE, crafted(bytes(64), format=version))


@pytest.mark.parametrize(("suite", "epoch"), [(0, 0), (4, 0), (255, 0), (1, 1), (1, 2**32 - 1)])
def test_an_unknown_suite_or_epoch_is_refused(suite: int, epoch: int) -> None:
    complaint = "sealed under a suite or key that this vault does not have$"
    with pytest.raises(TamperedError, match=NAMED + complaint):
        unseal(key(), PLACE, crafted(bytes(64), suite=suite, epoch=epoch))


@given(st.one_of(st.integers(65, 2**12), st.integers(65, 2**40)))
def test_a_padded_length_is_the_next_one_with_few_leading_digits(length: int) -> None:
    """Nikitin and others, "Reducing Metadata Leakage from Encrypted Files", section 5.2:
    of a length with e + 1 binary digits, the last e − (digits of e) are zero."""
    exponent = len(f"{length:b}") - 1
    step = 2 ** (exponent - len(f"{exponent:b}"))
    padded = padded_length(length)
    assert padded % step == 0
    assert 0 <= padded - length < step
    assert padded <= length * 1.12
    assert padded_length(padded) == padded


@given(st.integers(0, 64))
def test_short_contents_have_one_length(length: int) -> None:
    assert padded_length(length) == 64


def test_padded_lengths_are_these() -> None:
    lengths = (64, 65, 72, 73, 100, 127, 128, 129, 1_000, 1_500, 10_000, 1_000_000)
    padded = (64, 72, 72, 80, 104, 128, 128, 144, 1_024, 1_536, 10_240, 1_015_808)
    assert tuple(map(padded_length, lengths)) == padded


def test_short_notes_have_one_length() -> None:
    assert {len(seal(key(), PLACE, b"x" * size)) for size in range(61)} == {LEAST_BLOB}
    assert len(seal(key(), PLACE, b"x" * 61)) == LEAST_BLOB + 8


def padded(length: int, content: bytes, total: int) -> bytes:
    return (length.to_bytes(4, "big") + content).ljust(total, b"\x00")


BAD_PADDING = {
    "a length beyond the end": padded(61, b"x" * 60, 64),
    "the largest length": padded(2**32 - 1, b"", 64),
    "longer than it need be": padded(3, b"abc", 72),
    "of a length that Padmé does not have": padded(70, b"x" * 70, 79),
    "something behind the content": padded(3, b"abcd", 64),
    "something in the last byte": padded(3, b"abc", 63) + b"\x01",
    "a length one too short": padded(2, b"abc", 64),
}


@pytest.mark.parametrize("why", BAD_PADDING)
def test_padding_that_is_not_ours_is_refused(why: str) -> None:
    """A key holder who seals junk by another program gets a typed error."""
    with pytest.raises(TamperedError, match=f"{NAMED}its padding is not ours$"):
        unseal(key(), PLACE, crafted(BAD_PADDING[why]))


@pytest.mark.parametrize("length", [0, 1, 59, 60, 61, 68])
def test_padding_to_the_last_byte_opens(length: int) -> None:
    content = b"\x00" * length
    blob = crafted(padded(length, content, padded_length(4 + length)))
    assert bytes(unseal(key(), PLACE, blob)) == content


def test_too_much_for_one_value_is_refused() -> None:
    much = memoryview(np.broadcast_to(np.uint8(0), 2**30 + 1))  # takes no memory
    complaint = "1073741825 bytes are too many for one sealed value$"
    with pytest.raises(FormatError, match=NAMED + complaint):
        seal(key(), PLACE, much)


def test_what_is_opened_is_counted_by_column_and_what_is_refused_is_not() -> None:
    counter = OpenCounter()
    blob = seal(key(), PLACE, b"x")
    for _ in range(3):
        unseal(key(), PLACE, blob, counter)
    body = replace(PLACE, column="body")
    unseal(key(), body, seal(key(), body, b"y"), counter)
    with pytest.raises(TamperedError):
        unseal(key(), body, blob, counter)
    assert counter.counts == Counter({"memories.head": 3, "memories.body": 1})


@settings(max_examples=20)
@given(st.binary(max_size=200))
def test_what_was_opened_can_be_overwritten(content: bytes) -> None:
    opened = unseal(key(), PLACE, seal(key(), PLACE, content))
    opened[:] = bytes(len(opened))
    assert bytes(opened) == bytes(len(content))


def test_a_sealing_key_shows_nothing_and_is_wiped_with_its_ciphers() -> None:
    secret = SecretKey(b"k" * 32)
    buffer, ours = secret.buffer, SealingKey(secret, epoch=7)
    assert repr(ours) == "<SealingKey epoch 7>"
    seal(ours, PLACE, b"x")
    ours.wipe()
    assert bytes(buffer) == bytes(32)
    assert not ours.ciphers
    with pytest.raises(MemoryStoreError, match="wiped"):
        seal(ours, PLACE, b"x")
