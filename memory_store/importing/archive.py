"""Zip archives as the files in them: names checked, limits held.

Boundary: reads hostile bytes. What is in an archive stays in memory, one file or a piece of it at a
time: plain text on a disk would outlive it. Names only decide what a memory's source is called;
nothing is ever opened by them. An archive says how large its files are before any of them is read;
what is larger than it says is refused all the same, and never expanded further than it says.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import MemoryStoreError
from memory_store.importing.exports import arranged as arranged
from memory_store.importing.folder_names import FOLDERS_NEVER_ENTERED, MAX_FOLDER_DEPTH
from memory_store.importing.readers import reader_of_suffix
from memory_store.importing.readers.markdown import no_reader
from memory_store.importing.source_file import Failure, Found, Skip, SourceFile, shown

if TYPE_CHECKING:
    from typing_extensions import Buffer

EXPANSION = 200  # times: text shrinks to a tenth, what is made to harm to a thousandth
SMALL = 1024 * 1024  # bytes that a file may expand to by any factor
NAME_LIMIT = 1_000  # characters
ENTRY_BYTES = 400  # of an archive's directory for each file: 46 and a name
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError),
    *(OverflowError, RuntimeError, struct.error),  # NotImplementedError is a RuntimeError
)
"""What reading an archive raises that is broken, or made to be."""
BOUNDED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others expand without a bound on one read
ARCHIVE = ".zip"
EARLIEST = (1980, 1, 1, 0, 0, 0)  # what a program writes that keeps no time


class Room(Struct, frozen=True):
    """What an archive may hold: so many ``files``, and so many ``bytes`` of those that are read."""

    files: int = 100_000
    bytes: int = 4 * 1024**3


class Base(Struct, frozen=True):
    """What the names in an archive are under: ``root`` is the source of its notes, ``label`` what
    its name in messages begins with. ``timed``: whether time stamps are taken from it."""

    root: str
    label: str = ""
    timed: bool = False


def is_archive(path: Path) -> bool:
    """Whether a file on this disk is a zip archive: by its name, or by what is in it.

    Documents and books are archives, too: by their own names.
    """
    if reader_of_suffix(path) is not None or not os.path.isfile(path):
        return False
    return path.suffix.lower() == ARCHIVE or zipfile.is_zipfile(path)


def in_archive_file(path: Path, name: str, room: Room | None = None) -> list[Found]:
    """The files of an archive on this disk, which ``name`` calls in messages. It is the source.

    Each file is read from the archive when its content is asked for.
    """
    base = Base(str(path), f"{name}/", timed=True)
    return arranged(_files(partial(_opened, path), path.stat().st_size, name, base, room or Room()))


def in_archive(name: str, content: bytes, prefix: str, room: Room) -> list[Found]:
    """The files of an archive that is at hand; one failure for one that is not to be opened.

    Their source is its name, or the folder in it that holds all of them, after the ``prefix``.
    """
    return arranged(_files(partial(io.BytesIO, content), len(content), name, Base(prefix), room))


def _opened(path: Path) -> io.BytesIO | io.BufferedReader:
    return path.open("rb")


def _files(
    opened: Callable[[], io.BytesIO | io.BufferedReader],
    size: int,
    name: str,
    base: Base,
    room: Room,
    within: bool = False,
) -> Iterator[Found]:
    stream = _Directory(opened(), room.files * ENTRY_BYTES)
    try:
        archive = zipfile.ZipFile(stream)
        members = [one for one in archive.infolist() if not one.filename.endswith("/")]
    except _TooLongError:
        most = f"{room.files:,} files at most"
        yield Failure(shown(name), f"its list of files is too long; {most}")
        return
    except BROKEN:
        yield Failure(shown(name), "no archive, or a broken one")
        return
    stream.opened = True
    read = [one for one in members if _is_read(one)]
    if len(members) > room.files:
        yield Failure(shown(name), f"holds {len(members):,} files; {room.files:,} at most")
    elif sum(one.file_size for one in read) > room.bytes:
        yield Failure(shown(name), f"expands to more than {room.bytes // 1024**2} MB")
    elif sum(member.compress_size for member in members) > size:
        yield Failure(shown(name), "its files overlap, or are not all there")
    elif not within and read and all(_suffix(one) == ARCHIVE for one in read):
        for member in read:  # as Notion packs an export: in parts
            yield from _part(archive, member, name, base, room)
    else:
        folder = _folder(name, members)
        for member in members:
            yield _member(archive, member, base, folder)


def _part(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, base: Base, room: Room
) -> Iterator[Found]:
    """The files of an archive that is a part of another one, which holds nothing but such."""
    label = f"{base.label}{shown(member.orig_filename)}"
    if reason := _refused(member):
        yield Failure(label, reason)
        return
    try:
        with _member_stream(archive, member) as stream:
            content = stream.read(min(member.file_size, room.bytes) + 1)
    except MemoryStoreError as error:
        yield Failure(label, str(error))
        return
    part = replace(base, label=f"{label}/") if base.label else base
    opened = partial(io.BytesIO, content)
    yield from _files(opened, len(content), name, part, room, within=True)


class _TooLongError(Exception):
    """The list of an archive's files is longer than it may be."""


