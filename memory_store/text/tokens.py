"""Words and terms: what keyword search counts.

Boundary: works on plain text. The term caches hold plain words, so that a word is stemmed once and
not once per occurrence; :func:`forget_words` empties them, and locking a vault calls it.

A *word* is text as it stands, with its place. A *term* is what two spellings of a word share:
case-folded, stemmed by the Snowball algorithm of the language, accents removed *after* stemming
(the French, German or Spanish stemmers read them). Scripts written without spaces give every
character and every pair of neighbours, so that both 猫 and 東京 are found. Code has terms of
its own kind (:mod:`memory_store.text.identifiers`) under the pseudo-language ``code``.

Measured, plain BM25 on XQuAD-de, nDCG@10: stemmed .941 (accents removed before or after stemming,
or kept, alike), unstemmed .918. Speed: 1.7 million words/s once stemmed.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Set
from functools import cache, lru_cache

import Stemmer

from memory_store.text.canonical import folded
from memory_store.text.identifiers import CODE, code_terms, forget_names, name_parts, whole_name
from memory_store.text.language import STEMMED_LANGUAGES, STOP_WORDS
from memory_store.text.words import simple_pattern, spellings, word_begun, words

_RULES_VERSION = 1  # grows with every change in this module that changes a term
_RELEASE = [int(part) for part in Stemmer.version().split(".")]

ANALYSER_VERSION = _RULES_VERSION * 1_000_000 + _RELEASE[0] * 1_000 + _RELEASE[1]
"""Our rules and Snowball's release, ``1_003_001`` = rules 1 with PyStemmer 3.1.

A vault stores it: terms of one version do not meet those of another, because stemmers change
between minor releases, so a difference asks for ``reindex``.
"""

SAME_BEGINNING = frozenset({"de", "en", "es", "pt"})
"""Languages whose words begin as their terms do: other stemmers take prefixes away, and words of
Catalan, French and Italian may begin with an article. In the second letter there is *dying*, whose
term is *die*, and ae, oe and ue for ä, ö and ü."""
_CACHE_LIMIT = 250_000  # distinct words per language, about 40 MB; then the cache starts again


def terms(text: str, language: str) -> list[str]:
    """The terms of ``text`` in order, one for each of its :func:`words`, stop words included.

    ``language`` is an ISO 639-1 code; one without a stemmer (or ``""``) gives folded words, and
    ``code`` names with their parts.
    """
    if language == CODE:
        return code_terms(text)
    known = _term_cache(language)
    return [known[word] for word in spellings(text)]


class TermFinder:
    """Finds the words whose terms are wanted in texts of one language. Not for ``code``.

    It sees a text as :func:`terms` does, so that what is found by a term is also marked, however it
    is spelled: ß for ss, ø for o, ae for ä.
    """

    def __init__(self, language: str, wanted: Set[str]) -> None:
        self._known = _term_cache(language)
        self._wanted = wanted
        self._begin: tuple[str, str] | None = None
        if language in SAME_BEGINNING:
            first, second = {one[:1] for one in wanted}, {one[1:2] for one in wanted}
            second |= {"y"} if "i" in second else set()
            second |= {"e"} if first.intersection("aou") else set()
            second = set() if "" in second else second
            self._begin = "".join(sorted(first)), "".join(sorted(second))

    def places(self, text: str) -> list[tuple[int, int, str]]:
        """Where each such word begins and ends, and its term, in order."""
        known, wanted = self._known, self._wanted
        pattern = simple_pattern(text)
        if pattern is not None and self._begin is not None:
            pattern = word_begun(*self._begin, text.isascii())
        if pattern is None:
            every = ((start, end, known[word]) for word, start, end in words(text))
            return [found for found in every if found[2] in wanted]
        return [
            (*word.span(), found)
            for word in pattern.finditer(text)
            if (found := known[word[0]]) in wanted
        ]


def term(word: str, language: str) -> str:
    """The term of one word; see :func:`terms`. In ``code`` that is the whole name."""
    if language == CODE:
        return whole_name(word)
    return _term_cache(language)[word]


@lru_cache(_CACHE_LIMIT)
def name_stems(name: str, language: str) -> tuple[str, ...]:
    """The terms of the words that a name is made of: ``parseURLs`` → pars, url."""
    known = _term_cache(language)
    return tuple([known[part] for part in name_parts(name)])


def is_stop_word(word: str, language: str) -> bool:
    """Whether a query in ``language`` may lose ``word``. False where we have no list."""
    return _plain(word, language) in _stop_words(language)


def forget_words() -> None:
    """Empty every cache that holds words of opened texts."""
    _term_cache.cache_clear()
    name_stems.cache_clear()
    forget_names()


class _TermCache(dict[str, str]):
    """word → term of one language. A hit is one dictionary look-up, without a lock."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._lock = threading.Lock()  # a Snowball stemmer serves one thread at a time
        name = STEMMED_LANGUAGES.get(language)
        # Size 0: PyStemmer's own cache would only keep a second copy.
        self._stemmer = Stemmer.Stemmer(name, 0) if name else None

    def __missing__(self, word: str) -> str:
        plain = _plain(word, self._language)
        if self._stemmer is None:
            stem = plain
        else:
            if self._language in _UNACCENTED:
                plain = without_accents(plain)
            with self._lock:
                stem = self._stemmer.stemWord(plain)
        found = without_accents(stem) or plain or word
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        self[word] = found
        return found


@cache
def _term_cache(language: str) -> _TermCache:
    return _TermCache(language)


@cache
def _stop_words(language: str) -> frozenset[str]:
    return frozenset(_plain(word, language) for word in STOP_WORDS.get(language, ()))


_UNACCENTED = frozenset({"en"})  # an accent is never part of an English suffix: naïveté = naivete
_APOSTROPHES = str.maketrans("’ʼ＇", "'''")
_TURKIC = frozenset({"tr", "az"})
_DOTLESS = str.maketrans("Iİ", "ıi")
# l'home, qu'est: the article is not part of the word. (The Italian stemmer removes its own.)
_ELIDED = {
    "ca": re.compile("^[dlmnst]'(?=.)"),
    "fr": re.compile("^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=.)"),
}


def _plain(word: str, language: str) -> str:
    """A word folded, with straight apostrophes, without an elided article."""
    if language in _TURKIC:
        word = word.translate(_DOTLESS)
    plain = folded(word).translate(_APOSTROPHES)
    elided = _ELIDED.get(language)
    return elided.sub("", plain) if elided else plain


# Letters that Unicode does not decompose, as they are typed without them.
_LETTERS = {
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "d",
    "þ": "th",
    "ł": "l",
    "ħ": "h",
    "ŧ": "t",
    "ı": "i",
    "ĸ": "k",
    "ŋ": "n",
    "ё": "е",  # Cyrillic: written without the dots in most texts
}
_ACCENTED = re.compile("[\u00e0-\u024f\u0300-\u036f\u0370-\u03ff\u0451\u1e00-\u1fff\u0591-\u06ed]")
_REMOVED_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1-\u05c7\u064b-\u065f\u0670]")


def without_accents(word: str) -> str:
    """Latin and Greek without accents, Hebrew and Arabic without vowel signs; others as they are.

    Elsewhere a mark is a letter of its own right (и and й, か and が, every vowel of Hindi).
    """
    if word.isascii() or not _ACCENTED.search(word):
        return word
    bare = [
        _LETTERS.get(c) or _REMOVED_MARKS.sub("", unicodedata.normalize("NFD", c))
        if _ACCENTED.match(c)
        else c
        for c in word
    ]
    return unicodedata.normalize("NFC", "".join(bare))
