"""What this package says to each vector of the test kit, in the kit's own words."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memory_store.crypto.blinding import Blinder, Tagger
from memory_store.crypto.keys import (
    SecretKey,
    decode_device_key,
    decode_key_file,
    decode_recovery_code,
    key_from_passphrase,
)
from memory_store.crypto.sealing import Place, SealingKey, padded_length, unseal
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.text.canonical import normalise_topic
from memory_store.vault import device_keys
from memory_store.vault.keyring import CollectionKeys
from memory_store.vault.opened_slots import open_root
from memory_store.vault.passphrase_slots import read_parameters
from memory_store.vault.rows import content_tag, row_tag
from memory_store.vault.slots import Secret, Slot, insert_slots
from memory_store.vault.storage import Storage

Vector = Mapping[str, Any]

COMPLAINTS = {
    "a vault of format": "unknown format",
    "which a vault never has": "hostile schema",
    "account knows": "account",
    "account is missing": "account",
    "not the row that was written last": "account",
    "changed since it was written": "clear column",
    "names another memory's body": "another body",
    "its body is missing": "missing body",
    "its topic hashes are others": "topics",
    "the owner's key": "missing key",
    "the vault has no settings": "missing row",
    "not a recovery code": "not a recovery code",
    "too short to be a sealed value": "too short",
    "sealed in format": "unknown format",
    "sealed under a suite or key": "unknown suite or epoch",
    "changed, cut or moved": "not authentic",
    "its padding is not ours": "bad padding",
    "weaker than Argon2id": "weak cost",
    "unreasonable Argon2id cost": "excessive cost",
    "parameters that cannot be read": "unreadable cost",
    "no salt of 16 bytes": "bad salt",
    "it opens no key slot": "wrong secret",
    "also needs the device key": "missing device key",
    "is not a key file": "not a key file",
}


def outcome_of(error: MemoryStoreError) -> str:
    """The kit's word for a refusal; the message itself where it has none."""
    return _word(str(error))


def _word(message: str) -> str:
    found = {word for part, word in COMPLAINTS.items() if part in message}
    return found.pop() if len(found) == 1 else message


def answered(answer: Callable[[Vector], Any], vector: Vector) -> tuple[str | None, Any]:
    """The outcome where it was refused, else ``None`` and the result."""
    try:
        return None, answer(vector)
    except MemoryStoreError as error:
        return outcome_of(error), None


# -- sealed values --------------------------------------------------------------------------


def sealed_value(vector: Vector) -> dict[str, str]:
    place = Place(**{**vector["place"], "vault": bytes.fromhex(vector["place"]["vault"])})
    key = SealingKey(SecretKey(bytes.fromhex(vector["key"])), epoch=vector["epoch"])
    return {"content": bytes(unseal(key, place, bytes.fromhex(vector["blob"]))).hex()}


# -- derivations ----------------------------------------------------------------------------


def _key(vector: Vector, name: str = "collection_key") -> SecretKey:
    return SecretKey(bytes.fromhex(vector[name]))


def _collection(vector: Vector) -> CollectionKeys:
    from memory_store.vault.collection_keys import Bundle

    return CollectionKeys(bytes(16), "3f1e", 0, Bundle.first(_key(vector)))


def _blinder(vector: Vector) -> Blinder:
    return Blinder(_key(vector).derive("blind"))


def _subkey(vector: Vector) -> str:
    derived = _key(vector, "secret").derive(vector["label"], bytes.fromhex(vector["context"]))
    return derived.buffer.hex()


def _argon2id(vector: Vector) -> str:
    cost = read_parameters(vector["parameters"]).cost
    salt = bytes.fromhex(vector["salt"])
    return key_from_passphrase(vector["passphrase"], salt, cost).buffer.hex()


def _recovery_code(vector: Vector) -> str:
    secret = decode_recovery_code(vector["text"])
    if secret is None:  # then it is taken for a passphrase
        raise BadInputError("not a recovery code")
    return secret.buffer.hex()


def _topic(vector: Vector) -> dict[str, str]:
    normalised = normalise_topic(vector["topic"])
    return {"normalised": normalised, "hash": _blinder(vector).topic(normalised).hex()}


