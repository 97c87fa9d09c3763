"""Nothing is embedded twice: vectors and queries are remembered while a benchmark runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memory_store.models.embedder import Embedder, load_embedder
from memory_store.models.token_vectors import TokenVectors


class Remembered:
    """An embedder that reads no query and no passage twice; everything else is the real one's.

    ``queries`` are vectors by the :func:`mark` of their query: those that are known, and new ones.
    """

    def __init__(self, real: Embedder, queries: dict[str, Any]) -> None:
        self._real = real
        self._queries = queries
        self._passages: dict[str, TokenVectors] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def embed_query(self, text: str) -> Any:
        name = mark(text)
        if name not in self._queries:
            self._queries[name] = self._real.embed_query(text)
        return self._queries[name]

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return np.array([self.embed_query(text) for text in texts])

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        unread = [text for text in dict.fromkeys(texts) if text not in self._passages]
        for text, read in zip(unread, self._real.token_vectors(unread), strict=True):
            half = read.vectors.astype(np.float16)  # half the memory, the same to three digits
            self._passages[text] = TokenVectors(half, read.offsets)
        known = [self._passages[text] for text in texts]
        return [TokenVectors(one.vectors.astype(np.float32), one.offsets) for one in known]


def remembering(
    load: Callable[..., Embedder], queries: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The embedders that ``load`` finds, each of them one that remembers; all of them are the
    same model where ``queries`` are known already.
    """
    known: dict[int, Remembered] = {}

    def loaded(*collection: str) -> Any:
        real = load(*collection)
        return known.setdefault(id(real), Remembered(real, {} if queries is None else queries))

    return loaded


@contextmanager
def recorded(known: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the usual model embeds meanwhile: :func:`mark` of each text → float32 vector.

    What is ``known`` already, by the same names, is not embedded again.
    """
    embedder = load_embedder()
    real, made = embedder.embed, dict(known)

    def embed(texts: Sequence[str]) -> Any:
        if not texts:
            return real(texts)
        unknown = [text for text in texts if mark(text) not in made]
        if unknown:
            made.update(zip(map(mark, unknown), real(unknown), strict=True))
        return np.array([made[mark(text)] for text in texts], dtype=np.float32)

    embedder.embed = embed  # type: ignore[method-assign]
    try:
        yield made
    finally:
        del embedder.embed


def kept_vectors(path: Path) -> dict[str, Any]:
    """Vectors by the mark of their text, from :func:`keep_vectors`; none without a file."""
    if not path.exists():
        return {}
    with np.load(path) as arrays:
        return dict(zip(arrays["marks"].tolist(), arrays["vectors"], strict=True))


def keep_vectors(path: Path, vectors: Mapping[str, Any]) -> None:
    """Write them where :func:`kept_vectors` finds them."""
    np.savez(path, marks=np.array(list(vectors)), vectors=np.array(list(vectors.values())))


def mark(text: str) -> str:
    """A short name for a text: its hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
