"""The keyword leg: BM25 over keyed term hashes, equal to FTS5's ``bm25()`` bit for bit.

Boundary: a query word arrives as one keyed hash per collection and language; no word is seen
here. Document frequencies, the number of documents and their mean length count only *visible*
collections and living documents, so a score leaks nothing about what the asker may not read.
A :class:`Table` is overwritten when no search uses it any more: that is what a lock and a newer
snapshot leave it to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.columns import Array
from memory_store.index.layout import Postings
from memory_store.index.shard_questions import (
    Coverage,
    Frequencies,
    Group,
    Holders,
    PairCounts,
    PairHolders,
    Scores,
)
from memory_store.index.snapshot import HashGroup, Mask, Part, Snapshot

K1 = 1.2  # SQLite, ext/fts5/fts5_aux.c: fts5Bm25Function
B = 0.75  # likewise
IDF_FLOOR = 1e-6  # likewise: the idf of a word that more than half of the documents hold

MAX_CACHED = 16  # settings whose length norms a snapshot remembers

WORTH_A_TABLE = 4  # look-ups before it is made: it costs as much as fifteen of them save
FEW_SEGMENTS = 2  # up to here they are asked one by one

Hashes = npt.NDArray[np.uint64]
_NOTHING = np.zeros(0, np.int32), np.zeros(0)
Piece = tuple[int, Array, Array, Array]
"""The postings of one word in one segment: where its rows begin, the rows, how often the word
stands in their titles and bodies. A plain tuple: sixty are made in a search.
"""


class Scored(NamedTuple):
    """Documents and their scores: ``ordinals`` int32, ``scores`` float64, both [n]."""

    ordinals: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]


class Matches(Struct, frozen=True, eq=False):
    """Where the words of a query stand: a row for each word and each document that holds it.

    ``ordinals`` intp, ``titles`` and ``bodies`` float64 (how often the word stands there), all
    [rows], the rows of the first word first, as many of each as ``rows`` says; ``frequencies``
    says how many documents hold each word, those on other shards too, and ``documents`` how many
    there are. Only living documents of the visible collections are there.
    """

    groups: Sequence[HashGroup]
    visible: Collection[str] | None
    documents: int
    frequencies: tuple[int, ...]
    rows: tuple[int, ...]
    ordinals: npt.NDArray[np.intp]
    titles: npt.NDArray[np.float64]
    bodies: npt.NDArray[np.float64]


def look_up(
    snapshot: Snapshot, groups: Sequence[HashGroup], visible: Collection[str] | None = None
) -> Matches:
    """The postings of some words, from all segments. Each group is one word.

    Where they are on shards, there is only how many documents hold each word.
    """
    if snapshot.shards is not None:
        return _frequencies(snapshot, groups, visible)
    hits = _hits(snapshot, groups, visible)
    rows = [sum([len(docs) for _, docs, _, _ in found]) for found in hits]
    pieces = list(zip(*chain.from_iterable(hits), strict=True)) or [()] * 4
    docs = _stacked(pieces[1], np.intp)
    docs += np.array(pieces[0], dtype=np.intp).repeat(list(map(len, pieces[1])))
    titles, bodies = _stacked(pieces[2], np.float64), _stacked(pieces[3], np.float64)
    if any(len(hashes) > 1 for group in groups for hashes in group.values()):
        rows, docs, titles, bodies = _each_once(rows, docs, titles, bodies)
    if snapshot.total < snapshot.size:
        living = snapshot.alive[docs]
        owners = np.repeat(np.arange(len(groups)), rows)[living]
        rows = np.bincount(owners, minlength=len(groups)).tolist()
        docs, titles, bodies = docs[living], titles[living], bodies[living]
    held, documents = tuple(rows), _documents(snapshot, visible)
    return Matches(groups, visible, documents, held, held, docs, titles, bodies)


def _documents(snapshot: Snapshot, visible: Collection[str] | None) -> int:
    if visible is None:
        return snapshot.total
    return int(np.count_nonzero(snapshot.visible(visible)))


def _frequencies(
    snapshot: Snapshot, groups: Sequence[HashGroup], visible: Collection[str] | None
) -> Matches:
    """What shards know of some words, added up: BM25's first phase."""
    assert snapshot.shards is not None
    counts = np.zeros(0, np.int64)
    if groups:
        asking = Frequencies(sent(groups), None if visible is None else tuple(visible))
        (counts,) = snapshot.shards.ask(snapshot, asking)
    sums = tuple(counts.reshape(-1, len(groups)).sum(0).tolist()) if groups else ()
    none = np.zeros(0)
    return Matches(
        groups,
        visible,
        _documents(snapshot, visible),
        sums,
        (0,) * len(groups),
        np.zeros(0, np.intp),
        none,
        none,
    )


