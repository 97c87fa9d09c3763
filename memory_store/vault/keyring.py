"""The unlocked keys of a vault: what one principal may read, and nothing else.

Boundary: exists from unlock to lock. :meth:`Keyring.wipe` overwrites every key buffer; whoever
holds a keyring afterwards gets a LockedError from it. (Not the operating system's keyring: that
is one kind of slot.)
"""

from __future__ import annotations

import uuid
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from memory_store.crypto.blinding import Blinder, IdTagger, Tagger
from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import (
    DEFAULT_SUITE,
    OpenCounter,
    Place,
    SealingKey,
    seal,
    unseal,
)
from memory_store.errors import LockedError, NotFoundError
from memory_store.scopes import Scope
from memory_store.sqlite import sqlite3

VAULT_SCOPE: Final = "vault"  # the key for what belongs to no collection: settings, names
PURPOSES = ("body", "head", "segment", "manifest", "name", "expansion", "page", "audit")


class CollectionKeys:
    """The subkeys of one collection and epoch, one for each purpose."""

    def __init__(self, vault: bytes, collection: str, epoch: int, secret: SecretKey) -> None:
        self.vault = vault
        self.collection = collection
        self.epoch = epoch
        self._secret = secret
        self._sealing = {
            purpose: SealingKey(secret.derive(purpose), epoch=epoch, suite=DEFAULT_SUITE)
            for purpose in PURPOSES
        }
        self._blind = secret.derive("blind")
        self.blinder = Blinder(self._blind)
        self.dedupe = Tagger(secret.derive("dedupe"))
        self.source = Tagger(secret.derive("source"))
        self.manifest = Tagger(secret.derive("manifest-element"))
        self.page_tags = IdTagger(secret.derive("page-tag"))
        self.expansion = Tagger(secret.derive("expansion-question"))

    def importing_blinder(self) -> Blinder:
        """A blinder that remembers words: for one import, then wiped."""
        return Blinder(self._blind, remember=True)

    def place(self, table: str, column: str, row: str, version: int = 0) -> Place:
        return Place(self.vault, self.collection, table, column, row, version)

    def seal(self, purpose: str, place: Place, content: bytes | bytearray | memoryview) -> bytes:
        return seal(self._sealing[purpose], place, content)

    def unseal(
        self, purpose: str, place: Place, blob: bytes, counter: OpenCounter | None = None
    ) -> memoryview:
        return unseal(self._sealing[purpose], place, blob, counter)

    def only(self, *purposes: str) -> CollectionKeys:
        """The same keys without the sealing of anything but ``purposes``."""
        fewer = copy(self)
        fewer._sealing = {purpose: self._sealing[purpose] for purpose in purposes}
        return fewer

    def wipe(self) -> None:
        for key in self._sealing.values():
            key.wipe()
        for held in (
            self.blinder,
            self.dedupe,
            self.source,
            self.manifest,
            self.expansion,
            self.page_tags,
        ):
            held.wipe()
        self._blind.wipe()
        self._secret.wipe()

    def __repr__(self) -> str:
        return f"<CollectionKeys {self.collection} epoch {self.epoch}>"


