"""Makes the vault of the test kit: ``python make_vault.py``. Run once for a format, then only read.

Writes ``vault.sql``, which ``sqlite3 kit.db < vault.sql`` turns into the vault, and ``vault.json``:
the secrets that open it, what it holds, and changes to it that must be refused. Secrets and ids are
random, and published here: they protect nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memory_store.crypto.keys import Argon2Parameters
from memory_store.records import MemoryDraft
from memory_store.sqlite import connect, sqlite3
from memory_store.store import MemoryStore
from memory_store.vault import device_keys, opened_slots, passphrase_slots, slots
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import FORMAT_VERSION

HERE = Path(__file__).parent
PASSPHRASE = "a published passphrase"
AGAIN = "5d0e1c1a-7a0b-4a52-8c55-3b7f0f9a6f01"
CHEAP = Argon2Parameters(19_456, 2, 1)
Vector = dict[str, Any]


def fill(store: MemoryStore) -> str:
    """Two collections, one of them with its key replaced, a shared body, an edit, and a memory that
    was made again with its id. Returns the SQL that puts the first one of those back."""
    store.collections.create("mill")
    store.keys.rotate("mill")
    first, _, _ = store.add_many(
        [
            MemoryDraft("The spare key hangs in the boathouse.", title="Key", topics=("keys",)),
            MemoryDraft("Größe der Dachkammer: 3,20 m 🎉", title="Dachkammer", topics=("Häuser",)),
            MemoryDraft("The weir is opened in March.", topics=("lake", "#Spring Time")),
        ],
        embed=False,
    )
    store.add_many(
        [
            MemoryDraft("The ledger is reconciled on Fridays.", collection="mill"),
            MemoryDraft("The ledger is reconciled on Fridays.", collection="mill", title="Again"),
        ],
        embed=False,
    )
    store.edit(first.id, text="The spare key hangs in the mill.")
    store.add("The gate is open.", title="Gate", id=AGAIN)
    before = rows_of_again(store.path)
    store.delete(AGAIN)
    store.add("The gate is shut.", title="Gate", id=AGAIN)
    return before


def rows_of_again(path: Path) -> str:
    """SQL that puts the present row of a memory, and its body, in the place of what is there."""
    with closing(connect(path, read_only=True)) as connection:
        body = connection.execute(
            """
            select b.id, quote(b.tag), quote(b.body) from memory_bodies b
            join memories m on m.content = b.id where m.id = ?
            """,
            (AGAIN,),
        ).fetchone()
        head, created, updated = connection.execute(
            "select quote(head), created, updated from memories where id = ?", (AGAIN,)
        ).fetchone()
    return (
        f"update memory_bodies set id = '{body[0]}', tag = {body[1]}, body = {body[2]} "
        f"where id = (select content from memories where id = '{AGAIN}'); "
        f"update memories set content = '{body[0]}', head = {head}, created = '{created}', "
        f"updated = '{updated}' where id = '{AGAIN}'"
    )


def cheaper(path: Path) -> None:
    """Give the passphrase's slot the least cost that is read: the kit is opened often."""
    with closing(connect(path)) as connection:
        vault = bytes.fromhex(
            connection.execute("select value from vault_settings where name = 'vault'").fetchone()[
                0
            ]
        )
        secret = slots.Secret(slots.PASSPHRASE, passphrase=PASSPHRASE)
        opened = opened_slots.open_root(Storage(connection), vault, [secret])
        reported = passphrase_slots.read_parameters(opened.slot.parameters)
        parameters = passphrase_slots.written(CHEAP, reported.device, reported.device_key)
        device = device_keys.read(vault, reported.device)
        key = secret.key_for(opened.slot.salt, CHEAP, device)
        commitment = bytes(key.derive("commitment").buffer)
        tuned = replace(opened.slot, parameters=parameters, commitment=commitment)
        slots.insert_slots(Storage(connection), slots.rewrapped(tuned, vault, key, opened.root))


