"""What a reader of one format is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from memory_store.importing.source_file import Item, Limits, SourceFile


def never(head: bytes) -> bool:
    """The ``sniff`` of a format that looks like plain text."""
    return False


class Reader(Struct, frozen=True):
    """How files of one format become memories.

    ``read`` yields a draft for each memory, and a Skip or a Failure for what is none; it may raise
    LeftOutError or UnreadableError for the file as a whole. ``suffixes`` are in lower case and
    begin with a dot. ``sniff`` knows the format by a file's first bytes: it is asked about standard
    input and, where the format is ``binary``, about files of an unknown suffix.

    ``rows``: a file holds many records with names of their own; it is left in a folder unless it is
    named or matched by a pattern. ``streamed``: read piece by piece, at any size. ``on_disk``: read
    by its path, so neither uploaded nor piped in.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile, Limits], Iterator[Item]]
    sniff: Callable[[bytes], bool] = never
    rows: bool = False
    streamed: bool = False
    binary: bool = False
    on_disk: bool = False
