"""Source code: one memory a file, of the type ``code``, in the words of its names.

Boundary: reads one file within the limits; nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_store.code.languages import SUFFIXES, language_of_file
from memory_store.dates import format_epoch
from memory_store.importing.source_file import Item, Limits, Reader, Remark, SourceFile
from memory_store.records import MemoryDraft
from memory_store.text.identifiers import CODE


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The file as it is, called by its name."""
    decoded = file.decoded(limits)
    text = decoded.text
    language = language_of_file(file.path.name, text)
    yield MemoryDraft(
        text=text,
        title=file.path.name,
        type=CODE,
        ref=file.ref,
        updated=None if file.modified is None else format_epoch(int(file.modified)),
        metadata={"language": language or "text", "lines": text.removesuffix("\n").count("\n") + 1},
    )
    if decoded.remark:
        yield Remark(file.name, decoded.remark)


READER = Reader("code", SUFFIXES, read, in_work_trees=True, label="source code")
