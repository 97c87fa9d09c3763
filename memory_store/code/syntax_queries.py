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
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_store.code.grammars import grammar, installed

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_SAME_SYNTAX = {"tsx": "typescript", "cuda": "cpp"}
_REFERENCES = "; references\n"
MOST_DEEP = 1_000  # levels of a syntax tree that are looked into: time grows with their square
MOST_BROKEN = 2_000  # pieces in one place of a text that could not be parsed


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
    return _cursor(query).matches(root) if _is_bounded(root) else []


def captured(query: Query, root: Node, name: str) -> list[Node]:
    """Every node that a query captures under a name."""
    return _cursor(query).captures(root).get(name, []) if _is_bounded(root) else []


def _cursor(query: Query) -> Any:
    from tree_sitter import QueryCursor

    cursor = QueryCursor(query)
    cursor.set_max_start_depth(MOST_DEEP)
    return cursor


def _is_bounded(root: Node) -> bool:
    """Whether a query takes time in proportion to the text: in what could not be parsed, it looks
    at all pieces beside each piece."""
    broken = [root] if root.has_error else []
    while broken:
        node = broken.pop()
        if node.is_error and node.child_count > MOST_BROKEN:
            return False
        broken += [one for one in node.children if one.has_error]
    return True
