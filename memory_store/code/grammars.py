"""Grammars: what the extra ``[code]`` adds, where it is installed.

Boundary: parses opened text in memory. The grammars are files of ``semble-grammars``: nothing is
fetched.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Tree

EXTRA = "pip install 'datasette-hybrid[code]'"


def installed() -> bool:
    """Whether grammars are there."""
    return find_spec("semble_grammars") is not None and find_spec("tree_sitter") is not None


def parsed(text: str, language: str) -> Tree | None:
    """The syntax tree of a text; ``None`` without a grammar for its language.

    A text with errors has a tree, too. Half a pair of a character that UTF-8 cannot hold has none.
    """
    parser = _parser(language)
    if parser is None:
        return None
    try:
        tree: Tree = parser.parse(text.encode())
    except UnicodeEncodeError:
        return None
    return tree


@cache
def _parser(language: str) -> Any:
    """One parser a language; any thread may use it, for it holds nothing between two texts."""
    if not installed():
        return None
    from semble_grammars import (
        GrammarLoadError,
        LanguageNotFoundError,
        UnsupportedPlatformError,
        get_parser,
    )

    try:
        return get_parser(language)
    except (GrammarLoadError, LanguageNotFoundError, UnsupportedPlatformError, OSError):
        return None
