"""The keys of some collections alone, for as long as the keyring that they come from.

Boundary: holds no root key and no other collection's. Of the vault's own scope it has what tells of
no collection: the tags of contents, the seals of pages, of expansions and of the paths that its
principal imported, not the settings. Of
collections that may be searched and not read it has no key that opens a memory: whoever is handed
these keys cannot open one, whatever they were asked for.
"""

from __future__ import annotations

from memory_store.errors import NotFoundError
from memory_store.scopes import EVERYTHING, Scope
from memory_store.sqlite import sqlite3
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import VAULT_SCOPE, Keyring

OPENING = ("head", "body")
"""The purposes of what a memory is sealed for."""


class LimitedKeyring(Keyring):
    """A keyring of the collections in a scope, and of those added to it; see the module.

    Those of ``readable`` alone have the keys of memories. Outside of ``told`` the tags of what
    ``writer`` writes are equal to nobody else's.
    """

    __slots__ = ("_readable", "_scope", "_told", "_whole", "_writer")

    def __init__(
        self,
        whole: Keyring,
        scope: Scope,
        readable: Scope = EVERYTHING,
        *,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> None:
        self._whole = whole
        self._scope = scope
        self._readable = readable
        self._told = told
        self._writer = writer.encode("utf-8", "surrogatepass")
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

    def catch_up(self, connection: sqlite3.Connection) -> None:
        """Hold what others made meanwhile, as far as it is of its scope."""
        self._whole.catch_up(connection)
        self.follow()

    def look(self, connection: sqlite3.Connection) -> list[tuple[str, int]]:
        """The same, without letting go of anything."""
        rows = self._whole.look(connection)
        self.follow()
        return rows

    def lacks(self, collection: str) -> bool:
        """Whether a key of its scope is missing."""
        return collection in self._scope and collection not in self.collections

    def openable(self) -> list[str]:
        """Its collections, less those that are searched and not read."""
        return [name for name in self.readable() if name in self._readable]

    def extend(self, collection: str) -> None:
        """Hold the keys of one more collection."""
        if self._told.covers(self._scope):
            self._told |= Scope.of([collection])
        self._scope |= Scope.of([collection])
        self.follow()

    def follow(self) -> None:
        """Hold what the keyring behind it holds by now of its scope."""
        held = {
            name: self._lent(name, keys)
            for name, keys in self._whole.held().items()
            if name in self._scope
        }
        held[VAULT_SCOPE] = self._whole.of(VAULT_SCOPE).only("page", "expansion", "path")
        self.collections = held

    def _lent(self, name: str, keys: CollectionKeys) -> CollectionKeys:
        keys = keys if name in self._readable else keys.without(*OPENING)
        return keys if self.tells(name) else keys.apart(self._writer)

    def tells(self, collection: str) -> bool:
        """Whether the holder may be told what is in a collection, also by what writing answers."""
        return collection in self._told

    def create_collection_key(
        self, connection: sqlite3.Connection, collection: str | None = None
    ) -> CollectionKeys:
        """Refused: the keyring that this one comes from makes keys."""
        raise NotFoundError("these keys are limited to some collections: they make no new ones")

    def wipe(self) -> None:
        """Let go of the keys; they are wiped where they come from."""
        self.collections = {}
