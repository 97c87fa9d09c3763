"""Plain text: one memory a file, all of it body. Files of an unknown suffix are read so, too."""

from __future__ import annotations

from collections.abc import Iterator

from memory_store.importing.front_matter import FrontMatter
from memory_store.importing.readers.markdown import note
from memory_store.importing.readers.reader import Reader
from memory_store.importing.source_file import Item, Limits, SourceFile


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note."""
    yield note(file, FrontMatter(body=file.text(limits)))


READER = Reader("text", (".txt",), read)
