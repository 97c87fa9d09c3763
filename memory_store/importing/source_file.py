"""One file to import: its names, its bytes, text or lines within the limits, and its reader.

Boundary: a hostile file costs bounded memory. It is opened once, without following a link that took
its place and without waiting for a pipe. Names reach messages without control characters.

Text is UTF-8, or UTF-16 that says so. A note that is neither is read as Latin-1 where that gives
plain text, with a warning. UTF-8 that is damaged, and rows, are not: the wrong byte is reported
with its line and offset.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import IO, Any, BinaryIO

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from memory_store.errors import MemoryStoreError
from memory_store.records import MemoryDraft

STDIN = "stdin"
NOT_THERE = "no such file or folder"
PIECE_BYTES = 1024 * 1024  # of a document that is read piece by piece
SNIFFED_BYTES = 8_192  # a NUL among them means binary, as git and grep decide
MAX_LINE_BYTES = 16 * 1024 * 1024  # of NDJSON and tables: a line is read into memory whole
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
TEXT_COLUMNS = ("text", "body", "content", "note")
"""Where a row's text is looked for, in this order, when no column is named."""


class Limits(Struct, frozen=True):
    """What one file may cost: ``bytes`` of a document that is read whole, ``items`` in it,
    ``seconds`` of reading, ``depth`` of lists and mappings in its metadata."""

    bytes: int = 50 * 1024 * 1024
    items: float = inf
    seconds: float = inf
    depth: int = 32


LIMITS = Limits()


class Skip(Struct, frozen=True):
    """Something left out on purpose: ``binary``, ``empty``, ``excluded``, a link. Exit code 0."""

    name: str
    reason: str


class Failure(Struct, frozen=True):
    """Something chosen that cannot be imported. ``name`` is ``file`` or ``file:line``."""

    name: str
    reason: str


class Remark(Struct, frozen=True):
    """A warning about something that was imported all the same. ``name`` as in a failure."""

    name: str
    reason: str


class Decoded(Struct, frozen=True):
    """The text of a file; ``remark`` says how it was read, where that was not as usual."""

    text: str
    remark: str | None = None


class Broken(Struct, frozen=True):
    """A part of a file that cannot be read; ``last``: nor what is behind it.

    ``where`` is its line, counted from 1, or a row's primary key; None for a whole table.
    """

    where: int | str | None
    reason: str
    last: bool = False


class LeftOutError(MemoryStoreError):
    """Raised by a reader for a file that holds nothing to import. The file is skipped."""


