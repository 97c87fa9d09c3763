"""What is asked of shards: nodes that hold the words and vectors of a part of the memories each.

The node that is searched holds a line about every memory (its id, times, length, topics), but no
words and no vectors. Wherever its index would look into those, it asks all shards at once, and puts
their answers together. Each memory is on one shard, so there is nothing to decide between them.

BM25 takes two questions: :class:`Frequencies` are added up over the shards, and :class:`Scores` are
worked out on each with the sums. (How many memories there are and how long they are, every node
knows.) So each score has the bits that it has where one process holds everything.

Boundary: keyed hashes, ordinals, vectors and scores. No key, no id, no word and no text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

from memory_store.records.request import MAX_QUERY_CHARACTERS

if TYPE_CHECKING:
    from memory_store.index.columns import Array
    from memory_store.index.snapshot import Snapshot

Group = Mapping[str, tuple[int, ...]]
"""A :data:`memory_store.index.snapshot.HashGroup`, as it is sent."""
Columns = tuple["Array", ...]
"""The answer: arrays with a row for each memory, or for each word, or for each vector."""
MOST_GROUPS = 2 * MAX_QUERY_CHARACTERS
"""Of one question: a query has a word for every two characters, and in code the parts of names."""
MOST_HASHES = 1 << 20
"""Of one question: a word has one for each language of each collection."""
ORDINAL, COUNT, SCORE = "<i4", "<i8", "<f8"
COSINE, VECTOR = "<f4", "<f2"


class Question(Struct, frozen=True, tag=True):
    """``COLUMNS`` are the kinds of the answer's arrays, the ordinals of memories first."""

    COLUMNS: ClassVar[tuple[str, ...]] = (ORDINAL,)

    def most(self, size: int) -> int:
        """What the first column of an answer stays below, in a vault of ``size`` memories."""
        return size

    @property
    def looked_up(self) -> tuple[Group, ...]:
        """The groups of hashes that are looked up for it."""
        return ()

    @property
    def is_boundless(self) -> bool:
        """Whether it is of more words than a query can have, or of more hashes than those have."""
        groups = self.looked_up
        hashes = sum(len(one) for group in groups for one in group.values())
        return len(groups) > MOST_GROUPS or hashes > MOST_HASHES


class Words(Question, frozen=True):
    """Words of a query, each a group of hashes, in the ``visible`` collections (``None``: all).

    ``frequencies``: how many memories of all shards hold each, once that is known."""

    groups: tuple[Group, ...]
    visible: tuple[str, ...] | None
    frequencies: tuple[int, ...] = ()

    @property
    def looked_up(self) -> tuple[Group, ...]:
        return self.groups


class Frequencies(Words, frozen=True):
    """How many of the shard's memories hold each word: the first phase."""

    COLUMNS: ClassVar = (COUNT,)


class Scores(Words, frozen=True, kw_only=True):
    """BM25 of the shard's memories that hold a word: the second phase."""

    COLUMNS: ClassVar = (ORDINAL, SCORE)
    k1: float
    b: float
    title_weight: float


class Coverage(Words, frozen=True, kw_only=True):
    """How much of the query each of some memories (int32) holds, where the shard has them."""

    COLUMNS: ClassVar = (ORDINAL, SCORE)
    ordinals: bytes


class Holders(Question, frozen=True):
    """The shard's memories that hold a word."""

    group: Group

    @property
    def looked_up(self) -> tuple[Group, ...]:
        return (self.group,)


class PairHolders(Question, frozen=True):
    """The shard's memories that hold two words side by side."""

    pair: Group

    @property
    def looked_up(self) -> tuple[Group, ...]:
        return (self.pair,)


class PairCounts(Question, frozen=True):
    """How many of some pairs of words each memory holds, of those that hold any."""

    COLUMNS: ClassVar = (ORDINAL, SCORE)
    pairs: tuple[Group, ...]

    @property
    def looked_up(self) -> tuple[Group, ...]:
        return self.pairs


class Nearest(Question, frozen=True):
    """The ``k`` memories nearest to a query (float32), their cosines and nearest windows, among
    those of ``mask``: a bit for each memory, packed and deflated (``None``: all)."""

    COLUMNS: ClassVar = (ORDINAL, COSINE, ORDINAL)
    query: bytes
    k: int
    mask: bytes | None


class Cosines(Question, frozen=True):
    """The cosine of the nearest window of each of some memories, where the shard has them."""

    COLUMNS: ClassVar = (ORDINAL, SCORE)
    query: bytes
    ordinals: bytes


class WindowCosines(Question, frozen=True):
    """The cosines of windows (int32: memory, number of the window there): their places in the
    question, in the stead of ordinals."""

    COLUMNS: ClassVar = (ORDINAL, COSINE)
    query: bytes
    ordinals: bytes
    windows: bytes

    def most(self, size: int) -> int:
        """The number of windows."""
        return len(self.windows) // 4


class Vectors(Question, frozen=True):
    """The vectors of memories (int32), those of one in the order of its windows.

    ``first``: those of the first windows alone, and of ``dimensions`` numbers.
    """

    COLUMNS: ClassVar = (ORDINAL, VECTOR)
    ordinals: bytes
    dimensions: int
    first: bool


Lexical = Frequencies | Scores | Coverage | Holders | PairHolders | PairCounts
AnyQuestion = Lexical | Nearest | Cosines | WindowCosines | Vectors


class Shards(Protocol):
    """All shards of a vault, to be asked by many threads."""

    def ask(self, snapshot: Snapshot, question: AnyQuestion) -> Columns:
        """The answers of all shards about one moment, put one behind the other.

        Raises AwayError that names the shard that does not answer, and SupersededError where the
        shards are not at the snapshot's moment.
        """

    def close(self) -> None:
        """Ask no more."""
