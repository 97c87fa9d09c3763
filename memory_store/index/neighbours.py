"""Neighbours: what was written down just before and after a memory, and whether that matters.

The turns of a conversation and the entries of a log explain each other; a folder of unrelated notes
does not. Which it is shows in the vectors: where direct neighbours are more alike than memories a
little further off, the collection is *sequential*, and a short memory may be judged by its
neighbours' matches too. (Pairs picked at random would not do for comparison: in two folders stored
one after the other, neighbours are alike because their folder is.)

Boundary: reads times, lengths and vectors of the snapshot; keeps ordinals and one number a memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.index.layout import unit_rows
from memory_store.index.shard_questions import Vectors
from memory_store.index.snapshot import Snapshot
from memory_store.records import base_type
from memory_store.text.grams import distinct

GAP = 3_600.0  # seconds: memories further apart in time were not written down together
REACH = 3  # how far away a neighbour may stand, on each side
FURTHER = (4, 8)  # places away, from and below: what direct neighbours are held against
SAMPLE = 2_000  # pairs that are compared, of each kind
FEWEST = 20  # neighbouring pairs that a collection must have to be judged at all

# Standard deviations by which neighbours are more alike than memories further off. Measured: .56
# to 1.2 in ten conversations, .32 in notes in the order of their paths, 0 in shuffled abstracts.
CLEARLY_NOT, SHARE = 0.15, 4  # below it by every fourth pair, the others are not compared
NOT_SEQUENTIAL = 0.35
SEQUENTIAL = 0.75
SHORT = 50  # words: a longer memory explains itself, the more the longer it is
BY_ITSELF = ("document", "code", "bookmark", "conversation")
"""Types of what is read as a whole: slides or sources of one folder are no turns, however alike."""
_SEED = 20_071  # any number: the same vault is always judged alike

Ordinals = npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]


class Neighbours(Struct, frozen=True):
    """Who stands beside whom, in time.

    ``beside`` holds, for each distance from 1 to ``REACH``, the ordinals before and after each
    document (int32 [size], -1 for none). ``trust`` (float64 [size], 0-1) is how much its neighbours
    say about a document: how far its collection is sequential × how short it is itself.
    ``sequential`` is the first of the two factors, by collection code.
    """

    beside: tuple[tuple[Ordinals, Ordinals], ...]
    trust: Values
    sequential: tuple[float, ...]

    @property
    def any(self) -> bool:
        """Whether any collection is sequential."""
        return any(self.sequential)

    def lifted(self, values: Values, weights: Sequence[float], at: Ordinals) -> Values:
        """``values`` [size] of the documents ``at``, raised where neighbours have more.

        A neighbour at distance d adds its lead × ``weights[d - 1]`` × trust; nothing is lowered.
        """
        own, trust = values[at], self.trust[at]
        raised = own.copy()
        for other, weight in self._weighed(weights, at):
            lead = np.where(other >= 0, values[other] - own, 0.0)
            raised += weight * trust * np.maximum(lead, 0.0)
        return raised

    def blended(self, values: Values, weights: Sequence[float], at: Ordinals) -> Values:
        """The weighted means of the documents ``at`` and their neighbours; NaN is "not known".

        A neighbour that is missing or not known counts as the memory itself, so that one that
        stands alone keeps its value.
        """
        own, trust = values[at], self.trust[at]
        total, shares = own.copy(), np.ones(len(at))
        for other, weight in self._weighed(weights, at):
            theirs = np.where(other >= 0, values[other], np.nan)
            total += weight * trust * np.where(np.isnan(theirs), own, theirs)
            shares += weight * trust
        return total / shares

    def around(self, ordinals: Ordinals, reach: int = REACH) -> Ordinals:
        """``ordinals`` and their neighbours where those are trusted, ascending, each once."""
        trusting = ordinals[self.trust[ordinals] > 0]
        near = [other[trusting] for pair in self.beside[:reach] for other in pair]
        found = distinct(np.concatenate([ordinals, *near], dtype=np.int32))
        return found[found >= 0]

    def _weighed(self, weights: Sequence[float], at: Ordinals) -> Iterator[tuple[Ordinals, float]]:
        for (before, after), weight in zip(self.beside, weights, strict=False):
            yield before[at], weight
            yield after[at], weight


def neighbours_of(snapshot: Snapshot) -> Neighbours:
    """The neighbours of a snapshot's living documents, worked out once for each snapshot."""
    found: Neighbours = snapshot.worked_out("neighbours", lambda: _found(snapshot))
    return found


