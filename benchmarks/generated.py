"""Large vaults without an import: index entries drawn as numbers, packed and sealed by the store.

An import of a million notes takes an hour. Here the words of the corpus are hashed once with the
vault's own key, notes are drawn from them as places, and whole segments are built, encoded and
sealed by the code that a merge uses. What comes out is a vault like any other (``verify`` finds
nothing amiss but that the vectors are drawn): terms, pairs, topics, one random vector a note and,
where asked for, its sealed texts, so that a search can open what it finds.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from benchmarks.corpus import TOPICS, Writer
from benchmarks.vaults import SEGMENT, RandomVectors, new_vault, random_units
from memory_store.crypto.blinding import Blinder
from memory_store.index.layout import Late, Segment
from memory_store.index.postings import collect, collect_pairs
from memory_store.models.embedder import Embedder
from memory_store.records import Memory
from memory_store.session.credentials import secrets_to_open
from memory_store.session.sealed_segments import index_model, write_index_segment
from memory_store.session.unlock import open_vault
from memory_store.session.whole_vault import WholeVault
from memory_store.text.tokens import term
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys
from memory_store.vault.manifest import account
from memory_store.vault.rows import Origin, content_tag, insert_memories
from memory_store.vault.storage.memories import MemoryRow

LANGUAGE = "en"
TITLE_WORDS = 4
QUERIES, QUERY_WORDS = 40, 8
BEGUN = datetime(2015, 1, 1, tzinfo=UTC)  # of the first note; one an hour from then on

EMPTY = (None, None, None)  # without type and times: unlocking counts rows, and opens none
Places = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


class Block(Struct, frozen=True, dict=True):
    """Some notes as places of words: ``body`` and ``title`` with the note each word belongs to."""

    first: int
    lengths: Places
    body: Places
    title: Places
    topics: Places
    words: Sequence[str]

    @property
    def count(self) -> int:
        return len(self.lengths)

    @cached_property
    def body_notes(self) -> Places:
        """int64: the note of each word of ``body``."""
        return np.repeat(np.arange(self.count), self.lengths)

    @cached_property
    def title_notes(self) -> Places:
        """int64: the note of each word of ``title``."""
        return np.repeat(np.arange(self.count), TITLE_WORDS)

    @cached_property
    def ids(self) -> npt.NDArray[np.uint8]:
        """uint8 [count, 16]: random, and the same in every run."""
        random = np.random.default_rng(self.first + 1)
        return random.integers(0, 256, (self.count, 16), dtype=np.uint8)

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Title and text of each note."""
        named = np.array(self.words, dtype=object)
        titles = named[self.title].reshape(-1, TITLE_WORDS).tolist()
        starts = np.concatenate([[0], np.cumsum(self.lengths)]).tolist()
        words = named[self.body].tolist()
        return [
            (" ".join(title).capitalize(), " ".join(words[start:end]))
            for title, start, end in zip(titles, starts, starts[1:], strict=False)
        ]

    def memories(self, collection: str) -> Iterator[Memory]:
        """The notes as the store keeps them."""
        for n, (title, text) in enumerate(self.texts):
            written = (BEGUN + timedelta(hours=self.first + n)).isoformat()
            topic = f"topic-{self.topics[n]}"
            yield Memory(
                str(uuid.UUID(bytes=self.ids[n].tobytes())),
                *(collection, "note", title, text, (topic,), written, written),
                ref=f"note-{self.first + n:07}",
            )


class Drawn(Struct, frozen=True):
    """A vault of drawn notes: where it is, how many, the bytes of their texts, and queries."""

    path: Path
    notes: int
    text_bytes: int
    queries: tuple[str, ...]


def blocks(notes: int, writer: Writer) -> Iterator[Block]:
    """``notes`` drawn notes, as many at a time as a segment holds."""
    for first in range(0, notes, SEGMENT):
        count = min(SEGMENT, notes - first)
        lengths = writer.lengths(count)
        yield Block(
            first,
            lengths,
            writer.places(int(lengths.sum())),
            writer.places(count * TITLE_WORDS, telling=True),
            writer.random.zipf(1.4, count) % TOPICS,
            writer.words,
        )


def draw_vault(
    path: Path,
    key_file: Path,
    notes: int,
    model: Embedder | None,
    *,
    texts: bool = True,
    also: Sequence[Callable[[Block], object]] = (),
    words: Sequence[str] = (),
) -> Drawn:
    """A new vault of ``notes``, with vectors where there is a ``model`` to search them with.

    Without ``texts`` rows are empty and nothing can be opened, which legs never do. ``also`` is
    shown every block, so that a peer can be filled with the same notes. ``words`` are the
    :class:`Writer`'s.
    """
    writer, text_bytes = Writer(words=words), 0
    new_vault(path, key_file).close()
    secrets = secrets_to_open(
        path, key_file=key_file, passphrase=None, recovery_code=None, keyring=False
    )
    vault = open_vault(path, secrets)
    try:
        if model is not None:
            with vault.writing() as connection, connection.transaction():
                vault.adopt_model(connection, RandomVectors(model))
        filling = _Filling(vault, writer.words, texts)
        for block in blocks(notes, writer):
            filling.add(block)
            for take in also:
                take(block)
            text_bytes += sum(len(title) + len(text) + 1 for title, text in block.texts)
    finally:
        vault.lock()
    asked = tuple(" ".join(writer.telling(QUERY_WORDS)) for _ in range(QUERIES))
    return Drawn(path, notes, text_bytes, asked)


