"""The keyword leg: BM25 over keyed term hashes, equal to FTS5's ``bm25()`` bit for bit.

Boundary: a query word arrives as one keyed hash per collection and language; no word is seen
here. Document frequencies, the number of documents and their mean length count only *visible*
collections and living documents, so a score leaks nothing about what the asker may not read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.columns import Array
from memory_store.index.ranking import best_first
from memory_store.index.snapshot import HashGroup, Mask, Snapshot
from memory_store.index.term_table import Piece, terms_of

K1 = 1.2  # SQLite, ext/fts5/fts5_aux.c: fts5Bm25Function
B = 0.75  # likewise
IDF_FLOOR = 1e-6  # likewise: the idf of a word that more than half of the documents hold

MAX_CACHED = 16  # settings whose length norms a snapshot remembers

TermGroup = HashGroup


class Scored(NamedTuple):
    """Documents and their scores: ``ordinals`` int32, ``scores`` float64, both [n]."""

    ordinals: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]


class Matches(Struct, frozen=True, eq=False):
    """Where the words of a query stand: a row for each word and each document that holds it.

    ``ordinals`` intp, ``titles`` and ``bodies`` float64 (how often the word stands there), all
    [rows], the rows of the first word first; ``frequencies`` counts the rows of each word, and
    ``documents`` all that were looked through. Only living documents of the visible collections
    are there.
    """

    groups: Sequence[TermGroup]
    visible: Collection[str] | None
    documents: int
    frequencies: tuple[int, ...]
    ordinals: npt.NDArray[np.intp]
    titles: npt.NDArray[np.float64]
    bodies: npt.NDArray[np.float64]


def look_up(
    snapshot: Snapshot, groups: Sequence[TermGroup], visible: Collection[str] | None = None
) -> Matches:
    """The postings of some words, from all segments. Each group is one word."""
    hits = _hits(snapshot, groups, visible)
    rows = [sum([len(docs) for _, docs, _, _ in found]) for found in hits]
    pieces = list(zip(*chain.from_iterable(hits), strict=True)) or [()] * 4
    docs = _stacked(pieces[1], np.intp)
    docs += np.array(pieces[0], dtype=np.intp).repeat(list(map(len, pieces[1])))
    titles, bodies = _stacked(pieces[2], np.float64), _stacked(pieces[3], np.float64)
    if snapshot.total < snapshot.size:
        living = snapshot.alive[docs]
        owners = np.repeat(np.arange(len(groups)), rows)[living]
        rows = np.bincount(owners, minlength=len(groups)).tolist()
        docs, titles, bodies = docs[living], titles[living], bodies[living]
    documents = snapshot.total
    if visible is not None:
        documents = int(np.count_nonzero(snapshot.visible(visible)))
    return Matches(groups, visible, documents, tuple(rows), docs, titles, bodies)


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

    Each group is one query word; repeated words count again, as in FTS5. ``visible`` are the
    collections that statistics may count and results come from (``None``: all).
    See :func:`bm25`.
    """
    found = look_up(snapshot, groups, visible)
    return bm25(snapshot, found, k1=k1, b=b, title_weight=title_weight, mask=mask)


def bm25(
    snapshot: Snapshot,
    found: Matches,
    *,
    k1: float = K1,
    b: float = B,
    title_weight: float = 1.0,
    mask: Mask | None = None,
) -> Scored:
    """BM25 of every document that ``mask`` lets through and that holds a word of ``found``.

    ``title_weight`` (> 0) is FTS5's column weight of the title, the body's being 1. Ordinals
    ascend; use :func:`top_k` for the best. Scores stay float64, and each word's share is added in
    the order of the query: anything else would make ties that FTS5 does not have, or break them.
    """
    if title_weight <= 0:
        raise ValueError("title_weight must be above 0")
    norms = _norms(snapshot, found.visible, k1, b)[found.ordinals]
    counts = found.bodies + title_weight * found.titles
    idfs = np.array([_idf(found.documents, frequency) for frequency in found.frequencies])
    shares = np.repeat(idfs, found.frequencies) * ((counts * (k1 + 1.0)) / (counts + norms))
    scores = _added_up(found.ordinals, shares, snapshot.size)
    held = scores > 0
    ordinals = np.flatnonzero(held if mask is None else held & mask)
    return Scored(ordinals.astype(np.int32), scores[ordinals])


def top_k(snapshot: Snapshot, ordinals: Array, scores: Array, k: int) -> Scored:
    """The ``k`` best, highest score first, equal scores in the order of their ids' text."""
    best = best_first(snapshot, ordinals, scores, k)
    return Scored(ordinals[best].astype(np.int32), scores[best].astype(np.float64))


def document_frequency(
    snapshot: Snapshot, group: TermGroup, visible: Collection[str] | None = None
) -> int:
    """How many living documents of the visible collections hold the word."""
    return look_up(snapshot, [group], visible).frequencies[0]