class UnreadableError(MemoryStoreError):
    """Raised by a reader for a file that it cannot read; ``line`` counts from 1."""

    def __init__(self, reason: str, line: int | str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


class Beside(Struct, frozen=True):
    """What an export says of a file in another place than the file, for each memory in it.

    ``ref`` names the file in every export of that ``source``. What is ``None`` the file says.
    """

    source: str
    ref: str = ""
    title: str | None = None
    created: str | None = None
    updated: str | None = None
    metadata: Mapping[str, Any] = {}

    def completed(self, draft: MemoryDraft, file: SourceFile) -> MemoryDraft:
        """A memory of that file, with what is said of it."""
        return replace(
            draft,
            source=self.source,
            ref=self.ref + (draft.ref or "").removeprefix(file.ref),
            title=self.title or draft.title,
            created=self.created or draft.created,
            updated=self.updated or draft.updated,
            metadata={**draft.metadata, **self.metadata},
        )


class SourceFile(Struct, frozen=True):
    """One file to read.

    ``path`` is absolute, ``root`` its source root (of rows the file itself, of a note the folder),
    ``ref`` the posix path from the folder (a single name for a file named on its own), ``kind`` the
    name of its reader, ``name`` how messages call it, ``modified`` its time stamp in seconds since
    1970. Standard input has the kind ``stdin`` and its ``stream``. A file that is not on this disk
    has its ``content``, all of it or to be read in pieces; its ``path`` is never opened. ``table``
    and ``text_column`` say which table of a database is meant, and which field of a row holds the
    text; ``type`` is the type that was asked for. ``beside`` is what an export says of the file.

    In a Git work tree Git's ids of contents have ``id_bytes`` bytes. ``as_before`` is the keyed tag
    of a file that holds, by such an id, what was imported: it need not be opened.
    """

    path: Path
    root: Path
    ref: str
    kind: str
    name: str = ""
    modified: float | None = None
    stream: IO[str] | None = None
    content: Callable[[], bytes | BinaryIO] | None = None
    table: str | None = None
    text_column: str | None = None
    type: str | None = None
    beside: Beside | None = None
    id_bytes: int = 0
    as_before: bytes = b""

    def __post_init__(self) -> None:
        if not self.name:
            force_setattr(self, "name", self.ref)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The fields of a row that may hold its text, best first."""
        return (self.text_column,) if self.text_column else TEXT_COLUMNS

    def open(self) -> BinaryIO:
        """The bytes of a regular file: not of a link put in its place, nor of a pipe."""
        if self.content is not None:
            given = self.content()
            return io.BytesIO(given) if isinstance(given, bytes) else given
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags | getattr(os, "O_NOFOLLOW", 0))
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise MemoryStoreError("not a regular file")
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def head(self) -> bytes:
        """The first bytes, by which a reader knows its kind; none of a file that does not open."""
        try:
            with self.open() as stream:
                return stream.read(SNIFFED_BYTES)
        except (OSError, MemoryStoreError):
            return b""

    def data(self, limits: Limits, *, text: bool = False) -> bytes:
        """All bytes. Raises LeftOutError for an empty file and, where ``text`` is expected, for a
        binary one; UnreadableError for one that is too large."""
        with self.open() as stream:
            data = stream.read(limits.bytes + 1)
        if not data or (text and is_binary(data)):
            raise LeftOutError("binary" if data else "empty")
        if len(data) > limits.bytes:
            raise UnreadableError(too_large(limits))
        return data

    def decoded(self, limits: Limits) -> Decoded:
        """As :meth:`text`; what is neither UTF-8 nor UTF-16 is read as Latin-1, where it can be."""
        data = self.data(limits, text=True)
        try:
            return Decoded(self._text(data))
        except UnreadableError as error:
            text = latin_text(data)
            if text is None:
                raise
            read = "read as Latin-1. Save the file as UTF-8 if letters look wrong"
            return Decoded(text, f"{error.reason}; {read}")

    def text(self, limits: Limits) -> str:
        """The text without byte order mark and with ``\\n`` newlines.

        Raises as :meth:`data` does, for blank text, and for what is neither UTF-8 nor UTF-16.
        """
        return self._text(self.data(limits, text=True))

    def _text(self, data: bytes) -> str:
        utf16 = data.startswith(UTF16_MARKS)
        try:
            text = data.decode("utf-16" if utf16 else "utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            offset = error.start + _mark_length(data)
            reason = _not_text(data, offset, 0, "UTF-16" if utf16 else "UTF-8")
            raise UnreadableError(reason, data.count(b"\n", 0, offset) + 1) from None
        if not text.strip():
            raise LeftOutError("empty")
        return text

    def pieces(self) -> Iterator[str]:
        """The text without byte order mark, piece by piece, at any size.

        Raises as :meth:`data` does for no text, and for what is neither UTF-8 nor UTF-16.
        """
        with self.open() as stream:
            data = stream.read(PIECE_BYTES)
            if not data or is_binary(data):
                raise LeftOutError("binary" if data else "empty")
            encoding = "UTF-16" if data.startswith(UTF16_MARKS) else "UTF-8"
            names = {"UTF-16": "utf-16", "UTF-8": "utf-8-sig"}
            decoder = codecs.getincrementaldecoder(names[encoding])()
            offset = lines = 0
            while True:
                try:
                    text = decoder.decode(data, final=not data)
                except UnicodeDecodeError as error:  # of what was left of the piece before, too
                    before = offset + len(data) - len(error.object)
                    reason = _not_text(error.object, error.start, before, encoding)
                    line = lines + error.object.count(b"\n", 0, error.start) + 1
                    raise UnreadableError(reason, line) from None
                yield text
                if not data:
                    return
                offset, lines = offset + len(data), lines + data.count(b"\n")
                data = stream.read(PIECE_BYTES)

    def lines(self) -> Iterator[tuple[int, str | Broken]]:
        """Numbered lines with their line ends, one in memory at a time; or why one is none.

        After a line that is too long, or UTF-16, no more follow. Raises LeftOutError for an empty
        or binary file.
        """
        with self.open() as stream:
            head = stream.read(SNIFFED_BYTES)
            if not head or is_binary(head):
                raise LeftOutError("binary" if head else "empty")
            stream.seek(0)
            offset, number = 0, 0
            while data := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(data) > MAX_LINE_BYTES:
                    yield number, Broken(number, f"a line over {MAX_LINE_BYTES // 1024**2} MB")
                    return
                if number == 1 and data.startswith(UTF16_MARKS):
                    yield number, Broken(number, "UTF-16; save it as UTF-8")
                    return
                try:
                    yield number, data.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    at = error.start + (_mark_length(data) if number == 1 else 0)
                    yield number, Broken(number, _not_text(data, at, offset, "UTF-8"))
                offset += len(data)


Found = SourceFile | Skip | Failure
Item = MemoryDraft | Skip | Failure | Remark


class Attachment(Struct, frozen=True):
    """A file inside another, for the reader of its suffix. ``finish`` completes its memories."""

    file: SourceFile
    finish: Callable[[MemoryDraft], MemoryDraft]


class Reader(Struct, frozen=True):
    """How files of one format become memories.

    ``read`` yields a draft for each memory, and a Skip or a Failure for what is none; it may raise
    LeftOutError or UnreadableError for the file as a whole. ``suffixes`` are in lower case and
    begin with a dot. ``sniff`` knows the format by a file's first bytes: it is asked about standard
    input and, where the format is ``binary``, about files of an unknown suffix.

    ``rows``: a file holds many records with names of their own; it is left in a folder unless it is
    named or matched by a pattern. ``streamed``: read piece by piece, at any size. ``on_disk``: read
    by its path, so neither uploaded nor piped in. ``in_work_trees``: taken from a Git work tree; in
    another folder it is left unless it is named or matched by a pattern. ``within`` names readers
    that would take the file, too: of an export that ``of`` knows by its content, this one does.
    ``label`` is what a report calls this kind of memories; empty where that is the name.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SourceFile, Limits], Iterator[Item | Attachment]]
    sniff: Callable[[bytes], bool] = lambda head: False
    rows: bool = False
    streamed: bool = False
    binary: bool = False
    on_disk: bool = False
    in_work_trees: bool = False
    within: tuple[str, ...] = ()
    of: Callable[[SourceFile], bool] = lambda file: False
    label: str = ""


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so holds no text."""
    return b"\0" in head[:SNIFFED_BYTES] and not head.startswith(UTF16_MARKS)


def latin_text(data: bytes) -> str | None:
    """The text of bytes in Latin-1 (as Windows writes it); ``None`` where they look like none.

    Control characters belong to no note. Where at least half of what is not ASCII is good UTF-8,
    it is UTF-8 that was damaged.
    """
    if data.startswith((*UTF16_MARKS, codecs.BOM_UTF8)) or _CONTROLS.search(data):
        return None
    read = [one for one in data.decode("utf-8", "replace") if not one.isascii()]
    damaged = read.count("\ufffd")
    if len(read) - damaged >= damaged:
        return None
    try:
        return data.decode("cp1252").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _mark_length(data: bytes) -> int:
    """What ``utf-8-sig`` has taken off before it counts; UTF-16 counts its mark."""
    return len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0


def _not_text(data: bytes, at: int, before: int, encoding: str) -> str:
    return f"not {encoding}: byte 0x{data[at]:02x} at offset {before + at}"


def too_large(limits: Limits) -> str:
    """Why a document over the limit is not read."""
    return f"larger than {limits.bytes // 1024**2} MB"


def shown(path: str | Path) -> str:
    """A path fit for a message: no control characters, no undecodable bytes."""
    try:
        raw = os.fspath(path).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair: no system has such a name, but a caller may
        raw = os.fspath(path).encode("utf-8", "surrogatepass")
    text = raw.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def refusal(error: Exception) -> str:
    """Why the file system refused, in words."""
    if isinstance(error, FileNotFoundError):
        return NOT_THERE
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