def _asked(found: Matches) -> dict[str, Any]:
    """The words of a question to shards, with the sums of the first phase."""
    visible = None if found.visible is None else tuple(found.visible)
    return {"groups": sent(found.groups), "visible": visible, "frequencies": found.frequencies}


def sent(groups: Sequence[HashGroup]) -> tuple[Group, ...]:
    """Words as they are sent to shards."""
    return tuple({one: tuple(map(int, hashes)) for one, hashes in g.items()} for g in groups)


def keyword_scores(
    snapshot: Snapshot,
    groups: Sequence[HashGroup],
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
    if snapshot.shards is not None:
        asking = Scores(**_asked(found), k1=k1, b=b, title_weight=title_weight)
        ordinals, scores = snapshot.shards.ask(snapshot, asking) if found.groups else _NOTHING
        order = np.argsort(ordinals)
        order = order if mask is None else order[mask[ordinals[order]]]
        return Scored(ordinals[order], scores[order])
    norms = _norms(snapshot, found.visible, k1, b)[found.ordinals]
    counts = found.bodies + title_weight * found.titles
    idfs = np.array([_idf(found.documents, frequency) for frequency in found.frequencies])
    shares = np.repeat(idfs, found.rows) * ((counts * (k1 + 1.0)) / (counts + norms))
    scores = _added_up(found.ordinals, shares, snapshot.size)
    held = scores > 0
    ordinals = np.flatnonzero(held if mask is None else held & mask)
    return Scored(ordinals.astype(np.int32), scores[ordinals])


def most_possible(found: Matches, k1: float = K1) -> float:
    """What no BM25 score for these words can reach: each word, however often it stood there."""
    return (k1 + 1.0) * sum(_idf(found.documents, frequency) for frequency in found.frequencies)


def top_k(snapshot: Snapshot, ordinals: Array, scores: Array, k: int) -> Scored:
    """The ``k`` best, highest score first, equal scores in the order of their ids' text."""
    best = snapshot.best_first(ordinals, scores, k)
    return Scored(ordinals[best].astype(np.int32), scores[best].astype(np.float64))


def document_frequency(
    snapshot: Snapshot, group: HashGroup, visible: Collection[str] | None = None
) -> int:
    """How many living documents of the visible collections hold the word."""
    return look_up(snapshot, [group], visible).frequencies[0]


def covered(snapshot: Snapshot, found: Matches, ordinals: Array) -> npt.NDArray[np.float64]:
    """How much of the query each document of ``ordinals`` holds: 0–1, float64 [n].

    The idf of the words it holds over the idf of all words of the query, so that a rare word
    counts more than a common one, and a word of no document counts most. The idf is Lucene's
    (never below 0), since shares need a scale without floor. A group that has no hash for a
    collection does not count there.
    """
    if snapshot.shards is not None:
        wanted = np.unique(ordinals).astype("<i4")
        asking = Coverage(**_asked(found), ordinals=wanted.tobytes())
        known, values = snapshot.shards.ask(snapshot, asking) if found.groups else _NOTHING
        by_ordinal = np.zeros(snapshot.size)
        by_ordinal[known] = values
        return by_ordinal[ordinals]
    idfs = [math.log1p((found.documents - n + 0.5) / (n + 0.5)) for n in found.frequencies]
    totals = [0.0] * len(snapshot.collections)
    for group, idf in zip(found.groups, idfs, strict=True):
        for code, collection in enumerate(snapshot.collections):
            totals[code] += idf if group.get(collection) else 0.0
    weights = np.repeat(np.array(idfs), found.rows)
    held = _added_up(found.ordinals, weights, snapshot.size)[ordinals]
    total = np.array(totals)[snapshot.collection_codes[ordinals]]
    shares: npt.NDArray[np.float64] = np.divide(held, total, out=held, where=total > 0)
    return shares


def has_term(snapshot: Snapshot, group: HashGroup, ordinals: Array | None = None) -> Mask:
    """Whether each document of ``ordinals`` (``None``: of the snapshot) holds the word."""
    held = np.zeros(snapshot.size, dtype=bool)
    hits: list[Piece] = []
    if snapshot.shards is not None:
        held[snapshot.shards.ask(snapshot, Holders(*sent([group])))[0]] = True
    else:
        (hits,) = _hits(snapshot, [group], None)
    for base, docs, _, _ in hits:
        held[docs.astype(np.intp) + base] = True
    return held if ordinals is None else held[ordinals]


def unheld(
    snapshot: Snapshot, groups: Sequence[HashGroup], visible: Collection[str] | None
) -> list[bool]:
    """Whether no living document of the visible collections (``None``: of any) holds each word."""
    if snapshot.shards is not None:
        return [not held for held in _frequencies(snapshot, groups, visible).frequencies]
    missing, all_live = [True] * len(groups), snapshot.total == snapshot.size
    for collection, terms in terms_of(snapshot).items():
        if visible is None or collection in visible:
            hashes, owners = _wanted(groups, collection)
            for index, (base, docs, _, _) in terms.pieces(hashes):
                if missing[owners[index]]:
                    lives = all_live or snapshot.alive[docs.astype(np.intp) + base].any()
                    missing[owners[index]] = not lives
    return missing


def has_pair(snapshot: Snapshot, pair: HashGroup, ordinals: Array | None = None) -> Mask:
    """Whether each document of ``ordinals`` (``None``: of the snapshot) holds the adjacent pair.

    ``pair`` maps collection ids to the uint64 hashes that stand for the pair there.
    """
    held = np.zeros(snapshot.size, dtype=bool)
    if snapshot.shards is not None:
        held[snapshot.shards.ask(snapshot, PairHolders(*sent([pair])))[0]] = True
        return held if ordinals is None else held[ordinals]
    for part in snapshot.parts:
        for value in pair.get(part.collection, ()):
            held[part.span][part.segment.pairs.rows(value)] = True
    return held if ordinals is None else held[ordinals]


def pairs_held(snapshot: Snapshot, pairs: Sequence[HashGroup]) -> npt.NDArray[np.float64]:
    """How many of some adjacent pairs each document of the snapshot holds, float64 [documents]."""
    counts = np.zeros(snapshot.size)
    if snapshot.shards is not None:
        ordinals, held = snapshot.shards.ask(snapshot, PairCounts(sent(pairs)))
        counts[ordinals] = held
        return counts
    for part in snapshot.parts:
        known, here = part.segment.pairs, counts[part.span]
        hashes = [value for pair in pairs for value in pair.get(part.collection, ())]
        for start, end in known.slices(hashes):
            here[known.docs[start:end]] += 1.0  # a document holds each of them once
    return counts


def _hits(
    snapshot: Snapshot, groups: Sequence[HashGroup], visible: Collection[str] | None
) -> list[list[Piece]]:
    """Per group, the postings of its word, segment by segment."""
    answer: list[list[Piece]] = [[] for _ in groups]
    for collection, terms in terms_of(snapshot).items():
        if visible is None or collection in visible:
            hashes, owners = _wanted(groups, collection)
            for index, piece in terms.pieces(hashes):
                answer[owners[index]].append(piece)
    return answer


def _wanted(
    groups: Sequence[HashGroup], collection: str
) -> tuple[npt.NDArray[np.uint64], list[int]]:
    """The hashes to look up in one collection, and the group each belongs to."""
    rows = [(h, i) for i, g in enumerate(groups) for h in dict.fromkeys(g.get(collection, ()))]
    return np.array([h for h, _ in rows], dtype=np.uint64), [i for _, i in rows]


def _each_once(
    rows: list[int], docs: npt.NDArray[np.intp], titles: Array, bodies: Array
) -> tuple[list[int], npt.NDArray[np.intp], Array, Array]:
    """The rows of each word, those of one document put together: see :class:`Matches`.

    A word has a hash for each of several languages, and a document has one: nearly always there
    is nothing to add up, which is found without sorting.
    """
    ends = list(accumulate(rows, initial=0))
    if all(np.bincount(docs[a:b], minlength=1).max() <= 1 for a, b in pairwise(ends)):
        return rows, docs, titles, bodies
    size = int(docs.max()) + 1
    owners = np.repeat(np.arange(len(rows)), rows)
    keys, places = np.unique(owners * size + docs, return_inverse=True)
    return (
        np.bincount(keys // size, minlength=len(rows)).tolist(),
        keys % size,
        np.bincount(places, weights=titles),
        np.bincount(places, weights=bodies),
    )


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


class Terms:
    """The terms of one collection in a snapshot; ``table`` is there once it is worth it."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._postings = [part.segment.terms for part in parts]
        self._columns = [
            (p.base, p.segment.terms.docs, p.segment.title_counts, p.segment.body_counts)
            for p in parts
        ]
        self._asked = 0
        self.table: Table | None = None

    def pieces(self, wanted: Hashes) -> Iterator[tuple[int, Piece]]:
        """The postings of each hash of ``wanted`` in each segment: ``(index in wanted, piece)``."""
        for index, number, start, end in self._places(wanted):
            base, docs, titles, bodies = self._columns[number]
            yield index, (base, docs[start:end], titles[start:end], bodies[start:end])

    def _places(self, wanted: Hashes) -> list[tuple[int, int, int, int]]:
        """``(index in wanted, segment, start, end)`` of all postings."""
        self._asked += 1
        if self._asked > WORTH_A_TABLE and len(self._postings) > FEW_SEGMENTS:
            if self.table is None:  # two threads may both make one: either serves
                self.table = Table(self._postings)
            return self.table.places(wanted)
        return [
            (index, number, start, end)
            for number, postings in enumerate(self._postings)
            for index, start, end in postings.slices(wanted)
        ]


class Table:
    """Where the postings of each word lie, in all segments: a collection of 10,000 memories has ten
    segments or more, so eight words are looked up eighty times, and most of that is waiting for
    memory. One sorted table takes a tenth of the time. It is made once a snapshot was searched a
    few times: who searches once after each write would make it for nothing.

    ``keys`` uint64 [n] ascending, those of all segments, and where the ``postings`` of each lie:
    uint32 [n, 3], its segment, their start and their end there. 20 bytes a key."""

    def __init__(self, postings: Sequence[Postings]) -> None:
        keys = np.concatenate([one.keys for one in postings])
        order = keys.argsort(kind="stable")  # quick for what is sorted in runs
        sizes = [len(one.keys) for one in postings]
        self.keys = keys[order]
        places = np.empty((len(keys), 3), dtype=np.uint32)
        places[:, 0] = np.arange(len(postings)).repeat(sizes)
        places[:, 1] = np.concatenate([one.offsets[:-1] for one in postings])
        places[:, 2] = np.concatenate([one.offsets[1:] for one in postings])
        self.postings = places[order]
        keys.fill(0)
        places.fill(0)

    def places(self, wanted: Hashes) -> list[tuple[int, int, int, int]]:
        """``(index in wanted, segment, start, end)`` of all postings, those of a hash in a row."""
        firsts = self.keys.searchsorted(wanted).tolist()
        lasts = self.keys.searchsorted(wanted, side="right").tolist()
        return [
            (index, segment, start, end)
            for index, (first, last) in enumerate(zip(firsts, lasts, strict=True))
            for segment, start, end in self.postings[first:last].tolist()
        ]

    def __del__(self) -> None:
        for array in vars(self).values():
            array.fill(0)


def terms_of(snapshot: Snapshot) -> dict[str, Terms]:
    """Collection → its terms."""
    found: dict[str, Terms] = snapshot.worked_out(
        "terms",
        lambda: {
            collection: Terms([part for part in snapshot.parts if part.collection == collection])
            for collection in snapshot.collections
        },
    )
    return found
