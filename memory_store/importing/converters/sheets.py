"""Spreadsheets (XLSX, XLS, ODS): a sheet is a section with a table, by calamine."""

from __future__ import annotations

import io
from datetime import date, datetime
from typing import Any

import python_calamine

from memory_store.importing.converters.document import (
    NEEDS_A_PASSWORD,
    OLD_OFFICE,
    Document,
    LeftOutError,
    UnreadableError,
    archive,
    refuse_locked,
    table,
)

KIND = "spreadsheet"
MOST_CELLS = 2_000_000


def convert(data: bytes) -> list[Document]:
    """The cells of all sheets that are not empty."""
    refuse_locked(data)
    if not data.startswith(OLD_OFFICE):
        archive(data, KIND).close()
    try:
        book = python_calamine.CalamineWorkbook.from_object(io.BytesIO(data))
        sheets = [
            (name, book.get_sheet_by_name(name).to_python(skip_empty_area=True))
            for name in book.sheet_names
        ]
    except python_calamine.PasswordError:
        raise UnreadableError(NEEDS_A_PASSWORD) from None
    except python_calamine.CalamineError:
        raise UnreadableError(f"broken, or no {KIND}") from None
    if sum(len(row) for _, rows in sheets for row in rows) > MOST_CELLS:
        raise UnreadableError(f"more than {MOST_CELLS:,} cells")
    sections = []
    for name, rows in sheets:
        filled = [cells for row in rows if any(cells := [_shown(cell) for cell in row])]
        if filled:
            sections.append(f"## {name}\n\n{table(filled)}")
    if not sections:
        raise LeftOutError("empty")
    return [Document(text="\n\n".join(sections), metadata={"sheets": str(len(sheets))})]


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(" ").removesuffix(" 00:00:00")
    return cell.isoformat() if isinstance(cell, date) else str(cell)
