"""The unlocked keys of a vault: what one principal may read, and nothing else.

Boundary: exists from unlock to lock. :meth:`WholeKeyring.wipe` overwrites every key buffer; a
keyring raises LockedError from then on. (Not the operating system's keyring: that is one kind of
slot.)

Which epochs of which collections there are says the table ``vault_collection_keys``; which of them
count say the vault's sealed settings (see :meth:`Keyring.admit`), so that a key which was put back
into the table is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec.structs import replace

from memory_store.crypto.identities import Identity, identity_of, strongest_kem
from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import OpenCounter, Place, SealingKey, seal, unseal
from memory_store.errors import (
    BadInputError,
    LockedError,
    NotFoundError,
    OutsideLimitsError,
    TamperedError,
)
from memory_store.scopes import Limits, Scope
from memory_store.vault.collection_keys import CARRIED, Bundle, CollectionKeys
from memory_store.vault.grants import GrantPlace, open_grant
from memory_store.vault.identities import known_identity, read_identity
from memory_store.vault.opened_slots import OpenedSlot
from memory_store.vault.slots import OWNER
from memory_store.vault.storage import Storage

__all__ = ["OWNER", "VAULT_SCOPE", "CollectionKeys", "Keyring", "LimitedKeyring", "WholeKeyring"]

VAULT_SCOPE: Final = "vault"  # the key for what belongs to no collection: settings, names
ROOT_SETTING: Final = "root"  # in clear: how often the owner's root key was replaced


@dataclass(slots=True, repr=False)
class WholeKeyring:
    """A principal's unlocked keys. Everything in memory is built from these alone.

    ``slot`` and ``slot_key`` are the key slot that opened it and its key-encryption key; ``pin``
    is what a member knows the owner by; ``locked`` says that its keys are gone; ``noted`` is the
    revision of the settings, and ``present`` the (collection, epoch) of every key, that were in
    the file when the keys were last looked at.
    """

    vault: bytes
    principal: int
    root: SecretKey
    counter: OpenCounter = field(default_factory=OpenCounter)
    collections: dict[str, CollectionKeys] = field(default_factory=dict)
    strict: bool = False
    slot: str | None = None
    slot_key: SecretKey | None = None
    pin: bytes = b""
    generation: int | None = None
    noted: int = 0
    present: Sequence[tuple[str, int]] = ()
    _revision: int = -1
    _dropped: list[CollectionKeys] = field(default_factory=list)
    _look_again: Callable[[], None] | None = None
    _looking: threading.local = field(default_factory=threading.local)
    locked: bool = False

    @property
    def is_owner(self) -> bool:
        """Whether it may read all of the vault, its settings among it."""
        return self.principal == OWNER

    @classmethod
    def unlock(
        cls,
        storage: Storage,
        vault: bytes,
        principal: int,
        root: SecretKey,
        pin: bytes = b"",
    ) -> WholeKeyring:
        """Unwrap every collection key that the principal may read."""
        ring = cls(vault, principal, root, pin=pin)
        ring.look(storage)
        return ring

    @classmethod
    def of_slot(cls, storage: Storage, vault: bytes, opened: OpenedSlot) -> WholeKeyring:
        """The keys of the principal whose slot was opened."""
        ring = cls.unlock(storage, vault, opened.slot.principal, opened.root, opened.pin)
        ring.slot, ring.slot_key = opened.slot.id, opened.key
        return ring

    def _unwrapped(self, storage: Storage, collection: str, epoch: int, wrapped: bytes) -> Bundle:
        """The bundle of one wrapped key, by the public keys that owner and member are known by.

        Raises TamperedError where the owner has other keys than those this principal knows.
        """
        if not self.is_owner:
            owner, own = self.owner_identity(storage), self.identity(storage)
            place = GrantPlace(self.vault, collection, epoch, self.principal, owner, own)
            return open_grant(self.root, place, wrapped)
        wrap = self._wrapping_key()
        try:
            opened = unseal(wrap, self._wrapped_place(collection, epoch), wrapped)
            return Bundle.decoded(epoch, opened)
        finally:
            wrap.wipe()

    def owner_identity(self, storage: Storage) -> Identity:
        """The owner's public keys: those that this principal knows him by. Raises TamperedError."""
        if self.is_owner:
            return self.identity(storage)
        return known_identity(storage, OWNER, self.pin)

    def identity(self, storage: Storage) -> Identity:
        """The principal's own public keys, by the key encapsulation that they were made for."""
        present = read_identity(storage, self.principal)
        return identity_of(self.root, present.kem if present else strongest_kem())

    def hold_own_scope(self, dedupe: bytes) -> None:
        """For one who is not the owner: keys in the place of the vault's own scope.

        They are the member's alone, and seal what stays in memory. ``dedupe`` is the owner's: by
        it equal contents of several collections are recognised.
        """
        if VAULT_SCOPE not in self.collections:
            own = Bundle.first(self.root.derive("own-scope"))
            carried = [
                SecretKey(dedupe) if label == "dedupe" else one
                for label, one in zip(CARRIED, own.carried, strict=True)
            ]
            self._hold(VAULT_SCOPE, 0, Bundle(own.secret, tuple(carried)))

    def _hold(self, collection: str, epoch: int, bundle: Bundle) -> None:
        held = self.collections.get(collection)
        if held is not None:
            held.add(epoch, bundle)
            return
        keys = CollectionKeys(self.vault, collection, epoch, bundle)
        keys.when_unknown(self._ask_again)
        self.collections[collection] = keys

    def catch_up(self, storage: Storage) -> None:
        """Hold what others made meanwhile, and let go of what they deleted.

        At the beginning of a write, before anything of its own: or what it seals would be sealed
        in vain. Raises LockedError where the root key was replaced.
        """
        present = {collection for collection, _ in self.look(storage)} | {VAULT_SCOPE}
        self.keep_only(present)

    def look(self, storage: Storage) -> Sequence[tuple[str, int]]:
        """Unwrap the collection keys that this keyring does not hold yet.

        Returns (collection, epoch) of all keys there are. Raises TamperedError for one that is not
        what was wrapped for this principal, LockedError where the root key was replaced meanwhile.
        """
        self.check_open()
        found = storage.keys.of(self.principal)
        generation = root_generation(found.root)
        if self.generation is None:
            self.generation = generation
        elif self.is_owner and generation != self.generation:
            raise LockedError("the vault's root key was replaced: unlock the vault again")
        self.noted = found.revision or 0
        for collection, epoch, wrapped in found.keys:
            held = self.collections.get(collection)
            if held is None or not held.holds(epoch):
                bundle = self._unwrapped(storage, collection, epoch, wrapped)
                self._hold(collection, epoch, bundle)
        self.present = [(collection, epoch) for collection, epoch, _ in found.keys]
        return self.present

    def admit(self, revision: int, epochs: Mapping[str, frozenset[int]]) -> None:
        """Open values of these epochs of these collections alone, as settings of a revision say.

        Settings older than those that were admitted before change nothing.
        """
        if revision <= self._revision:
            return
        self._revision = revision
        for collection, keys in list(self.collections.items()):
            if collection in epochs:
                keys.admit(epochs[collection])
            else:
                self._dropped.append(self.collections.pop(collection))

    def keep_only(self, collections: Collection[str]) -> None:
        """Let go of all other keys: those of a collection that is gone, or was not written."""
        for collection in [one for one in list(self.collections) if one not in collections]:
            self._dropped.append(self.collections.pop(collection))

    def when_unknown(self, look_again: Callable[[], None]) -> None:
        """Call ``look_again`` where a value is sealed in an epoch that is not held."""
        self._look_again = look_again

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """For as long as this lasts, values of epochs that are held are opened, even left ones."""
        held = list(self.collections.values())
        for keys in held:
            keys.last(1)
        try:
            yield
        finally:
            for keys in held:
                keys.last(-1)

    def _ask_again(self) -> None:
        if self._look_again is None or getattr(self._looking, "now", False):
            return
        self._looking.now = True  # what is read there may be of an unknown epoch, too
        try:
            self._look_again()
        finally:
            self._looking.now = False

    def _wrapping_key(self) -> SealingKey:
        """What wraps collection keys for this principal. The caller wipes it."""
        self.check_open()
        return SealingKey(self.root.derive("principal-wrap"))

    def wrapped(self, collection: str, epoch: int, bundle: Bundle) -> bytes:
        """A collection's bundle, wrapped for this principal."""
        wrap, content = self._wrapping_key(), bundle.encoded(epoch)
        try:
            return seal(wrap, self._wrapped_place(collection, epoch), content)
        finally:
            wrap.wipe()
            content[:] = bytes(len(content))

    def replace_root(self, root: SecretKey, generation: int) -> None:
        """Go on with a new root key, which was committed."""
        self.root.wipe()
        self.root, self.generation = root, generation

    def create_collection_key(self, storage: Storage, collection: str) -> CollectionKeys:
        """A new random collection key, wrapped for this principal and held from now on."""
        return self.add_collection_key(storage, collection, 0, Bundle.first(SecretKey.generate()))

    def add_collection_key(
        self, storage: Storage, collection: str, epoch: int, bundle: Bundle
    ) -> CollectionKeys:
        """The keys of a collection, wrapped for this principal and held from now on."""
        self.check_owner()
        wrapped = self.wrapped(collection, epoch, bundle)
        storage.keys.insert([(collection, epoch, self.principal, wrapped)])
        self._hold(collection, epoch, bundle)
        return self.collections[collection]

    def _wrapped_place(self, collection: str, epoch: int) -> Place:
        """Where a wrapped collection key of this principal stands."""
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
        return _found(self.collections, collection)

    def readable(self) -> list[str]:
        """The ids of the collections this principal may read, without the vault's own scope."""
        self.check_open()
        return [name for name in list(self.collections) if name != VAULT_SCOPE]

    def openable(self) -> list[str]:
        """Of those collections the ones whose memories these keys open."""
        return self.readable()

    def check_owner(self) -> None:
        """Raise BadInputError for the keys of a member, with whom collections are shared."""
        self.check_open()
        if not self.is_owner:
            raise BadInputError("only the owner of the vault may do this", "key")

    def check_open(self) -> None:
        if self.locked:
            raise LockedError("the vault is locked: unlock it with its key to go on")

    def wipe(self) -> None:
        """Overwrite every key. The keyring answers with LockedError from now on."""
        if self.locked:
            return
        self.locked = True
        for keys in (*self.collections.values(), *self._dropped):
            keys.wipe()
        self.collections.clear()
        self._dropped.clear()
        self.root.wipe()
        if self.slot_key is not None:
            self.slot_key.wipe()

    def __repr__(self) -> str:
        state = "locked" if self.locked else f"{len(self.collections)} collections"
        return f"<Keyring {state}>"


