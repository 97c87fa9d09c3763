"""Writes the test kit's vectors: ``python make_kit.py`` (the same bytes every time).

Everything secret in it is drawn from fixed seeds, and sealing takes a nonce from there too. What
is sealed here is sealed by this file and derived by ``independent_reader.py``: nothing of
``memory_store`` is used, so that the kit cannot repeat a mistake of it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from independent_sealing import (
    HEADER_BYTES,
    SUITES,
    Place,
    Slot,
    account_total,
    argon2id,
    content_hash,
    derived,
    device_id,
    device_secret,
    key_file_secret,
    normalised_topic,
    padded_length,
    pair,
    recovery_secret,
    row_tag,
    tag,
    term,
    topic_hash,
)

HERE = Path(__file__).parent
Vector = dict[str, Any]


def drawn(seed: str, length: int = 32) -> bytes:
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(b"memory-store test kit/" + seed.encode()).digest(length)


KEY = drawn("sealing key")
VAULT = drawn("vault", 16)
PLACE = Place(VAULT, "3f1e", "memories", "head", "0d5c", 3)


def padding(content: bytes) -> bytes:
    written = len(content).to_bytes(4, "big") + content
    return written.ljust(padded_length(len(written)), b"\x00")


def sealed(
    padded: bytes,
    seed: str,
    *,
    place: Place = PLACE,
    key: bytes = KEY,
    header: bytes = b"\x01\x01\x00\x00\x00\x00",
    associated: bytes | None = None,
) -> bytes:
    """Header, ciphertext and tag, under a nonce of the seed."""
    whole = header + drawn(f"nonce of {seed}", 12)
    cipher = SUITES.get(header[1], SUITES[1])(key)
    if associated is None:
        associated = whole + place.encoded()
    return whole + cipher.encrypt(whole[6:], padded, associated)


def flipped(blob: bytes, bit: int) -> bytes:
    changed = bytearray(blob)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# -- sealed values --------------------------------------------------------------------------


def value(
    outcome: str, what: str, blob: bytes, content: bytes | None = None, **other: Any
) -> Vector:
    place = other.get("place", PLACE)
    return {
        "outcome": outcome,
        "what": what,
        "key": other.get("key", KEY).hex(),
        "epoch": other.get("epoch", 0),
        "place": {**asdict(place), "vault": place.vault.hex()},
        "blob": blob.hex(),
        **({} if content is None else {"content": content.hex()}),
    }


def header(suite: int, epoch: int = 0, format: int = 1) -> bytes:
    return struct.pack(">BBI", format, suite, epoch)


def opening_values() -> Iterator[Vector]:
    for suite in SUITES:
        for length in (0, 1, 60, 61, 700):
            content = drawn(f"content {length}", length)
            what = f"suite {suite}, {length} bytes"
            blob = sealed(padding(content), what, header=header(suite))
            yield value("opens", what, blob, content)
    for epoch in (1, 2**31, 2**32 - 1):
        blob = sealed(padding(b"text"), f"epoch {epoch}", header=header(1, epoch))
        yield value("opens", f"epoch {epoch}", blob, b"text", epoch=epoch)
    for what, place in PLACES.items():
        blob = sealed(padding(b"text"), what, place=place)
        yield value("opens", f"a place with {what}", blob, b"text", place=place)
    zeros = bytes(40)
    yield value("opens", "content of zeros", sealed(padding(zeros), "zeros"), zeros)


PLACES = {
    "an empty collection": replace(PLACE, collection=""),
    "version 0": replace(PLACE, version=0),
    "the last version": replace(PLACE, version=2**63 - 1),
    "letters of two bytes": replace(PLACE, row="Größe"),
    "a bar in its row": replace(PLACE, row="0d5c|00ff"),
}


def changed_values(suite: int) -> Iterator[Vector]:
    blob = sealed(padding(b"The boat is called Tern."), f"whole {suite}", header=header(suite))
    end = len(blob) * 8
    for what, bit in {
        "first bit of the nonce": 6 * 8,
        "last bit of the nonce": HEADER_BYTES * 8 - 1,
        "first bit of the ciphertext": HEADER_BYTES * 8,
        "middle of the ciphertext": end // 2,
        "last bit of the ciphertext": end - 16 * 8 - 1,
        "first bit of the tag": end - 16 * 8,
        "last bit of the tag": end - 1,
    }.items():
        yield value("not authentic", f"suite {suite}, changed: {what}", flipped(blob, bit))
    for other in sorted(set(SUITES) - {suite}):
        as_other = header(other) + blob[6:]
        yield value("not authentic", f"sealed in suite {suite}, said to be {other}", as_other)
    bare = sealed(
        padding(b"text"), f"bare {suite}", header=header(suite), associated=PLACE.encoded()
    )
    yield value("not authentic", f"suite {suite}, header not in the associated data", bare)
    elsewhere = sealed(padding(b"text"), f"no place {suite}", header=header(suite), associated=b"")
    yield value("not authentic", f"suite {suite}, nothing in the associated data", elsewhere)
    other_key = sealed(padding(b"text"), f"key {suite}", header=header(suite), key=drawn("other"))
    yield value("not authentic", f"suite {suite}, wrong key", other_key)


def moved_values() -> Iterator[Vector]:
    blob = sealed(padding(b"text"), "moved")
    for name, there in {
        "vault": drawn("another vault", 16),
        "collection": "3f1f",
        "table": "memory_bodies",
        "column": "body",
        "row": "0d5d",
        "version": 2,
    }.items():
        place = replace(PLACE, **{name: there})
        yield value("not authentic", f"moved: another {name}", blob, place=place)
    for what, place in {
        "an older version put in the place of a newer one": replace(PLACE, version=4),
        "a version below zero": replace(PLACE, version=-1),
        "the end of one part at the beginning of the next": replace(
            PLACE, collection="3f1", table="ememories"
        ),
        "table and column exchanged": replace(PLACE, table="head", column="memories"),
        "letters in upper case": replace(PLACE, row="0D5C"),
    }.items():
        yield value("not authentic", f"moved: {what}", blob, place=place)
    together = PLACE.encoded().replace(struct.pack(">I", 4), b"")
    blob = sealed(padding(b"text"), "unprefixed", associated=blob[:18] + together)
    yield value("not authentic", "parts of the place without their lengths", blob)


def misshapen_values() -> Iterator[Vector]:
    blob = sealed(padding(b"text"), "misshapen")
    longer = sealed(padding(drawn("long", 200)), "long")
    for length in (0, 1, 6, 17, 18, 34, 82, 97):
        yield value("too short", f"cut to {length} bytes", blob[:length])
    for length in (98, len(longer) // 2 + 20, len(longer) - 1):
        yield value("not authentic", f"cut from {len(longer)} to {length} bytes", longer[:length])
    yield value("not authentic", "a byte too many", blob + b"\x00")
    yield value("not authentic", "its first byte gone", longer[:18] + longer[19:])
    yield value("not authentic", "head of one, rest of another", blob[:18] + longer[18:])
    for format in (0, 2, 255):
        other = sealed(padding(b"text"), f"format {format}", header=header(1, format=format))
        yield value("unknown format", f"format {format}", other)
    for suite in (0, 4, 255):
        other = sealed(padding(b"text"), f"suite {suite}", header=header(suite))
        yield value("unknown suite or epoch", f"suite {suite}", other)
    for epoch in (1, 256, 65_536, 2**24, 2**32 - 1):
        other = sealed(padding(b"text"), f"later epoch {epoch}", header=header(1, epoch))
        yield value("unknown suite or epoch", f"epoch {epoch} under the key of epoch 0", other)
    yield value("unknown suite or epoch", "epoch 0 under the key of epoch 1", blob, epoch=1)


def badly_padded_values() -> Iterator[Vector]:
    for what, padded in {
        "a length beyond the end": (61).to_bytes(4, "big") + bytes(60),
        "the largest length": b"\xff" * 4 + bytes(60),
        "more padding than needed": padding(b"abc") + bytes(8),
        "a length that is not Padmé's": ((70).to_bytes(4, "big") + b"x" * 70).ljust(79, b"\x00"),
        "something behind the content": b"\x00\x00\x00\x03abcd" + bytes(56),
        "something in the last byte": padding(b"abc")[:-1] + b"\x01",
        "a length one too short": b"\x00\x00\x00\x02abc" + bytes(57),
    }.items():
        yield value("bad padding", what, sealed(padded, what))


def sealed_values() -> Iterator[Vector]:
    yield from opening_values()
    for suite in SUITES:
        yield from changed_values(suite)
    yield from moved_values()
    yield from misshapen_values()
    yield from badly_padded_values()


# -- derivations ----------------------------------------------------------------------------

LABELS = (
    *("slot", "commitment", "wrap", "principal-wrap", "two-factors", "device-id", "device-wrap"),
    *("body", "head", "segment", "manifest", "name", "expansion", "page", "audit"),
    *("blind", "term", "topic", "pair", "dedupe", "source"),
    *("manifest-element", "account-element", "row", "page-tag", "expansion-question"),
)


def derivation(kind: str, given: dict[str, Any], result: Any, outcome: str = "gives") -> Vector:
    made = {} if outcome != "gives" else {"result": result}
    return {"outcome": outcome, "what": kind, **given, **made}


def key_derivations() -> Iterator[Vector]:
    secret = drawn("secret")
    for label in LABELS:
        given = {"secret": secret.hex(), "label": label, "context": ""}
        yield derivation("subkey", given, derived(secret, label).hex())
    for context in (drawn("salt", 16), b"\x00", b"head"):
        given = {"secret": secret.hex(), "label": "slot", "context": context.hex()}
        yield derivation("subkey", given, derived(secret, "slot", context).hex())
    for passphrase, cost in {
        "correct horse battery staple": (19_456, 2, 1),
        "Größe 🎉": (19_456, 2, 1),
        " blanks count ": (19_457, 2, 2),
        "three passes": (19_456, 3, 1),
    }.items():
        parameters = json.dumps(dict(zip(("memory_kib", "iterations", "lanes"), cost, strict=True)))
        salt = drawn(f"salt of {passphrase}", 16)
        given = {"passphrase": passphrase, "salt": salt.hex(), "parameters": parameters}
        yield derivation("argon2id", given, argon2id(passphrase, salt, parameters).hex())


DEVICE = base64.b32encode(drawn("device")).decode().rstrip("=")
CODE = base64.b32encode(drawn("recovery", 20)).decode()
GROUPED = "-".join(CODE[start : start + 4] for start in range(0, 32, 4))
LINE = base64.b64encode(drawn("key file")).decode()


def written_secrets() -> Iterator[Vector]:
    for code in (GROUPED, CODE, GROUPED.lower(), GROUPED.replace("-", " "), f" {GROUPED}\n"):
        yield derivation("recovery code", {"text": code}, recovery_secret(code).hex())
    misread = "OBIO-" + GROUPED[5:]
    for code in (misread, misread.replace("O", "0").replace("B", "8").replace("I", "1")):
        yield derivation("recovery code", {"text": code}, recovery_secret(misread).hex())
    for code in ("", GROUPED[:-1], GROUPED + "A", GROUPED[:-1] + "9", "correct horse battery"):
        yield derivation("recovery code", {"text": code}, None, "not a recovery code")
    for text in (LINE, f"{LINE}\n", f"  {LINE}\r\n"):
        yield derivation("key file", {"text": text}, key_file_secret(text.encode()).hex())
    for text in ("", LINE[:-1], LINE[4:], "AAAA" + LINE, LINE[:9] + "\n" + LINE[9:], "-----"):
        yield derivation("key file", {"text": text}, None, "not a key file")


TOPICS = (
    *("garden", "Garden", "#garden", "##garden", "#Home_Office ", "home office", "home--office"),
    *("Größe", "GRÖSSE", "gro\u0308\u00dfe", "ﬁre", "ｆｕｌｌ", "soft\u00adhyphen", "İstanbul"),
    *("work/garden", "C#", "-", "", "a\u00a0b", "ϒ\u0301"),
)


def keyed_hashes() -> Iterator[Vector]:
    key = drawn("collection key")
    given = {"collection_key": key.hex()}
    for topic in TOPICS:
        result = {
            "normalised": normalised_topic(topic),
            "hash": topic_hash(derived(key, "blind"), topic).hex(),
        }
        yield derivation("topic", {**given, "topic": topic}, result)
    for language, stem in (
        ("en", "boat"),
        ("de", "boat"),
        ("de", "größ"),
        ("", ""),
        ("e", "nboat"),
    ):
        result = f"{term(derived(key, 'blind'), language, stem):016x}"
        yield derivation("term", {**given, "language": language, "stem": stem}, result)
    for first, second in ((0, 0), (1, 2), (2, 1), (2**64 - 1, 2**63)):
        both = {"first": f"{first:016x}", "second": f"{second:016x}"}
        yield derivation(
            "pair", {**given, **both}, f"{pair(derived(key, 'blind'), first, second):016x}"
        )
    for title, text in (("Title", "Text"), ("Other", "Text"), ("Title", ""), ("Title", " \n")):
        result = content_hash(derived(key, "dedupe"), title, text).hex()
        yield derivation("content", {**given, "title": title, "text": text}, result)
    tags = []
    for memory, version, head in (
        ("0d5c", 1, "{}"),
        ("0d5c", 2, "{}"),
        ("0d5d", 2**40, "{}"),
        ("0d5c", 1, '{"title":"é"}'),
    ):
        tags.append(row_tag(derived(key, "dedupe"), memory, version, head.encode()).hex())
        row = {"memory": memory, "version": version, "head": head}
        yield derivation("row tag", {**given, **row}, tags[-1])
    for several in ([], tags[:1], tags, tags[::-1]):
        result = f"{account_total(key, map(bytes.fromhex, several)):032x}"
        yield derivation("account", {**given, "tags": several}, result)
    for parts in ((), (b"",), (b"ab", b"c"), (b"a", b"bc")):
        listed = {"key": key.hex(), "parts": [part.hex() for part in parts]}
        yield derivation("tag", listed, tag(key, *parts, length=32).hex())
    for length in (0, 63, 64, 65, 72, 73, 127, 129, 1_000, 10_000, 2**20, 2**20 + 1, 2**30):
        yield derivation("padded length", {"length": length}, padded_length(length))


def derivations() -> Iterator[Vector]:
    yield from key_derivations()
    yield from written_secrets()
    yield from keyed_hashes()


# -- slots ----------------------------------------------------------------------------------

CHEAP = '{"memory_kib": 19456, "iterations": 2, "lanes": 1}'
SECRETS = {"passphrase": "correct horse battery staple", "key-file": LINE, "recovery": GROUPED}
ROOT = drawn("root")


def slot_of(kind: str, parameters: str = "{}", device: str = "") -> Slot:
    """A whole slot that the kind's secret opens, a passphrase with a device key if one is given."""
    salt = drawn(f"salt of {kind}", 16)
    if kind == "passphrase":
        parameters = with_device(device) if device else CHEAP
        encryption_key = argon2id(SECRETS[kind], salt, parameters)
        if device:
            both = encryption_key + device_secret(device)
            encryption_key = derived(both, "two-factors", salt)
    else:
        read = recovery_secret(GROUPED) if kind == "recovery" else key_file_secret(LINE.encode())
        encryption_key = derived(read, "slot", salt)
    tuned = f"{kind}|0|{parameters}|{salt.hex()}"
    place = Place(VAULT, tuned, "vault_slots", "wrapped", "7a1b")
    wrapped = sealed(padding(ROOT), kind, place=place, key=derived(encryption_key, "wrap"))
    commitment = derived(encryption_key, "commitment")
    return Slot("7a1b", 0, kind, parameters, salt, commitment, wrapped)


