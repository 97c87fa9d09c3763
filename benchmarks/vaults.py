"""Vaults and vectors made for measuring."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory_store.errors import ModelUnavailableError
from memory_store.importing.job import ImportJob, ImportRequest
from memory_store.importing.pipeline import run_import
from memory_store.index.segment import IndexEntry, TermCounts, build
from memory_store.index.snapshot import Snapshot
from memory_store.models.embedder import Embedder
from memory_store.session.credentials import secrets_to_open
from memory_store.session.unlock import open_vault
from memory_store.store import MemoryStore

DIMENSIONS = 384  # MiniLM's
SEGMENT = 32_768  # documents: the largest segments of a vault
Vectors = npt.NDArray[np.float32]


def random_units(count: int, dimensions: int = DIMENSIONS, seed: int = 7) -> Vectors:
    """Random vectors of length 1, float32 [count, dimensions]. They serve for speed only."""
    vectors = np.random.default_rng(seed).standard_normal((count, dimensions), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@dataclass
class RandomVectors:
    """An embedder with a real model's name, tokenizer and queries, and random vectors for texts.

    Embedding 10,000 notes takes ten minutes; a search does not notice which vectors it scans.
    """

    real: Embedder
    seed: int = 0

    def __post_init__(self) -> None:
        self.name = self.real.name
        self.dimensions = self.real.dimensions
        self.max_tokens = self.real.max_tokens
        self.fingerprint = self.real.fingerprint
        self.embed_query = self.real.embed_query
        self.embed_queries = self.real.embed_queries
        self.token_offsets = self.real.token_offsets
        self.count_tokens = self.real.count_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.seed += 1
        return random_units(len(texts), self.dimensions, self.seed)


def new_vault(path: Path, key_file: Path) -> MemoryStore:
    """An empty vault, opened; an older one of that name is removed."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return MemoryStore.create(path, key_file=key_file)[0]


def import_with_random_vectors(path: Path, key_file: Path, folder: Path, real: Embedder) -> None:
    """A new vault with the notes of ``folder``, windows as the real model has them."""
    new_vault(path, key_file).close()
    secrets = secrets_to_open(
        path, key_file=key_file, passphrase=None, recovery_code=None, keyring=False
    )
    vault = open_vault(path, secrets)
    try:
        job = ImportJob(request=ImportRequest.of_paths(folder))
        run_import(vault, job, lambda collection: RandomVectors(real), _must_not_fail)
    finally:
        vault.lock()


def _must_not_fail(_: str, error: ModelUnavailableError) -> None:
    raise error


def snapshot_of(vectors: Vectors) -> Snapshot:
    """An index of documents with one vector each and no words, in segments as vaults have them."""
    collection = str(uuid.UUID(int=1))
    parts = []
    for start in range(0, len(vectors), SEGMENT):
        block = vectors[start : start + SEGMENT]
        entries = [_entry(start + n, vector, collection) for n, vector in enumerate(block)]
        segment = build(entries, vectors.shape[1])
        parts.append((segment, np.ones(segment.count, dtype=np.bool_), collection))
    return Snapshot(parts)


NO_HASHES = np.empty(0, np.uint64)


def _entry(number: int, vector: Vectors, collection: str) -> IndexEntry:
    return IndexEntry(
        memory_id=str(uuid.UUID(int=number + 1)),
        version=1,
        collection=collection,
        type="note",
        language="en",
        created=float(number),
        updated=float(number),
        content_tag=number.to_bytes(16, "big"),
        topics=(),
        title_terms=TermCounts.of(NO_HASHES),
        body_terms=TermCounts.of(NO_HASHES),
        length=0,
        pairs=NO_HASHES,
        windows=((0, 1),),
        vectors=vector[None, :],
    )