OPENING = ("head", "body")
"""The purposes of what a memory is sealed for."""


class LimitedKeyring:
    """The keys of the collections in the limits' ``scope``, and of those added to it, for as long
    as the keyring that they come from.

    It holds no root key and no other collection's. Of the vault's own scope it has the keys that
    say nothing about a collection (tags of contents; the sealing of pages, of expansions and of the
    paths that its principal imported), not those of the settings. For a collection that you may
    search and not read it has no key that opens a memory. It is closed by default: no subclass of
    :class:`WholeKeyring`, and what is not written here is refused.

    Those of ``readable`` alone have the keys of memories. Outside of ``disclosed`` the tags of what
    ``writer`` writes equal no other writer's.
    """

    __slots__ = ("_limits", "_whole", "collections", "counter", "is_owner", "principal", "vault")

    def __init__(self, whole: WholeKeyring, limits: Limits) -> None:
        self._whole, self._limits = whole, limits
        self.vault, self.counter = whole.vault, whole.counter
        self.principal, self.is_owner = whole.principal, whole.is_owner
        self.collections: dict[str, CollectionKeys] = {}
        self.follow()

    if not TYPE_CHECKING:  # so that mypy refuses it, too

        def __getattr__(self, name: str) -> NoReturn:
            raise OutsideLimitsError(f"keys of some collections have no {name!r}")

    @property
    def strict(self) -> bool:
        return self._whole.strict

    @property
    def locked(self) -> bool:
        return self._whole.locked

    def of(self, collection: str) -> CollectionKeys:
        """The keys of one of its collections. Raises LockedError, NotFoundError."""
        self.check_open()
        return _found(self.collections, collection)

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

    def discloses(self, collection: str) -> bool:
        """Whether the holder may learn what is in a collection, also by what writing answers."""
        return collection in self._limits.disclosed

    def extend(self, collection: str) -> None:
        """Hold the keys of one more collection."""
        limits, more = self._limits, Scope.of([collection])
        disclosed = (
            limits.disclosed | more if limits.disclosed.covers(limits.scope) else limits.disclosed
        )
        self._limits = replace(limits, scope=limits.scope | more, disclosed=disclosed)
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
        if keys.collection in limits.disclosed:
            return keys
        return keys.apart(limits.writer.encode("utf-8", "surrogatepass"))

    def __repr__(self) -> str:
        return f"<LimitedKeyring {len(self.collections)} collections>"


Keyring = WholeKeyring | LimitedKeyring
"""What rows are read and written with: all keys of a principal, or those of some collections."""


def _found(held: Mapping[str, CollectionKeys], collection: str) -> CollectionKeys:
    keys = held.get(collection)
    if keys is None:
        raise NotFoundError(f"no collection {collection!r} that this key may read")
    return keys


def root_generation(stored: object) -> int:
    """How often the owner's root key was replaced. In clear: it only says whom to ask again."""
    try:
        return int(stored) if stored is not None else 0  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise TamperedError("vault_settings.value of root: not a number") from None


def next_root(storage: Storage) -> int:
    """Note that the owner's root key is another now (inside the caller's transaction)."""
    generation = root_generation(storage.settings.clear(ROOT_SETTING)) + 1
    storage.settings.write_clear({ROOT_SETTING: str(generation)})
    return generation
