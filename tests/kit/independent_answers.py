"""What the independent reader says to the test kit: ``python independent_answers.py``.

It uses nothing of ``memory_store``. Another implementation would do the same.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from independent_reader import open_vault
from independent_sealing import (
    Place,
    Refused,
    Slot,
    account_total,
    argon2id,
    content_hash,
    derived,
    key_file_secret,
    normalised_topic,
    opened,
    padded_length,
    pair,
    recovery_secret,
    row_tag,
    tag,
    term,
    topic_hash,
)

Vector = dict[str, Any]
KIT = Path(__file__).parent


def value_vector(vector: Vector) -> Vector:
    place = Place(**{**vector["place"], "vault": bytes.fromhex(vector["place"]["vault"])})
    key, blob = bytes.fromhex(vector["key"]), bytes.fromhex(vector["blob"])
    return {"content": opened(key, place, blob, vector["epoch"]).hex()}


def topic_vector(vector: Vector) -> dict[str, str]:
    hashed = topic_hash(derived(bytes.fromhex(vector["collection_key"]), "blind"), vector["topic"])
    return {"normalised": normalised_topic(vector["topic"]), "hash": hashed.hex()}


def derivation_vector(vector: Vector) -> Vector:
    """What the vector's ``what`` names, of what it gives."""
    given = {**vector}
    for name in ("secret", "context", "salt", "collection_key", "key"):
        if name in given:
            given[name] = bytes.fromhex(given[name])
    key = given.get("collection_key", b"")
    result: Any
    match given["what"]:
        case "subkey":
            result = derived(given["secret"], given["label"], given["context"]).hex()
        case "argon2id":
            result = argon2id(given["passphrase"], given["salt"], given["parameters"]).hex()
        case "recovery code":
            result = recovery_secret(given["text"]).hex()
        case "key file":
            result = key_file_secret(given["text"].encode()).hex()
        case "topic":
            result = topic_vector(vector)
        case "term":
            result = f"{term(derived(key, 'blind'), given['language'], given['stem']):016x}"
        case "pair":
            both = (int(given[name], 16) for name in ("first", "second"))
            result = f"{pair(derived(key, 'blind'), *both):016x}"
        case "content":
            result = content_hash(derived(key, "dedupe"), given["title"], given["text"]).hex()
        case "row tag":
            head = given["head"].encode()
            dedupe = derived(key, "dedupe")
            result = row_tag(dedupe, given["memory"], given["version"], head).hex()
        case "account":
            result = f"{account_total(key, map(bytes.fromhex, given['tags'])):032x}"
        case "tag":
            result = tag(given["key"], *map(bytes.fromhex, given["parts"]), length=32).hex()
        case "padded length":
            result = padded_length(given["length"])
    return {"result": result}


def slot_vector(vector: Vector) -> Vector:
    row = {
        name: bytes.fromhex(cell) if name in ("salt", "commitment", "wrapped") else cell
        for name, cell in vector["slot"].items()
    }
    root = Slot(**row).root(bytes.fromhex(vector["vault"]), **vector["given"])
    return {"root": root.hex()}


def vault_vector(vector: Vector) -> Vector:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((KIT / "vault.sql").read_text("utf-8"))
        connection.executescript(vector["change"])
        vault = open_vault(connection, **vector["given"])
        names = vault.collections()
        notes = sorted(vault.notes(), key=lambda note: note.id)
    return {
        "memories": [
            {
                "id": note.id,
                "collection": names[note.collection],
                "title": note.title,
                "topics": list(note.topics),
                "text": note.text,
            }
            for note in notes
        ]
    }


ANSWERS = {
    "vault": vault_vector,
    "sealed-values": value_vector,
    "derivations": derivation_vector,
    "slots": slot_vector,
}


def disagreement(name: str, vector: Vector) -> str | None:
    """What this reader makes of a vector, where that is not what the kit says."""
    try:
        made = ANSWERS[name](vector)
    except Refused as refusal:
        return None if refusal.outcome == vector["outcome"] else refusal.outcome
    expected = {key: vector.get(key) for key in made}
    return None if made == expected else f"{made}"


def main() -> None:
    """Run every vector; print how many there are of each outcome."""
    for name in ANSWERS:
        vectors = json.loads((KIT / f"{name}.json").read_text("utf-8"))["vectors"]
        for vector in vectors:
            found = disagreement(name, vector)
            if found is not None:
                raise SystemExit(f"{vector['id']}: {vector['outcome']} expected, not {found}")
        outcomes = Counter(vector["outcome"] for vector in vectors)
        listed = ", ".join(f"{word} {count}" for word, count in outcomes.most_common())
        print(f"{name}: {len(vectors)} vectors agree ({listed})")


if __name__ == "__main__":
    main()