def with_device(device: str) -> str:
    """The parameters of a passphrase's slot that needs a device key."""
    key = device_secret(device)
    place = Place(VAULT, "principal 0", "vault_slots", "device", "7a1b")
    kept = sealed(padding(key), "device key", place=place, key=derived(ROOT, "device-wrap"))
    reported = {"device": device_id(key, VAULT), "device_key": base64.b64encode(kept).decode()}
    return json.dumps({**json.loads(CHEAP), **reported}, separators=(",", ":"))


def slot_vector(
    outcome: str, what: str, slot: Slot, secret: str | None = None, device: str | None = None
) -> Vector:
    row = {n: v.hex() if isinstance(v, bytes) else v for n, v in asdict(slot).items()}
    given = {"kind": slot.kind, "secret": SECRETS[slot.kind] if secret is None else secret}
    if device is not None:
        given["device"] = device
    result = {"root": ROOT.hex()} if outcome == "opens" else {}
    return {
        "outcome": outcome, "what": f"{slot.kind}: {what}", "vault": VAULT.hex(),
        "slot": row, "given": given, **result,
    }  # fmt: skip


def two_factors() -> Iterator[Vector]:
    slot = slot_of("passphrase", device=DEVICE)
    other = base64.b32encode(drawn("another device")).decode().rstrip("=")
    yield slot_vector("opens", "it and its device key", slot, device=DEVICE)
    yield slot_vector("missing device key", "without its device key", slot)
    yield slot_vector("missing device key", "another device key", slot, device=other)
    wrong = "correct horse battery stapler"
    yield slot_vector("wrong secret", "another one, its device key", slot, wrong, DEVICE)
    reported = json.loads(slot.parameters)
    stripped = replace(slot, parameters=CHEAP)
    for device, where in ((None, "not"), (DEVICE, "still")):
        what = f"its device key taken out, {where} at hand"
        yield slot_vector("wrong secret", what, stripped, device=device)
    renamed = json.dumps({**reported, "device": device_id(device_secret(other), VAULT)})
    swapped = replace(slot, parameters=renamed)
    yield slot_vector("missing device key", "the id of another device key", swapped, device=DEVICE)
    yield slot_vector("wrong secret", "the id of another that is there", swapped, device=other)
    resealed = replace(slot, parameters=json.dumps({**reported, "device_key": "AAAA"}))
    yield slot_vector("not authentic", "another sealed device key", resealed, device=DEVICE)
    for name in ("../../secret", "AB" * 16, "ab" * 15, "ab" * 17):
        named = replace(slot, parameters=json.dumps({**reported, "device": name}))
        yield slot_vector("unreadable cost", f"a device key named {name}", named, device=DEVICE)
    given = replace(slot_of("passphrase"), parameters=CHEAP)
    yield slot_vector("opens", "it alone, a device key at hand", given, device=DEVICE)


