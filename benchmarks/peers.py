"""What ours is held against: the plain way to do the same, as short as it can be written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_store.index.snapshot import Snapshot
from memory_store.models.embedder import Embedder, default_threads
from memory_store.models.places import locate_embedder
from memory_store.search.context import SearchContext
from memory_store.sqlite import ExtensionUnavailable, connect_with_vec
from memory_store.text.tokens import term

TAG_BYTES = 16
SATURATION, LENGTH_WEIGHT = 1.2, 0.75  # BM25's k1 and b, as FTS5 has them
Vectors = npt.NDArray[np.float32]


def index_in_fts5(folder: Path, database: Path) -> None:
    """Read every Markdown file into one FTS5 table, in one transaction."""
    database.unlink(missing_ok=True)
    connection = sqlite3.connect(database)
    connection.execute(
        "create virtual table notes using fts5(path unindexed, body, tokenize='porter unicode61')"
    )
    with connection:
        connection.executemany(
            "insert into notes values (?, ?)",
            ((str(path), path.read_text("utf-8")) for path in sorted(folder.rglob("*.md"))),
        )
    connection.close()


def read_every_byte(folder: Path) -> int:
    """What finding out that nothing changed costs at least: reading every file."""
    return sum(len(path.read_bytes()) for path in sorted(folder.rglob("*.md")))


class Fts5:
    """Keyword search over the table that :func:`index_in_fts5` made, words OR-ed."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(database)

    def rank(self, query: str) -> list[int]:
        """The 64 best rows."""
        rows = self._connection.execute(
            "select rowid from notes where notes match ? order by rank limit 64", (_ored(query),)
        )
        return [row[0] for row in rows]

    def answer(self, query: str) -> list[tuple[str, str]]:
        """The ten best paths, each with a passage that shows the words."""
        return self._connection.execute(
            """
            select path, snippet(notes, 1, '[', ']', '…', 40) from notes
            where notes match ? order by rank limit 10
            """,
            (_ored(query),),
        ).fetchall()


class NumpyPostings:
    """BM25 as short as NumPy can say it: the limit of a ranking by words.

    The postings of a few queries' words, their weights worked out beforehand and each in one
    block; a search adds them up and takes the best. No filters, no fields, no ties settled.
    """

    def __init__(self, context: SearchContext, queries: Sequence[str]) -> None:
        snapshot = context.snapshot
        self._size = snapshot.size
        lengths = snapshot.lengths.astype(np.float32)
        longer = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * lengths / max(1.0, float(lengths.mean()))
        blinders = [context.blinder(collection) for collection in snapshot.collections]
        self._postings = {
            word: _weighed(
                snapshot, [blinder.term("en", term(word, "en")) for blinder in blinders], longer
            )
            for word in {word for query in queries for word in query.split()}
        }

    def rank(self, query: str) -> object:
        """The 64 best documents."""
        scores = np.zeros(self._size, dtype=np.float32)
        for documents, weights in (self._postings[word] for word in query.split()):
            scores[documents] += weights
        best = np.argpartition(scores, -min(64, self._size))[-64:]
        return best[np.argsort(-scores[best])]


def _weighed(
    snapshot: Snapshot, hashes: Sequence[int], longer: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The documents that hold a word, and what it is worth in each."""
    wanted = np.array(hashes, dtype=np.uint64)
    documents, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for part in snapshot.parts:
        segment = part.segment
        for _, start, end in segment.terms.slices(wanted):
            documents.append(part.base + segment.terms.docs[start:end].astype(np.int64))
            both = segment.title_counts[start:end].astype(np.float32)
            counts.append(both + segment.body_counts[start:end])
    held, said = np.concatenate(documents), np.concatenate(counts)
    rare = np.log1p((snapshot.total - len(held) + 0.5) / (len(held) + 0.5))
    return held, (rare * said * (SATURATION + 1) / (said + SATURATION * longer[held])).astype("f4")


def _ored(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in query.split())


def matmul_nearest(vectors: Vectors, k: int) -> Callable[[Vectors], object]:
    """Exact search: one product over all vectors, then the best ``k`` in order."""

    def nearest(query: Vectors) -> object:
        similarities = vectors @ query
        best = np.argpartition(similarities, -k)[-k:]
        return best[np.argsort(-similarities[best])]

    return nearest


def vec0_nearest(vectors: Vectors, k: int) -> Callable[[Vectors], object] | None:
    """sqlite-vec's exact search over a table in memory; None where it cannot be loaded."""
    try:
        connection, _ = connect_with_vec(":memory:")
    except ExtensionUnavailable:
        return None
    connection.execute(f"create virtual table v using vec0(e float[{vectors.shape[1]}])")
    connection.execute("begin")
    connection.executemany(
        "insert into v (rowid, e) values (?, ?)",
        ((number, vector.tobytes()) for number, vector in enumerate(vectors)),
    )
    connection.execute("commit")

    def nearest(query: Vectors) -> object:
        return connection.execute(
            "select rowid, distance from v where e match ? and k = ?", (query.tobytes(), k)
        ).fetchall()

    return nearest


def bare_fastembed(model: Embedder) -> Callable[[Sequence[str]], object]:
    """The same files in FastEmbed as its documentation has it: texts as they come, its batches."""
    from fastembed import TextEmbedding

    place = locate_embedder(model.name)
    assert place is not None
    bare = TextEmbedding(
        place.registered or place.name,
        specific_model_path=str(place.folder),
        threads=default_threads(),
    )
    return lambda texts: list(bare.embed(list(texts)))


class NullCipher:
    """Encrypts nothing, in the form of a cipher: what is left is the cost of everything else."""

    def __init__(self, key: bytearray) -> None:
        """Takes a key, as ciphers do, and needs none."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes:
        return bytes(data) + bytes(TAG_BYTES)

    def decrypt_into(
        self, nonce: bytes, data: memoryview, associated_data: bytes | None, buf: bytearray
    ) -> int:
        buf[:] = data[:-TAG_BYTES]
        return len(buf)


def decrypt_bytes(count: int) -> Callable[[object], object]:
    """Decrypt ``count`` bytes in one piece: the least that unlocking as large an index costs."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, nonce = AESGCM(AESGCM.generate_key(256)), os.urandom(12)
    sealed = cipher.encrypt(nonce, bytes(count), None)
    return lambda _: cipher.decrypt(nonce, sealed, None)
