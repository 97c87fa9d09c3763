"""A second reader of vaults, written from docs/how-it-works/format.md without ``memory_store``.

    python independent_reader.py notes.db --key-file notes.key

It prints titles, topics and texts: the owner's, or what is shared with whose key it is. It refuses
what the format says.
"""

from __future__ import annotations

import argparse
import getpass
import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from independent_sealing import (
    Bundle,
    Place,
    Refused,
    Slot,
    account_total,
    content_hash,
    derived,
    element,
    normalised_topic,
    opened,
    own_hash,
    row_tag,
    topic_hash,
)
from independent_sharing import Grant, known_identity, share_content

SCOPE = "vault"
OWNER = 0
VAULT_FORMATS = (1, 2, 3)
PURPOSES = {
    ("vault_manifests", "sealed"): "manifest",
    ("memories", "head"): "head",
    ("memory_bodies", "body"): "body",
    ("vault_sources", "head"): "path",
    ("vault_shares", "sealed"): "share",
    ("vault_segments", "main"): "segment",
    ("vault_segments", "vectors"): "segment",
    ("vault_segments", "pairs"): "segment",
    ("vault_segment_parts", "sealed"): "segment",
    ("vault_settings", "sealed"): "head",
    ("vault_expansions", "sealed"): "expansion",
    ("vault_audit", "sealed"): "audit",
    ("vault_trash", "sealed"): "trash",
    ("vault_trash", "body"): "trash",
    ("vault_sync", "sealed"): "sync",
}

EARLIER_NAME = ("collections", "name")
PLACES = {
    ("vault_manifests", "sealed"): "collection, collection, counter",
    ("memories", "head"): "collection, id, version",
    ("memory_bodies", "body"): "collection, id || '|' || lower(hex(tag)), 0",
    ("vault_sources", "head"): "'vault', id || '|' || collection, 0",
    ("vault_shares", "sealed"): "collection, collection, 0",
    ("vault_segments", "main"): "collection, id || '|' || model || '|' || documents, sequence",
    ("vault_segments", "vectors"): "collection, id || '|' || model || '|' || documents, sequence",
    ("vault_segments", "pairs"): "collection, id || '|' || model || '|' || documents, sequence",
    ("vault_segment_parts", "sealed"): (
        "(select collection from vault_segments where id = segment), "
        "segment || '|' || kind || '|' || "
        "(select model || '|' || documents from vault_segments where id = segment), "
        "(select sequence from vault_segments where id = segment)"
    ),
    ("vault_settings", "sealed"): "'vault', name, cast(value as integer)",
    ("vault_expansions", "sealed"): "'vault', lower(hex(tag)), 0",
    ("vault_audit", "sealed"): "'vault', cast(sequence as text), 0",
    ("vault_trash", "sealed"): "collection, cast(sequence as text), 0",
    ("vault_trash", "body"): "collection, cast(sequence as text), 0",
    ("vault_sync", "sealed"): "'vault', lower(hex(tag)), 0",
}
"""Collection, row and version of a sealed cell's place, as SQL."""