def costs(slot: Slot) -> Iterator[Vector]:
    for outcome, memory, passes, lanes in (
        ("weak cost", 19_455, 2, 1),
        ("weak cost", 19_456, 1, 1),
        ("weak cost", 8, 1, 1),
        ("weak cost", -65_536, 3, 4),
        ("excessive cost", 1_048_577, 2, 1),
        ("excessive cost", 2**40, 2, 1),
        ("excessive cost", 19_456, 65, 1),
        ("excessive cost", 19_456, 2, 17),
        ("excessive cost", 19_456, 2, 0),
    ):
        cost = {"memory_kib": memory, "iterations": passes, "lanes": lanes}
        what = f"m {memory}, t {passes}, p {lanes}"
        yield slot_vector(outcome, what, replace(slot, parameters=json.dumps(cost)))
    for parameters in (
        *("", "{", "[]", "null", "19456", '{"memory_kib": "19456", "iterations": 2, "lanes": 1}'),
        *(
            '{"memory_kib": 19456.0, "iterations": 2, "lanes": 1}',
            CHEAP.replace("}", ', "more": 1}'),
            CHEAP.replace("}", ', "device": 1}'),
            CHEAP + " " * 500,
            "[" * 4_000,
        ),
    ):
        what = f"parameters {parameters[:80] or 'empty'}"
        yield slot_vector("unreadable cost", what, replace(slot, parameters=parameters))


