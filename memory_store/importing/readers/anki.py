"""Notes of Anki, exported as text with its lines of header: one memory a note."""

from __future__ import annotations

from collections.abc import Iterator

from memory_store.importing.readers.documents import converted, require
from memory_store.importing.readers.export_fields import kept, topics_of
from memory_store.importing.source_file import Failure, Item, Limits, Reader, Skip, SourceFile
from memory_store.records import MemoryDraft

SOURCE = "Anki"
BEGINS = (b"#separator:", b"#html:", b"#guid column:", b"#notetype column:", b"#deck column:")


def is_notes(head: bytes) -> bool:
    """Whether a text begins with a line of Anki's header."""
    return head.removeprefix(b"\xef\xbb\xbf").lower().startswith(BEGINS)


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The notes, known by Anki's own id, or else by their first field, as Anki does."""
    require("an export of Anki", "anki")
    seen: set[str] = set()
    for number, one in enumerate(converted("anki", file.data(limits), limits), 1):
        about = dict(one.metadata)
        where = f"{file.name}: note {number}"
        if broken := about.get("broken"):
            yield Failure(file.name, f"{broken}; the notes from here on were not read")
        elif not one.text or one.part in seen:
            yield Skip(where, "the same note again" if one.text else "empty")
        else:
            seen.add(one.part)
            yield MemoryDraft(
                one.text,
                title=one.title,
                topics=topics_of(map(_topic, about.pop("tags", "").split())),
                metadata=kept({**about}),
                source=SOURCE,
                ref=one.part,
            )


def _topic(tag: str) -> str:
    """A tag within others, ``spanish::verbs``, as notes write it: ``spanish/verbs``."""
    return "/".join(filter(None, tag.split("::")))


READER = Reader(
    "anki",
    (),
    read,
    rows=True,
    within=("text", "csv", "tsv"),
    of=lambda file: is_notes(file.head()),
)
