"""Whether words occur, and which there are: answers of the word index."""

from __future__ import annotations

from msgspec import Struct

from memory_store.records.json_record import JsonRecord


class ExistsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked: whether each ``term`` is there, in the collections of those names or ids
    (none: all), and with ``exact`` spelled so."""

    term: tuple[str, ...]
    collection: tuple[str, ...] = ()
    exact: bool = False


class WordsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked: at most ``limit`` words that begin with ``prefix``."""

    prefix: str = ""
    collection: tuple[str, ...] = ()
    limit: int = 12


class Existence(JsonRecord, frozen=True):
    """Whether memories hold a term.

    ``exists`` is certain where it is false. ``memories`` is how many hold its words, side by side
    where there are several, by their stems; with ``exact`` whether one spells it so: ``None`` where
    ``left`` memories were not opened to see. ``opened`` is how many were.
    """

    term: str
    exists: bool | None
    memories: int
    exact: bool = False
    opened: int = 0
    left: int = 0


class WordCount(JsonRecord, frozen=True):
    """A word as spelled, folded to lower case, and how many memories hold it."""

    word: str
    memories: int
