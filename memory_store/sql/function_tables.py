"""Functions of SQL as tables: what a statement reads, from what a function finds.

Boundary: makes rows of what is handed to it, whose finder has asked what the caller may do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memory_store.actions.code_tables import Rows
from memory_store.errors import LockedError
from memory_store.sql.table_function import Asked, Cell
from memory_store.text.plain_json import write_json

DECLARED: Mapping[str, str] = {
    **dict.fromkeys(("rank", "keyword_rank", "topic_rank", "vector_rank", "complete"), "integer"),
    **dict.fromkeys(("line", "end_line", "references"), "integer"),
    **dict.fromkeys(("score", "vector_score", "fusion_score", "rerank_score"), "real"),
}
"""Types of columns that hold no text, so that a form's text compares with them as a number."""


OF_A_NAME: Mapping[str, str | None] = {"wanted": None}
"""The parameter of the functions on source code: their column ``name`` says what was found."""


class FunctionTable:
    """A function as a table. A refusal is the statement's error; a locked vault has no rows."""

    heeds: Collection[str] = ()

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        parameters: Mapping[str, str | None],
        found: Callable[..., list[dict[str, Any]]],
    ) -> None:
        self.name, self.parameters, self._found = name, parameters, found
        self.columns = {column: DECLARED.get(column, "text") for column in columns}

    def rows(self, asked: Asked, *given: Any, **_: Any) -> list[tuple[Cell, ...]]:
        """The rows of one call."""
        try:
            found = self._found(*given)
        except LockedError:
            return []
        return [tuple(_cell(row[column]) for column in self.columns) for row in found]


class CodeTable:
    """The same on source code: ``heeds`` are the columns that its rows are narrowed down by."""

    parameters = OF_A_NAME

    def __init__(
        self,
        name: str,
        record: type[Struct],
        heeds: Collection[str],
        found: Callable[..., Rows[Any] | None],
    ) -> None:
        self.name, self.heeds, self._found = name, heeds, found
        self.columns = {column: DECLARED.get(column, "text") for column in record.__struct_fields__}
        self._cells = operator.attrgetter(*self.columns)

    def rows(self, asked: Asked, *given: Any, **_: Any) -> Iterable[tuple[Cell, ...]]:
        """The rows of one call, each made when it is read."""
        try:
            found = self._found(*given, asked)
        except LockedError:
            return ()
        return () if found is None else found.each(self._cells)


def _cell(value: Any) -> Cell:
    """A value as SQL has it: several topics as a JSON array, for ``json_each()``."""
    return write_json(value) if isinstance(value, list | dict) else value
