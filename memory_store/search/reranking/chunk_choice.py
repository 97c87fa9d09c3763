"""Which chunk of a long text a reranker reads where the recipe chooses by the query's words.

Boundary: reads opened text and keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_store.text.chunks import passages

SHORT_TERM = 2  # characters: terms up to this are not counted (QMD, "Chunk Selection")


def chunk_terms(query: str) -> tuple[str, ...]:
    """The terms of a query that are counted: what stands between blanks, longer than two."""
    return tuple(term for term in query.lower().split() if len(term) > SHORT_TERM)


def best_chunk(chunks: Sequence[str], terms: Sequence[str]) -> int:
    """The number of the chunk that holds most of ``terms``, anywhere, even within words.

    A term counts once however often it stands there. The first of equals wins, so that it is the
    first chunk where no term is found at all.
    """
    held = [sum(term in chunk.lower() for term in terms) for chunk in chunks]
    return held.index(max(held))


def chunk_by_terms(text: str, query: str, characters: int) -> tuple[int, int]:
    """The span of the best chunk of ``text`` for ``query``, chunks being ``characters`` long.

    They do not overlap by more than passages do (15 %), and are as long as the reranker reads, so
    that nothing of the chosen one is cut off.
    """
    spans = passages(text, target_tokens=characters // 4)
    chosen = spans[best_chunk([text[start:end] for start, end in spans], chunk_terms(query))]
    return chosen.start, chosen.end