class _Filling:
    """Writes blocks into one collection, each with its segment, rows and account."""

    def __init__(self, vault: WholeVault, words: Sequence[str], texts: bool) -> None:
        self._vault, self._texts = vault, texts
        self._keys: CollectionKeys = vault.keyring.of(vault.settings.personal)
        blinder = self._keys.blinder
        terms = [blinder.term(LANGUAGE, term(word, LANGUAGE)) for word in words]
        self._terms: Hashes = np.array(terms, dtype=np.uint64)
        topics = [blinder.topic(f"topic-{n}") for n in range(TOPICS)]
        self._topics: Hashes = np.array(
            [int.from_bytes(tag[:8], "big") for tag in topics], dtype=np.uint64
        )

    def add(self, block: Block) -> None:
        """One transaction, as a batch of an import is."""
        keys, model = self._keys, index_model(self._vault.settings, self._keys)
        ids = [str(uuid.UUID(bytes=one.tobytes())) for one in block.ids]
        with self._vault.writing() as connection, connection.transaction():
            if self._texts:
                memories = [(memory, Origin()) for memory in block.memories(keys.collection)]
                tags = insert_memories(connection, keys, memories, strict=False, hash_topics=True)
            else:
                rows = (MemoryRow(one, keys.collection, *EMPTY, 1, one, b"") for one in ids)
                connection.memories.insert([*rows])
                tags = [one.tobytes() for one in block.ids]
            row_tags = np.frombuffer(bytearray(b"".join(tags)), dtype=np.uint8).reshape(-1, 16)
            segment = self._segment(block, model.dimensions, row_tags)
            write_index_segment(connection, keys, segment, model.mark)
            account(connection, keys, added=tags)

    def _segment(self, block: Block, dimensions: int, row_tags: npt.NDArray[np.uint8]) -> Segment:
        """The block's columns, made as :func:`memory_store.index.segment.build` makes them."""
        count = block.count
        body, title = self._terms[block.body], self._terms[block.title]
        notes = np.concatenate([block.body_notes, block.title_notes])
        in_title = np.repeat([0, 1], [len(body), len(title)])
        order = np.argsort(notes, kind="stable")
        terms, (titles, bodies) = collect(
            np.concatenate([body, title])[order],
            notes[order],
            count,
            (in_title[order], 1 - in_title[order]),
        )
        written = BEGUN.timestamp() + 3_600.0 * np.arange(block.first, block.first + count)
        windows = count if dimensions else 0
        return Segment(
            count=count,
            dimensions=dimensions,
            ids=block.ids,
            versions=np.ones(count, dtype=np.int64),
            types=("note",),
            type_codes=np.zeros(count, dtype=np.uint16),
            languages=(LANGUAGE,),
            language_codes=np.zeros(count, dtype=np.uint16),
            created=written,
            updated=written,
            valid_from=np.full(count, -np.inf),
            valid_to=np.full(count, np.inf),
            content_tags=self._content_tags(block),
            row_tags=row_tags,
            lengths=(block.lengths + TITLE_WORDS).astype(np.uint32),
            terms=terms,
            title_counts=titles,
            body_counts=bodies,
            topics=collect(self._topics[block.topics], np.arange(count), count)[0],
            window_offsets=np.arange(count + 1, dtype=np.int64) * bool(windows),
            window_starts=np.zeros(windows, dtype=np.uint32),
            window_ends=np.array([len(text) for _, text in block.texts][:windows], np.uint32),
            late_vectors=Late(
                None, random_units(windows, dimensions, block.first).astype(np.float16)
            ),
            late_pairs=Late(None, self._pairs(block, body, title)),
        )

    def _content_tags(self, block: Block) -> npt.NDArray[np.uint8]:
        if not self._texts:
            return block.ids
        keys = self._vault.keyring.of(VAULT_SCOPE)
        tags = b"".join(content_tag(keys, title, text) for title, text in block.texts)
        return np.frombuffer(bytearray(tags), dtype=np.uint8).reshape(-1, 16)

    def _pairs(self, block: Block, body: Hashes, title: Hashes) -> Any:
        """Every two terms that stand side by side in a note, each once a note."""
        rows = [(body, block.body_notes), (title, block.title_notes)]
        together = [_neighbours(self._keys.blinder, *row) for row in rows]
        packed = np.unique(np.concatenate(together))
        hashes = (packed >> np.uint64(32)).astype(np.uint32)
        notes = (packed & np.uint64(0xFFFF_FFFF)).astype(np.int64)
        return collect_pairs(hashes, notes, block.count)


def _neighbours(blinder: Blinder, terms: Hashes, notes: Places) -> Hashes:
    """uint64: the upper half of each pair's hash over the number of its note."""
    if len(terms) < 2:
        return np.empty(0, dtype=np.uint64)
    within = notes[1:] == notes[:-1]
    upper = blinder.pairs(terms)[within] & np.uint64(0xFFFF_FFFF_0000_0000)
    return upper | notes[1:][within].astype(np.uint64)


class IntoFts5:
    """The same notes in one plain FTS5 table."""

    def __init__(self, database: Path) -> None:
        database.unlink(missing_ok=True)
        self._connection = sqlite3.connect(database)
        self._connection.execute(
            "create virtual table notes using fts5"
            "(path unindexed, body, tokenize='porter unicode61')"
        )

    def __call__(self, block: Block) -> None:
        rows = enumerate(block.texts, block.first)
        with self._connection:
            self._connection.executemany(
                "insert into notes values (?, ?)",
                ((f"note-{n:07}", f"{title}\n{text}") for n, (title, text) in rows),
            )

    def __enter__(self) -> IntoFts5:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
