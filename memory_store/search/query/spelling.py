"""Words of a query that nothing holds, corrected by what is spelled in the searched collections.

Boundary: reads the lexicons of collections whose memories the caller may open, and of no other; a
caller who may only search is corrected nothing, or an answer would say words that are sealed for
them. What was corrected is said in the answer.

A word is as good as unheld when no living memory of the searched collections has its stem. It is
corrected to the word that most of their memories hold among those at the least distance: one edit
(a letter more, less, other, or two exchanged), or two in a word of eight letters. Else it is
corrected to the word of a dictionary one edit away of which most of them hold any form: *heatng* to
*heating*, where they say *heat*. In a word of four letters only two exchanged ones are a slip:
random letters are too often one edit from some word. Quoted words, numbers, abbreviations, shorter
words and names of code are left as they are, and so is a word of a dictionary, of a language that
is usual in the searched collections, or of English: that no note says *gift* does not make it a
slip for *lift*. A word of a language that they do not have finds similar ones: *Normandía* finds
*Normandy*. What differs by accents alone is no slip but another way to type the word, *cafe* for
*café*: in some languages its stem is another one without them.

What is no slip may be two held words in one (*sparekey*, *Hochdruckmotor*), or part of a held one
(*Kuchen* in *Apfelkuchen*). Those are looked up instead. Of all ways to cut a word in two that one
counts whose parts most memories hold, as the geometric mean (Koehn and Knight, "Empirical Methods
for Compound Splitting", 2003). Measured on XQuAD-de, nDCG@10: .9572 by the default ranking with
both and .9543 without, .9449 and .9386 by words. To cut words that are held, too, gains less:
.9555, .9431.

What was meant is read by meaning, too, and by a reranker: with a slip in each query DBpedia's
nDCG@10 is .520 then, and .492 where only words are corrected (the demo's .841, .817; CISI's .473,
.461; Cranfield's .420, .417; SciFact's .740, .737; XQuAD-de's .948, .950). The parts of a compound
are not: it means something else. Nor is what resembles a word of a language that the collections do
not have: a model that reads both languages knows the word (Spanish questions find English
paragraphs with .949 by the multilingual model, and with .933 where it reads the English words).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from memory_store.index.terms import look_up, unheld
from memory_store.search.context import SearchContext
from memory_store.search.query.language import ParsedQuery, is_symbol_like
from memory_store.text.canonical import folded
from memory_store.text.spelling import is_spelled
from memory_store.text.tokens import is_stop_word, without_accents

if TYPE_CHECKING:
    from collections.abc import Collection

    from spellchecker import SpellChecker

    from memory_store.index.lexicon import Lexicon
    from memory_store.index.snapshot import HashGroup, Part

SHORTEST = 4  # letters of a word that is corrected: among three, most words are near to another
TWO_EDITS = 8  # letters from which two edits are one slip
INFLECTED = 6  # letters of a word of which another form may be held
MOST_CORRECTED = 8  # words of a query: a text that was pasted is not full of slips

SHORTEST_PART = 4  # letters of a part of a compound
SHORTEST_RUN = 3  # letters of one of two words without the blank between them,
LONG_RUN = 8  # where they have so many together: random syllables would be cut, too
COMPOUNDING = frozenset({"da", "de", "nl", "no", "sv"})  # languages that write compounds as a word
LINKS = ("e", "en", "er", "es", "n", "s")  # what they put between two parts
MOST_COMPOUNDS = 8  # that hold a word: what is in more is no part of them, but an ending

USUAL_SHARE = 0.05  # of the texts: a dictionary takes a second to load, for one that is hardly used


class Instead(Struct, frozen=True):
    """What is searched instead of a word: ``words``, with blanks or commas between them.

    ``meant``: it is what was meant to be typed, and is read by meaning, too. A compound means
    something else than its parts.
    """

    words: str
    meant: bool


def corrections(
    parsed: ParsedQuery,
    keywords: Sequence[str],
    groups: Sequence[HashGroup],
    context: SearchContext,
    collections: Collection[str] | None,
    *,
    language: str,
    hashed: Callable[[str], HashGroup],
) -> dict[str, Instead]:
    """Query word → what is searched instead.

    ``groups`` are the hashes of each of ``keywords``, and ``hashed`` gives those of any word;
    ``collections`` are the searched ones (``None``: all), ``language`` is that of the query.
    """
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
    lexicons = list(context.lexicon(collections)) if wrong else []
    if not lexicons:
        return {}
    searched = context.snapshot.collections if collections is None else collections
    texts = sum(map(Counter, map(context.snapshot.languages_in, searched)), Counter[str]())
    usual = [one for one, count in texts.items() if count >= USUAL_SHARE * texts.total()]

    def held(words: Sequence[str]) -> dict[str, int]:
        """How many memories hold each word, by its stem."""
        distinct = list(dict.fromkeys(words))
        found = look_up(context.snapshot, [hashed(one) for one in distinct], collections)
        return dict(zip(distinct, found.frequencies, strict=True))

    of_words = _Words(lexicons, held, language, usual)
    found = ((word, of_words.instead(word)) for word in wrong[:MOST_CORRECTED])
    return {word: other for word, other in found if other is not None}


class _Words(Struct, frozen=True):
    """What the searched collections say of words that nothing holds: their ``lexicons``, how many
    memories hold each of some words, the ``language`` of the query and those that are ``usual``."""

    lexicons: Sequence[tuple[Part, Lexicon]]
    held: Callable[[Sequence[str]], dict[str, int]]
    language: str
    usual: Sequence[str]

    def instead(self, word: str) -> Instead | None:
        """A slip's word, else the two that were run together or are in a compound, else compounds
        with the word. A word of a dictionary is a compound only where its language has them."""
        plain, known = folded(word), {"en", *self.usual}
        accented = _but_for_accents(plain, self.lexicons)
        if accented is not None:
            return Instead(accented, meant=True)
        languages = dict.fromkeys((self.language, *self.usual))
        compounding = next((one for one in languages if one in COMPOUNDING), None)
        foreign = compounding != self.language and _is_word(word, known - COMPOUNDING)
        if foreign and (compounding is None or not _is_word(word, [compounding])):
            return None
        typed_here = self.language in self.usual
        if not _is_word(word, known):
            slip = nearest(plain, self.lexicons) or self._other_form(plain, known)
            if slip is not None:
                return Instead(slip, meant=typed_here)
        if compounding != self.language:
            both = self._parts(plain, self.language, ()) if typed_here else ""
            if both or compounding is None:
                return Instead(both, meant=True) if both else None
        found = self._parts(plain, compounding, LINKS) or self._compounds(plain, compounding)
        return Instead(found, meant=False) if found else None

    def _other_form(self, word: str, languages: Collection[str]) -> str | None:
        """The word of a dictionary one edit away of which most memories hold some form."""
        if len(word) < INFLECTED:
            return None
        near = set[str]()
        for dictionary in map(_dictionary, languages):
            edits = dictionary.edit_distance_1(word)
            near |= dictionary.word_frequency.dictionary.keys() & edits
        counts = self.held(sorted(near))
        best = max(counts, key=lambda one: (counts[one], one), default=None)
        return best if best and counts[best] else None

    def _parts(self, word: str, language: str, links: Sequence[str]) -> str:
        """The two held words that one is made of, or empty; ``links`` may end the first."""
        least = SHORTEST_PART if links or len(word) < LONG_RUN else SHORTEST_RUN
        pairs = [
            (first, word[cut:])
            for cut in range(least, len(word) - least + 1)
            for first in (word[:cut], *_unlinked(word[:cut], links))
            if not (is_stop_word(first, language) or is_stop_word(word[cut:], language))
        ]
        counts = self.held([one for pair in pairs for one in pair])

        def merit(pair: Sequence[str]) -> tuple[int, bool]:
            return counts[pair[0]] * counts[pair[1]], self._spelled(pair[0])

        best = max(pairs, key=merit, default=())
        return " ".join(best) if best and merit(best)[0] else ""

    def _compounds(self, word: str, language: str) -> str:
        """The held words that are made of one and of another that is held."""
        rests: dict[str, list[str]] = {}
        for part, lexicon in self.lexicons:
            for other in _around(word.encode("utf-8", "replace"), part, lexicon):
                if other.startswith(word):
                    rest = other[len(word) :]
                    bare = [rest.removeprefix(one) for one in LINKS if rest.startswith(one)]
                    bare = [one for one in bare if len(one) >= SHORTEST_PART]
                else:
                    rest = other[: -len(word)]
                    bare = _unlinked(rest, LINKS)
                rests[other] = [one for one in (rest, *bare) if not is_stop_word(one, language)]
        counts = self.held([one for rest in rests.values() for one in rest])
        found = sorted(other for other, rest in rests.items() if any(map(counts.get, rest)))
        return ", ".join(found) if len(found) <= MOST_COMPOUNDS else ""

    def _spelled(self, word: str) -> bool:
        """Whether a memory may spell it so."""
        known = word.encode("utf-8", "replace")
        return any(lexicon.place(known) is not None for _, lexicon in self.lexicons)


def _around(word: bytes, part: Part, lexicon: Lexicon) -> Iterator[str]:
    """The living words that begin or end with one and are longer by a part."""
    ends = np.char.endswith(lexicon.words, word)
    for place in sorted({*range(*lexicon.span(word)), *np.flatnonzero(ends).tolist()}):
        other = lexicon.words[place].decode("utf-8", "replace")
        longer = len(other) - len(word.decode("utf-8", "replace"))
        if longer >= SHORTEST_PART and lexicon.counts(place, place + 1, part.alive).item():
            yield other


def _unlinked(first: str, links: Sequence[str]) -> list[str]:
    """The first part of a compound without letters that link it to the second."""
    bare = [first.removesuffix(one) for one in links if first.endswith(one)]
    return [one for one in bare if len(one) >= SHORTEST_PART]


def _is_word(word: str, languages: Collection[str]) -> bool:
    """Whether a dictionary of any of the languages has it."""
    return any(_dictionary(one).known([word]) for one in languages)


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
        places = lexicon.may_be_near(word.encode("utf-8", "replace"), most)
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


def _but_for_accents(word: str, lexicons: Sequence[tuple[Part, Lexicon]]) -> str | None:
    """The accented word that most living memories hold among those that are typed so without
    accents, of a to z."""
    bare, held = without_accents(word), Counter[str]()
    for part, lexicon in lexicons if bare.isascii() else ():
        places = lexicon.may_differ_by_accents(bare.encode())
        for place, known in zip(places.tolist(), lexicon.words[places].tolist(), strict=True):
            other = known.decode("utf-8", "replace")
            if other != word and without_accents(other) == bare:
                held[other] += lexicon.counts(place, place + 1, part.alive).item()
    return max(+held, key=lambda one: (held[one], one), default=None)


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
