"""Queries of tree-sitter: what of a syntax tree is a definition, an import or a use of a name.

Boundary: reads trees of opened text; keeps the compiled queries alone.

``queries/<language>.scm`` has one pattern a line. Before ``; references`` a pattern captures a
definition by its kind (``@class``, ``@function`` …) with its ``@name`` and, where the syntax says
so, the ``@container``; ``@within`` names what surrounds definitions and is none itself (``impl``),
``@package`` the name space of a file, and ``@import`` an import statement. After it, ``@ref`` is a
name that is used.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from memory_store.code.grammars import grammar, installed

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_SAME_SYNTAX = {"tsx": "typescript", "cuda": "cpp"}
_REFERENCES = "; references\n"


class Queries(NamedTuple):
    """The compiled queries of a language."""

    definitions: Query
    references: Query


@cache
def queries(language: str) -> Queries | None:
    """The queries of a language; ``None`` where there is no query file or no grammar."""
    from importlib.resources import files  # when code is read

    name = _SAME_SYNTAX.get(language, language)
    file = files("memory_store.code") / "queries" / f"{name}.scm"
    if not file.is_file():
        return None
    known = grammar(language) if installed() else None
    if known is None:
        return None
    from tree_sitter import Query

    defining, _, referring = file.read_text(encoding="utf-8").partition(_REFERENCES)
    return Queries(Query(known, defining), Query(known, referring))


def matches(query: Query, root: Node) -> list[tuple[int, dict[str, list[Node]]]]:
    """Each match of a query: the number of its pattern, and its captures by name."""
    from tree_sitter import QueryCursor

    found: list[tuple[int, dict[str, list[Node]]]] = QueryCursor(query).matches(root)
    return found


def captured(query: Query, root: Node, name: str) -> list[Node]:
    """Every node that a query captures under a name."""
    from tree_sitter import QueryCursor

    found: list[Node] = QueryCursor(query).captures(root).get(name, [])
    return found