class _Directory:
    """An archive's bytes. Its directory is refused before it is read, by whichever of its records:
    zipfile asks for all of it at once, and makes an object of each entry."""

    def __init__(self, stream: io.BytesIO | io.BufferedReader, limit: int) -> None:
        self.opened = False
        self._stream, self._limit = stream, limit
        self.seek, self.tell, self.close = stream.seek, stream.tell, stream.close
        self.seekable = stream.seekable

    def __del__(self) -> None:
        self.close()  # when the last file of the archive was read

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > self._limit and not self.opened:
            raise _TooLongError
        return self._stream.read(size)


def _suffix(member: zipfile.ZipInfo) -> str:
    return PurePosixPath(member.filename).suffix.lower()


def _is_read(member: zipfile.ZipInfo) -> bool:
    """Whether a reader would take a file: pictures and films in an export cost nothing."""
    parts = PurePosixPath(member.filename.replace("\\", "/")).parts
    known = _suffix(member) == ARCHIVE or reader_of_suffix(member.filename) is not None
    return known and not _hidden(parts)


def _folder(name: str, members: Sequence[zipfile.ZipInfo]) -> str:
    """The folder an archive stands for: its own name, or none where its files lie in one folder.

    What a system adds, beside the folder that was packed, does not count.
    """
    paths = [PurePosixPath(member.orig_filename.replace("\\", "/")).parts for member in members]
    visible = [parts for parts in paths if not _hidden(parts)]
    if visible and all(len(parts) > 1 and parts[0] == visible[0][0] for parts in visible):
        return ""
    return shown(PurePosixPath(name.replace("\\", "/")).stem)[:NAME_LIMIT]


def _refused(member: zipfile.ZipInfo) -> str | None:
    """Why a file is not expanded."""
    if member.flag_bits & 1:
        return "encrypted by a password; unpack it first"
    if member.compress_type not in BOUNDED:
        return "compressed by another method than deflate; pack it anew"
    if member.file_size > max(SMALL, EXPANSION * member.compress_size):
        return f"expands to more than {EXPANSION} times its size"
    return None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, base: Base, folder: str) -> Found:
    label = f"{base.label}{shown(member.orig_filename)}"
    if reason := _refused(member):
        return Failure(label, reason)
    if _suffix(member) == ARCHIVE:
        return Skip(label, "an archive within an archive")
    # the original name: zipfile cuts it at a null character
    content = partial(_member_stream, archive, member)
    found = file_of(member.orig_filename, content, base, folder)
    if not base.timed or not isinstance(found, SourceFile):
        return found
    return replace(found, modified=_modified(member))


def _modified(member: zipfile.ZipInfo) -> float | None:
    try:
        when = member.date_time
        return datetime(*when).timestamp() if when > EARLIEST else None
    except (ValueError, OverflowError, OSError):
        return None


class _Expanded(io.RawIOBase):
    """The bytes of a file in an archive, expanded as they are read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _broken_said():
            return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Buffer, /) -> int:
        with _broken_said(), memoryview(buffer) as view:
            data = self._stream.read(len(view))
            view[: len(data)] = data
            return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def _broken_said() -> Iterator[None]:
    try:
        yield
    except BROKEN:
        raise MemoryStoreError("broken in its archive") from None


def _member_stream(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    with _broken_said():
        stream = archive.open(member)
    return io.BufferedReader(_Expanded(stream))


def _hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") or part in FOLDERS_NEVER_ENTERED for part in parts)


def file_of(
    name: str, content: Callable[[], bytes | BinaryIO], base: Base, folder: str = ""
) -> Found:
    """One file by its checked name; what is left out, and why.

    Its source is ``folder``, else the first folder in its name, under the ``base``; its ref the
    path from there. In an archive that has a source of its own, the folder is no part of it.
    """
    label = f"{base.label}{shown(name)[:NAME_LIMIT]}"
    clean = name.replace("\\", "/")
    parts = PurePosixPath(clean).parts
    if not parts or len(name) > NAME_LIMIT or len(parts) > MAX_FOLDER_DEPTH or "\0" in name:
        return Failure(label or "a file", "its name is empty, too long or broken")
    if clean.startswith("/") or ".." in parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        return Failure(label, "its name leads out of its folder")
    try:
        clean.encode("utf-8")
    except UnicodeEncodeError:
        return Failure(label, "the file's name is not valid UTF-8")
    if _hidden(parts):
        return Skip(label, "hidden")
    reader = reader_of_suffix(clean)
    if reader is None or reader.on_disk:
        return Skip(label, _unread(clean))
    if not folder and len(parts) > 1:
        folder, parts = parts[0], parts[1:]
    inside = Path(*parts) if base.label else Path(folder, *parts)
    top = base.root if base.label else f"{base.root}{folder}"
    path = Path(base.root, inside) if base.label else inside
    own = path if base.label else Path(f"{base.root}{inside}")
    root = own if reader.rows else Path(top)
    return SourceFile(path, root, "/".join(parts), reader.name, label, content=content)


def _unread(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    reader = reader_of_suffix(name)
    if reader is not None:
        return f"{suffix} is read from a disk alone: name the file itself in memory-store import"
    return no_reader(shown(suffix))
