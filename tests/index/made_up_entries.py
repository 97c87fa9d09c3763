"""Index entries for tests, made from plain words by an unkeyed hash."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from memory_store.index.segment import IndexEntry, Segment, TermCounts, build
from memory_store.index.snapshot import Snapshot

DIMENSIONS = 32


def word_hash(word: str) -> int:
    """A 64-bit hash; over many words about half lie above 2**63."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")


def pair_hash(first: str, second: str) -> int:
    return word_hash(f"{first} {second}")


def counts(terms: Mapping[int, int]) -> TermCounts:
    return TermCounts(np.array([*terms], np.uint64), np.array([*terms.values()], np.int64))


def topic_hash(topic: str) -> bytes:
    return blake2b(topic.encode(), digest_size=16).digest()


def entry(
    body: Sequence[str] = (),
    title: Sequence[str] = (),
    *,
    vectors: Any = None,
    tags: Sequence[str] = (),
    **changes: Any,
) -> IndexEntry:
    """An entry for a text of those words; keywords override fields of ``IndexEntry``."""
    rows = np.zeros((0, DIMENSIONS), np.float32) if vectors is None else np.asarray(vectors)
    fields: dict[str, Any] = {
        "memory_id": str(uuid.uuid4()),
        "version": 1,
        "collection": "notes",
        "type": "note",
        "language": "en",
        "created": 1_700_000_000.0,
        "updated": 1_700_000_000.0,
        "content_tag": topic_hash(" ".join(body)),
        "topics": tuple(map(topic_hash, tags)),
        "title_terms": TermCounts.of(np.array([*map(word_hash, title)], np.uint64)),
        "body_terms": TermCounts.of(np.array([*map(word_hash, body)], np.uint64)),
        "length": len(title) + len(body),
        "pairs": np.unique(
            np.array([pair_hash(*p) for words in (title, body) for p in pairwise(words)], np.uint64)
        ),
        "windows": tuple((100 * i, 100 * i + 99) for i in range(len(rows))),
        "vectors": rows,
    }
    return IndexEntry(**{**fields, **changes})


def unit_vectors(rng: np.random.Generator, count: int, dimensions: int = DIMENSIONS) -> Any:
    rows = rng.normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def varied_entries(seed: int, count: int, collection: str = "notes") -> list[IndexEntry]:
    """Entries that use every column: types, languages, topics, bounds, zero to three windows."""
    chance = random.Random(seed)
    rng = np.random.default_rng(seed)
    vocabulary = [f"word{i}" for i in range(60)]
    return [
        entry(
            chance.choices(vocabulary, k=chance.randrange(40)),
            chance.choices(vocabulary, k=chance.randrange(5)),
            vectors=unit_vectors(rng, chance.randrange(4)),
            tags=chance.sample(["garden", "kitchen", "tax", "travel"], chance.randrange(3)),
            collection=collection,
            memory_id=str(uuid.UUID(int=chance.getrandbits(128))),
            version=chance.randrange(1, 2**40),
            type=chance.choice(["note", "task", "task_done"]),
            language=chance.choice(["en", "de"]),
            created=float(chance.randrange(2**31)),
            valid_from=chance.choice([-math.inf, 5.0]),
            valid_to=chance.choice([math.inf, 9e9]),
        )
        for _ in range(count)
    ]


def snapshot_of(*groups: Sequence[IndexEntry], alive: Sequence[Any] = ()) -> Snapshot:
    """A snapshot of one segment per group, all alive unless masks are given."""
    parts = []
    for index, group in enumerate(groups):
        mask = alive[index] if alive else np.ones(len(group), dtype=bool)
        collection = group[0].collection if group else "notes"
        parts.append((build(group, DIMENSIONS), mask, collection))
    return Snapshot(parts)


def all_alive(segment: Segment) -> Any:
    return np.ones(segment.count, dtype=bool)
