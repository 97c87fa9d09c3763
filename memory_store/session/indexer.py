"""Memories made ready to be written: tags, language, terms and vectors, outside a transaction.

Boundary: plain text comes in, keyed hashes and vectors go out. The words that an import remembers
are wiped when it closes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memory_store.errors import ModelUnavailableError
from memory_store.index.layout import overwrite
from memory_store.index.segment import IndexEntry
from memory_store.records import Memory
from memory_store.session.embedders import check_model
from memory_store.session.entries import (
    Indexable,
    Making,
    TermHashes,
    Windows,
    index_entries,
    indexable,
    is_source,
    link_targets,
)
from memory_store.session.opened_vault import OpenVault
from memory_store.session.sealed_segments import IndexModel, index_model
from memory_store.session.source_parts import SourceParts, source_parts
from memory_store.session.writer import Prepared
from memory_store.text.identifiers import CODE
from memory_store.text.name_counts import NameCounter
from memory_store.vault.rows import Origin
from memory_store.vault.trash import vectors_of

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.session.source_process import SourceProcess

LOOK_AGAIN = 60.0  # seconds after which the trash is looked at again for vectors
ROWS_FOR_ONE = 500  # rows of the trash that are opened in the time of embedding one content
FEW = 64  # contents that are looked for without a table of all
WORTH_A_PROCESS = 1_000_000  # characters of source code at once: twice what starting one takes


class Indexer:
    """Turns memories into what :func:`write_batch` writes. One per import or call; then closed.

    ``embedders`` gives the model of a collection (by id), or None: new contents are then left
    without vectors (``--no-embed``, or no model). ``failed`` is called with a collection whose
    model failed: the texts that it failed on are left without vectors, too. ``anew``: no vectors of
    the index are used again but those that are ``given``. Raises ModelMismatchError where a
    collection's vectors come from
    another model, and, without ``failed``, ModelUnavailableError.
    """

    def __init__(
        self,
        vault: OpenVault,
        embedders: Callable[[str], Embedder | None],
        failed: Callable[[str, ModelUnavailableError], None] | None = None,
        *,
        anew: bool = False,
    ) -> None:
        self.given: Mapping[tuple[str, bytes], Windows] = {}
        """By fingerprint of a model and content tag: windows and vectors that need not be made."""
        self.embedded: Callable[[int, int], None] | None = None
        """Called with how many windows of a batch are embedded, and how many it has."""
        self._vault = vault
        self._embedders = embedders
        self._failed = failed
        self._anew = anew
        self._snapshot = vault.snapshot()
        self._makings: dict[str, tuple[Making, IndexModel]] = {}
        self._known: dict[tuple[str, str | None], _Contents] = {}
        self._trashed: dict[tuple[str, bytes], Windows] = {}
        self._counter = NameCounter()
        self._sources: SourceProcess | None = None

    def embeds(self, collection: str) -> bool:
        """Whether there is a model to make vectors with."""
        return self._making(collection)[0].embedder is not None

    def model(self, collection: str) -> IndexModel:
        """What the entries of a collection are made with."""
        return self._making(collection)[1]

    def _making(self, collection: str) -> tuple[Making, IndexModel]:
        # Looked up once: if the settings change meanwhile, entries keep the mark of what they were
        # really made with, and are stale.
        if collection not in self._makings:
            vault, embedder = self._vault, self._embedders(collection)
            if not vault.settings.of(collection).fingerprint and not vault.keyring.is_owner:
                embedder = None  # which model it is to be the owner decides
            if embedder is not None:
                check_model(vault, embedder, collection)
                if not vault.settings.of(collection).fingerprint:
                    with vault.writing() as storage, storage.transaction(vault.keyring):
                        vault.adopt_model(storage, embedder, collection)
            keys, spoken = vault.keyring.of(collection), self._snapshot.languages_in(collection)
            language = next((one for one in spoken if one != CODE), "en")
            settings, hashes = vault.settings.of(collection), TermHashes(keys.importing_blinder())
            made = Making(embedder, hashes, settings, language)
            self._makings[collection] = made, index_model(vault.settings, keys)
        return self._makings[collection]

    def prepare(self, batch: Sequence[tuple[Memory, Origin]]) -> list[Prepared]:
        """Index entries for a batch; memories stay in order."""
        keyring, prepared = self._vault.keyring, dict[str, IndexEntry]()
        collections = dict.fromkeys(memory.collection for memory, _ in batch)
        self.begin([memory for memory, _ in batch])
        links = {memory.id: link_targets(memory) for memory, _ in batch}
        for collection in collections:
            items = [
                indexable(keyring, one, links[one.id])
                for one, _ in batch
                if one.collection == collection
            ]
            entries = self._entries(collection, items, self._making(collection)[0])
            prepared |= {entry.memory_id: entry for entry in entries}
        return [
            Prepared(memory, origin, prepared[memory.id], links[memory.id])
            for memory, origin in batch
        ]

    def begin(self, memories: Sequence[Memory]) -> bool:
        """Have a second processor, if there is one, begin with many files of source code; whether
        it does."""
        sources = [one for one in memories if is_source(one)]
        if self._sources is None and sum(len(one.text) for one in sources) >= WORTH_A_PROCESS:
            from memory_store.models.embedder import default_threads
            from memory_store.session.source_process import SourceProcess

            self._sources = SourceProcess(self._parts) if default_threads() > 1 else None
        if self._sources is not None:
            self._sources.begin(sources)
        return self._sources is not None and bool(sources)

    def _parts(self, memory: Memory) -> SourceParts:
        return source_parts(memory, self._counter)

    def _entries(
        self, collection: str, items: Sequence[Indexable], making: Making
    ) -> list[IndexEntry]:
        """The entries of a collection's memories; one by one where the model fails on some."""
        # without a model: that there is a vector would show that another one has the content
        within = collection if making.embedder is None else None
        reuse = partial(self._reuse, making.settings.fingerprint, within)
        if making.embedder is not None and not self._anew:
            missing = {item.content_tag for item in items if reuse(item.content_tag) is None}
            self._look_in_trash(collection, making.settings.fingerprint, missing)
        try:
            parts = self._sources.parts if self._sources is not None else self._parts
            return index_entries(items, making, reuse, self.embedded, parts)
        except ModelUnavailableError as error:
            if self._failed is None:
                raise
            self._failed(collection, error)
        if len(items) == 1:
            return self._entries(collection, items, replace(making, embedder=None))
        return [entry for one in items for entry in self._entries(collection, [one], making)]

    def _reuse(self, fingerprint: str, within: str | None, tag: bytes) -> Windows | None:
        """The windows and vectors that the index holds for an equal content, by the same model, in
        any collection or ``within`` one.

        Bit by bit: rounded once more, a vector would show that another collection has the content.
        """
        if (fingerprint, tag) in self.given:
            return self.given[fingerprint, tag]
        if self._anew:
            return None
        if (fingerprint, tag) in self._trashed:
            return self._trashed[fingerprint, tag]
        if (fingerprint, within) not in self._known:
            self._known[fingerprint, within] = self._contents(fingerprint, within)
        ordinal = self._known[fingerprint, within].document(tag)
        spans = self._snapshot.windows(ordinal) if ordinal is not None else ()
        if ordinal is None or not spans:
            return None
        return Windows(tuple(spans), self._snapshot.stored_vectors(ordinal))

    def _look_in_trash(self, collection: str, fingerprint: str, missing: Collection[bytes]) -> None:
        """Take what was deleted from this collection and comes back, as by a change of branch."""
        if not missing or collection not in self._vault.keyring.openable():
            return
        looked, there = self._vault.trashed.get((collection, fingerprint), (0.0, frozenset()))
        if time.monotonic() < looked + LOOK_AGAIN and there.isdisjoint(missing):
            return  # what another program deleted since is embedded anew, as any other
        with self._vault.reader().reading() as storage:
            found, tags = vectors_of(
                storage,
                self._vault.keyring,
                collection,
                fingerprint,
                missing,
                ROWS_FOR_ONE * len(missing),
            )
        if tags is not None:
            self._vault.trashed[collection, fingerprint] = time.monotonic(), frozenset(tags)
        for tag, (about, numbers) in found.items():
            vectors = np.frombuffer(numbers, np.float16).reshape(-1, about.dimensions)
            self._trashed[fingerprint, tag] = Windows(about.spans, vectors.copy())

    def _contents(self, fingerprint: str, within: str | None) -> _Contents:
        """The documents of collections whose vectors that model made, by their contents; also those
        that were replaced and still lie in a segment, for what is put back as it was.

        None of a collection that the writer may not read: vectors that need not be made would give
        its contents away, by the time that is saved.
        """
        snapshot, settings = self._snapshot, self._vault.settings
        made = [
            c
            for c in snapshot.collections
            if within in (None, c)
            and settings.of(c).fingerprint == fingerprint
            and self._vault.discloses(c)
        ]
        codes = [snapshot.collections.index(one) for one in made]
        embedded = np.isin(snapshot.collection_codes, codes) & (snapshot.window_counts > 0)
        return _Contents(snapshot.content_tags, embedded.nonzero()[0])

    def close(self) -> None:
        """Wipe the words that the import remembered."""
        if self._sources is not None:
            self._sources.close()
        overwrite(one.vectors for one in self._trashed.values())
        self._counter.forget()
        for making, _ in self._makings.values():
            making.hashes.wipe()


class _Contents:
    """Documents by their content tags. The first few are compared with all; then a table is made,
    which takes as long as a hundred comparisons."""

    def __init__(self, tags: NDArray[np.uint8], documents: NDArray[np.intp]) -> None:
        self._documents = documents
        self._tags = tags[documents].view(np.uint64)
        self._left = FEW
        self._table: dict[bytes, int] = {}

    def document(self, tag: bytes) -> int | None:
        """The last document that has this content."""
        if self._left:
            self._left -= 1
            same = (self._tags == np.frombuffer(tag, np.uint64)).all(axis=1).nonzero()[0]
            return int(self._documents[same[-1]]) if same.size else None
        if not self._table:
            pairs = zip(self._tags, self._documents, strict=True)
            self._table = {one.tobytes(): int(document) for one, document in pairs}
        return self._table.get(tag)
