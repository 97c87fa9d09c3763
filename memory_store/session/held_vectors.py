"""The vector index of an opened vault, made once for each snapshot and wiped with its vectors.

Boundary: an index may hold a second copy of the vectors, so it goes when the vault is locked.
A search that is limited to some collections has an index of their vectors alone. NumPy's is over
the same blocks, and ``vec0``'s over the same table where the whole vault has one; only where the
whole vault has too many vectors for ``vec0`` does such a search fill a small table of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from memory_store.index.snapshot import Snapshot
from memory_store.session.whole_vault import WholeVault

if TYPE_CHECKING:
    import numpy.typing as npt

    from memory_store.index.snapshot import Mask
    from memory_store.index.vectors import VectorHits, VectorIndex

VEC0 = "vec0"
MOST_LIMITED = 8  # small tables kept: 5,000 vectors of 384 dimensions in each are 8 MB


class LateIndex:
    """The index that ``make`` makes, when a search first asks it: one for words never does, and
    to fill a table of ``vec0`` takes longer than that whole search."""

    def __init__(self, make: Callable[[], VectorIndex]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> VectorIndex:
        return self._make()

    @property
    def kind(self) -> str:
        return self._made.kind

    @property
    def reason(self) -> str:
        return self._made.reason

    def search(self, query: npt.NDArray[Any], k: int, mask: Mask | None = None) -> VectorHits:
        """See :meth:`VectorIndex.search`."""
        return self._made.search(query, k, mask)

    def wipe(self) -> None:
        self._made.wipe()


class HeldVectors:
    """The index over a vault's newest vectors. Any number of threads may ask for it."""

    def __init__(self, vault: WholeVault) -> None:
        self._vault = vault
        self._held: tuple[Snapshot, VectorIndex] | None = None
        self._limited: OrderedDict[tuple[str, ...], tuple[Snapshot, VectorIndex]] = OrderedDict()
        self._lock = threading.Lock()
        vault.when_cleared_up = self._drop

    def index(self, snapshot: Snapshot | None = None) -> VectorIndex:
        """The vector index over a snapshot (the newest unless given), made once for each."""
        snapshot = snapshot or self._vault.snapshot()
        with self._lock:
            self._vault.keyring.check_open()
            if not snapshot.limited:
                return self._whole_index(snapshot)
            whole = self._whole_index(self._vault.snapshot())
            return self._limited_index(snapshot, whole)

    def late_index(self, snapshot: Snapshot) -> VectorIndex:
        """The same, made when it is first asked."""
        return LateIndex(partial(self.index, snapshot))

    def _whole_index(self, snapshot: Snapshot) -> VectorIndex:
        held = self._held
        if held is None or held[0] is not snapshot:
            made = self._made(snapshot, held[1] if held is not None else None)
            held = self._held = (snapshot, made)
        return held[1]

    def _limited_index(self, snapshot: Snapshot, whole: VectorIndex) -> VectorIndex:
        if whole.kind == VEC0:
            return self._made(snapshot, whole, shared=True)
        held = self._limited.get(snapshot.collections)
        if held is None or held[0] is not snapshot:
            made = self._made(snapshot, held[1] if held is not None else None)
            if made.kind != VEC0:
                return made
            held = self._limited[snapshot.collections] = (snapshot, made)
        self._limited.move_to_end(snapshot.collections)
        if len(self._limited) > MOST_LIMITED:
            self._limited.popitem(last=False)
        return held[1]

    def _made(
        self, snapshot: Snapshot, previous: VectorIndex | None, *, shared: bool = False
    ) -> VectorIndex:
        from memory_store.index.vector_engines import make_vector_index

        strict = self._vault.settings.strict
        return make_vector_index(snapshot, strict=strict, previous=previous, shared=shared)

    def _drop(self) -> None:
        with self._lock:
            held, self._held = self._held, None
            limited = [index for _, index in self._limited.values()]
            self._limited.clear()
        for index in (held[1], *limited) if held is not None else limited:
            index.wipe()
