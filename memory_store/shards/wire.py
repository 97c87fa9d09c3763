"""What passes between nodes: a question and its answer as MessagePack, each with limits.

Boundary: whatever comes from another node is checked against its type before it is used. Arrays
are bytes of a kind that the question fixes; nothing is executed (no pickle).
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct

from memory_store.index.shard_questions import AnyQuestion, Columns

SERVICE = "memory_store.Shard"
METHOD = "Ask"
NO_GRPC = "shards take the extra shards: pip install 'datasette-hybrid[shards]'"
MOST_ASKED = 32 << 20  # bytes of a question: a list of eight million memories
MOST_ANSWERED = 256 << 20  # bytes of an answer: the scores of twenty million memories
SECONDS = 20.0  # that an answer may take


class Asked(Struct, frozen=True):
    """A ``question`` about the ``moment`` of a vault and some of its ``collections``, to shard
    ``number`` of ``count``."""

    moment: bytes
    collections: tuple[str, ...]
    number: int
    count: int
    question: AnyQuestion


class Answered(Struct, frozen=True):
    """The arrays of an answer, as bytes."""

    columns: tuple[bytes, ...]


_encoder = msgspec.msgpack.Encoder()
_asked = msgspec.msgpack.Decoder(Asked)
_answered = msgspec.msgpack.Decoder(Answered)


def encoded(message: Asked | Answered) -> bytes:
    return _encoder.encode(message)


def decoded_question(data: bytes) -> Asked:
    """Raises ``ValueError`` where it is no question."""
    return _asked.decode(data)


def answered(question: AnyQuestion, columns: Columns) -> Answered:
    """The answer to a question, its arrays of the kinds that it fixes."""
    kinds = question.COLUMNS
    pairs = zip(kinds, columns, strict=True)
    return Answered(tuple(np.ascontiguousarray(column, kind).tobytes() for kind, column in pairs))


def decoded_answer(question: AnyQuestion, data: bytes, size: int) -> Columns:
    """The arrays of an answer about ``size`` memories, those of vectors with a row for each.

    Raises ``ValueError`` where it does not fit the question.
    """
    sent, kinds = _answered.decode(data).columns, question.COLUMNS
    if len(sent) != len(kinds):
        raise ValueError("another number of columns")
    found = [np.frombuffer(column, kind) for column, kind in zip(sent, kinds, strict=True)]
    rows = len(found[0])
    most = question.most(size)
    if kinds[0] == "<i4" and rows and not 0 <= int(found[0].min()) <= int(found[0].max()) < most:
        raise ValueError("a memory that there is not")
    if kinds[-1] == "<f2":
        found[-1] = found[-1].reshape(rows, -1) if rows else found[-1].reshape(0, 1)
    if any(len(column) != rows for column in found):
        raise ValueError("columns of other lengths")
    return tuple(found)