def coverage(
    snapshot: Snapshot,
    groups: Sequence[TermGroup],
    ordinals: Array,
    visible: Collection[str] | None = None,
) -> npt.NDArray[np.float64]:
    """How much of the words of ``groups`` each document of ``ordinals`` holds.

    See :func:`covered`.
    """
    return covered(snapshot, look_up(snapshot, groups, visible), ordinals)


def covered(snapshot: Snapshot, found: Matches, ordinals: Array) -> npt.NDArray[np.float64]:
    """How much of the query each document of ``ordinals`` holds: 0–1, float64 [n].

    The idf of the words it holds over the idf of all words of the query, so that a rare word
    counts more than a common one, and a word of no document counts most. The idf is Lucene's
    (never below 0), since shares need a scale without floor. A group that has no hash for a
    collection does not count there.
    """
    idfs = [math.log1p((found.documents - n + 0.5) / (n + 0.5)) for n in found.frequencies]
    totals = [0.0] * len(snapshot.collections)
    for group, idf in zip(found.groups, idfs, strict=True):
        for code, collection in enumerate(snapshot.collections):
            totals[code] += idf if group.get(collection) else 0.0
    weights = np.repeat(np.array(idfs), found.frequencies)
    held = _added_up(found.ordinals, weights, snapshot.size)[ordinals]
    total = np.array(totals)[snapshot.collection_codes[ordinals]]
    shares: npt.NDArray[np.float64] = np.divide(held, total, out=held, where=total > 0)
    return shares


def has_term(snapshot: Snapshot, group: TermGroup, ordinals: Array | None = None) -> Mask:
    """Whether each document of ``ordinals`` (``None``: of the snapshot) holds the word."""
    held = np.zeros(snapshot.size, dtype=bool)
    (hits,) = _hits(snapshot, [group], None)
    for base, docs, _, _ in hits:
        held[docs.astype(np.intp) + base] = True
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


def _hits(
    snapshot: Snapshot, groups: Sequence[TermGroup], visible: Collection[str] | None
) -> list[list[Piece]]:
    """Per group, the postings of its word, segment by segment."""
    answer: list[list[Piece]] = [[] for _ in groups]
    for collection, terms in terms_of(snapshot).items():
        if visible is None or collection in visible:
            hashes, owners = _wanted(groups, collection)
            for index, piece in terms.pieces(hashes):
                answer[owners[index]].append(piece)
            if len(set(owners)) < len(owners):
                answer = [list(_each_once(pieces)) for pieces in answer]
    return answer


def _wanted(
    groups: Sequence[TermGroup], collection: str
) -> tuple[npt.NDArray[np.uint64], list[int]]:
    """The hashes to look up in one collection, and the group each belongs to."""
    rows = [(h, i) for i, g in enumerate(groups) for h in dict.fromkeys(g.get(collection, ()))]
    return np.array([h for h, _ in rows], dtype=np.uint64), [i for _, i in rows]


def _each_once(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The postings of several hashes of one word, those in one segment put together.

    The hashes are those of two languages, and a document has one: nearly always there is nothing
    to add up, which is found without sorting.
    """
    for base, found in groupby(sorted(pieces, key=itemgetter(0)), key=itemgetter(0)):
        same = [piece[1:] for piece in found]
        if len(same) == 1:
            yield (base, *same[0])
            continue
        docs, titles, bodies = map(np.concatenate, zip(*same, strict=True))
        if np.bincount(docs).max() > 1:
            docs, places = np.unique(docs, return_inverse=True)
            titles = np.bincount(places, weights=titles)
            bodies = np.bincount(places, weights=bodies)
        yield base, docs, titles, bodies


def _added_up(
    ordinals: npt.NDArray[np.intp], values: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    """The values of each document, summed in the order they come in, float64 [size]."""
    sums = np.bincount(ordinals, weights=values, minlength=size)
    return sums.astype(np.float64, copy=False)  # of no rows NumPy makes whole numbers


def _stacked(columns: Sequence[Array], dtype: type[np.generic]) -> Array:
    if not columns:
        return np.empty(0, dtype)
    return np.concatenate(columns, dtype=dtype, casting="unsafe")


def _idf(documents: int, frequency: int) -> float:
    idf = math.log((documents - frequency + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else IDF_FLOOR


def _norms(
    snapshot: Snapshot, visible: Collection[str] | None, k1: float, b: float
) -> npt.NDArray[np.float64]:
    """Per document the length part of BM25's divisor.

    Kept per snapshot, for a handful of settings: it costs as much as scoring a common word.
    """
    key = ("norms", None if visible is None else frozenset(visible), k1, b)
    known: npt.NDArray[np.float64] | None = snapshot.caches.get(key)
    if known is None:
        seen = snapshot.visible(visible)
        documents = int(np.count_nonzero(seen))
        tokens = int(snapshot.lengths[seen].sum(dtype=np.int64))
        mean = tokens / documents if tokens else 1.0
        # The order of operations is FTS5's, so that every bit is.
        known = k1 * (1 - b + b * snapshot.lengths.astype(np.float64) / mean)
        if len(snapshot.caches) >= MAX_CACHED:
            snapshot.caches.clear()
        snapshot.caches[key] = known
    return known
