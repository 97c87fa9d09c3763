"""What was uploaded, as files to import, archives opened.

Boundary: reads hostile bytes. Everything stays in memory, and is gone when the import is done:
plain text on a disk would outlive it. Names and archives are checked by ``archive``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memory_store.errors import BadInputError
from memory_store.host import READERS, UPLOADED, Found, archive

from ..requests.questions import TooLargeError, arguments

UPLOAD_LIMIT = 64 * 1024 * 1024  # bytes of one request
FILES_LIMIT = 5_000  # of one upload, those in archives included
EXPANDED_LIMIT = 256 * 1024 * 1024  # bytes of all files in one archive


def taken() -> str:
    """The suffixes of files that can be uploaded."""
    suffixes = [suffix for one in READERS if not one.on_disk for suffix in one.suffixes]
    return ", ".join(dict.fromkeys([*suffixes, archive.ARCHIVE]))


@dataclass(frozen=True)
class Upload:
    """The files of a request, by name, and its other fields."""

    files: Sequence[tuple[str, bytes]]
    fields: dict[str, list[str]]


async def read_upload(request: Any) -> Upload:
    """The request's files: a multipart form, or one file as the body whose ``name`` is given.

    Fields may stand in the address, too; one in the form takes the place of the address's. Raises
    :class:`TooLargeError`, :class:`BadInputError`.
    """
    kind, given = request.headers.get("content-type", ""), arguments(request)
    if not kind.startswith("multipart/form-data"):
        body = b"".join([chunk async for chunk in _chunks(request)])
        name = (given.get("name") or [""])[-1]
        if not name:
            raise BadInputError("name: the name of the file expected in the address", "name")
        return Upload([(name, body)], given)
    form = await _read_form(request, kind)
    return Upload(form.files, {**given, **form.fields})


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
    loose: list[Found] = []
    for name, content in files:
        if name.lower().endswith(archive.ARCHIVE):
            room = archive.Room(FILES_LIMIT, EXPANDED_LIMIT)
            found.extend(archive.in_archive(name, content, UPLOADED, room))
        else:
            loose.append(archive.file_of(name, partial(bytes, content), archive.Base(UPLOADED)))
        if len(found) + len(loose) > FILES_LIMIT:
            raise BadInputError(f"one upload holds {FILES_LIMIT:,} files at most", "file")
    return [*archive.arranged(loose), *found]
