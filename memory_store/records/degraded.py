"""What a search went without: a line for people, and a code that programs decide by.

Boundary: a line may name collections and paths; ``memory_store.access`` takes those out for callers
who may not read them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

TRY = "Try: "  # the command that mends it follows


class Code(StrEnum):
    """What a line of ``degraded`` is about. The words of a line may change, its code does not."""

    CHANGED = "changed"  # the vault has changed since the page before
    CUT_TEXTS = "cut-texts"  # a reranker read the beginning of long texts alone
    EXPANSION = "expansion"  # no language model worded the query anew
    FILE = "file"  # the vault's file is older than it was, or was upgraded
    LIMIT = "limit"  # more memories would have had to be opened
    MODEL = "model"  # the embedding model is not there, or another one made the vectors
    NO_RERANKER = "no-reranker"  # a usual state
    NOT_EMBEDDED = "not-embedded"  # memories have no vectors yet
    NOT_RERANKED = "not-reranked"  # one that is there leaves the order as it is
    PERMISSION = "permission"  # the caller may not read
    QUOTES = "quotes"  # nothing holds what is quoted
    SEALED = "sealed"  # a sealed search goes without it
    SOURCES = "sources"  # source code has changed since it was imported
    STALE = "stale"  # memories are indexed with earlier settings
    TIME = "time"  # the time limit was over
    UNREAD = "unread"  # the embedding model, or the pattern, does not go with the language


class Degraded(str):
    """A line that says what was missing. It is a string that also knows its parts.

    ``code`` says what it is about, ``sentence`` is the line without the command, ``command`` what
    mends it (empty: nothing does); ``names`` whether it names collections.
    """

    code: Code
    sentence: str
    command: str
    names: bool

    def __new__(
        cls, code: Code, sentence: str, command: str = "", *, names: bool = False
    ) -> Degraded:
        line = super().__new__(cls, f"{sentence} {TRY}{command}" if command else sentence)
        line.code, line.sentence, line.command, line.names = code, sentence, command, names
        return line

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.code, self.sentence, self.command, self.names)

    def with_parts(self, sentence: str | None = None, command: str | None = None) -> Degraded:
        """The line with another sentence or command, about the same thing."""
        return Degraded(
            self.code,
            self.sentence if sentence is None else sentence,
            self.command if command is None else command,
            names=self.names,
        )


def from_text(code: Code, text: str, *, names: bool = False) -> Degraded:
    """The line for a text that may end in a command, such as an error's."""
    sentence, _, command = text.partition(TRY)
    return Degraded(code, sentence.rstrip(), command, names=names)


def as_parts(value: object) -> list[Any]:
    """A line for ``msgspec``'s encoders (``enc_hook``), which know no strings of other kinds.

    It tells them by NotImplementedError of what it does not know either.
    """
    if isinstance(value, Degraded):
        return [value.code, value.sentence, value.command, value.names]
    raise NotImplementedError(f"no way to encode {type(value).__name__}")


def from_parts(kind: type, parts: Any) -> Degraded:
    """The same line from them (``dec_hook``)."""
    if kind is not Degraded:
        raise NotImplementedError(f"no way to decode {kind.__name__}")
    code, sentence, command, names = parts
    return Degraded(Code(code), sentence, command, names=names)


def as_schema(kind: type) -> dict[str, str]:
    """What a JSON schema says of a line (``schema_hook``): it is sent as a string."""
    if not issubclass(kind, Degraded):
        raise NotImplementedError(f"no schema of {kind.__name__}")
    return {"type": "string"}


def _again(code: Code, sentence: str, command: str, names: bool) -> Degraded:
    return Degraded(code, sentence, command, names=names)
