"""Grammars: what the extra ``[code]`` adds, where it is installed.

Boundary: parses opened text in memory. The grammars are files of ``semble-grammars``: nothing is
fetched.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from math import inf
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

_MACRO = re.compile(
    r"^[A-Z][A-Z0-9_]+(?:[ \t]*\([^()\n]*\))?[ \t]*(?=\r?$)"  # a line of its own, that ends nothing
    r"|^[A-Z][A-Z0-9]*_(?:API|EXPORT|EXTERN|PUBLIC|INLINE)\b(?=[ \t]+\w)"
    r"|(?<=^class )[A-Z][A-Z0-9_]+(?=[ \t]+\w)|(?<=^struct )[A-Z][A-Z0-9_]+(?=[ \t]+\w)",
    re.M,
)
_WITH_MACROS = frozenset({"c", "cpp", "cuda", "objc"})

MOST_SECONDS = 1.0  # of a processor; a megabyte of what people write takes a tenth
PIECE_BYTES = 4_096
SHORT = 2_000  # characters: the worst that is known takes 15 milliseconds

EXTRA = "pip install 'datasette-hybrid[code]'"


def installed() -> bool:
    """Whether grammars are there."""
    return find_spec("semble_grammars") is not None and find_spec("tree_sitter") is not None


def parsed(text: str, language: str) -> Tree | None:
    """The syntax tree of a text; ``None`` without a grammar for its language.

    A text with errors has a tree, too. Half a pair of a character that UTF-8 cannot hold has none,
    nor has a text that takes longer than any that a person wrote: some grammars take the square of
    the length of one that is made to harm, and no other thread runs meanwhile.
    """
    if not has_grammar(language):
        return None
    from tree_sitter import Parser

    until = thread_time() + MOST_SECONDS

    def is_late(*_: object) -> bool:
        return thread_time() > until

    def read(start: int, _: object) -> bytes:
        return b"" if is_late() else source[start : start + PIECE_BYTES]

    try:
        source = _without_macros(text, language).encode()
        tree: Tree = Parser(grammar(language)).parse(read, progress_callback=is_late)
    except ValueError:  # it was stopped; or a character that UTF-8 cannot hold
        return None
    late, until = is_late(), inf  # the texts of its nodes are read whenever they are asked for
    return None if late else tree


def is_quick(text: str, language: str) -> bool:
    """Whether a text is one that :func:`parsed` gives a tree of, as far as there is a grammar."""
    return len(text) <= SHORT or not has_grammar(language) or parsed(text, language) is not None


def _without_macros(text: str, language: str) -> str:
    """A text as long, with blanks where a macro stands that no grammar can know: in front of a
    definition, or alone on a line."""
    if language not in _WITH_MACROS:
        return text
    return _MACRO.sub(lambda found: " " * len(found[0]), text)


def has_grammar(language: str) -> bool:
    """Whether the grammar of a language is there."""
    return installed() and grammar(language) is not None


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
