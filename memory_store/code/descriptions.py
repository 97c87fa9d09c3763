"""What each definition of a source file is about: the words of its name and of its comments.

Boundary: reads opened text; what it gives back is as plain as that text, and is sealed where it is
kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from memory_store.code.facts import NAMES_LANGUAGE
from memory_store.code.symbols import Symbol
from memory_store.text.language import STOP_WORDS
from memory_store.text.tokens import name_stems, term

MOST_WORDS = 24  # of the comments on one definition
LINES_ABOVE, LINES_WITHIN = 12, 8  # where those are: above it, and in its first lines
MOST_CHARACTERS = 200  # of a line: a whole file may be one

_BEGIN = re.compile(r"#|//|/\*|\"\"\"|'''")
_COMMENT = re.compile(
    r'"""(.*?)(?:"""|\Z)'
    r"|'''(.*?)(?:'''|\Z)"
    r"|/\*(.*?)(?:\*/|\Z)"
    r"|(?:#|//)([^\n]*)",
    re.DOTALL,
)
_LEADING = ("#", "//", "/*", "*", "--", ";", "@")  # an attribute, too: #[…], @…
_WORD = re.compile(r"[^\W\d_]\w{2,}")


def descriptions(text: str, definitions: Sequence[Symbol]) -> tuple[str, ...]:
    """The words of each definition by their stems, each once: those of its name, then the first of
    the comment above it and of the comments in its first lines, its docstring among them."""
    lines = [line[:MOST_CHARACTERS] for line in text.split("\n")]
    return tuple([_words(one.name, _comments(lines, one)) for one in definitions])


def _comments(lines: Sequence[str], one: Symbol) -> str:
    first = top = one.line - 1
    least = max(0, first - LINES_ABOVE)
    while top > least and _leads(lines[top - 1]):
        top -= 1
    within = "\n".join(lines[first : min(one.end_line, first + LINES_WITHIN)])
    if _BEGIN.search(within) is None:
        return " ".join(lines[top:first])
    inside = [next(filter(None, found), "") for found in _COMMENT.findall(within)]
    return " ".join([*lines[top:first], *inside])


def _leads(line: str) -> bool:
    line = line.strip()
    return line.startswith(_LEADING) or line.endswith("*/")


def _words(name: str, comments: str) -> str:
    stems = dict.fromkeys(name_stems(name, NAMES_LANGUAGE))
    most, stop_stems = len(stems) + MOST_WORDS, _stop_stems()
    for word in _WORD.findall(comments):
        for stem in name_stems(word, NAMES_LANGUAGE):
            if stem not in stop_stems:
                stems[stem] = None
        if len(stems) >= most:
            break
    return " ".join(stems)


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(term(word, NAMES_LANGUAGE) for word in STOP_WORDS[NAMES_LANGUAGE])
