"""Highlights in books: of Kindle (``My Clippings.txt``) and Readwise (CSV). One memory a book.

Each highlight is a section with its place, and the reader's notes. What Kindle wrote again, because
a highlight was made longer, is kept once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct, field

from memory_store.dates import format_time
from memory_store.importing.readers import csv
from memory_store.importing.readers.export_fields import kept, moment, topics_of
from memory_store.importing.readers.rows import broken_row
from memory_store.importing.source_file import Broken, Failure, Item, Limits, Reader, SourceFile
from memory_store.records import MemoryDraft

KINDLE, READWISE = "Kindle", "Readwise"
END = "=========="  # behind each clipping
CUT_OFF = "the last clipping is cut off"
COLUMNS = frozenset({"highlight", "book title", "book author"})
_TITLE = re.compile(r"(.*\S)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")  # Title (Author)
_PLACE = re.compile(r"^-\s*(?:your\s+)?", re.I)
_NUMBERS = re.compile(r"\d+")
DATES = ("%A, %B %d, %Y %I:%M:%S %p", "%A, %d %B %Y %H:%M:%S", "%A, %d %B %y %H:%M:%S")


class Highlight(Struct):
    """What was marked or written at a place."""

    place: str
    text: str
    note: str = ""


class Book(Struct):
    """What was marked in a book; times are ISO 8601."""

    title: str
    author: str
    highlights: list[Highlight] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)

    def draft(self, source: str, ref: str) -> MemoryDraft:
        """The book as one memory."""
        return MemoryDraft(
            "\n\n".join(map(_section, self.highlights)),
            title=self.title,
            topics=topics_of(self.topics),
            created=min(self.times, default=None),
            updated=max(self.times, default=None),
            metadata=kept({"author": self.author, "highlights": str(len(self.highlights))}),
            source=source,
            ref=ref,
        )


def _section(one: Highlight) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in one.text.splitlines())
    parts = (f"## {one.place}" if one.place else "", quoted, one.note)
    return "\n\n".join(part for part in parts if part)


def is_clippings(head: bytes) -> bool:
    """Whether a text begins as the clippings of a Kindle do: a title, then ``- … | …``."""
    lines = head.decode("utf-8-sig", "replace").splitlines()
    second = lines[1] if len(lines) > 1 else ""
    return second.startswith("- ") and "|" in second and (END in lines or len(lines) > 2)


def read_clippings(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The books of a Kindle. What is behind the last line of signs is cut off, and named."""
    books: dict[str, Book] = {}
    *clippings, rest = f"{file.text(limits)}\n".split(f"{END}\n")
    for clipping in clippings:
        _clip(books, clipping.strip("\n\ufeff "))
    for name, book in books.items():
        if book.highlights:
            yield book.draft(KINDLE, name)
    if rest.strip("\n\ufeff "):
        yield Failure(file.name, CUT_OFF)


def _clip(books: dict[str, Book], clipping: str) -> None:
    name, _, said = clipping.partition("\n")
    about, _, text = said.partition("\n")
    name = name.strip("\ufeff ")
    if not name:
        return
    found = _TITLE.fullmatch(name) if len(name) < 1_000 else None
    book = books.setdefault(name, Book(found[1], found[2]) if found else Book(name, ""))
    *places, when = (part.strip() for part in about.split("|"))
    if time := _time(when):
        book.times.append(time)
    if text.strip():  # a bookmark marks no text
        place = _PLACE.sub("", ", ".join(places))
        _add(book.highlights, Highlight(place, text.strip()))


def _time(said: str) -> str | None:
    """When a clipping was made, where it is said in English: a Kindle speaks many languages."""
    said = said.removeprefix("Added on ").strip()
    for form in DATES:
        try:
            return format_time(datetime.strptime(f"{said} +0000", f"{form} %z"))
        except ValueError:
            continue
    return moment(said)


def _add(highlights: list[Highlight], new: Highlight) -> None:
    """Add a highlight, or put it in the place of the one that it was before it grew."""
    for number in range(len(highlights) - 1, max(len(highlights) - 20, 0) - 1, -1):
        old = highlights[number]
        if old.text == new.text and old.place == new.place:
            return
        if _near(old.place, new.place) and (old.text in new.text or new.text in old.text):
            highlights[number] = max(old, new, key=lambda one: len(one.text))
            return
    highlights.append(new)


def _near(one: str, other: str) -> bool:
    """Whether two places share a number: the page, or an end of the marked lines."""
    return bool(set(_NUMBERS.findall(one)) & set(_NUMBERS.findall(other)))


def read_readwise(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The books and articles of Readwise, each with its highlights."""
    books: dict[str, Book] = {}
    for row in csv.records(file):
        if isinstance(row, Broken):
            yield broken_row(file, row)
            continue
        values = {name.lower(): str(value).strip() for name, value in row.values.items()}
        title, author = values.get("book title", ""), values.get("book author", "")
        ref = values.get("amazon book id") or f"{title} ({author})"
        book = books.setdefault(ref, Book(title, author))
        kind, at = values.get("location type", ""), values.get("location", "")
        place = f"{kind} {at}".strip().capitalize() if at else ""
        book.highlights.append(
            Highlight(place, values.get("highlight", ""), values.get("note", ""))
        )
        tags = f"{values.get('tags', '')},{values.get('document tags', '')}"
        book.topics += [tag.strip() for tag in tags.split(",")]
        if time := moment(values.get("highlighted at")):
            book.times.append(time)
    for ref, book in books.items():
        yield book.draft(READWISE, ref)


READERS = [
    Reader(
        "kindle",
        (),
        read_clippings,
        rows=True,
        within=("text",),
        of=lambda file: is_clippings(file.head()),
    ),
    Reader(
        "readwise",
        (),
        read_readwise,
        rows=True,
        streamed=True,
        within=("csv",),
        of=lambda file: csv.columns_of(file.head()) >= COLUMNS,
    ),
]
