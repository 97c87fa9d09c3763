"""What ours is held against: the plain way to do the same, as short as it can be written."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory_store.sqlite import ExtensionUnavailable, connect_with_vec

TAG_BYTES = 16
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
