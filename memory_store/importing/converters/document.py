"""What a converter makes of a file, and the bounds that all of them keep."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable

from msgspec import Struct

from memory_store.dates import parse_time
from memory_store.errors import BadInputError

EXPANDED_LIMIT = 256 * 1024 * 1024  # bytes of all files in an archive
EXPANSION = 200  # times: text shrinks to a tenth, what is made to harm to a thousandth
SMALL = 4 * 1024 * 1024  # bytes that a file may expand to by any factor
FILES_LIMIT = 20_000  # in one archive
OLD_OFFICE = (
    b"\xd0\xcf\x11\xe0"  # begins Word, Excel and PowerPoint before 2007, and encrypted ones
)
LOCKED_OFFICE = "EncryptedPackage".encode("utf-16-le")  # names its content (MS-OFFCRYPTO 2.3.4.4)
ENDINGS = re.compile(r"\n[ \t\n]*\n[ \t\n]*\n")


class Document(Struct, frozen=True):
    """One memory of a file. ``part`` names it where a file has several; times are ISO 8601.
    ``unread`` says why there is no text of this part."""

    text: str
    title: str = ""
    created: str | None = None
    metadata: dict[str, str] = {}
    part: str = ""
    unread: str = ""


NO_TEXT = "holds no text"
NEEDS_A_PASSWORD = "needs a password: save a copy without one"


class LeftOutError(Exception):
    """There is nothing to import, for the reason that this says."""


class UnreadableError(Exception):
    """It cannot be read, for the reason that this says."""


def archive(data: bytes, kind: str) -> zipfile.ZipFile:
    """The archive that a document is. Raises UnreadableError for none, and for one that expands
    too far by what it says of itself; nothing expands further than it says."""
    refuse_locked(data)
    if data.startswith(OLD_OFFICE):
        raise UnreadableError(f"older than {kind}: save it as {kind}")
    try:
        opened = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, EOFError):
        raise UnreadableError(f"broken, or no {kind} file") from None
    entries = opened.infolist()
    if len(entries) > FILES_LIMIT or sum(one.file_size for one in entries) > EXPANDED_LIMIT:
        raise UnreadableError(f"expands to more than {EXPANDED_LIMIT // 1024**2} MB")
    for one in entries:
        if one.file_size > max(SMALL, EXPANSION * one.compress_size):
            raise UnreadableError("expands too far: it may be made to harm")
    return opened


def refuse_locked(data: bytes) -> None:
    """Raise UnreadableError for an office file that a password locks."""
    if data.startswith(OLD_OFFICE) and LOCKED_OFFICE in data:
        raise UnreadableError(NEEDS_A_PASSWORD)


def entry(opened: zipfile.ZipFile, name: str, kind: str) -> bytes:
    """One file of an archive. Raises UnreadableError where it is missing or broken."""
    try:
        return opened.read(name)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError):
        raise UnreadableError(f"broken, or no {kind} file") from None


def authored(name: str | None) -> dict[str, str]:
    """The metadata of a document by someone."""
    return {"author": name.strip()} if name and name.strip() else {}


def moment(value: object) -> str | None:
    """A date of a document as ISO 8601, in UTC; None for what is none."""
    try:
        return parse_time(value) if value else None
    except BadInputError:
        return None


def table(rows: Iterable[Iterable[str]]) -> str:
    """Rows as a Markdown table; the first one names the columns."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    if not cells:
        return ""
    width = max(map(len, cells))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in cells]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def tidy(text: str) -> str:
    """Text with one blank line at most, and without blanks at its ends."""
    return ENDINGS.sub("\n\n", text.replace("\r\n", "\n")).strip()