def slots() -> Iterator[Vector]:
    for kind, other in {
        "passphrase": "correct horse battery stapler",
        "key-file": base64.b64encode(drawn("another key file")).decode(),
        "recovery": base64.b32encode(drawn("another code", 20)).decode(),
    }.items():
        slot = slot_of(kind)
        yield slot_vector("opens", "its secret", slot)
        yield slot_vector("wrong secret", "another secret", slot, other)
        salted = replace(slot, salt=flipped(slot.salt, 5))
        yield slot_vector("wrong secret", "changed salt", salted)
        committed = replace(slot, commitment=flipped(slot.commitment, 250))
        yield slot_vector("wrong secret", "changed commitment", committed)
        cut = replace(slot, commitment=slot.commitment[:16])
        yield slot_vector("wrong secret", "half of the commitment", cut)
        wrapped = replace(slot, wrapped=flipped(slot.wrapped, 200))
        yield slot_vector("not authentic", "changed wrapped key", wrapped)
        for name, there in (("id", "7a1c"), ("principal", 1)):
            moved = replace(slot, **{name: there})
            yield slot_vector("not authentic", f"another {name}", moved)
    yield from costs(slot_of("passphrase"))
    yield from two_factors()
    short = replace(slot_of("passphrase"), salt=bytes(8))
    yield slot_vector("bad salt", "a salt of 8 bytes", short)
    tuned = replace(slot_of("key-file"), parameters='{"x": 1}')
    yield slot_vector("not authentic", "other parameters", tuned)


