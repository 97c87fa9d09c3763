# ruff: noqa: PT017  (what else may happen is no fault)
"""Harnesses for what keys are held in and shared by, and for the globs of an import.

What is signed or sealed is taken twice: as a stranger sends it, and as it is read once a person
with a key of his own has signed or sealed it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harness import Parser, text_of
from msgspec.structs import replace

from memory_store.actions import key_sharing
from memory_store.actions.key_sharing import Introduction, read_introduction
from memory_store.crypto.identities import X25519, Identity, identity_of, signature
from memory_store.crypto.keys import (
    RECOVERY_BYTES,
    SecretKey,
    decode_key_file,
    decode_recovery_code,
    encode_key_file,
)
from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.importing.globs import MOST_GLOB, Glob
from memory_store.vault.collection_keys import Bundle
from memory_store.vault.grants import FORMAT, HEADER, GrantPlace, make_grant, open_grant
from memory_store.vault.grants import _signed as signed_part_of
from memory_store.vault.slots import RECOVERY, Secret, made_slot

VAULT = b"v" * 16
KEM_LINE = b"\x01\x00\x20"  # how an identity of X25519 keys begins


def identity(data: bytes) -> None:
    """A person's public keys: written again they are the same bytes."""
    for given in (data, KEM_LINE + data):
        try:
            read = Identity.decoded(given)
        except FormatError:
            continue
        assert read.encoded() == given
        assert read.principal() > 0
        try:
            read.check_signature(data[:64], b"a message", "a grant")
        except TamperedError:
            continue
        raise AssertionError("the introduction was not made up: it is signed")


@cache
def _granted() -> tuple[SecretKey, SecretKey, GrantPlace, bytes]:
    """Root keys of the owner and of the recipient, where a grant stands, and the grant."""
    owner, alice = SecretKey(b"o" * 32), SecretKey(b"a" * 32)
    public = identity_of(owner, X25519), identity_of(alice, X25519)
    place = GrantPlace(VAULT, "c", 1, 7, *public)
    bundle = Bundle.first(SecretKey(b"k" * 32)).next()
    return owner, alice, place, make_grant(owner, place, bundle)


def grant(data: bytes) -> None:
    """A grant: as found in a file, as the owner would have signed it, and as he would seal it."""
    owner, alice, place, whole = _granted()
    try:
        open_grant(alice, place, data)
        assert data == whole
    except (TamperedError, FormatError):
        assert data != whole
    try:
        open_grant(alice, place, data + signature(owner, signed_part_of(place, data)))
        assert data == whole[:-64]
    except (TamperedError, FormatError):
        assert data != whole[:-64]
    message = HEADER.pack(FORMAT, X25519) + place.recipient.sealed(data, place.info())
    try:
        read = open_grant(alice, place, message + signature(owner, signed_part_of(place, message)))
        assert read.encoded(place.epoch) == data
    except TamperedError:
        assert len(data) != len(Bundle.first(SecretKey(b"k" * 32)).encoded(place.epoch))


@dataclass(frozen=True)
class ThisVault:
    """A vault, as far as an introduction to it needs one."""

    vault: bytes


def introduction(data: bytes) -> None:
    """An introduction: as it was sent, and as it is signed by whom it comes from."""
    vault = ThisVault(VAULT)
    try:
        read = read_introduction(vault, data)  # type: ignore[arg-type]
        assert read.vault == VAULT
        assert read.name.isprintable()
    except (BadInputError, TamperedError):
        pass
    try:
        reported, _ = key_sharing._parsed(data)
        reported.message()
    except key_sharing.UNREADABLE:
        return
    root = SecretKey(b"a" * 32)
    whose = identity_of(root, X25519)
    slots = tuple(replace(slot, principal=whose.principal()) for slot in reported.slots)
    reported = replace(reported, vault=VAULT, identity=whose, slots=slots)
    written = key_sharing._written(reported, signature(root, reported.message()))
    try:
        assert read_introduction(vault, written) == reported  # type: ignore[arg-type]
    except BadInputError as error:
        assert error.parameter == "with"


def _introductions() -> list[bytes]:
    root = SecretKey(b"a" * 32)
    whose = identity_of(root, X25519)
    secret = Secret(RECOVERY, key=SecretKey(b"s" * 20))
    slot = made_slot(VAULT, whose.principal(), secret, root, b"p" * 32)
    costly = replace(
        slot,
        kind="passphrase",
        parameters='{"memory_kib": 65536, "iterations": 3, "lanes": 1}',
    )
    made = [Introduction(VAULT, "Älice", whose, slots) for slots in ((slot,), (slot, costly))]
    return [key_sharing._written(one, signature(root, one.message())) for one in made]


def key_file(data: bytes) -> None:
    """A key file: 32 bytes that are read again as they were, or an error that quotes none of it."""
    try:
        key = decode_key_file(data, "a.key")
    except BadInputError as error:
        assert error.parameter == "key-file"
        assert str(error).startswith("a.key is not a key file: ")
    else:
        assert bytes(decode_key_file(encode_key_file(key), "a.key").buffer) == bytes(key.buffer)
        assert base64.b64decode(data.strip()) == bytes(key.buffer)


def recovery_code(data: bytes) -> None:
    """A recovery code as people type it: none, or 160 bits that are the same written again."""
    text = text_of(data)
    key = decode_recovery_code(text)
    readings = [secret.kind for secret in Secret.typed(text)]
    if key is None:
        assert RECOVERY not in readings
        return
    assert RECOVERY in readings
    assert len(key.buffer) == RECOVERY_BYTES
    again = decode_recovery_code(base64.b32encode(key.buffer).decode())
    assert again is not None
    assert bytes(again.buffer) == bytes(key.buffer)


def glob(data: bytes) -> None:
    """A pattern and, after a zero, a path; one without a special character means itself."""
    pattern, _, path = text_of(data).partition("\0")
    try:
        made = Glob(pattern)
    except BadInputError as error:
        assert error.parameter == "glob"
        assert len(pattern) > MOST_GLOB or "[" in pattern
        return
    assert made.matches(path) in (True, False)
    if pattern and not set(pattern) & set("*?[") and pattern == pattern.strip("/"):
        assert made.matches(pattern)
        assert made.matches(path) == (
            path == pattern or ("/" not in pattern and path.endswith(f"/{pattern}"))
        )


KEY_PARSERS: Mapping[str, Parser] = {
    "identity": Parser(
        identity, lambda: [identity_of(SecretKey(b"a" * 32), X25519).encoded(), b"k" * 64]
    ),
    "grant": Parser(grant, lambda: [_granted()[3], _granted()[3][:-64], b"k" * 32 * 4]),
    "introduction": Parser(introduction, _introductions),
    "key_file": Parser(key_file, lambda: [encode_key_file(SecretKey(bytes(range(32))))]),
    "recovery_code": Parser(
        recovery_code,
        lambda: [
            b"ABCD-EFGH-IJKL-MNOP-QRST-UVWX-YZ23-4567",
            b"abcd efgh 0jkl mn0p 1rst uvwx yz23 8567",
        ],
    ),
    "glob": Parser(
        glob,
        lambda: [
            b"**/notes/*.md\0a/notes/b.md",
            b"[!a-z]?[]x-]*\0B1]",
            b"drafts/\0drafts",
            "gießen/*.txt\0gießen/a.txt".encode(),
        ],
    ),
}
"""Each by name."""
