"""The tables of keys: slots, wrapped collection keys, public keys, and what is signed for members.

Boundary: wrapped keys, public keys and sealed shares pass; no key that opens anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memory_store.vault.storage.collections import number
from memory_store.vault.storage.table import LISTED, Table, listed

TEXTS = ("id", "kind", "parameters", "created")
CELLS = (*TEXTS, "salt", "commitment", "wrapped")
"""The columns of a slot besides its principal, as :meth:`Slots.cells` gives them."""
_OF_PRINCIPALS = {
    "vault_slots": "principal",
    "vault_collection_keys": "principal",
    "vault_principals": "id",
    "vault_sources": "principal",
    "vault_identities": "principal",
}
"""Table → the column that says whose a row is."""


class Slots(Table):
    """The table ``vault_slots``: each row opens one principal's root key."""

    def cells(self, most: int, largest: int) -> list[tuple[Any, ...]]:
        """The cells of :data:`CELLS` as bytes, and the principal, of so many slots, oldest first.

        One that is larger than ``largest`` bytes is not read: so many zeros and one come instead.
        """
        cut = (
            f"iif(length(cast({name} as blob)) > {largest:d}, zeroblob({largest + 1:d}), "
            f"cast({name} as blob))"
            for name in CELLS
        )
        return self._all(
            f"""
            select {", ".join(cut)}, case typeof(principal) when 'integer' then principal end
            from vault_slots order by created, id limit ?
            """,
            (most,),
        )

    def count(self) -> int:
        """How many there are."""
        return self._number("select count(*) from vault_slots")

    def exists(self, slot: str) -> bool:
        """Whether there is one of that id."""
        return self._first("select 1 from vault_slots where id = ?", (slot,)) is not None

    def insert(self, slots: Sequence[Mapping[str, Any]]) -> None:
        """Write slots of the same columns, in the places of those of their ids."""
        rows = [[*slot.values()] for slot in slots]
        self._insert(f"or replace into vault_slots ({', '.join(slots[0])})", *rows)

    def replace(self, slot: Mapping[str, Any], before: bytes) -> bool:
        """Write a slot anew, if its commitment is still the one of ``before``. Whether it was."""
        changed = self._changed(
            """
            update vault_slots
            set parameters = :parameters, salt = :salt, commitment = :commitment, wrapped = :wrapped
            where id = :id and commitment = :before
            """,
            {**slot, "before": before},
        )
        return bool(changed)

    def delete(self, slot: str) -> None:
        """Take a slot away."""
        self._run("delete from vault_slots where id = ?", (slot,))

    def delete_of(self, principal: int) -> None:
        """Take all slots of a principal away."""
        self._run("delete from vault_slots where principal = ?", (principal,))


class HeldKeys(Struct, frozen=True):
    """A principal's (collection, epoch, wrapped) keys at one moment.

    In clear beside them: ``root``, how often the owner's root key was replaced (None: never), and
    the ``revision`` of the settings.
    """

    root: Any
    revision: int | None
    keys: list[tuple[Any, ...]]


class WrappedKeys(Table):
    """The table ``vault_collection_keys``: a collection's key, for each principal and epoch."""

    def of(self, principal: int) -> HeldKeys:
        """What a principal's keys are now, and whether others replaced keys or settings."""
        rows = self._all(
            """
            select vault.root, vault.revision, own.collection, own.epoch, own.wrapped
            from (
                select (select value from vault_settings where name = 'root') as root,
                    (select value from vault_settings where name = 'settings') as revision
            ) as vault
            left join vault_collection_keys as own on own.principal = ?
            order by own.collection, own.epoch
            """,
            (principal,),
        )
        root, revision = rows[0][:2]
        keys = [tuple(key) for _, _, *key in rows if any(part is not None for part in key)]
        return HeldKeys(root, number(revision), keys)

    def insert(self, keys: Sequence[tuple[str, int, int, bytes]]) -> None:
        """Write (collection, epoch, principal, wrapped)."""
        columns = "collection, epoch, principal, wrapped"
        self._insert(f"or replace into vault_collection_keys ({columns})", *keys)

    def delete_before(self, collection: str, epoch: int) -> None:
        """Destroy the keys of a collection's earlier epochs."""
        self._run(
            "delete from vault_collection_keys where collection = ? and epoch < ?",
            (collection, epoch),
        )

    def delete_of(self, collection: str) -> None:
        """Destroy every key of a collection."""
        self._run("delete from vault_collection_keys where collection = ?", (collection,))

    def take_back(self, principal: int, collections: Iterable[str]) -> None:
        """Take a principal's keys of some collections away."""
        self._run(
            f"delete from vault_collection_keys where principal = ? and collection {LISTED}",
            (principal, listed(collections)),
        )

    def without_row(self, principal: int, scope: str) -> str | None:
        """A collection that the principal has keys of, and that has no row; ``scope`` is none."""
        return self._value(
            """
            select collection from vault_collection_keys
            where principal = ? and collection != ?
              and collection not in (select id from collections) limit 1
            """,
            (principal, scope),
        )


class Principals(Table):
    """The tables ``vault_principals`` and ``vault_identities``: who there is, by public keys."""

    def insert(self, principal: int, created: str) -> None:
        """Note that there is such a principal."""
        self._insert("or replace into vault_principals (id, created)", (principal, created))

    def public(self, principal: int) -> bytes | None:
        """A principal's public keys; None where the file holds none."""
        if not self.has("vault_identities"):
            return None
        return self._value("select public from vault_identities where principal = ?", (principal,))

    def write_public(self, principal: int, public: bytes) -> None:
        """Replace a principal's public keys."""
        self._insert("or replace into vault_identities (principal, public)", (principal, public))

    def forget(self, principal: int) -> None:
        """Take a principal away who has no collection's key any more."""
        for table, column in _OF_PRINCIPALS.items():
            if table != "vault_collection_keys":
                self._run(f"delete from {table} where {column} = ?", (principal,))

    def forget_others(self, principal: int) -> None:
        """Take away everyone but one: slots, keys, public keys, sources, and what is shared."""
        for table, column in _OF_PRINCIPALS.items():
            self._run(f"delete from {table} where {column} != ?", (principal,))
        self._run("delete from vault_shares")


class Shares(Table):
    """The table ``vault_shares``: what the owner signs for those who share a collection."""

    def of(self, collection: str) -> bytes | None:
        """The sealed share of a collection."""
        return self._value("select sealed from vault_shares where collection = ?", (collection,))

    def all(self) -> tuple[tuple[str, bytes], ...]:
        """(collection, sealed share) of all there are."""
        return tuple(self._all("select collection, sealed from vault_shares order by collection"))

    def write(self, collection: str, sealed: bytes) -> None:
        """Replace a collection's share."""
        self._insert("or replace into vault_shares (collection, sealed)", (collection, sealed))

    def delete(self, collection: str) -> None:
        """Take a collection's share away."""
        self._run("delete from vault_shares where collection = ?", (collection,))
