"""The file that a memory came from, as far as its source and ref say.

Boundary: source and ref are opened text. Nothing of them is kept beyond the search.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from memory_store.records import Memory
from memory_store.text.identifiers import code_words

# A source that ends so is itself a file of rows: each row is a record of its own, and no more a
# part of the file than a memory is a part of its database.
ROW_SUFFIXES = (".json", ".ndjson", ".jsonl", ".csv", ".tsv", ".db", ".sqlite", ".sqlite3")
STANDARD_INPUT = "-"

# Which part of a file: src/a.py#Handler, src/a.py#L10-L40, src/a.py:10-40
_PART = re.compile(r"(?<=\w)(?:#[^/]*|:\d+(?:-\d+)?)\Z")


class MemoryFile(Struct, frozen=True, dict=True):
    """A file below an imported root: ``source`` is the root, ``path`` posix and relative to it.

    What lies above the root says nothing about a file, so no rule ever sees it.
    """

    source: str
    path: str

    @property
    def name(self) -> str:
        """The last part of the path, in lower case."""
        return PurePosixPath(self.path).name.lower()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders it lies in, outermost first, in lower case."""
        return tuple(part.lower() for part in PurePosixPath(self.path).parts[:-1])

    @cached_property
    def words(self) -> frozenset[str]:
        """What its stem and the folder around it are made of (see :func:`name_words`)."""
        path = PurePosixPath(self.path)
        return name_words(path.name.partition(".")[0]) | name_words(path.parent.name)


def file_of(memory: Memory) -> MemoryFile | None:
    """The file that an opened memory is, or is a part of.

    ``None`` for what was written by hand or piped in, for rows of a table or a JSON file, and for
    a ref that is no relative path.
    """
    source, ref = memory.source, memory.ref
    if not source or not ref or source == STANDARD_INPUT or _is_rows(source):
        return None
    path = PurePosixPath(_PART.sub("", ref))
    if path.is_absolute() or "://" in ref or ".." in path.parts or not path.name:
        return None
    return MemoryFile(source, str(path))


def name_words(name: str) -> frozenset[str]:
    """The words of a file's or folder's name, and the name as one word, all in lower case.

    ``getHTTPResponse`` and ``get_http_response`` give the same: get, http, response,
    gethttpresponse.
    """
    words = code_words(name)
    return frozenset((*words, "".join(words))) - {""}


def _is_rows(source: str) -> bool:
    """Whether a source is a file of rows: ``notes.csv``, ``notes.db#table``."""
    name = source.replace("\\", "/").rpartition("/")[2].lower()
    return name.endswith(ROW_SUFFIXES) or name.partition("#")[0].endswith(ROW_SUFFIXES)
