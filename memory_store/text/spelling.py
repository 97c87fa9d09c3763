"""The words of a text as spelled, folded to one case, for a lexicon and for correcting a query.

Boundary: works on plain text, and keeps none of it.
"""

from __future__ import annotations

from memory_store.text.canonical import folded
from memory_store.text.words import unspaced_letter

LONGEST = 40  # bytes of a word in UTF-8: longer ones are addresses and keys
SHORTEST = 2  # characters


def entry(word: str) -> str:
    """What a lexicon has for a word: the word, folded; nothing for one that it does not have."""
    plain = folded(word)
    return plain if is_spelled(plain) else ""


def is_spelled(word: str) -> bool:
    """Whether a folded word is one that a lexicon has: with a letter, of :data:`SHORTEST`
    characters to :data:`LONGEST` bytes.

    Characters of scripts without spaces are no words: nothing says where one of them ends.
    """
    if word.isascii():
        return SHORTEST <= len(word) <= LONGEST and not word.isdigit() and word.isprintable()
    return (
        len(word) >= SHORTEST
        and len(word.encode("utf-8", "replace")) <= LONGEST
        and any(map(str.isalpha, word))
        and word.isprintable()
        and not unspaced_letter().search(word)
    )
