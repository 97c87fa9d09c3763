"""Preparing memories for writing: tags, language, terms and vectors, outside any transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_store.crypto.blinding import Blinder
from memory_store.index.entries import Indexable, Windows, index_entries
from memory_store.index.opened import OpenVault
from memory_store.index.segment import IndexEntry
from memory_store.index.writing import IndexModel, Prepared
from memory_store.records import Memory
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.rows import Origin, content_tag, topic_tags
from memory_store.vault.transactions import transaction

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


class Preparer:
    """Turns memories into what :func:`write_batch` writes. One per import or call; then closed.

    ``embedder`` None leaves new contents without vectors (``--no-embed``, or no model).
    """

    def __init__(self, vault: OpenVault, embedder: Embedder | None) -> None:
        self._vault = vault
        self._embedder = embedder
        self._blinders: dict[str, Blinder] = {}
        self._snapshot = vault.snapshot()
        self._known: dict[bytes, int] | None = None
        self._languages: dict[str, str] = {}
        if embedder is not None:
            vault.check_model(embedder)
            if not vault.settings.fingerprint:
                with vault.writing() as connection, transaction(connection):
                    vault.adopt_model(connection, embedder)

    @property
    def embeds(self) -> bool:
        """Whether there is a model to make vectors with."""
        return self._embedder is not None

    def model(self) -> IndexModel:
        """The model whose vectors the entries hold."""
        return self._vault.model()

    def prepare(self, batch: Sequence[tuple[Memory, Origin]]) -> list[Prepared]:
        """Index entries for a batch; memories stay in order."""
        prepared: dict[str, IndexEntry] = {}
        collections = dict.fromkeys(memory.collection for memory, _ in batch)
        for collection in collections:
            items = [self._indexable(m) for m, _ in batch if m.collection == collection]
            entries = index_entries(
                items,
                self._blinder(collection),
                self._embedder,
                reuse=self._reuse,
                dimensions=self._vault.settings.dimensions,
                fallback_language=self._language(collection),
            )
            prepared |= {entry.memory_id: entry for entry in entries}
        return [Prepared(memory, origin, prepared[memory.id]) for memory, origin in batch]

    def _indexable(self, memory: Memory) -> Indexable:
        keyring = self._vault.keyring
        tag = content_tag(keyring.of(VAULT_SCOPE), memory.title, memory.text)
        topics = topic_tags(keyring.of(memory.collection), memory.topics)
        return Indexable(memory, tag, tuple(topics))

    def _blinder(self, collection: str) -> Blinder:
        if collection not in self._blinders:
            keys = self._vault.keyring.of(collection)
            self._blinders[collection] = keys.importing_blinder()
        return self._blinders[collection]

    def _language(self, collection: str) -> str:
        """The collection's most frequent language, for texts too short to tell."""
        if collection not in self._languages:
            found = self._snapshot.languages_in(collection)
            self._languages[collection] = next(iter(found), "en")
        return self._languages[collection]

    def _reuse(self, tag: bytes) -> Windows | None:
        """The windows and vectors that the index holds for an equal content already."""
        if self._known is None:
            tags, alive = self._snapshot.content_tags, self._snapshot.alive
            self._known = {bytes(tags[i]): int(i) for i in alive.nonzero()[0]}
        ordinal = self._known.get(tag)
        if ordinal is None:
            return None
        spans = self._snapshot.windows(ordinal)
        if not spans:
            return None
        return Windows(tuple(spans), self._snapshot.document_vectors(ordinal))

    def close(self) -> None:
        """Wipe the words that the import remembered."""
        for blinder in self._blinders.values():
            blinder.wipe()
        self._blinders.clear()
