"""Secret keys: where they come from, what is refused, and what never shows."""

from __future__ import annotations

import base64
import pickle
import queue
import re
import threading

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rfc5869 import hkdf

from memory_store.crypto import keys
from memory_store.crypto.keys import (
    Argon2Parameters,
    SecretKey,
    decode_device_key,
    decode_key_file,
    decode_recovery_code,
    device_id,
    encode_device_key,
    encode_key_file,
    key_from_both,
    key_from_passphrase,
    key_from_strong_secret,
    new_recovery_code,
)
from memory_store.errors import BadInputError, FormatError, MemoryStoreError

CHEAP = Argon2Parameters(19_456, 2, 1)
SALT = bytes(range(16))


@given(st.binary(min_size=1, max_size=64), st.text(max_size=20), st.binary(max_size=40))
def test_a_subkey_is_hkdf_of_a_label_that_ends_in_nul(
    secret: bytes, label: str, context: bytes
) -> None:
    info = b"memory-store/1/" + label.encode("utf-8") + b"\x00" + context
    assert bytes(SecretKey(secret).derive(label, context).buffer) == hkdf(secret, info)
    assert SecretKey(secret).derive(label) == SecretKey(secret).derive(label, b"")


def test_new_keys_are_32_random_bytes() -> None:
    made = {bytes(SecretKey.generate().buffer) for _ in range(100)}
    assert len(made) == 100
    assert {len(key) for key in made} == {32}


def test_keys_are_equal_by_their_bytes_and_equal_to_nothing_else() -> None:
    assert SecretKey(b"k" * 32) == SecretKey(b"k" * 32)
    assert SecretKey(b"k" * 32) != SecretKey(b"k" * 31 + b"l")
    assert SecretKey(b"k" * 32) != b"k" * 32
    with pytest.raises(TypeError, match="unhashable"):
        hash(SecretKey(b"k"))


def test_a_key_shows_nothing_and_cannot_be_pickled() -> None:
    assert repr(SecretKey(b"k" * 32)) == "<SecretKey>"
    with pytest.raises(TypeError, match=r"^a secret key is not written anywhere$"):
        pickle.dumps(SecretKey(b"k" * 32))


def test_a_wiped_key_is_zero_useless_and_can_be_wiped_again() -> None:
    secret = SecretKey(b"k" * 32)
    buffer = secret.buffer
    secret.wipe()
    secret.wipe()
    assert bytes(buffer) == bytes(32)
    with pytest.raises(MemoryStoreError, match=r"^this key was wiped$"):
        secret.derive("body")


BOUNDS = {"memory_kib": (19_456, 1_048_576), "iterations": (2, 64), "lanes": (1, 16)}


@pytest.mark.parametrize("name", BOUNDS)
def test_the_cost_of_a_passphrase_is_within_bounds(name: str) -> None:
    least, most = BOUNDS[name]
    for good in (least, most):
        replace(CHEAP, **{name: good}).check()
    with pytest.raises(FormatError, match=r"unreasonable Argon2id cost$"):
        replace(CHEAP, **{name: most + 1}).check()
    weak = (
        "unreasonable Argon2id cost$" if name == "lanes" else r"weaker than Argon2id 19 MiB, t 2$"
    )
    with pytest.raises(FormatError, match=f"^this vault's passphrase slot .*{weak}"):
        replace(CHEAP, **{name: least - 1}).check()


@pytest.mark.parametrize("value", [65_536.0, float("nan"), True, "65536", None])
@pytest.mark.parametrize("name", BOUNDS)
def test_a_cost_that_is_no_whole_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(FormatError, match=r"^this vault's passphrase slot .* cannot be read$"):
        replace(CHEAP, **{name: value}).check()  # type: ignore[arg-type]


def test_the_usual_cost_is_rfc_9106_s_second_choice() -> None:
    assert Argon2Parameters() == Argon2Parameters(memory_kib=65_536, iterations=3, lanes=4)


@pytest.mark.parametrize("passphrase", ["correct horse", "Größe 🎉", "half \ud800 a pair", " "])
def test_a_passphrase_s_key_is_argon2id_of_its_utf_8(passphrase: str) -> None:
    expected = Argon2id(salt=SALT, length=32, iterations=2, lanes=1, memory_cost=19_456).derive(
        passphrase.encode("utf-8", "surrogatepass")
    )
    assert bytes(key_from_passphrase(passphrase, SALT, CHEAP).buffer) == expected


def test_every_part_of_the_cost_counts() -> None:
    costs = (
        CHEAP,
        replace(CHEAP, memory_kib=19_457),
        replace(CHEAP, iterations=3),
        replace(CHEAP, lanes=2),
    )
    made = {bytes(key_from_passphrase("p", SALT, cost).buffer) for cost in costs}
    assert len(made) == len(costs)


def test_a_cheap_derivation_is_refused_before_it_starts() -> None:
    with pytest.raises(FormatError, match="weaker"):
        key_from_passphrase("p", SALT, Argon2Parameters(8, 1, 1))


def test_an_empty_passphrase_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"^an empty passphrase opens nothing$") as refusal:
        key_from_passphrase("", SALT, CHEAP)
    assert refusal.value.parameter == "passphrase"


@pytest.mark.parametrize("length", [0, 1, 8, 15, 17])
def test_a_salt_of_another_length_is_refused_and_blocks_no_one(length: int) -> None:
    for _ in range(keys.ARGON2_QUEUE + 2):
        with pytest.raises(FormatError, match=r"^this vault's passphrase slot has no salt of 16"):
            key_from_passphrase("p", bytes(length), CHEAP)
    key_from_passphrase("p", SALT, CHEAP)


