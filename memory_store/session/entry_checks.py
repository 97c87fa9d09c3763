"""Opened memories held against their index entries, some of them word by word and vector by vector.

Boundary: opened memories come in one at a time; words such as "topics" come out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.errors import ModelMismatchError, ModelUnavailableError, NotFoundError
from memory_store.index.snapshot import Snapshot
from memory_store.records import Memory
from memory_store.session.comparison import Comparison
from memory_store.session.entries import indexable
from memory_store.vault.keyring import Keyring

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

WORDS_COMPARED = 256  # memories whose words are analysed again: about a second
VECTORS_COMPARED = 16  # memories of those that are embedded again: about a second, too

Model = Callable[[str], "Embedder"]


class Compared(Struct):
    """Of how many memories the entries were compared, and of how many the words and the vectors."""

    entries: int = 0
    words: int = 0
    vectors: int = 0
    left: str = ""
    """Why no vectors were, where some might have been."""


class EntryChecks:
    """The entries of a snapshot: of some, or all if ``full``, words and vectors are made again.

    ``model`` loads that of a collection by its id (``None``: no vectors are compared).
    """

    def __init__(
        self, snapshot: Snapshot, keyring: Keyring, model: Model | None, *, full: bool
    ) -> None:
        living = snapshot.alive.nonzero()[0].tolist()
        chosen = living if full else _some(living, WORDS_COMPARED)
        self._snapshot = snapshot
        self._keyring = keyring
        self._model = model
        self._comparison = Comparison(snapshot, chosen)
        self._embedded = frozenset(chosen if full else _some(chosen, VECTORS_COMPARED))
        self._models: dict[str, Embedder | None] = {}
        self.compared = Compared()

    def differences(self, memory: Memory) -> list[str]:
        """What the index says otherwise of it; nothing where it has no entry."""
        ordinal = self._snapshot.ordinal_of(memory.id)
        if ordinal is None:
            return []
        item = indexable(self._keyring, memory)
        found = [*self._comparison.differences(ordinal, item)]
        self.compared.entries += 1
        if ordinal in self._comparison.chosen and not self._snapshot.stale[ordinal]:
            self.compared.words += 1
            blinder = self._keyring.of(memory.collection).blinder
            if self._comparison.words_differ(ordinal, item, blinder):
                found.append("words")
            if ordinal in self._embedded and self._vectors_differ(ordinal, memory):
                found.append("vectors")
        return found

    def _vectors_differ(self, ordinal: int, memory: Memory) -> bool:
        if not self._snapshot.windows(ordinal):
            return False
        embedder = self._embedder(memory.collection)
        if embedder is None:
            return False
        self.compared.vectors += 1
        return self._comparison.vectors_differ(ordinal, memory, embedder)

    def _embedder(self, collection: str) -> Embedder | None:
        """The model that a collection's vectors come from, where it is on this machine."""
        if collection not in self._models:
            self._models[collection] = None
            try:
                if self._model is not None:
                    self._models[collection] = self._model(collection)
            except (ModelUnavailableError, ModelMismatchError, NotFoundError) as error:
                self.compared.left = str(error)
        return self._models[collection]


def _some(ordinals: list[int], most: int) -> list[int]:
    return random.SystemRandom().sample(ordinals, min(most, len(ordinals)))
