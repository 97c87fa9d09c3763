"""What was uploaded, as files to import: names checked, archives opened, limits held.

Boundary: reads hostile bytes. Everything stays in memory, and is gone when the import is done:
plain text on a disk would outlive it. Names only decide what a memory's source is called; nothing
is ever opened by them. An archive says how large its files are before any of them is read; what is
larger than it says is refused all the same, and never expanded further than it says.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.host import (
    FOLDERS_NEVER_ENTERED,
    LIMITS,
    MAX_FOLDER_DEPTH,
    READERS,
    UPLOADED,
    Failure,
    Found,
    Skip,
    SourceFile,
    reader_of_suffix,
    shown,
)

from ..requests.questions import TooLargeError, arguments

UPLOAD_LIMIT = 64 * 1024 * 1024  # bytes of one request
FILES_LIMIT = 5_000  # of one upload, those in archives included
EXPANDED_LIMIT = 256 * 1024 * 1024  # bytes of all files in one archive
EXPANSION = 200  # times: text shrinks to a tenth, what is made to harm to a thousandth
SMALL = 1024 * 1024  # bytes that a file may expand to by any factor
NAME_LIMIT = 1_000  # characters
DIRECTORY_LIMIT = FILES_LIMIT * 400  # bytes of an archive's directory: 46 and a name for each file
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError),
    *(OverflowError, RuntimeError, struct.error),  # NotImplementedError is a RuntimeError
)
"""What reading an archive raises that is broken, or made to be."""
BOUNDED = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others expand without a bound on one read
ARCHIVE = ".zip"


def taken() -> str:
    """The suffixes of files that can be uploaded."""
    suffixes = [suffix for one in READERS if not one.on_disk for suffix in one.suffixes]
    return ", ".join([*suffixes, ARCHIVE])


@dataclass(frozen=True)
class Upload:
    """The files of a request, by name, and its other fields."""

    files: Sequence[tuple[str, bytes]]
    fields: dict[str, list[str]]


async def read_upload(request: Any) -> Upload:
    """The request's files: a multipart form, or one file as the body whose ``name`` is given.

    Raises :class:`TooLargeError`, :class:`BadInputError`.
    """
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        body = b"".join([chunk async for chunk in _chunks(request)])
        given = arguments(request)
        name = (given.get("name") or [""])[-1]
        if not name:
            raise BadInputError("name: the name of the file expected in the address", "name")
        return Upload([(name, body)], given)
    return await _read_form(request, kind)


async def _read_form(request: Any, content_type: str) -> Upload:
    """A multipart form as it arrives, its files kept in memory."""
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import create_form_parser

    files: list[tuple[str, bytes]] = []
    fields: dict[str, list[str]] = {}

    def add_field(field: Any) -> None:
        name, value = (
            (part or b"").decode("utf-8", "replace") for part in (field.field_name, field.value)
        )
        fields.setdefault(name, []).append(value)

    def add_file(file: Any) -> None:
        name = (file.file_name or b"").decode("utf-8", "surrogateescape")
        file.file_object.seek(0)
        content = file.file_object.read()
        file.file_object.close()
        if name or content:  # a file field that was left empty has neither
            files.append((name, content))

    headers = {"Content-Type": content_type.encode("latin-1")}
    config = {"MAX_MEMORY_FILE_SIZE": UPLOAD_LIMIT + 1, "MAX_BODY_SIZE": UPLOAD_LIMIT + 1}
    try:
        parser = create_form_parser(headers, add_field, add_file, config=config)
    except (FormParserError, ValueError):
        raise BadInputError("body: this is no form", "body") from None
    try:
        async for chunk in _chunks(request):
            parser.write(chunk)
            if len(files) > FILES_LIMIT:
                raise BadInputError(f"one upload holds {FILES_LIMIT:,} files at most", "file")
        parser.finalize()
    except FormParserError:
        raise BadInputError("body: this form is broken", "body") from None
    return Upload(files, fields)


async def _chunks(request: Any) -> Any:
    size, more = 0, True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            raise BadInputError("the upload broke off", "file")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > UPLOAD_LIMIT:
            most = UPLOAD_LIMIT // 1024**2
            raise TooLargeError(f"one upload holds {most} MB at most: send several", "file")
        yield chunk
        more = message.get("more_body", False)


def sources(files: Sequence[tuple[str, bytes]]) -> list[Found]:
    """The uploaded files as the importer takes them, archives opened; what is left out, and why."""
    found: list[Found] = []
    for name, content in files:
        if name.lower().endswith(ARCHIVE):
            found.extend(_in_archive(name, content))
        else:
            found.append(_source(name, partial(bytes, content)))
        if len(found) > FILES_LIMIT:
            raise BadInputError(f"one upload holds {FILES_LIMIT:,} files at most", "file")
    return found


class _Archived(io.BytesIO):
    """An archive's bytes. Its directory is refused before it is read, by whichever of its records:
    zipfile asks for all of it at once, and makes an object of each entry."""

    opened = False

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > DIRECTORY_LIMIT and not self.opened:
            raise TooLargeError("its list of files is too long", "file")
        return super().read(size)


def _in_archive(name: str, content: bytes) -> Iterator[Found]:
    """The files of a zip archive; one failure for an archive that is not to be opened."""
    stream = _Archived(content)
    try:
        archive = zipfile.ZipFile(stream)
        members = [one for one in archive.infolist() if not one.filename.endswith("/")]
    except TooLargeError as error:
        yield Failure(shown(name), f"{error}; {FILES_LIMIT:,} files at most")
        return
    except BROKEN:
        yield Failure(shown(name), "no archive, or a broken one")
        return
    stream.opened = True
    if len(members) > FILES_LIMIT:
        yield Failure(shown(name), f"holds {len(members):,} files; {FILES_LIMIT:,} at most")
    elif sum(member.file_size for member in members) > EXPANDED_LIMIT:
        yield Failure(shown(name), f"expands to more than {EXPANDED_LIMIT // 1024**2} MB")
    elif sum(member.compress_size for member in members) > len(content):
        yield Failure(shown(name), "its files overlap, or are not all there")
    else:
        folder = _folder(name, members)
        for member in members:
            yield _member(archive, member, folder)


def _folder(name: str, members: Sequence[zipfile.ZipInfo]) -> str:
    """The folder an archive stands for: its own name, or none where its files lie in one folder.

    What a system adds, beside the folder that was packed, does not count.
    """
    paths = [PurePosixPath(member.orig_filename.replace("\\", "/")).parts for member in members]
    visible = [parts for parts in paths if parts[:1] != ("__MACOSX",) and not _hidden(parts)]
    if visible and all(len(parts) > 1 and parts[0] == visible[0][0] for parts in visible):
        return ""
    return shown(PurePosixPath(name.replace("\\", "/")).stem)[:NAME_LIMIT]


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: str) -> Found:
    label = shown(member.orig_filename)
    if member.flag_bits & 1:
        return Failure(label, "encrypted by a password; unpack it first")
    if member.compress_type not in BOUNDED:
        return Failure(label, "compressed by another method than deflate; pack it anew")
    if member.file_size > max(SMALL, EXPANSION * member.compress_size):
        return Failure(label, f"expands to more than {EXPANSION} times its size")
    if member.filename.lower().endswith(ARCHIVE):
        return Skip(label, "an archive within an archive")
    # the original name: zipfile cuts it at a null character
    return _source(member.orig_filename, lambda: _expanded(archive, member), folder)


def _expanded(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as stream:
            return stream.read(min(member.file_size, LIMITS.bytes) + 1)
    except BROKEN:
        raise MemoryStoreError("broken in its archive") from None


def _hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith(".") or part in FOLDERS_NEVER_ENTERED for part in parts)


def _source(name: str, content: Callable[[], bytes], folder: str = "") -> Found:
    """One file by its checked name; what is left out, and why.

    Its source is ``folder``, else the first folder in its name; its ref the path from there.
    """
    label = shown(name)[:NAME_LIMIT]
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
        return Skip(label, f"not of a kind that can be uploaded ({taken()})")
    if not folder and len(parts) > 1:
        folder, parts = parts[0], parts[1:]
    path = Path(folder, *parts)
    root = Path(f"{UPLOADED}{path if reader.rows else folder}")
    return SourceFile(path, root, "/".join(parts), reader.name, label, content=content)