@dataclass(slots=True, repr=False)
class Keyring:
    """A principal's unlocked keys. Everything in memory is built from these alone."""

    vault: bytes
    principal: int
    root: SecretKey
    counter: OpenCounter = field(default_factory=OpenCounter)
    collections: dict[str, CollectionKeys] = field(default_factory=dict)
    strict: bool = False
    _wiped: bool = False

    @property
    def locked(self) -> bool:
        """Whether its keys are gone."""
        return self._wiped

    @classmethod
    def unlock(
        cls, connection: sqlite3.Connection, vault: bytes, principal: int, root: SecretKey
    ) -> Keyring:
        """Unwrap every collection key that the principal may read, the newest epoch of each."""
        ring = cls(vault, principal, root)
        ring.load(connection)
        return ring

    def load(self, connection: sqlite3.Connection) -> None:
        """Unwrap the collection keys that this keyring does not hold yet."""
        wrap = SealingKey(self.root.derive("principal-wrap"))
        rows = connection.execute(
            """
            select collection, max(epoch), wrapped from vault_collection_keys
            where principal = ? group by collection
            """,
            (self.principal,),
        ).fetchall()
        for collection, epoch, wrapped in rows:
            held = self.collections.get(collection)
            if held is None or held.epoch != epoch:
                opened = unseal(wrap, self._grant_place(collection, epoch), wrapped)
                secret = SecretKey(opened)
                self.collections[collection] = CollectionKeys(self.vault, collection, epoch, secret)
        wrap.wipe()

    def create_collection_key(
        self, connection: sqlite3.Connection, collection: str | None = None
    ) -> CollectionKeys:
        """A new random collection key, wrapped for this principal and held from now on."""
        self.check_open()
        collection = collection or str(uuid.uuid4())
        secret = SecretKey.generate()
        wrap = SealingKey(self.root.derive("principal-wrap"))
        wrapped = seal(wrap, self._grant_place(collection, 0), secret.buffer)
        wrap.wipe()
        connection.execute(
            """
            insert into vault_collection_keys (collection, epoch, principal, wrapped)
            values (?, 0, ?, ?)
            """,
            (collection, self.principal, wrapped),
        )
        keys = CollectionKeys(self.vault, collection, 0, secret)
        self.collections[collection] = keys
        return keys

    def _grant_place(self, collection: str, epoch: int) -> Place:
        return Place(
            self.vault,
            collection,
            "vault_collection_keys",
            "wrapped",
            f"principal {self.principal}",
            epoch,
        )

    def of(self, collection: str) -> CollectionKeys:
        """The keys of a collection. Raises LockedError after lock, NotFoundError for others'."""
        self.check_open()
        keys = self.collections.get(collection)
        if keys is None:
            raise NotFoundError(f"no collection {collection!r} that this key may read")
        return keys

    def held(self) -> dict[str, CollectionKeys]:
        """The keys by collection, without the vault's own scope."""
        return {name: self.of(name) for name in self.readable()}

    def readable(self) -> list[str]:
        """The ids of the collections this principal may read, without the vault's own scope."""
        self.check_open()
        return [name for name in list(self.collections) if name != VAULT_SCOPE]

    def lacks(self, collection: str) -> bool:
        """Whether the principal's keys should be looked at again for that collection's."""
        return collection not in self.collections

    def check_open(self) -> None:
        if self.locked:
            raise LockedError("the vault is locked: unlock it with its key to go on")

    def wipe(self) -> None:
        """Overwrite every key. The keyring answers with LockedError from now on."""
        if self.locked:
            return
        self._wiped = True
        for keys in self.collections.values():
            keys.wipe()
        self.collections.clear()
        self.root.wipe()

    def __repr__(self) -> str:
        state = "locked" if self.locked else f"{len(self.collections)} collections"
        return f"<Keyring {state}>"


class LimitedKeyring(Keyring):
    """The keys of some collections alone, for as long as the keyring that they come from.

    Holds no root key and no other collection's. Of the vault's own scope it has what tells of
    no collection: the tags of contents, the seals of pages and of expansions, not the settings.
    """

    __slots__ = ("_scope", "_whole")

    def __init__(self, whole: Keyring, scope: Scope) -> None:
        self._whole = whole
        self._scope = scope
        self.vault, self.principal = whole.vault, whole.principal
        self.counter, self.strict = whole.counter, whole.strict
        self.collections = {}
        self.follow()

    @property
    def locked(self) -> bool:
        """Whether the keyring behind it is."""
        return self._whole.locked

    def load(self, connection: sqlite3.Connection) -> None:
        """Hold those keys of its scope that came into the vault meanwhile."""
        self._whole.load(connection)
        self.follow()

    def lacks(self, collection: str) -> bool:
        """Whether a key of its scope is missing."""
        return collection in self._scope and collection not in self.collections

    def extend(self, collection: str) -> None:
        """Hold the keys of one more collection."""
        self._scope |= Scope.of([collection])
        self.follow()

    def follow(self) -> None:
        """Hold what the keyring behind it holds by now of its scope."""
        held = {name: keys for name, keys in self._whole.held().items() if name in self._scope}
        held[VAULT_SCOPE] = self._whole.of(VAULT_SCOPE).only("page", "expansion")
        self.collections = held

    def create_collection_key(
        self, connection: sqlite3.Connection, collection: str | None = None
    ) -> CollectionKeys:
        """Refused: the keyring that this one comes from makes keys."""
        raise NotFoundError("these keys are limited to some collections: they make no new ones")

    def wipe(self) -> None:
        """Let go of the keys; they are wiped where they come from."""
        self.collections = {}
