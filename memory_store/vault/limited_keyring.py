"""The keys of some collections alone, for as long as the keyring that they come from.

Boundary: holds no root key and no other collection's. Of the vault's own scope it has the keys that
say nothing about a collection (tags of contents; the sealing of pages, of expansions and of the
paths that its principal imported), not those of the settings. For a collection that you may search
and not read it has no key that opens a memory.

Closed by default: it is no subclass of :class:`WholeKeyring`. What is not written here is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from memory_store.errors import NotFoundError, OutsideLimitsError
from memory_store.scopes import Limits, Scope
from memory_store.vault.collection_keys import CollectionKeys
from memory_store.vault.keyring import VAULT_SCOPE, WholeKeyring
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.crypto.sealing import OpenCounter

OPENING = ("head", "body")
"""The purposes of what a memory is sealed for."""


class LimitedKeyring:
    """A :class:`.Keyring` of the collections in the limits' ``scope``, and of those added to it.

    Those of ``readable`` alone have the keys of memories. Outside of ``told`` the tags of what
    ``writer`` writes equal no other writer's.
    """

    __slots__ = ("_limits", "_whole", "collections")

    def __init__(self, whole: WholeKeyring, limits: Limits) -> None:
        self._whole, self._limits = whole, limits
        self.collections: dict[str, CollectionKeys] = {}
        self.follow()

    if not TYPE_CHECKING:  # so that mypy refuses it, too

        def __getattr__(self, name: str) -> NoReturn:
            raise OutsideLimitsError(f"keys of some collections have no {name!r}")

    @property
    def vault(self) -> bytes:
        return self._whole.vault

    @property
    def principal(self) -> int:
        return self._whole.principal

    @property
    def is_owner(self) -> bool:
        return self._whole.is_owner

    @property
    def strict(self) -> bool:
        return self._whole.strict

    @property
    def locked(self) -> bool:
        return self._whole.locked

    @property
    def counter(self) -> OpenCounter:
        return self._whole.counter

    def of(self, collection: str) -> CollectionKeys:
        """The keys of one of its collections. Raises LockedError, NotFoundError."""
        self.check_open()
        keys = self.collections.get(collection)
        if keys is None:
            raise NotFoundError(f"no collection {collection!r} that this key may read")
        return keys

    def readable(self) -> list[str]:
        """The ids of its collections, without the vault's own scope."""
        self.check_open()
        return [name for name in self.collections if name != VAULT_SCOPE]

    def openable(self) -> list[str]:
        """Its collections, less those that are searched and not read."""
        return [name for name in self.readable() if name in self._limits.readable]

    def catch_up(self, storage: Storage) -> None:
        """Hold what others made meanwhile, as far as it is of its scope."""
        self._whole.catch_up(storage)
        self.follow()

    def check_open(self) -> None:
        """Raise LockedError after a lock."""
        self._whole.check_open()

    def tells(self, collection: str) -> bool:
        """Whether the holder may learn what is in a collection, also by what writing answers."""
        return collection in self._limits.told

    def extend(self, collection: str) -> None:
        """Hold the keys of one more collection."""
        limits, more = self._limits, Scope.of([collection])
        told = limits.told | more if limits.told.covers(limits.scope) else limits.told
        self._limits = replace(limits, scope=limits.scope | more, told=told)
        self.follow()

    def follow(self) -> None:
        """Hold what the keyring behind it holds by now of its scope."""
        whole, scope = self._whole, self._limits.scope
        held = {name: self._lent(whole.of(name)) for name in whole.readable() if name in scope}
        held[VAULT_SCOPE] = whole.of(VAULT_SCOPE).only("page", "expansion", "path")
        self.collections = held

    def _lent(self, keys: CollectionKeys) -> CollectionKeys:
        limits = self._limits
        if keys.collection not in limits.readable:
            keys = keys.without(*OPENING)
        if keys.collection in limits.told:
            return keys
        return keys.apart(limits.writer.encode("utf-8", "surrogatepass"))

    def __repr__(self) -> str:
        return f"<LimitedKeyring {len(self.collections)} collections>"
