"""Names for the hashes of topics: what a thief guesses who knows a part of the notes.

Boundary: a file without any key, read by plain SQL, and notes that the thief knows from elsewhere,
with their topics. No key is used; which guesses are right is counted elsewhere.

Three thieves, all of whom know the topics of some of the notes:

* *statistics*: how often topics occur, with which others, in notes of which type and month. The
  thief has no row for any note. He looks for the assignment of topics to hashes under which what he
  knows is most likely, if each note was known to him by the toss of a coin: the likelihood of every
  count and of every count of pairs, climbed by exchanging two hashes at a time (after Islam,
  Kuzu and Kantarcioglu, "Access Pattern disclosure on Searchable Encryption", 2012, and Cash and
  others, "Leakage-Abuse Attacks Against Searchable Encryption", 2015).
* *recognised notes*: each known note is looked for among the rows by its exact time, its type and,
  where he knows the text, its size. A hash that stands in exactly those of the rows where a topic
  should is that topic's.
* both, one after the other.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Naming = dict[bytes, str]
"""Hash → topic: what a thief believes."""
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
IMPOSSIBLE = -30.0  # log-likelihood of a count that cannot be: a little noise must not end it all
MOST_ROUNDS = 30


class Row(Struct, frozen=True):
    """A memory as it stands in the file: what is in clear, and its hashes."""

    memory: str
    type: str | None
    created: str | None
    size: int
    hashes: frozenset[bytes]


class Known(Struct, frozen=True):
    """What the thief knows of a note. ``size`` is that of its sealed text, 0 where he has none."""

    type: str
    created: str
    topics: frozenset[str]
    size: int = 0


Attack = Callable[[Sequence[Row], Sequence[Known]], Naming]


def read_rows(path: Path) -> list[Row]:
    """Every memory of a stolen file, by plain SQL."""
    with closing(sqlite3.connect(path)) as thief:
        hashes = defaultdict(set)
        for memory, topic in thief.execute("select memory, topic from memory_topics"):
            hashes[memory].add(bytes(topic))
        rows = thief.execute(
            """
            select memories.id, type, created, length(body)
            from memories join memory_bodies on memory_bodies.id = content
            """
        ).fetchall()
    return [Row(memory, *clear, frozenset(hashes[memory])) for memory, *clear in rows]


def by_recognised_notes(rows: Sequence[Row], known: Sequence[Known]) -> Naming:
    """What follows with certainty from the rows in which known notes are recognised."""
    recognised = _recognised(rows, known)
    topics, hashes = defaultdict(set), defaultdict(set)
    for place, (row, note) in enumerate(recognised):
        for topic in note.topics:
            topics[topic].add(place)
        for hashed in row.hashes:
            hashes[hashed].add(place)
    by_places: dict[frozenset[int], tuple[list[str], list[bytes]]] = defaultdict(lambda: ([], []))
    for topic, places in topics.items():
        by_places[frozenset(places)][0].append(topic)
    for hashed, places in hashes.items():
        by_places[frozenset(places)][1].append(hashed)
    return {one[0]: named[0] for named, one in by_places.values() if len(named) == len(one) == 1}


def _recognised(rows: Sequence[Row], known: Sequence[Known]) -> list[tuple[Row, Known]]:
    """The rows that one known note fits, and no other, nor that note another row."""
    found = []
    for note in known:
        fitting = [row for row in rows if _fits(row, note)]
        if len(fitting) == 1 and sum(_fits(fitting[0], other) for other in known) == 1:
            found.append((fitting[0], note))
    return found


def _fits(row: Row, note: Known) -> bool:
    pairs = ((row.type, note.type), (row.created, note.created), (row.size, note.size or row.size))
    return all(clear in (None, told) for clear, told in pairs)


def by_statistics(
    rows: Sequence[Row], known: Sequence[Known], certain: Naming | None = None
) -> Naming:
    """The likeliest names for all hashes, beside those that are ``certain`` already."""
    hashes = sorted({one for row in rows for one in row.hashes})
    topics = sorted({one for note in known for one in note.topics})[: len(hashes)]
    if not hashes or not topics:
        return {}
    seen = _Counted([(row.hashes, row.type, row.created) for row in rows], hashes)
    told = _Counted(
        [(n.topics, *((n.type, n.created) if seen.clear else (None, None))) for n in known],
        topics,
        features=seen.features,
        size=len(hashes),
    )
    likelihood = _likelihood(max(int(seen.pairs.max()), int(told.pairs.max())), len(known), rows)
    pinned = {hashes.index(h): topics.index(t) for h, t in (certain or {}).items() if t in topics}
    places = _climbed(likelihood, told, seen, pinned)
    return {hashes[place]: topic for topic, place in zip(topics, places, strict=False)}


class _Counted:
    """How often each of some names occurs, with each other and with each feature of a note."""

    def __init__(
        self,
        notes: Sequence[tuple[Iterable[object], str | None, str | None]],
        names: Sequence[object],
        *,
        features: Sequence[str] | None = None,
        size: int = 0,
    ) -> None:
        self.clear = any(type is not None for _, type, _ in notes)
        told = [[type or "", f"month {(created or '')[:7]}"] for _, type, created in notes]
        self.features = features or sorted({one for some in told for one in some})
        held = np.zeros((len(notes), size or len(names)), dtype=np.int64)
        having = np.zeros((len(notes), len(self.features)), dtype=np.int64)
        place = {name: number for number, name in enumerate(names)}
        column = {name: number for number, name in enumerate(self.features)}
        for number, (own, _, _) in enumerate(notes):
            held[number, [place[one] for one in own if one in place]] = 1
            having[number, [column[one] for one in told[number] if one in column]] = 1
        self.pairs: Ints = held.T @ held  # how often each occurs in the diagonal
        self.having: Ints = held.T @ having


def _likelihood(most: int, known: int, rows: Sequence[Row]) -> Floats:
    """[known, counted]: the log-likelihood that so many of the counted are among the known."""
    share = min(max(known / len(rows), 0.01), 0.99)
    logs = np.cumsum(np.log(np.maximum(np.arange(most + 1), 1)))
    k, n = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]
    ways = logs[n] - logs[k] - logs[np.maximum(n - k, 0)]
    found = ways + k * np.log(share) + (n - k) * np.log1p(-share)
    return np.where(k > n, IMPOSSIBLE * (k - n), found)


def _climbed(
    likelihood: Floats, told: _Counted, seen: _Counted, pinned: dict[int, int]
) -> list[int]:
    """Topic by topic the place of its hash: from the likeliest one by one, two exchanged at a time
    for as long as that makes the whole likelier."""
    size = len(seen.pairs)
    alone = likelihood[np.diag(told.pairs)[:, None], np.diag(seen.pairs)[None, :]].copy()
    for feature in range(told.having.shape[1]):
        alone += likelihood[told.having[:, feature][:, None], seen.having[:, feature][None, :]]
    for place, topic in pinned.items():
        alone[topic, :], alone[:, place] = 1e6 * IMPOSSIBLE, 1e6 * IMPOSSIBLE
        alone[topic, place] = 0.0
    places = _greedy(alone)
    topics = np.arange(size)
    for _ in range(MOST_ROUNDS):
        moved = False
        for one in range(size):
            gain = _gains(likelihood, told.pairs, seen.pairs, places, one)
            gain += alone[one, places] + alone[topics, places[one]]
            gain -= alone[one, places[one]] + alone[topics, places]
            best = int(np.argmax(gain))
            if gain[best] > 1e-9:
                places[[one, best]] = places[[best, one]]
                moved = True
        if not moved:
            break
    return [int(place) for place in places]


def _gains(likelihood: Floats, told: Ints, seen: Ints, places: Ints, one: int) -> Floats:
    """How much likelier the pairs of topics are with the places of ``one`` and of each other
    topic exchanged: pairs with third topics, which is all that changes in a symmetric count."""
    there = seen[np.ix_(places, places)]  # as the topics have it now
    now = likelihood[told, there]
    first = likelihood[told[one][None, :], there]  # one's pairs, if it stood where each other does
    second = likelihood[told, there[one][None, :]]  # each other's, where one stands
    others = np.arange(len(told))
    change = first.sum(1) - first[:, one] - first[others, others]
    change += second.sum(1) - second[:, one] - second[others, others]
    change -= now[one].sum() - now[one, one] - now[one]
    change -= now.sum(1) - now[:, one] - now[others, others]
    change[one] = 0.0
    return change


def _greedy(alone: Floats) -> Ints:
    """Each topic at a hash of its own, the surest first."""
    places = np.full(len(alone), -1, dtype=np.int64)
    taken = np.zeros(len(alone), dtype=np.bool_)
    for flat in np.argsort(-alone, axis=None, kind="stable"):
        topic, place = divmod(int(flat), len(alone))
        if places[topic] < 0 and not taken[place]:
            places[topic], taken[place] = place, True
    return places


def by_both(rows: Sequence[Row], known: Sequence[Known]) -> Naming:
    """Recognised notes first; what is open then, by statistics."""
    certain = by_recognised_notes(rows, known)
    return {**by_statistics(rows, known, certain), **certain}


def right_hashes(rows: Sequence[Row], named: Naming, truth: Naming) -> float:
    """The share of all hashes that were named rightly; 0 where there are none."""
    hashes = {one for row in rows for one in row.hashes}
    return _share(sum(named.get(one) == truth[one] for one in hashes), len(hashes))


def right_tags(rows: Iterable[Row], named: Naming, truth: Naming, tagged: Counter[str]) -> float:
    """The share of the topics of some notes that the thief can name, note by note.

    ``tagged``: how many topics each memory has, whether the file says so or not.
    """
    rows = list(rows)
    right = sum(named.get(one) == truth[one] for row in rows for one in row.hashes)
    return _share(right, sum(tagged[row.memory] for row in rows))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
