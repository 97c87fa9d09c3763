"""The vector index of an opened vault, made once for each snapshot and wiped with its vectors.

Boundary: an index may hold a second copy of the vectors, so it goes when the vault is locked.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memory_store.index.opened import OpenVault
from memory_store.index.snapshot import Snapshot

if TYPE_CHECKING:
    from memory_store.index.vectors import VectorIndex


class HeldVectors:
    """The index over a vault's newest vectors. Any number of threads may ask for it."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._held: tuple[Snapshot, VectorIndex] | None = None
        self._lock = threading.Lock()
        vault.when_cleared_up = self._drop

    def index(self, snapshot: Snapshot | None = None) -> VectorIndex:
        """The vector index over a snapshot (the newest unless given), made once for each."""
        from memory_store.index.vectors import make_vector_index

        snapshot = snapshot or self._vault.snapshot()
        with self._lock:
            self._vault.keyring.check_open()
            held = self._held
            if held is None or held[0] is not snapshot:
                previous = held[1] if held is not None else None
                made = make_vector_index(snapshot, strict=self._vault.strict, previous=previous)
                held = self._held = (snapshot, made)
            return held[1]

    def _drop(self) -> None:
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held[1].wipe()