# -- files ----------------------------------------------------------------------------------

FILES = {"sealed-values": sealed_values, "derivations": derivations, "slots": slots}


def text_of(name: str) -> str:
    """The file's text: one vector a line."""
    about = ABOUT[name]
    lines = [
        json.dumps({"id": f"{name}-{number:03}", **vector}, ensure_ascii=True)
        for number, vector in enumerate(FILES[name](), 1)
    ]
    head = json.dumps({"format": 1, "about": about}, ensure_ascii=False)[:-1]
    return f'{head}, "vectors": [\n' + ",\n".join(lines) + "\n]}\n"


ABOUT = {
    "sealed-values": "Open `blob` (hex) with the 32-byte `key` of `epoch` at `place`. Outcome "
    "`opens` gives `content`; every other outcome is how it must be refused.",
    "derivations": "Compute `result` from what is given; `what` names the derivation. Any outcome "
    "but `gives` is how the text must be refused.",
    "slots": "Open the row of vault_slots with the secret as its user writes it, and the code of "
    "the `device` key that is at hand, if any. Outcome `opens` gives `root`; every other outcome "
    "is how it must be refused.",
}


def main() -> None:
    for name in FILES:
        (HERE / f"{name}.json").write_text(text_of(name), "utf-8")


if __name__ == "__main__":
    main()