@dataclass(frozen=True)
class Note:
    """A memory as it was read."""

    id: str
    collection: str
    title: str
    topics: tuple[str, ...]
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A sealed cell of the file: where it is, what opens it."""

    table: str
    column: str
    rowid: int
    key: bytes
    epoch: int
    place: Place
    blob: bytes


@dataclass
class Vault:
    """An opened vault. Made by :func:`open_vault`."""

    connection: sqlite3.Connection
    id: bytes
    principal: int
    root: bytes
    pin: bytes = b""
    keys: dict[tuple[str, int], Bundle] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def open(
        self, collection: str, column: tuple[str, str], row: str, version: int, blob: Any
    ) -> bytes:
        """The content of a sealed cell of a collection, under the epoch that it names."""
        table, name = column
        epoch = int.from_bytes(blob[2:6], "big") if isinstance(blob, bytes) else 0
        bundle = self.keys.get((collection, epoch)) or self.newest(collection)
        place = Place(self.id, collection, table, name, row, version)
        purpose = "name" if column == EARLIER_NAME else PURPOSES[column]
        return opened(derived(bundle.key, purpose), place, blob, bundle.epoch)

    def newest(self, collection: str) -> Bundle:
        epochs = [epoch for name, epoch in self.keys if name == collection]
        if not epochs:
            raise Refused("missing key", collection)
        return self.keys[collection, max(epochs)]

    def load_keys(self) -> None:
        rows = self.connection.execute(
            "select collection, epoch, wrapped from vault_collection_keys where principal = ?",
            (self.principal,),
        )
        for collection, epoch, wrapped in rows.fetchall():
            self.keys[collection, epoch] = Bundle.of(
                epoch, self._unwrapped(collection, epoch, wrapped)
            )

    def _unwrapped(self, collection: str, epoch: int, wrapped: Any) -> bytes:
        """What is wrapped for this principal: for the owner sealed, for others granted."""
        if self.principal != OWNER:
            owner = known_identity(self.connection, OWNER, self.pin)
            grant = Grant(self.id, collection, epoch, self.principal, wrapped)
            return grant.opened(self.root, owner)
        row = f"principal {self.principal}"
        place = Place(self.id, collection, "vault_collection_keys", "wrapped", row, epoch)
        return opened(derived(self.root, "principal-wrap"), place, wrapped)

    def load_settings(self) -> None:
        """What is said of the vault to this principal, held against the keys that are there."""
        if self.principal == OWNER:
            self._load_own_settings()
        else:
            self._load_shares()
        scopes = [SCOPE] if self.principal == OWNER else []
        wanted = {(name, 0) for name in (*scopes, *self.settings["collections"])}
        for one in self.settings.get("epochs", ()):
            wanted.discard((one["collection"], 0))
            wanted |= {
                (one["collection"], e) for e in (one["epoch"], one["before"]) if e is not None
            }
        if wanted - self.keys.keys():
            raise Refused("missing key", "vault_collection_keys")
        if self.keys.keys() - wanted:
            raise Refused("key put back", "vault_collection_keys")

    def _load_own_settings(self) -> None:
        """The owner's: his sealed settings, no older than an account says."""
        (revision, sealed) = self._row(
            "select cast(value as integer), sealed from vault_settings where name = 'settings'"
        )
        content = self.open(SCOPE, ("vault_settings", "sealed"), "settings", revision, sealed)
        self.settings = json.loads(content)
        if self.settings["personal"] not in {name for name, _ in self.keys}:
            raise Refused("missing key", "vault_collection_keys")
        account, _ = self.account(self.settings["personal"])
        if self.settings["revision"] < account["revision"]:
            raise Refused("older settings", "vault_settings")

    def _load_shares(self) -> None:
        """Another person's: what is said of each collection that is shared with him."""
        shares = {}
        for collection in {name for name, _ in self.keys}:
            (sealed,) = self._row(
                "select sealed from vault_shares where collection = ?", collection
            )
            content = self.open(collection, ("vault_shares", "sealed"), collection, 0, sealed)
            owner = known_identity(self.connection, OWNER, self.pin)
            shares[collection] = json.loads(share_content(self.id, collection, content, owner))
            account, _ = self.account(collection)
            if shares[collection]["revision"] < account["revision"]:
                raise Refused("older share", "vault_shares")
        if not shares:
            raise Refused("nothing shared")
        if len({one["dedupe"] for one in shares.values()}) != 1:
            raise Refused("shares of several owners", "vault_shares")
        epochs = [
            {"collection": name, "epoch": one["epoch"], "before": one["before"]}
            for name, one in shares.items()
        ]
        usual = {"topics": "table", **next(iter(shares.values()))}
        reported = {name: usual[name] for name in ("profile", "topics")}
        self.settings = {
            **reported,
            "collections": [*shares],
            "epochs": epochs,
            "names": {name: one["name"] for name, one in shares.items()},
            "format": 3,
        }

    def account(self, collection: str) -> tuple[dict[str, Any], Bundle]:
        (counter, sealed) = self._row(
            "select counter, sealed from vault_manifests where collection = ?", collection
        )
        content = self.open(collection, ("vault_manifests", "sealed"), collection, counter, sealed)
        return json.loads(content), self.keys[collection, int.from_bytes(sealed[2:6], "big")]

    def check_account(self, collection: str) -> None:
        """The memories that are there are those that were written last."""
        account, bundle = self.account(collection)
        rows = self.connection.execute(
            "select id, version, head from memories where collection = ?", (collection,)
        ).fetchall()
        if account["count"] != len(rows):
            raise Refused("account", "vault_manifests")
        if account.get("format", 2) < 3:
            total = sum(element(bundle.key, memory, version) for memory, version, _ in rows)
            total %= 2**256
        else:
            tags = [self._row_tag(collection, bundle, *row) for row in rows]
            total = account_total(bundle.key, tags)
        if int(account["total"], 16) != total:
            raise Refused("account", "vault_manifests")

    def _row_tag(
        self, collection: str, bundle: Bundle, memory: str, version: int, head: bytes
    ) -> bytes:
        content = self.open(collection, ("memories", "head"), memory, version, head)
        return row_tag(bundle.dedupe, memory, version, content)

    def _row(self, query: str, *values: str) -> tuple[Any, ...]:
        row = self.connection.execute(query, values).fetchone()
        if row is None:
            raise Refused("account" if "manifests" in query else "missing row", query)
        return tuple(row)

    # -- what it holds

    def collections(self) -> dict[str, str]:
        """Id and name of every collection; before format 3 names were in its row."""
        if self.settings.get("format", 0) >= 3:
            return dict(self.settings["names"])
        rows = self.connection.execute("select id, name from collections order by rowid")
        return {
            collection: self.open(collection, EARLIER_NAME, collection, 0, name).decode()
            for collection, name in rows.fetchall()
            if self._is_mine(collection)
        }

    def _is_mine(self, collection: str) -> bool:
        """Whether it is this principal's to read: of the owner's, all are."""
        return self.principal == OWNER or any(name == collection for name, _ in self.keys)

    def notes(self) -> list[Note]:
        """Every memory, checked."""
        rows = self.connection.execute(
            "select id, collection, type, created, updated, version, content, head from memories"
        )
        return [self._note(*row) for row in rows.fetchall() if self._is_mine(row[1])]

    def _note(
        self, id: str, collection: str, type: str, created: str, updated: str,
        version: int, content: str, sealed: bytes,
    ) -> Note:  # fmt: skip
        head = json.loads(self.open(collection, ("memories", "head"), id, version, sealed))
        clear = (head["type"], head["created"], head["updated"])
        strict = self.settings["profile"] == "strict"
        if (type, created, updated) != ((None,) * 3 if strict else clear):
            raise Refused("clear column", f"memories {id}")
        if content != head["content"]:
            raise Refused("another body", f"memories {id}")
        text = self._body(collection, content, head["title"], id)
        self._check_topics(collection, id, head["topics"])
        topics = tuple(head["topics"])
        return Note(id, collection, head["title"], topics, text, head["metadata"])

    def _body(self, collection: str, content: str, title: str, memory: str) -> str:
        row = self.connection.execute(
            "select tag, body from memory_bodies where id = ?", (content,)
        ).fetchone()
        if row is None:
            raise Refused("missing body", content)
        hashed, sealed = row
        place = f"{content}|{hashed.hex()}"
        text = str(
            self.open(collection, ("memory_bodies", "body"), place, 0, sealed),
            "utf-8",
            "surrogatepass",
        )
        dedupe = self.newest(collection).dedupe
        hashes = (content_hash(dedupe, title, text), own_hash(dedupe, memory))
        if not any(hashed in self._stored(collection, one) for one in hashes):
            raise Refused("content hash", content)
        return text

    def _check_topics(self, collection: str, memory: str, topics: list[str]) -> None:
        rows = self.connection.execute(
            "select topic from memory_topics where memory = ?", (memory,)
        )
        stored = {row[0] for row in rows}
        blind = self.newest(collection).blind
        hashes = [topic_hash(blind, topic) for topic in topics if normalised_topic(topic)]
        forms = [self._stored(collection, hashed) for hashed in hashes]
        whole = self.settings["profile"] != "strict"
        whole = whole and self.settings.get("topics", "table") == "table"
        missing = whole and not all(stored & form for form in forms)
        if missing or stored - {form for some in forms for form in some}:
            raise Refused("topics", memory)

    def _stored(self, collection: str, hashed: bytes) -> set[bytes]:
        """How a keyed hash may stand in the file: in each of the collection's epochs."""
        return {b.stored(hashed) for (name, _), b in self.keys.items() if name == collection}

    # -- every sealed cell

    def cells(self) -> Iterator[Cell]:
        """Every sealed cell of the vault, but those of the slots."""
        wrap, principal = derived(self.root, "principal-wrap"), f"principal {self.principal}"
        for rowid, collection, epoch, blob in self.connection.execute(
            "select rowid, collection, epoch, wrapped from vault_collection_keys"
            " where principal = ?",
            (self.principal,),
        ):
            table, column = "vault_collection_keys", "wrapped"
            place = Place(self.id, collection, table, column, principal, epoch)
            yield Cell(table, column, rowid, wrap, 0, place, blob)
        names = {row[0] for row in self.connection.execute("select name from sqlite_master")}
        for (table, column), where in PLACES.items():
            if table not in names:  # of a vault made before there was such a table
                continue
            mine = f"and principal = {self.principal}" if table == "vault_sources" else ""
            rows = self.connection.execute(
                f"select rowid, {where}, {column} from {table} where {column} is not null {mine}"
            )
            for rowid, collection, row, version, blob in rows.fetchall():
                bundle = self.keys[collection, int.from_bytes(blob[2:6], "big")]
                key = derived(bundle.key, PURPOSES[table, column])
                place = Place(self.id, collection, table, column, row, version)
                yield Cell(table, column, rowid, key, bundle.epoch, place, blob)


