"""The keyword leg: BM25 over keyed term hashes, equal to FTS5's ``bm25()`` bit for bit.

Boundary: a query word arrives as one keyed hash per collection and language; no word is seen
here. Document frequencies, the number of documents and their mean length count only *visible*
collections and living documents, so a score leaks nothing about what the asker may not read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memory_store.index.columns import Array
from memory_store.index.ranking import best_first
from memory_store.index.snapshot import HashGroup, Mask, Part, Snapshot

K1 = 1.2  # SQLite, ext/fts5/fts5_aux.c: fts5Bm25Function
B = 0.75  # likewise
IDF_FLOOR = 1e-6  # likewise: the idf of a word that more than half of the documents hold

MAX_CACHED = 16  # settings whose length norms a snapshot remembers

TermGroup = HashGroup


class Scored(NamedTuple):
    """Documents and their scores: ``ordinals`` int32, ``scores`` float64, both [n]."""

    ordinals: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]


def keyword_scores(
    snapshot: Snapshot,
    groups: Sequence[TermGroup],
    *,
    k1: float = K1,
    b: float = B,
    title_weight: float = 1.0,
    mask: Mask | None = None,
    visible: Collection[str] | None = None,
) -> Scored:
    """BM25 of every document that ``mask`` lets through and that holds a word of ``groups``.

    Each group is one query word; repeated words count again, as in FTS5. ``title_weight`` (> 0)
    is FTS5's column weight of the title, the body's being 1. ``visible`` are the collections
    that statistics may count and results come from (``None``: all). Ordinals ascend; use
    :func:`top_k` for the best. Scores stay float64: float32 would make ties FTS5 does not have.
    """
    if title_weight <= 0:
        raise ValueError("title_weight must be above 0")
    seen = snapshot.visible(visible)
    norms, documents = _norms(snapshot, visible, k1, b)
    scores = np.zeros(snapshot.size)
    for hits in _hits(snapshot, groups, visible):
        matches = [match for match in map(_match, hits) if match is not None]
        idf = _idf(documents, _frequency(matches))
        for part, docs, titles, bodies in matches:
            counts = bodies + title_weight * titles
            norm = norms[part.span][docs]
            scores[part.span][docs] += idf * ((counts * (k1 + 1.0)) / (counts + norm))
    allowed = seen if mask is None else seen & mask
    ordinals = np.flatnonzero((scores > 0) & allowed)
    return Scored(ordinals.astype(np.int32), scores[ordinals])


def top_k(snapshot: Snapshot, ordinals: Array, scores: Array, k: int) -> Scored:
    """The ``k`` best, highest score first, equal scores in the order of their ids' text."""
    best = best_first(snapshot, ordinals, scores, k)
    return Scored(ordinals[best].astype(np.int32), scores[best].astype(np.float64))


def document_frequency(
    snapshot: Snapshot, group: TermGroup, visible: Collection[str] | None = None
) -> int:
    """How many living documents of the visible collections hold the word."""
    (hits,) = _hits(snapshot, [group], visible)
    return _frequency([match for match in map(_match, hits) if match is not None])


def coverage(
    snapshot: Snapshot,
    groups: Sequence[TermGroup],
    ordinals: Array,
    visible: Collection[str] | None = None,
) -> npt.NDArray[np.float64]:
    """How much of the query each document of ``ordinals`` holds: 0–1, float64 [n].

    The idf of the words it holds over the idf of all words of the query, so that a rare word
    counts more than a common one, and a word nobody holds counts most. The idf is Lucene's
    (never below 0), since shares need a scale without floor. A group that has no hash for a
    collection does not count there.
    """
    _, documents = _norms(snapshot, visible, K1, B)
    covered = np.zeros(len(ordinals))
    totals = np.zeros(len(snapshot.collections))
    for group, hits in zip(groups, _hits(snapshot, groups, visible), strict=True):
        matches = [match for match in map(_match, hits) if match is not None]
        frequency = _frequency(matches)
        idf = math.log1p((documents - frequency + 0.5) / (frequency + 0.5))
        totals[[bool(group.get(name)) for name in snapshot.collections]] += idf
        for part, docs, _, _ in matches:
            inside = np.flatnonzero((ordinals >= part.base) & (ordinals < part.end))
            rows = ordinals[inside] - part.base
            places = np.minimum(np.searchsorted(docs, rows), len(docs) - 1)
            covered[inside[docs[places] == rows]] += idf
    total = totals[snapshot.collection_codes[ordinals]]
    return np.divide(covered, total, out=covered, where=total > 0)


