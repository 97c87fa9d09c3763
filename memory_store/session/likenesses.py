"""Which memories are like which, kept from one review to the next while the vault is open.

Boundary: keeps numbers until the lock, no text: ids, cosines, and what was decided of a pair.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from memory_store.index.likeness import Likeness, Pair, likeness
from memory_store.models.readability import is_foreign

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.session.opened_vault import OpenVault
    from memory_store.vault.settings import Settings

MOST_KEPT = 4  # of different collections, such as those of the members of a server


class Kept(Struct, eq=False):
    """A likeness, and of what it is; ``kinds`` says what was decided of its pairs."""

    snapshot: weakref.ref[Snapshot]  # of an older one the vectors are to be overwritten
    mask: Mask
    indexing: Settings
    found: Likeness
    kinds: dict[tuple[bytes, ...], str] = field(default_factory=dict)
    _keys: dict[int, bytes] = field(default_factory=dict)

    def key(self, pair: Pair) -> tuple[bytes, ...]:
        """What stands for a pair among the ``kinds``, as long as neither memory changes."""
        if not self._keys:
            self._keys = {ordinal: key for key, ordinal in self.found.rows.items()}
        return tuple(self._keys[one] for one in (pair.newer, pair.older))


class Likenesses:
    """The likenesses of an opened vault, brought up to date when they are asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[frozenset[str], Kept] = OrderedDict()

    def of(
        self,
        vault: OpenVault,
        snapshot: Snapshot,
        mask: Mask,
        near: tuple[float, float],
        most: int,
    ) -> Kept:
        """As :func:`.likeness`, ``near`` being its bounds, which are always the same: at once where
        nothing has changed, and quickly where little has."""
        openable, indexing = frozenset(vault.keyring.openable()), vault.settings.indexing
        with self._lock:
            kept = self._kept.get(openable)
            if kept is not None and kept.indexing != indexing:
                kept = None
            same = kept is not None and kept.snapshot() is snapshot
            if kept is None or not (same and np.array_equal(kept.mask, mask)):
                before = kept.found if kept else None
                found = likeness(snapshot, mask, *near, most, before, unread(snapshot, indexing))
                kinds = kept.kinds if kept else {}
                kept = Kept(weakref.ref(snapshot), mask, indexing, found, kinds)
            self._kept[openable] = kept
            self._kept.move_to_end(openable)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept

    def wipe(self) -> None:
        """Forget all of it, when the vault is locked."""
        self._kept.clear()


def unread(snapshot: Snapshot, indexing: Settings) -> Mask:
    """bool [documents]: those in letters that their collection's model was not made for. To it all
    of them are alike."""
    models = [indexing.of(one).embedder for one in snapshot.collections]
    foreign = [[is_foreign(model, one) for one in snapshot.languages] for model in models]
    table = np.array(foreign, np.bool_).reshape(len(models), len(snapshot.languages))
    found: Mask = table[snapshot.collection_codes, snapshot.language_codes]
    return found