def dump(connection: sqlite3.Connection) -> str:
    """The database as SQL, with the two numbers of its header."""
    (version,) = connection.execute("pragma user_version").fetchone()
    (application,) = connection.execute("pragma application_id").fetchone()
    lines = (line for line in connection.iterdump() if "sqlite_sequence" not in line)
    pragmas = (f"PRAGMA user_version={version};", f"PRAGMA application_id={application};")
    return "\n".join((*pragmas, *lines)) + "\n"


def changes(connection: sqlite3.Connection, before: str) -> Iterator[tuple[str, str, str]]:
    """Outcome, what is done to the file, and the SQL that does it."""
    one, other = (
        row[0]
        for row in connection.execute("select id from memories order by rowid limit 2").fetchall()
    )
    yield "unknown format", "a later format", "pragma user_version = 4"
    yield "unknown format", "no format", "pragma user_version = 0"
    trigger = "create trigger spy after insert on memories begin select 1; end"
    yield "hostile schema", "a trigger", trigger
    yield "hostile schema", "a view beside the tables", "create view memories_all as select 1"
    sealed = {
        "memories": "head",
        "memory_bodies": "body",
        "vault_settings": "sealed",
        "vault_manifests": "sealed",
        "vault_collection_keys": "wrapped",
    }
    for table, column in sealed.items():
        last = f"substr({column}, 1, length({column}) - 1)"
        byte = f"case substr({column}, -1) when x'00' then x'01' else x'00' end"
        flip = f"cast({last} || {byte} as blob)"
        where = f"where rowid = (select min(rowid) from {table} where {column} is not null)"
        yield (
            "not authentic",
            f"{table}.{column}: last byte",
            f"update {table} set {column} = {flip} {where}",
        )
        cut = f"update {table} set {column} = substr({column}, 1, 90) {where}"
        yield "too short", f"{table}.{column}: cut to 90 bytes", cut
    for what, statement in {
        "the head of another memory": (
            f"update memories set head = (select head from memories where id = '{other}') "
            f"where id = '{one}'"
        ),
        "the text of another memory": (
            "update memory_bodies set body = (select body from memory_bodies b where "
            "b.rowid != memory_bodies.rowid limit 1) where rowid = "
            "(select min(rowid) from memory_bodies)"
        ),
        "a wrapped key for another principal": "update vault_slots set principal = 1",
        "the wrapped key of another collection": (
            "update vault_collection_keys set wrapped = (select wrapped from "
            "vault_collection_keys where collection = 'vault') where epoch = 1"
        ),
        "an account said to be older": "update vault_manifests set counter = counter - 1",
        "settings said to be older": (
            "update vault_settings set value = value - 1 where name = 'settings'"
        ),
        "another vault's id": (
            "update vault_settings set value = '00112233445566778899aabbccddeeff' "
            "where name = 'vault'"
        ),
        "the tag of another body": (
            "update memory_bodies set tag = x'00112233445566778899aabbccddeeff' "
            "where rowid = (select min(rowid) from memory_bodies)"
        ),
    }.items():
        yield "not authentic", what, statement
    account = (
        "(select sealed from vault_manifests m where m.collection != vault_manifests.collection)"
    )
    elsewhere = f"update vault_manifests set sealed = {account} where rowid = 1"
    yield "unknown suite or epoch", "the account of another collection, in epoch 1", elsewhere
    yield "account", "a memory taken away", f"delete from memories where id = '{one}'"
    yield "account", "the row of a memory that was made again since", before
    yield "account", "an account taken away", "delete from vault_manifests where rowid = 1"
    for column, value in (("type", "code"), ("created", "2001-01-01T00:00:00Z"), ("updated", "")):
        statement = f"update memories set {column} = '{value}' where id = '{one}'"
        yield "clear column", f"another {column}", statement
    yield "clear column", "no type", f"update memories set type = null where id = '{one}'"
    moved = f"update memories set content = (select content from memories where id = '{other}')"
    yield "another body", "the body of another memory", f"{moved} where id = '{one}'"
    yield "missing body", "bodies taken away", "delete from memory_bodies"
    yield "topics", "topics taken away", "delete from memory_topics"
    yield (
        "topics",
        "another topic hash",
        f"update memory_topics set topic = x'{'00' * 16}' where rowid = 1",
    )
    gone = "delete from vault_collection_keys where epoch = 1"
    yield "missing key", "a collection's key taken away", gone
    yield (
        "missing row",
        "the settings taken away",
        "delete from vault_settings where name = 'settings'",
    )
    weak = """{"memory_kib": 8, "iterations": 1, "lanes": 1}"""
    yield "weak cost", "a cheaper passphrase", f"update vault_slots set parameters = '{weak}'"