def has_term(snapshot: Snapshot, group: TermGroup, ordinals: Array | None = None) -> Mask:
    """Whether each document of ``ordinals`` (``None``: of the snapshot) holds the word."""
    held = np.zeros(snapshot.size, dtype=bool)
    (hits,) = _hits(snapshot, [group], None)
    for part, slices in hits:
        for start, end in slices:
            held[part.span][part.segment.terms.docs[start:end]] = True
    return held if ordinals is None else held[ordinals]


def has_pair(snapshot: Snapshot, pair: HashGroup, ordinals: Array | None = None) -> Mask:
    """Whether each document of ``ordinals`` (``None``: of the snapshot) holds the adjacent pair.

    ``pair`` maps collection ids to the uint64 hashes that stand for the pair there.
    """
    held = np.zeros(snapshot.size, dtype=bool)
    for part in snapshot.parts:
        for value in pair.get(part.collection, ()):
            held[part.span][part.segment.pairs.rows(value)] = True
    return held if ordinals is None else held[ordinals]


_Hits = list[tuple[Part, list[tuple[int, int]]]]
_Match = tuple[Part, Array, Array, Array]


def _hits(
    snapshot: Snapshot, groups: Sequence[TermGroup], visible: Collection[str] | None
) -> list[_Hits]:
    """Per group, the parts that hold its word and the slices of their postings."""
    answer: list[_Hits] = [[] for _ in groups]
    wanted: dict[str, tuple[npt.NDArray[np.uint64], list[int]]] = {}
    for part in snapshot.parts:
        if visible is not None and part.collection not in visible:
            continue
        if part.collection not in wanted:
            wanted[part.collection] = _wanted(groups, part.collection)
        hashes, owners = wanted[part.collection]
        for index, start, end in part.segment.terms.slices(hashes):
            hits = answer[owners[index]]
            if hits and hits[-1][0] is part:
                hits[-1][1].append((start, end))
            else:
                hits.append((part, [(start, end)]))
    return answer


def _wanted(
    groups: Sequence[TermGroup], collection: str
) -> tuple[npt.NDArray[np.uint64], list[int]]:
    """The hashes to look up in one collection, and the group each belongs to."""
    rows = [(h, i) for i, g in enumerate(groups) for h in dict.fromkeys(g.get(collection, ()))]
    return np.array([h for h, _ in rows], dtype=np.uint64), [i for _, i in rows]


def _match(hit: tuple[Part, list[tuple[int, int]]]) -> _Match | None:
    """Rows, title counts and body counts (float64) of living documents that hold the word."""
    part, slices = hit
    segment = part.segment
    columns = (segment.terms.docs, segment.title_counts, segment.body_counts)
    if len(slices) == 1:
        start, end = slices[0]
        docs, titles, bodies = (column[start:end] for column in columns)
    else:
        docs, titles, bodies = (np.concatenate([c[s:e] for s, e in slices]) for c in columns)
        docs, places = np.unique(docs, return_inverse=True)
        titles = np.bincount(places, weights=titles)
        bodies = np.bincount(places, weights=bodies)
    if not part.all_alive:
        living = part.alive[docs]
        docs, titles, bodies = docs[living], titles[living], bodies[living]
    if not len(docs):
        return None
    return part, docs, titles.astype(np.float64), bodies.astype(np.float64)


def _frequency(matches: Sequence[_Match]) -> int:
    return sum(len(docs) for _, docs, _, _ in matches)


def _idf(documents: int, frequency: int) -> float:
    idf = math.log((documents - frequency + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else IDF_FLOOR


def _norms(
    snapshot: Snapshot, visible: Collection[str] | None, k1: float, b: float
) -> tuple[npt.NDArray[np.float64], int]:
    """Per document the length part of BM25's divisor, and the number of visible documents.

    Kept per snapshot, for a handful of settings: it costs as much as scoring a common word.
    """
    key = ("norms", None if visible is None else frozenset(visible), k1, b)
    known: tuple[npt.NDArray[np.float64], int] | None = snapshot.caches.get(key)
    if known is None:
        seen = snapshot.visible(visible)
        documents = int(np.count_nonzero(seen))
        tokens = int(snapshot.lengths[seen].sum(dtype=np.int64))
        mean = tokens / documents if tokens else 1.0
        # The order of operations is FTS5's, so that every bit is.
        known = (k1 * (1 - b + b * snapshot.lengths.astype(np.float64) / mean), documents)
        if len(snapshot.caches) >= MAX_CACHED:
            snapshot.caches.clear()
        snapshot.caches[key] = known
    return known
