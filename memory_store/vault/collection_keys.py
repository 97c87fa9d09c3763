"""The keys of one collection: those of its present epoch, and of an earlier one while it is left.

Boundary: key bytes live in buffers that :meth:`CollectionKeys.wipe` overwrites. New values are
sealed under the newest epoch alone; a sealed value names its epoch and is opened under that one.

An *epoch* is a random collection key of 32 bytes and everything derived from it: one sealing key
for each purpose, the keys of the account's sum, and the veil of the tags in the file (none in
epoch 0). The keys of what is compared inside of sealed values (words, topics, contents) and of
import sources go with the collection from epoch to epoch, or the index would have to be made anew
from the texts. So the *bundle* that is wrapped for each who may read is, in epoch 0, the collection
key alone (the others are derived from it); from epoch 1 on the collection key and the carried keys,
in the order of :data:`CARRIED`, 32 bytes each. The last of them, ``page-tag``, has no use any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from copy import copy

from msgspec import Struct, field

from memory_store.crypto.blinding import Adder, Blinder, Tagger, TaggerApart, Veil
from memory_store.crypto.keys import KEY_BYTES, SecretKey
from memory_store.crypto.sealing import (
    LEAST_PADDED,
    OpenCounter,
    Place,
    SealingKey,
    seal,
    sealed_epoch,
    unseal,
)
from memory_store.errors import LockedError, TamperedError

PURPOSES = (
    *("body", "head", "segment", "manifest", "name", "expansion", "page", "audit", "share"),
    *("path", "trash", "sync"),
)
CARRIED = ("blind", "dedupe", "source", "expansion-question", "page-tag")
APART = b"apart"
LEFT_SECONDS = 300.0  # how long a reader who began before may still open values of a left epoch


class Bundle(Struct, frozen=True):
    """What is wrapped for each who may read a collection: its key, and the carried ones."""

    secret: SecretKey
    carried: tuple[SecretKey, ...]

    __repr__ = object.__repr__

    @classmethod
    def first(cls, secret: SecretKey) -> Bundle:
        """That of epoch 0, whose other keys come from the collection key."""
        return cls(secret, tuple(secret.derive(label) for label in CARRIED))

    @classmethod
    def decoded(cls, epoch: int, content: memoryview | bytearray) -> Bundle:
        """The bundle in an opened wrapping. Raises TamperedError for one of another length."""
        parts = [
            SecretKey(content[start : start + KEY_BYTES])
            for start in range(0, len(content), KEY_BYTES)
        ]
        wanted = 1 + len(CARRIED) if epoch else 1
        if len(content) != wanted * KEY_BYTES:
            raise TamperedError("vault_collection_keys.wrapped: not the keys of a collection")
        return cls(parts[0], tuple(parts[1:])) if epoch else cls.first(parts[0])

    def encoded(self, epoch: int) -> bytearray:
        """What is wrapped. The caller overwrites it."""
        parts = (self.secret, *self.carried) if epoch else (self.secret,)
        return bytearray().join(part.buffer for part in parts)

    def next(self) -> Bundle:
        """That of the next epoch: a new random key, the same carried ones."""
        return Bundle(SecretKey.generate(), tuple(SecretKey(one.buffer) for one in self.carried))

    def copied(self) -> Bundle:
        """The same keys, in buffers of their own."""
        secret, *carried = (SecretKey(one.buffer) for one in (self.secret, *self.carried))
        return Bundle(secret, tuple(carried))

    def wipe(self) -> None:
        for key in (self.secret, *self.carried):
            key.wipe()


class EpochKeys:
    """What is derived from the collection key of one epoch."""

    __slots__ = ("bundle", "elements", "epoch", "left", "manifest", "sealing", "veil")

    def __init__(self, epoch: int, bundle: Bundle) -> None:
        self.epoch = epoch
        self.bundle = bundle
        self.sealing = {
            purpose: SealingKey(bundle.secret.derive(purpose), epoch=epoch) for purpose in PURPOSES
        }
        self.elements = Adder(bundle.secret.derive("account-element"))
        self.manifest = Tagger(bundle.secret.derive("manifest-element"))
        self.veil = Veil(bundle.secret.derive("veil")) if epoch else None
        self.left: float | None = None
        """When the epoch was found to be over (monotonic seconds)."""

    @property
    def over(self) -> bool:
        """Whether no reader can still be at what was sealed in it."""
        return self.left is not None and time.monotonic() - self.left > LEFT_SECONDS

    def veiled(self, tag: bytes) -> bytes:
        """A tag as it stands in the file; epoch 0 has no veil."""
        return tag if self.veil is None else self.veil.veiled(tag)

    def wipe(self) -> None:
        for key in self.sealing.values():
            key.wipe()
        self.elements.wipe()
        self.manifest.wipe()
        if self.veil is not None:
            self.veil.wipe()
        self.bundle.wipe()


class _Held(Struct):
    """The epochs of a collection that are held, in every view of its keys the same."""

    epochs: dict[int, EpochKeys] = field(default_factory=dict)
    newest: int = 0
    look_again: Callable[[], None] | None = None
    lasting: int = 0


class CollectionKeys:
    """The keys of one collection, one sealing key for each purpose and epoch."""

    def __init__(self, vault: bytes, collection: str, epoch: int, bundle: Bundle) -> None:
        self.vault = vault
        self.collection = collection
        self._purposes: frozenset[str] = frozenset(PURPOSES)
        self._held = _Held({epoch: EpochKeys(epoch, bundle)}, epoch)
        blind, dedupe, source, expansion = (SecretKey(k.buffer) for k in bundle.carried[:4])
        self._blind = blind
        self.blinder = Blinder(blind)
        self.dedupe = Tagger(dedupe)
        self.source = Tagger(source)
        self.plain_dedupe, self.plain_source = self.dedupe, self.source
        self.is_apart = False
        self.expansion = Tagger(expansion)
        self.rows = Tagger(dedupe.derive("row"))

    # -- epochs -------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The newest epoch that is held: what is sealed now is sealed in it."""
        return self._held.newest

    @property
    def earliest(self) -> int:
        """The earliest epoch that is not left: what is sealed anew is of none before."""
        return min(self.bundles())

    @property
    def bundle(self) -> Bundle:
        """The newest epoch's bundle, to be wrapped for a principal."""
        return self._newest.bundle

    def bundles(self) -> dict[int, Bundle]:
        """Epoch → its bundle, of every epoch that is read."""
        return {held.epoch: held.bundle for held in self._by_newest() if held.left is None}

    @property
    def _newest(self) -> EpochKeys:
        return self._at(self._held.newest)

    def _at(self, epoch: int) -> EpochKeys:
        try:
            return self._held.epochs[epoch]
        except KeyError:
            raise LockedError("the vault is locked: unlock it with its key to go on") from None

    def holds(self, epoch: int) -> bool:
        return epoch in self._held.epochs

    def add(self, epoch: int, bundle: Bundle) -> None:
        """Hold the keys of one more epoch. Raises TamperedError unless they belong together."""
        if bundle.carried != self.bundle.carried:
            raise TamperedError(f"vault_collection_keys of {self.collection}: keys of another")
        self._held.epochs[epoch] = EpochKeys(epoch, bundle)
        self._held.newest = max(self._held.newest, epoch)

    def admit(self, epochs: Iterable[int]) -> None:
        """From now on only values of these epochs are opened (the others a short time more)."""
        present = set(epochs)
        for held in list(self._held.epochs.values()):
            if held.epoch in present:
                held.left = None
            elif held.epoch < max(present) and held.left is None:
                held.left = time.monotonic()

    def upcoming(self, epoch: int, bundle: Bundle) -> CollectionKeys:
        """These keys as they will be in an epoch that is not committed yet."""
        later = copy(self)
        later._held = _Held({**self._held.epochs, epoch: EpochKeys(epoch, bundle)}, epoch)
        return later

    def last(self, more: int) -> None:
        """Count those who read one moment of the file for long: for them no epoch is over."""
        self._held.lasting += more

    def when_unknown(self, look_again: Callable[[], None]) -> None:
        """Call ``look_again`` for a value of an epoch that is not held: a new one was made."""
        self._held.look_again = look_again

    # -- sealing ------------------------------------------------------------------------

    def place(self, table: str, column: str, row: str, version: int = 0) -> Place:
        return Place(self.vault, self.collection, table, column, row, version)

    def seal(
        self,
        purpose: str,
        place: Place,
        content: bytes | bytearray | memoryview,
        epoch: int | None = None,
        least: int = LEAST_PADDED,
    ) -> bytes:
        """Seal a value in the newest epoch, or in another one that is held."""
        held = self._newest if epoch is None else self._at(epoch)
        return seal(self._sealing(held, purpose), place, content, least)

    def unseal(
        self,
        purpose: str,
        place: Place,
        blob: bytes,
        counter: OpenCounter | None = None,
        least: int = LEAST_PADDED,
        earliest: int = 0,
    ) -> memoryview:
        """Open a value under the epoch that it names, if it is none before the ``earliest``.

        Raises TamperedError.
        """
        held = self._opening(sealed_epoch(blob, place, least))
        if held.epoch < earliest or (held.over and not self._held.lasting):
            raise TamperedError(f"{place}: sealed under a key that was replaced")
        return unseal(self._sealing(held, purpose), place, blob, counter, least)

    def _opening(self, epoch: int) -> EpochKeys:
        held = self._held.epochs.get(epoch)
        if held is None and self._held.look_again is not None:
            self._held.look_again()
            held = self._held.epochs.get(epoch)
        return held or self._newest  # which refuses it, since the epochs differ

    def _sealing(self, held: EpochKeys, purpose: str) -> SealingKey:
        if purpose not in self._purposes:
            raise KeyError(purpose)
        return held.sealing[purpose]

    # -- tags ---------------------------------------------------------------------------

    def importing_blinder(self) -> Blinder:
        """A blinder of its own for one import, to be wiped then."""
        return Blinder(self._blind)

    def elements_of(self, epoch: int) -> Adder:
        """What adds up the account that was sealed in that epoch."""
        return self.of_account(epoch).elements

    def of_account(self, epoch: int) -> EpochKeys:
        """The keys of the epoch that an account was sealed in."""
        return self._held.epochs.get(epoch) or self._newest

    def stored(self, tag: bytes, epoch: int | None = None) -> bytes:
        """A tag as it is written into the file in an epoch that is held, else now."""
        return self._at(self.epoch if epoch is None else epoch).veiled(tag)

    def stored_forms(self, tag: bytes) -> list[bytes]:
        """A tag as it may stand in the file: in the newest epoch, or one that is being left."""
        forms = (held.veiled(tag) for held in self._by_newest() if held.left is None)
        return list(dict.fromkeys(forms))

    def exchanged(self, stored: bytes, before: int, after: int) -> bytes:
        """A tag as it is written in one epoch that is held, as it is in another."""
        held = self._at(before)
        return self.stored(stored if held.veil is None else held.veil.bare(stored), after)

    def _by_newest(self) -> list[EpochKeys]:
        return sorted(self._held.epochs.values(), key=lambda held: -held.epoch)

    # -- the end ------------------------------------------------------------------------

    def only(self, *purposes: str) -> CollectionKeys:
        """The same keys without the sealing of anything but ``purposes``."""
        fewer = copy(self)
        fewer._purposes = frozenset(purposes)
        return fewer

    def without(self, *purposes: str) -> CollectionKeys:
        """The same keys without the sealing of ``purposes``."""
        return self.only(*(self._purposes - set(purposes)))

    def apart(self, writer: bytes) -> CollectionKeys:
        """The same keys for a writer who may not read: tags of what they write equal no others'.

        Equal tags of contents, files and records would confirm a guess. The writer's own are
        equal. ``plain_dedupe`` and ``plain_source`` make those of all.
        """
        alone = copy(self)
        alone.dedupe = TaggerApart(self.plain_dedupe, APART, writer)
        alone.source = TaggerApart(self.plain_source, APART, writer)
        alone.is_apart = True
        return alone

    def wipe(self) -> None:
        for held in self._held.epochs.values():
            held.wipe()
        self._held.epochs.clear()
        for tagger in (self.blinder, self.dedupe, self.source, self.expansion, self.rows):
            tagger.wipe()
        self._blind.wipe()

    def __repr__(self) -> str:
        return f"<CollectionKeys {self.collection} epoch {self.epoch}>"
