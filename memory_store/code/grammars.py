"""Grammars: what the extra ``[code]`` adds, where it is installed.

Boundary: parses opened text in memory. The grammars are files of ``semble-grammars``: nothing is
fetched.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

_MACRO = re.compile(
    r"^[A-Z][A-Z0-9_]+(?:[ \t]*\([^()\n]*\))?[ \t]*(?=\r?$)"  # a line of its own, that ends nothing
    r"|^[A-Z][A-Z0-9]*_(?:API|EXPORT|EXTERN|PUBLIC|INLINE)\b(?=[ \t]+\w)"
    r"|(?<=^class )[A-Z][A-Z0-9_]+(?=[ \t]+\w)|(?<=^struct )[A-Z][A-Z0-9_]+(?=[ \t]+\w)",
    re.M,
)
_WITH_MACROS = frozenset({"c", "cpp", "cuda", "objc"})

EXTRA = "pip install 'datasette-hybrid[code]'"


def installed() -> bool:
    """Whether grammars are there."""
    return find_spec("semble_grammars") is not None and find_spec("tree_sitter") is not None


def parsed(text: str, language: str) -> Tree | None:
    """The syntax tree of a text; ``None`` without a grammar for its language.

    A text with errors has a tree, too. Half a pair of a character that UTF-8 cannot hold has none.
    """
    parser = _parser(language) if installed() else None
    if parser is None:
        return None
    try:
        tree: Tree = parser.parse(_without_macros(text, language).encode())
    except UnicodeEncodeError:
        return None
    return tree


def _without_macros(text: str, language: str) -> str:
    """A text as long, with blanks where a macro stands that no grammar can know: in front of a
    definition, or alone on a line."""
    if language not in _WITH_MACROS:
        return text
    return _MACRO.sub(lambda found: " " * len(found[0]), text)


@cache
def grammar(language: str) -> Language | None:
    """The grammar of a language; ``None`` where it is not installed."""
    from semble_grammars import (
        GrammarLoadError,
        LanguageNotFoundError,
        UnsupportedPlatformError,
        get_language,
    )

    try:
        found: Language = get_language(language)
    except (GrammarLoadError, LanguageNotFoundError, UnsupportedPlatformError, OSError):
        return None
    return found


@cache
def _parser(language: str) -> Any:
    """One parser a language; any thread may use it, for it holds nothing between two texts."""
    known = grammar(language)
    if known is None:
        return None
    from tree_sitter import Parser

    return Parser(known)
