"""Notes of Anki, exported as text: lines of header that begin with ``#``, then one note a line."""

from __future__ import annotations

import codecs
import csv
import io
import re

from memory_store.importing.converters import html
from memory_store.importing.converters.document import Document, UnreadableError

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|", "colon": ":"}
FIRST = "guid"  # columns that are no field of a note
OTHERS = (FIRST, "notetype", "deck", "tags")
MAX_CELL_CHARACTERS = 16 * 1024 * 1024
SOUNDS = re.compile(r"\[sound:[^\]]*\]")
GAPS = re.compile(r"\{\{c\d+::(.*?)(?:::[^}]*)?\}\}", re.S)


def convert(data: bytes) -> list[Document]:
    """The notes. Where a line breaks the rest, the notes before it are kept, and ``broken`` says
    so of the last one."""
    header, body = _header(data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"))
    named = header.get("separator", "tab")
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    rows = csv.reader(
        io.StringIO(body, newline=""), delimiter=SEPARATORS.get(named.lower(), named[:1] or "\t")
    )
    places = {name: _column(header, name) for name in OTHERS}
    found: list[Document] = []
    try:
        for row in rows:
            if any(row):
                found.append(_note(header, places, row))
    except csv.Error as error:
        if not found:
            raise UnreadableError(f"line {rows.line_num}: {error}") from None
        found.append(Document("", metadata={"broken": f"line {rows.line_num}: {error}"}))
    return found


def _header(text: str) -> tuple[dict[str, str], str]:
    header: dict[str, str] = {}
    while text.startswith("#"):
        line, _, text = text.partition("\n")
        name, _, value = line[1:].rstrip("\r").partition(":")
        header[name.strip().lower()] = value
    return header, text


def _column(header: dict[str, str], name: str) -> int | None:
    number = header.get(f"{name} column", "").strip()
    return int(number) - 1 if number.isdecimal() and int(number) > 0 else None


def _note(header: dict[str, str], places: dict[str, int | None], row: list[str]) -> Document:
    def at(name: str) -> str:
        place = places[name]
        return row[place].strip() if place is not None and place < len(row) else ""

    marked = header.get("html", "").strip().lower() == "true"
    taken = {place for place in places.values() if place is not None}
    cells = [cell for number, cell in enumerate(row) if number not in taken]
    fields = [text for cell in cells if (text := _plain(cell, marked))]
    first = fields[0] if fields else ""
    return Document(
        "\n\n".join(fields),
        " ".join(first.replace("**", "").split())[:200],
        metadata={
            "deck": at("deck") or header.get("deck", "").strip(),
            "note_type": at("notetype") or header.get("notetype", "").strip(),
            "tags": f"{at('tags')} {header.get('tags', '')}".strip(),
        },
        part=at(FIRST) or first[:500],
    )


def _plain(cell: str, marked: bool) -> str:
    text = GAPS.sub(r"\1", SOUNDS.sub("", cell))
    return html.markdown(text) if marked and ("<" in text or "&" in text) else text.strip()