def made(folder: Path) -> tuple[Path, dict[str, str], str]:
    """A filled vault, the secrets that open it, and what :func:`fill` returns."""
    path, key_file = folder / "vault" / "kit.db", folder / "keys" / "kit.key"
    for parent in (path.parent, key_file.parent):
        parent.mkdir(mode=0o700)
    store, code = MemoryStore.create(path, key_file=key_file, passphrase=PASSPHRASE)
    with store:
        before = fill(store)
    cheaper(path)
    secrets = {
        "key-file": key_file.read_text(),
        "recovery": code,
        "passphrase": PASSPHRASE,
        "device": Path(store.device_keys(path)[0].path).read_text().strip(),
    }
    return path, secrets, before


def vectors(
    connection: sqlite3.Connection, secrets: dict[str, str], held: list[Vector], before: str
) -> list[Vector]:
    wrong = {
        "key-file": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n",
        "recovery": "AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA",
        "passphrase": PASSPHRASE + " ",
    }
    found: list[Vector] = []
    device = secrets.pop("device")
    for kind, secret in secrets.items():
        given = {"kind": kind, "secret": secret}
        if kind == "passphrase":
            alone = {"what": "its passphrase without the device key", "change": "", "given": given}
            found.append({"outcome": "missing device key", **alone})
            given = {**given, "device": device}
        whole = {"what": f"opened by its {kind}", "change": "", "given": given}
        found.append({"outcome": "opens", **whole, "memories": held})
        other = {**given, "secret": wrong[kind]}
        found.append(
            {"outcome": "wrong secret", "what": f"another {kind}", "change": "", "given": other}
        )
    for outcome, what, change in changes(connection, before):
        kind = "passphrase" if outcome == "weak cost" else "key-file"
        given = {"kind": kind, "secret": secrets[kind]}
        found.append({"outcome": outcome, "what": what, "change": change, "given": given})
    return [{"id": f"vault-{number:03}", **vector} for number, vector in enumerate(found, 1)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("CACHE", "CONFIG", "STATE"):
            os.environ[f"MEMORY_STORE_{name}"] = str(Path(folder) / name)
        os.environ["MEMORY_STORE_OFFLINE"] = "1"
        path, secrets, before = made(Path(folder))
        with MemoryStore.open(path, key_file=Path(folder) / "keys" / "kit.key") as store:
            held = sorted(
                (
                    {
                        "id": memory.id,
                        "collection": memory.collection,
                        "title": memory.title,
                        "topics": list(memory.topics),
                        "text": memory.text,
                    }
                    for memory in store.list()
                ),
                key=lambda memory: str(memory["id"]),
            )
        with closing(connect(path)) as connection:
            (HERE / "vault.sql").write_text(dump(connection), "utf-8")
            lines = [json.dumps(one) for one in vectors(connection, secrets, held, before)]
    head = json.dumps({"format": FORMAT_VERSION, "about": ABOUT})[:-1]
    text = f'{head}, "vectors": [\n' + ",\n".join(lines) + "\n]}\n"
    (HERE / "vault.json").write_text(text, "utf-8")


ABOUT = (
    "Make the vault of vault.sql, run `change` on it, open it with the secret as its user writes "
    "it (and the code of the `device` key at hand, if any) and read everything. Outcome `opens` "
    "gives `memories`; every other outcome is how it must be refused."
)

if __name__ == "__main__":
    main()
