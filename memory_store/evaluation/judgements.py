"""Queries and judgements as files: JSON lines, and columns apart by tabs.

Boundary: both are the user's own words. An error names the file and the line, and quotes no query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memory_store.errors import BadInputError

Judgements = Mapping[str, Mapping[str, int]]
"""Query id → ref or id of a memory → grade (0 and below: not relevant)."""

HEADINGS = frozenset({"grade", "score", "rel", "relevance", "relevancy", "label", "judgement"})
"""What the last column of a first line may be called; such a line is passed over."""


def read_queries(path: str | Path) -> dict[str, str]:
    """:func:`parse_queries` of a file."""
    return parse_queries(_text(Path(path), "queries"), str(path))


def read_judgements(path: str | Path) -> dict[str, dict[str, int]]:
    """:func:`parse_judgements` of a file."""
    return parse_judgements(_text(Path(path), "qrels"), str(path))


def parse_queries(text: str, source: str) -> dict[str, str]:
    """Query id → text, from JSON lines with ``id`` (or ``_id``) and ``text``; other keys are
    passed over.

    Raises BadInputError naming ``source`` and the line.
    """
    queries: dict[str, str] = {}
    for name, row, where in _rows(text, source, "queries"):
        if name in queries:
            raise BadInputError(f"{where}: a second query with the id {name!r}", "queries")
        asked = row.get("text")
        if not isinstance(asked, str) or not asked.strip():
            raise BadInputError(f"{where}: a query without a text", "queries")
        queries[name] = asked
    return queries


def read_rows(path: Path, parameter: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The JSON lines of a file as (id, object, file and line), the id from ``id`` or ``_id``.

    Raises BadInputError naming the file and the line.
    """
    yield from _rows(_text(path, parameter), str(path), parameter)


def _rows(text: str, source: str, parameter: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    kind = "query" if parameter == "queries" else "document"
    for number, line in _lines(text):
        where = f"{source}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise BadInputError(f"{where}: not a line of JSON", parameter) from None
        if not isinstance(row, dict):
            raise BadInputError(f"{where}: not a JSON object with id and text", parameter)
        name = row.get("id", row.get("_id"))
        if isinstance(name, int) and not isinstance(name, bool):
            name = str(name)
        if not isinstance(name, str) or not name.strip():
            raise BadInputError(f"{where}: a {kind} without an id", parameter)
        yield name, row, where


def parse_judgements(text: str, source: str) -> dict[str, dict[str, int]]:
    """Judgements from lines of query, ref and grade apart by tabs, or of TREC's four columns
    (query, unused, ref, grade) apart by tabs or blanks.

    A first line of headings is passed over. Raises BadInputError naming ``source`` and the line.
    """
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(text):
        where = f"{source}:{number}"
        query, ref, grade = _columns(line, where)
        if number == 1 and grade.casefold() in HEADINGS:
            continue
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", grade):
            raise BadInputError(f"{where}: the grade {grade!r} is not a whole number", "qrels")
        grades = judgements.setdefault(query, {})
        if grades.setdefault(ref, int(grade)) != int(grade):
            raise BadInputError(f"{where}: {ref!r} has another grade for this query", "qrels")
    return judgements


def _columns(line: str, where: str) -> tuple[str, str, str]:
    parts = line.split("\t") if "\t" in line else line.split()
    parts = [part.strip() for part in parts]
    trec = len(parts) == 4
    if not all(parts) or not (trec or (len(parts) == 3 and "\t" in line)):
        raise BadInputError(f"{where}: not a query, a ref and a grade apart by tabs", "qrels")
    return parts[0], parts[-2], parts[-1]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that hold something, with their numbers. Only line ends divide them."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _text(path: Path, parameter: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadInputError(f"{path}: not UTF-8 text", parameter) from None
