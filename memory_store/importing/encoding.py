"""From a file's bytes to text: UTF-8, or UTF-16 that says so; nothing is guessed.

A wrong byte is reported with its line and offset. Read in some other encoding, it would put text
into the store that its author never wrote, without a warning.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import IO

from msgspec import Struct

SNIFFED_BYTES = 8_192  # a NUL among them means binary, as git and grep decide
MAX_LINE_BYTES = 16 * 1024 * 1024  # of NDJSON and tables: a line is read into memory whole
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Broken(Struct, frozen=True):
    """A part of a file that cannot be read; ``last``: nor what is behind it.

    ``where`` is its line, counted from 1, or a row's primary key; None for a whole table.
    """

    where: int | str | None
    reason: str
    last: bool = False


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so holds no text."""
    return b"\0" in head[:SNIFFED_BYTES] and not head.startswith(UTF16_MARKS)


def decode(data: bytes) -> str | Broken:
    """The text without byte order mark and with ``\\n`` newlines, or the byte that is none."""
    try:
        utf16 = data.startswith(UTF16_MARKS)
        text = data.decode("utf-16") if utf16 else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + _mark_length(data)
        line = data.count(b"\n", 0, offset) + 1
        return Broken(line, _problem(data, offset, 0, "UTF-16" if utf16 else "UTF-8"))
    return text.replace("\r\n", "\n")


def decode_lines(stream: IO[bytes]) -> Iterator[tuple[int, str | Broken]]:
    """Numbered lines with their line ends, or what is wrong with a line. Memory: one line.

    After a line that is too long, or UTF-16, no more follow.
    """
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
            text = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            at = error.start + (_mark_length(data) if number == 1 else 0)
            yield number, Broken(number, _problem(data, at, offset, "UTF-8"))
        else:
            yield number, text
        offset += len(data)


def _mark_length(data: bytes) -> int:
    """What ``utf-8-sig`` has taken off before it counts; UTF-16 counts its mark."""
    return len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0


def _problem(data: bytes, at: int, before: int, encoding: str) -> str:
    return f"not {encoding}: byte 0x{data[at]:02x} at offset {before + at}"