def _found(snapshot: Snapshot) -> Neighbours:
    whole = np.array([base_type(name) in BY_ITSELF for name in snapshot.types] or [False])
    turns = snapshot.alive & ~whole[snapshot.type_codes]
    living = np.flatnonzero(turns)
    codes, created = snapshot.collection_codes[living], snapshot.created[living]
    order = np.lexsort((living, created, codes))  # equal times keep the order they were stored in
    line = living[order].astype(np.int32)
    together = (np.diff(codes[order]) == 0) & (np.diff(created[order]) <= GAP)
    run = np.concatenate([[0], np.cumsum(~together)]) if len(line) else np.zeros(0, np.int64)
    beside = tuple(_beside(line, run, distance, snapshot.size) for distance in range(1, REACH + 1))
    sequential = tuple(
        _sequential(snapshot, line[codes[order] == code], beside[0][1])
        for code in range(len(snapshot.collections))
    )
    shortness = np.minimum(1.0, SHORT / np.maximum(snapshot.lengths, 1))
    trust = np.array([*sequential, 0.0])[snapshot.collection_codes] * shortness
    return Neighbours(beside, np.where(turns, trust, 0.0), sequential)


def _beside(
    line: Ordinals, run: npt.NDArray[np.int64], distance: int, size: int
) -> tuple[Ordinals, Ordinals]:
    """For each ordinal the ones ``distance`` places before and after it in its own run."""
    before, after = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    linked = run[distance:] == run[:-distance] if len(line) > distance else np.zeros(0, bool)
    first, second = line[: len(linked)][linked], line[distance:][linked]
    before[second], after[first] = first, second
    return before, after


def _sequential(snapshot: Snapshot, line: Ordinals, after: Ordinals) -> float:
    """0 to 1: how far one collection's neighbours are more alike than memories further off."""
    linked = line[after[line] >= 0] if len(line) else line
    distinct = (snapshot.content_tags[linked] != snapshot.content_tags[after[linked]]).any(axis=1)
    linked = linked[distinct]
    if len(linked) < FEWEST:
        return 0.0
    rng = np.random.default_rng(_SEED)
    if len(linked) > SAMPLE:
        linked = np.sort(rng.choice(linked, SAMPLE, replace=False))
    distances = rng.integers(FURTHER[0], min(FURTHER[1], len(line)), SAMPLE)
    places = rng.integers(0, len(line) - distances)
    alike, further = (linked, after[linked]), (line[places], line[places + distances])
    lead = CLEARLY_NOT
    if len(linked) >= SAMPLE // 2:
        lead = _lead(snapshot, *([one[::SHARE] for one in pairs] for pairs in (alike, further)))
    if lead >= CLEARLY_NOT:
        lead = _lead(snapshot, alike, further)
    return float(np.clip((lead - NOT_SEQUENTIAL) / (SEQUENTIAL - NOT_SEQUENTIAL), 0.0, 1.0))


def _lead(snapshot: Snapshot, alike: Sequence[Ordinals], further: Sequence[Ordinals]) -> float:
    """The standard deviations by which some pairs are more alike than others; 0 of too few."""
    near, far = _cosines(snapshot, *alike), _cosines(snapshot, *further)
    if len(near) < FEWEST or len(far) < FEWEST or not far.std():
        return 0.0
    return float((near.mean() - far.mean()) / far.std())


def _cosines(snapshot: Snapshot, first: Ordinals, second: Ordinals) -> npt.NDArray[np.float32]:
    """The cosines of pairs, by first windows; pairs without vectors, or of two models, left out."""
    found = [np.zeros(0, np.float32)]
    for dimensions in snapshot.all_dimensions:
        left, known = first_windows(snapshot, first, dimensions)
        right, known_too = first_windows(snapshot, second, dimensions)
        both = known & known_too
        pairs = left[both], right[both]
        found.append(np.einsum("ij,ij->i", *pairs))
        for copies in (left, right, *pairs):
            copies.fill(0)  # freed memory keeps what stood in it, past a lock
    return np.concatenate(found)


def first_windows(
    snapshot: Snapshot, ordinals: Ordinals, dimensions: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """The vector of each document's first window, and whether it has one of those dimensions."""
    vectors = np.zeros((len(ordinals), dimensions), np.float32)
    known = np.zeros(len(ordinals), np.bool_)
    if snapshot.shards is not None:
        asking = Vectors(ordinals.astype("<i4").tobytes(), dimensions, first=True)
        found, taken = snapshot.shards.ask(snapshot, asking)
        by_ordinal = np.full(snapshot.size, -1, np.int32)
        by_ordinal[found] = np.arange(len(found))
        places = by_ordinal[ordinals]
        known = places >= 0
        vectors[known] = unit_rows(taken)[places[known]]
        return vectors, known
    for part in snapshot.parts:
        segment = part.segment
        if not segment.windows or segment.dimensions != dimensions:
            continue
        inside = np.flatnonzero((ordinals >= part.base) & (ordinals < part.end))
        rows = ordinals[inside] - part.base
        starts, ends = segment.window_offsets[rows], segment.window_offsets[rows + 1]
        has = ends > starts
        taken = segment.vectors[starts[has]]
        units = unit_rows(taken)
        vectors[inside[has]] = units
        taken.fill(0)
        units.fill(0)
        known[inside[has]] = True
    return vectors, known
