"""Words of a query that nothing holds, corrected by what is spelled in the searched collections.

Boundary: reads the lexicons of collections whose memories the caller may open, and of no other; a
caller who may only search is corrected nothing, or an answer would say words that are sealed for
them. What was corrected is said in the answer.

A word is as good as unheld when no living memory of the searched collections has its stem. It is
corrected to the word that most of their memories hold among those at the least distance: one edit
(a letter more, less, other, or two exchanged), or two in a word of eight letters. In a word of four
letters only two exchanged ones are a slip: random letters are too often one edit from some word.
Quoted words, numbers, abbreviations, shorter words and names of code are left as they are, and so
is a word of a dictionary, of a language that is usual in the searched collections, or of English:
that no note says *gift* does not make it a slip for *lift*. A word of a language that they do not
have finds similar ones: *Normandía* finds *Normandy*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from memory_store.index.terms import unheld
from memory_store.search.context import SearchContext
from memory_store.search.query.language import ParsedQuery, is_symbol_like
from memory_store.text.canonical import folded
from memory_store.text.spelling import is_spelled

if TYPE_CHECKING:
    from collections.abc import Collection

    from spellchecker import SpellChecker

    from memory_store.index.lexicon import Lexicon
    from memory_store.index.snapshot import HashGroup, Part

SHORTEST = 4  # letters of a word that is corrected: among three, most words are near to another
TWO_EDITS = 8  # letters from which two edits are one slip
MOST_CORRECTED = 8  # words of a query: a text that was pasted is not full of slips

USUAL_SHARE = 0.05  # of the texts: a dictionary takes a second to load, for one that is hardly used


def corrections(
    parsed: ParsedQuery,
    keywords: Sequence[str],
    groups: Sequence[HashGroup],
    context: SearchContext,
    collections: Collection[str] | None,
) -> dict[str, str]:
    """Query word → what is searched instead. ``groups`` are the hashes of each of ``keywords``;
    ``collections`` are the searched ones (``None``: all)."""
    if context.lexicon is None or context.by_places or is_symbol_like(parsed.text):
        return {}
    quoted = {folded(word) for phrase in parsed.required for word in phrase.words}
    asked = [
        (word, group)
        for word, group in zip(keywords, groups, strict=False)
        if _may_be_wrong(word, quoted)
    ]
    missing = unheld(context.snapshot, [group for _, group in asked], collections)
    wrong = [word for (word, _), unknown in zip(asked, missing, strict=True) if unknown]
    if not wrong:
        return {}
    lexicons = list(context.lexicon(collections))
    found = {word: nearest(folded(word), lexicons) for word in wrong[:MOST_CORRECTED]}
    searched = context.snapshot.collections if collections is None else collections
    texts = sum(map(Counter, map(context.snapshot.languages_in, searched)), Counter[str]())
    usual = [one for one, count in texts.items() if count >= USUAL_SHARE * texts.total()]
    languages = dict.fromkeys(["en", *usual])
    return {
        word: other
        for word, other in found.items()
        if other is not None and not any(_dictionary(one).known([word]) for one in languages)
    }


@cache
def _dictionary(language: str) -> SpellChecker:
    """The words of a language; none where it has no dictionary."""
    from spellchecker import SpellChecker  # .1 s, and few queries need it

    try:
        return SpellChecker(language=language)
    except ValueError:
        return SpellChecker(language=None)


def _may_be_wrong(word: str, quoted: Collection[str]) -> bool:
    plain = folded(word)
    long_enough = len(plain) >= SHORTEST and is_spelled(plain)
    abbreviated = any(map(str.isupper, word[1:]))  # RLIN, aPKCz
    named = abbreviated or any(map(str.isdigit, plain))
    return long_enough and plain not in quoted and not named


def nearest(word: str, lexicons: Sequence[tuple[Part, Lexicon]]) -> str | None:
    """The word that most living memories hold among those at the least distance, if any is near."""
    from rapidfuzz import process  # few queries have a word that nothing holds
    from rapidfuzz.distance import OSA

    most = 2 if len(word) >= TWO_EDITS else 1
    held: Counter[str] = Counter()
    distances: dict[str, int] = {}
    for part, lexicon in lexicons:
        places = lexicon.of_length(len(word) - most, 4 * (len(word) + most))
        spelled = [one.decode("utf-8", "replace") for one in lexicon.words[places].tolist()]
        near = process.extract(word, spelled, scorer=OSA.distance, score_cutoff=most, limit=None)
        for other, distance, index in near:
            place = int(places[index])
            count = lexicon.counts(place, place + 1, part.alive).item()
            exchanged = sorted(other) == sorted(word)
            if count and not any(map(str.isdigit, other)) and (len(word) > SHORTEST or exchanged):
                distances[other] = int(distance)
                held[other] += count
    return min(held, key=lambda one: (distances[one], -held[one], one), default=None)


def words_beginning(
    prefix: str, lexicons: Sequence[tuple[Part, Lexicon]], limit: int
) -> list[tuple[str, int]]:
    """``(word, how many living memories hold it)`` of the words that begin so, those that most
    hold first."""
    held: Counter[str] = Counter()
    begun = folded(prefix).encode("utf-8", "replace")
    for part, lexicon in lexicons:
        start, end = lexicon.span(begun)
        counts = lexicon.counts(start, end, part.alive)
        living = np.flatnonzero(counts)
        words = lexicon.words[start:end][living].tolist()
        for word, count in zip(words, counts[living].tolist(), strict=True):
            held[word.decode("utf-8", "replace")] += count
    return sorted(held.items(), key=lambda one: (-one[1], one[0]))[:limit]
