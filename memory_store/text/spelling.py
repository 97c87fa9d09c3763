"""The words of a text as spelled, folded to one case, for a lexicon and for correcting a query.

Boundary: works on plain text, and keeps none of it.
"""

from __future__ import annotations

from memory_store.text.canonical import folded
from memory_store.text.words import simple_pattern, unspaced_letter, words

LONGEST = 40  # bytes of a word in UTF-8: longer ones are addresses and keys
SHORTEST = 2  # characters


def spelled_words(text: str) -> set[str]:
    """The distinct words of ``text``, folded: those with a letter, of :data:`SHORTEST` characters
    to :data:`LONGEST` bytes.

    Characters of scripts without spaces are no words: nothing says where one of them ends.
    """
    pattern = simple_pattern(text)
    distinct = set(pattern.findall(text) if pattern else [word.text for word in words(text)])
    return {word for word in map(folded, distinct) if is_spelled(word)}


def is_spelled(word: str) -> bool:
    """Whether a folded word is one that a lexicon has."""
    if word.isascii():
        return SHORTEST <= len(word) <= LONGEST and not word.isdigit() and word.isprintable()
    return (
        len(word) >= SHORTEST
        and len(word.encode("utf-8", "replace")) <= LONGEST
        and any(map(str.isalpha, word))
        and word.isprintable()
        and not unspaced_letter().search(word)
    )