DERIVATIONS: dict[str, Callable[[Vector], Any]] = {
    "subkey": _subkey,
    "argon2id": _argon2id,
    "recovery code": _recovery_code,
    "key file": lambda v: decode_key_file(v["text"].encode(), "kit.key").buffer.hex(),
    "topic": _topic,
    "term": lambda v: f"{_blinder(v).term(v['language'], v['stem']):016x}",
    "pair": lambda v: f"{_blinder(v).pair(int(v['first'], 16), int(v['second'], 16)):016x}",
    "content": lambda v: content_tag(_collection(v), v["title"], v["text"]).hex(),
    "row tag": lambda v: row_tag(
        _collection(v), v["memory"], v["version"], v["head"].encode()
    ).hex(),
    "account": lambda v: (
        f"{_collection(v).elements_of(0).total(b''.join(map(bytes.fromhex, v['tags']))):032x}"
    ),
    "tag": lambda v: Tagger(_key(v, "key")).tag(*map(bytes.fromhex, v["parts"]), length=32).hex(),
    "padded length": lambda v: padded_length(v["length"]),
}


def derivation(vector: Vector) -> dict[str, Any]:
    return {"result": DERIVATIONS[vector["what"]](vector)}


# -- slots ----------------------------------------------------------------------------------


def secret_of(kind: str, text: str) -> Secret:
    """A secret as its user writes it."""
    if kind == "passphrase":
        return Secret(kind, passphrase=text)
    if kind == "recovery":
        return Secret(kind, key=decode_recovery_code(text))
    return Secret(kind, key=decode_key_file(text.encode(), "kit.key"))


@contextmanager
def this_machine(vault: bytes, device: str | None) -> Iterator[None]:
    """A machine of its own, which has a device key of the vault, or none."""
    before = os.environ.get("MEMORY_STORE_STATE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = folder
        try:
            key = decode_device_key(device or "")
            if key is not None:
                device_keys.keep(vault, key)
            yield
        finally:
            os.environ.pop("MEMORY_STORE_STATE")
            if before is not None:
                os.environ["MEMORY_STORE_STATE"] = before


def slot(vector: Vector) -> dict[str, str]:
    row = {
        name: bytes.fromhex(cell) if name in ("salt", "commitment", "wrapped") else cell
        for name, cell in vector["slot"].items()
    }
    storage = Storage.open(":memory:")
    try:
        storage.create_tables()
        insert_slots(storage, Slot(**row, created="2024-01-01T00:00:00+00:00"))
        secret = secret_of(vector["given"]["kind"], vector["given"]["secret"])
        vault = bytes.fromhex(vector["vault"])
        with this_machine(vault, vector["given"].get("device")):
            opened = open_root(storage, vault, [secret])
        return {"root": opened.root.buffer.hex()}
    finally:
        storage.close()


# -- a whole vault --------------------------------------------------------------------------


def vault_file(path: Path, change: str) -> Path:
    """The kit's vault as a file, with a change made to it."""
    with closing(connect(path)) as connection:
        connection.executescript((Path(__file__).parent / "vault.sql").read_text("utf-8"))
        connection.executescript(change)
    return path


def opened_vault(
    path: Path, key_file: Path, kind: str, secret: str, device: str | None = None
) -> MemoryStore:
    """The vault, opened by a secret as its user writes it, and the code of a device key."""
    if device is not None:
        MemoryStore.import_device_key(path, device)
    if kind == "key-file":
        key_file.write_text(secret)
        key_file.chmod(0o600)
        return MemoryStore.open(path, key_file=key_file)
    if kind == "recovery":
        return MemoryStore.open(path, recovery_code=secret)
    return MemoryStore.open(path, passphrase=secret)


def memories(store: MemoryStore) -> list[dict[str, Any]]:
    """Everything that the vault holds, as the kit writes it."""
    return [
        {
            "id": memory.id,
            "collection": memory.collection,
            "title": memory.title,
            "topics": list(memory.topics),
            "text": memory.text,
        }
        for memory in sorted(store.list(limit=1_000), key=lambda memory: memory.id)
    ]


def refusals(store: MemoryStore) -> set[str]:
    """The kit's words for everything that verification finds."""
    return {_word(failure) for failure in store.verify()["failures"]}


ANSWERS: dict[str, Callable[[Vector], dict[str, Any]]] = {
    "sealed-values": sealed_value,
    "derivations": derivation,
    "slots": slot,
}
