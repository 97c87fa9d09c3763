"""The vector index of an opened vault, made once for each snapshot and wiped with its vectors.

Boundary: an index may hold a second copy of the vectors, so it goes when the vault is locked.
A search that is limited to some collections has an index of their vectors alone, of the kind that
the whole vault has: NumPy's is over the same blocks, and ``vec0``'s over the same table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from memory_store.index.snapshot import Snapshot
from memory_store.session.whole_vault import WholeVault

if TYPE_CHECKING:
    from memory_store.index.vectors import VectorIndex


class LateIndex:
    """The index that ``make`` makes, when a search first asks it: one for words never does, and
    to fill a table of ``vec0`` takes longer than that whole search."""

    def __init__(self, make: Callable[[], VectorIndex]) -> None:
        self._made = cache(make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made(), name)


class HeldVectors:
    """The index over a vault's newest vectors. Any number of threads may ask for it."""

    def __init__(self, vault: WholeVault) -> None:
        self._vault = vault
        self._held: tuple[Snapshot, VectorIndex] | None = None
        self._lock = threading.Lock()
        vault.when_cleared_up = self._drop

    def index(self, snapshot: Snapshot) -> VectorIndex:
        """The vector index over a snapshot, made once for each that is not limited."""
        from memory_store.index.vec0_vectors import make_vector_index

        make = partial(make_vector_index, strict=self._vault.settings.strict)
        with self._lock:
            self._vault.keyring.check_open()
            whole = self._vault.snapshot() if snapshot.limited else snapshot
            if self._held is None or self._held[0] is not whole:
                held = self._held[1] if self._held is not None else None
                self._held = (whole, make(whole, previous=held))
            if not snapshot.limited:
                return self._held[1]
            return make(snapshot, previous=self._held[1], shared=True)

    def late_index(self, snapshot: Snapshot) -> VectorIndex:
        """The same, made when it is first asked."""
        return cast("VectorIndex", LateIndex(partial(self.index, snapshot)))

    def _drop(self) -> None:
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held[1].wipe()
