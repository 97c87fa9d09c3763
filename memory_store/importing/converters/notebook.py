"""Jupyter notebooks (IPYNB): the cells, and what they printed as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memory_store.importing.converters.document import Document, LeftOutError, UnreadableError, tidy

MOST_OUTPUT = 2_000  # characters of one output: a log is no note


def convert(data: bytes) -> list[Document]:
    """The notebook as one Markdown text."""
    try:
        notebook = json.loads(data)
        language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", ""))
        cells = notebook["cells"]
        parts = [part for cell in cells for part in _parts(cell, language) if part.strip()]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableError("broken, or no notebook of version 4") from None
    if not parts:
        raise LeftOutError("empty")
    return [Document(text=tidy("\n\n".join(parts)), metadata={"cells": str(len(cells))})]


def _parts(cell: Any, language: str) -> Iterator[str]:
    source = _joined(cell.get("source", ""))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield _fenced(source, language)
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        yield _fenced(_joined(output.get("text") or data.get("text/plain") or "")[:MOST_OUTPUT])


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(str(line) for line in lines)


def _fenced(text: str, language: str = "") -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}" if text.strip() else ""