def open_vault(
    connection: sqlite3.Connection, kind: str, secret: str, device: str | None = None
) -> Vault:
    """The vault that a secret of some kind opens, its keys and settings checked.

    ``device`` is the code of a device key, for a passphrase that needs one.
    """
    check_file(connection)
    (vault,) = connection.execute(
        "select value from vault_settings where name = 'vault'"
    ).fetchone()
    identity = bytes.fromhex(vault)
    rows = connection.execute(
        "select id, principal, kind, parameters, salt, commitment, wrapped from vault_slots"
    ).fetchall()
    refusals = []
    for slot in (Slot(*row) for row in rows):
        try:
            content = slot.content(identity, kind, secret, device)
        except Refused as refusal:  # another slot may be what was written
            refusals.append(refusal)
            continue
        opened_vault = Vault(connection, identity, slot.principal, content[:32], content[32:])
        opened_vault.load_keys()
        opened_vault.load_settings()
        for collection in opened_vault.settings["collections"]:
            opened_vault.check_account(collection)
        return opened_vault
    others = [refusal for refusal in refusals if refusal.outcome != "wrong secret"]
    raise next(iter(others), Refused("wrong secret"))


def check_file(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("pragma user_version").fetchone()
    if version not in VAULT_FORMATS:
        raise Refused("unknown format")
    (hostile,) = connection.execute(
        """
        select count(*) from sqlite_master where type = 'trigger'
        or ((type = 'view' or type = 'table' and rootpage = 0) and (name like 'vault!_%' escape '!'
        or name like 'memor%' or name = 'collections'))
        """
    ).fetchone()
    if hostile:
        raise Refused("hostile schema")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("vault", type=Path)
    parser.add_argument("--key-file", type=Path, help="else a passphrase is asked for")
    parser.add_argument("--recovery-code", action="store_true", help="ask for that instead")
    given = parser.parse_args()
    if given.key_file is not None:
        kind, secret = "key-file", given.key_file.read_text()
    else:
        kind = "recovery" if given.recovery_code else "passphrase"
        secret = getpass.getpass()
    connection = sqlite3.connect(f"{given.vault.absolute().as_uri()}?mode=ro", uri=True)
    try:
        for note in open_vault(connection, kind, secret).notes():
            print(f"# {note.title}\n{' '.join(note.topics)}\n{note.text}\n")
    except Refused as refusal:
        sys.exit(str(refusal))
    finally:
        connection.close()


if __name__ == "__main__":
    main()
