"""What was uploaded, as files to import: names checked, archives opened, limits held.

Boundary: reads hostile bytes. Everything stays in memory, and is gone when the import is done:
plain text on a disk would outlive it. Names only decide what a memory's source is called; nothing
is ever opened by them. An archive says how large its files are before any of them is read, and a
file that turns out larger is refused all the same.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from memory_store.importing.session import UPLOADED
from memory_store.importing.walk import (
    FOLDERS_NEVER_ENTERED,
    KINDS,
    MAX_FILE_BYTES,
    MAX_FOLDER_DEPTH,
    ROW_KINDS,
    Failure,
    Found,
    Skip,
    SourceFile,
    shown,
)
from memory_store.records import BadInputError, MemoryStoreError

from ..requests.asking import TooLargeError

UPLOAD_LIMIT = 64 * 1024 * 1024  # bytes of one request
FILES_LIMIT = 5_000  # of one upload, those in archives included
EXPANDED_LIMIT = 256 * 1024 * 1024  # bytes of all files in one archive
EXPANSION = 200  # times: text shrinks to a tenth, what is made to harm to a thousandth
SMALL = 1024 * 1024  # bytes that a file may expand to by any factor
NAME_LIMIT = 1_000  # characters
ARCHIVE = ".zip"
TAKEN = ", ".join((*(suffix for suffix, kind in KINDS.items() if kind != "sqlite"), ARCHIVE))


@dataclass(frozen=True)
class Upload:
    """The files of a request, by name, and its other fields."""

    files: Sequence[tuple[str, bytes]]
    fields: dict[str, list[str]]


async def read_upload(request: Any) -> Upload:
    """The request's files: a multipart form, or one file as the body whose ``name`` is given.

    Raises :class:`TooLargeError`, :class:`BadInputError`.
    """
    from ..requests.asking import arguments

    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        body = b"".join([chunk async for chunk in _chunks(request)])
        given = arguments(request)
        name = (given.get("name") or [""])[-1]
        if not name:
            raise BadInputError("name: the name of the file expected in the address", "name")
        return Upload([(name, body)], given)
    form = _Form(kind)
    async for chunk in _chunks(request):
        form.write(chunk)
    return form.finished()


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


class _Form:
    """A multipart form as it arrives, its files kept in memory."""

    def __init__(self, content_type: str) -> None:
        from python_multipart.multipart import create_form_parser

        self.files: list[tuple[str, bytes]] = []
        self.fields: dict[str, list[str]] = {}
        self._wrong = _parser_error()
        headers = {"Content-Type": content_type.encode("latin-1")}
        config = {"MAX_MEMORY_FILE_SIZE": UPLOAD_LIMIT + 1, "MAX_BODY_SIZE": UPLOAD_LIMIT + 1}
        try:
            self._parser = create_form_parser(headers, self._field, self._file, config=config)
        except (self._wrong, ValueError):
            raise BadInputError("body: this is no form", "body") from None

    def write(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except self._wrong:
            raise BadInputError("body: this form is broken", "body") from None
        if len(self.files) > FILES_LIMIT:
            raise BadInputError(f"one upload holds {FILES_LIMIT:,} files at most", "file")

    def finished(self) -> Upload:
        try:
            self._parser.finalize()
        except self._wrong:
            raise BadInputError("body: this form is broken", "body") from None
        return Upload(self.files, self.fields)

    def _field(self, field: Any) -> None:
        name, value = (
            (part or b"").decode("utf-8", "replace") for part in (field.field_name, field.value)
        )
        self.fields.setdefault(name, []).append(value)

    def _file(self, file: Any) -> None:
        name = (file.file_name or b"").decode("utf-8", "surrogateescape")
        file.file_object.seek(0)
        content = file.file_object.read()
        file.file_object.close()
        if name or content:  # a file field that was left empty has neither
            self.files.append((name, content))


def _parser_error() -> type[Exception]:
    from python_multipart.exceptions import FormParserError

    return FormParserError


def sources(files: Sequence[tuple[str, bytes]]) -> list[Found]:
    """The uploaded files as the importer takes them, archives opened; what is left out, and why."""
    found: list[Found] = []
    for name, content in files:
        if name.lower().endswith(ARCHIVE):
            found.extend(_in_archive(name, content))
        else:
            found.append(_source(name, lambda content=content: content))  # type: ignore[misc]
        if len(found) > FILES_LIMIT:
            raise BadInputError(f"one upload holds {FILES_LIMIT:,} files at most", "file")
    return found


def _in_archive(name: str, content: bytes) -> Iterator[Found]:
    """The files of a zip archive; one failure for an archive that is not to be opened."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        members = [member for member in archive.infolist() if not member.is_dir()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        yield Failure(shown(name), "no archive, or a broken one")
        return
    if len(members) > FILES_LIMIT:
        yield Failure(shown(name), f"holds {len(members):,} files; {FILES_LIMIT:,} at most")
    elif sum(member.file_size for member in members) > EXPANDED_LIMIT:
        yield Failure(shown(name), f"expands to more than {EXPANDED_LIMIT // 1024**2} MB")
    else:
        for member in members:
            yield _member(archive, member)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Found:
    label = shown(member.filename)
    if member.flag_bits & 1:
        return Failure(label, "encrypted by a password; unpack it first")
    if member.file_size > max(SMALL, EXPANSION * member.compress_size):
        return Failure(label, f"expands to more than {EXPANSION} times its size")
    if member.filename.lower().endswith(ARCHIVE):
        return Skip(label, "an archive within an archive")
    return _source(member.filename, lambda: _expanded(archive, member))


def _expanded(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError):
        raise MemoryStoreError("broken in its archive") from None
    if len(content) > max(SMALL, EXPANSION * member.compress_size):
        raise MemoryStoreError(f"expands to more than {EXPANSION} times its size")
    return content


def _source(name: str, content: Callable[[], bytes]) -> Found:
    """One file by its checked name; what is left out, and why."""
    label = shown(name)[:NAME_LIMIT]
    clean = name.replace("\\", "/")
    parts = PurePosixPath(clean).parts
    if not parts or len(name) > NAME_LIMIT or len(parts) > MAX_FOLDER_DEPTH or "\0" in name:
        return Failure(label or "a file", "its name is empty or too long")
    if clean.startswith("/") or ".." in parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        return Failure(label, "its name leads out of its folder")
    try:
        clean.encode("utf-8")
    except UnicodeEncodeError:
        return Failure(label, "the file's name is not valid UTF-8")
    if any(part.startswith(".") or part in FOLDERS_NEVER_ENTERED for part in parts):
        return Skip(label, "hidden")
    kind = KINDS.get(PurePosixPath(clean).suffix.lower())
    if kind is None or kind == "sqlite":
        return Skip(label, f"not of a kind that can be uploaded ({TAKEN})")
    ref = "/".join(parts)
    root = Path(f"{UPLOADED}{ref}" if kind in ROW_KINDS else UPLOADED)
    return SourceFile(Path(ref), root, ref, True, kind, label, content=content)