def test_a_crowd_of_passphrases_is_asked_to_come_back() -> None:
    """One at work, four in the queue; the sixth and every later one is refused at once."""
    refused: queue.Queue[MemoryStoreError] = queue.Queue()
    opened: queue.Queue[SecretKey] = queue.Queue()

    def derive() -> None:
        try:
            opened.put(key_from_passphrase("p", SALT, CHEAP))
        except MemoryStoreError as error:
            refused.put(error)

    crowd = [threading.Thread(target=derive) for _ in range(9)]
    with keys._one_derivation:  # no other derivation begins
        for one in crowd:
            one.start()
        complaints = {str(refused.get(timeout=60)) for _ in range(4)}
    for one in crowd:
        one.join(60)
    assert complaints == {"busy: too many passphrases are being checked; try again shortly"}
    assert (opened.qsize(), refused.qsize()) == (5, 0)
    key_from_passphrase("p", SALT, CHEAP)  # and room again


def test_the_key_of_a_strong_secret_is_derived_with_the_salt() -> None:
    made = key_from_strong_secret(SecretKey(b"s" * 20), SALT)
    assert bytes(made.buffer) == hkdf(b"s" * 20, b"memory-store/1/slot\x00" + SALT)


def test_a_key_file_is_one_line_of_base64() -> None:
    line = encode_key_file(SecretKey(bytes(range(32))))
    assert line == b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    for written in (line, line.strip(), b"  " + line + b"\r\n"):
        assert decode_key_file(written, "notes.key") == SecretKey(bytes(range(32)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"c2hvcnQ=",
        base64.b64encode(bytes(31)),
        base64.b64encode(bytes(33)),
        b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        b"AAECAwQFBgcICQoL\nDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=!",
        b"\xff\xfe",
    ],
)
def test_what_is_no_key_file_is_refused_without_its_content(content: bytes) -> None:
    with pytest.raises(BadInputError) as refusal:
        decode_key_file(content, "notes.key")
    assert str(refusal.value) == (
        "notes.key is not a key file: it must hold one line, base64 of 32 bytes"
    )
    assert refusal.value.parameter == "key-file"
    assert refusal.value.__cause__ is None


def test_a_passphrase_with_a_device_key_is_hkdf_of_both_in_that_order() -> None:
    device, vault = SecretKey(bytes(range(32))), b"v" * 16
    alone = key_from_passphrase("correct horse", SALT, CHEAP)
    joined = bytes(alone.buffer) + bytes(device.buffer)
    made = key_from_passphrase("correct horse", SALT, CHEAP, device)
    assert bytes(made.buffer) == hkdf(joined, b"memory-store/1/two-factors\x00" + SALT)
    named = hkdf(bytes(device.buffer), b"memory-store/1/device-id\x00" + vault)[:16]
    assert device_id(device, vault) == named.hex()


def test_each_bit_of_the_passphrase_the_device_key_and_the_salt_matters() -> None:
    def made(derived: int = 0, device: int = 0, salt: int = 0) -> bytes:
        parts = (SecretKey((1 << one).to_bytes(33, "big")[:32]) for one in (derived, device))
        return bytes(key_from_both(*parts, (1 << salt).to_bytes(16, "big")).buffer)

    keys_made = {made(derived=bit) for bit in range(8, 264)}
    keys_made |= {made(device=bit) for bit in range(8, 264)}
    keys_made |= {made(salt=bit) for bit in range(1, 128)}
    assert len(keys_made) == 256 + 256 + 127


def test_what_a_device_key_was_joined_with_is_wiped_and_the_device_key_is_not() -> None:
    derived, device = SecretKey(b"a" * 32), SecretKey(b"d" * 32)
    key_from_both(derived, device, SALT)
    assert bytes(device.buffer) == b"d" * 32
    with pytest.raises(MemoryStoreError, match="wiped"):
        derived.buffer.clear()


def test_a_device_key_is_written_in_thirteen_groups_and_read_as_people_write_it() -> None:
    device = SecretKey.generate()
    code = encode_device_key(device)
    assert re.fullmatch("([A-Z2-7]{4}-){12}[A-Z2-7]{4}", code)
    for written in (code, code.lower(), code.replace("-", " "), f" {code}\n"):
        assert decode_device_key(written) == device
    assert decode_device_key(new_recovery_code()) is None
    assert decode_recovery_code(code) is None


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 51, "A" * 53, "ü" * 52, "!" * 52])
def test_other_text_is_no_device_key(text: str) -> None:
    assert decode_device_key(text) is None


def test_a_recovery_code_is_eight_groups_of_base32() -> None:
    codes = {new_recovery_code() for _ in range(100)}
    assert len(codes) == 100
    for code in codes:
        assert re.fullmatch("([A-Z2-7]{4}-){7}[A-Z2-7]{4}", code)
        secret = decode_recovery_code(code)
        assert secret is not None
        assert bytes(secret.buffer) == base64.b32decode(code.replace("-", ""))


def test_a_recovery_code_is_read_as_people_write_it() -> None:
    code = "OBIO-ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ23"
    secret = decode_recovery_code(code)
    assert secret is not None
    for written in (
        code.lower(),
        code.replace("-", " "),
        code.replace("-", ""),
        f"\t{code}\n",
        code.replace("O", "0").replace("I", "1").replace("B", "8"),
    ):
        assert decode_recovery_code(written) == secret


@pytest.mark.parametrize(
    "text",
    [
        "",
        "correct horse battery staple",
        "OBIO-ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ2",
        "OBIO-ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ23-AAAA-AAAA",
        "OBIO-ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ29",
        "ÖBIO-ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ23",
    ],
)
def test_other_text_is_no_recovery_code(text: str) -> None:
    assert decode_recovery_code(text) is None
