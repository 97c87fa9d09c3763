"""Finding a query's words and phrases in opened text: whole words, never parts of words.

Boundary: reads opened text and keeps nothing of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cached_property

from memory_store.code.facts import NAMES_LANGUAGE
from memory_store.text.canonical import folded
from memory_store.text.identifiers import CODE, identifiers, name_terms
from memory_store.text.tokens import TermFinder, name_stems, term
from memory_store.text.words import Word, marks_inside, unspaced_letter

Hit = tuple[int, int, str]
"""Where something begins and ends in a text, and which word or phrase of the query it is."""

_APOSTROPHES = "'’ʼ"
_BEHIND_NAME = re.compile(r"[^A-Za-z0-9_]")


def spelled(text: str) -> Callable[[str], bool]:
    """Whether a text holds ``text`` as whole words: in any case, in which ß is SS, and whatever
    stands between the words; ligatures, wide letters and soft hyphens are no other spelling."""
    typed, plain = literal_pattern(text), literal_pattern(folded(text))
    return lambda other: bool(typed.search(other) or plain.search(folded(other)))


def literal_pattern(text: str) -> re.Pattern[str]:
    """A pattern for ``text`` as whole words, in any case, whatever stands between the words."""
    marks = "" if text.isascii() else marks_inside()
    words = [word.strip(_APOSTROPHES) for word in re.split(rf"[^\w{_APOSTROPHES}{marks}]+", text)]
    words = [word for word in words if word]
    if not words:
        return re.compile(r"(?!)")
    body = r"[\W_]+".join(_bounded(word, marks) for word in words)
    return re.compile(body, re.IGNORECASE)


class WordMatcher:
    """The words and phrases of one query, looked for in texts of one language; in code also the
    names in ``text``, each whole, where a word is but a part of one."""

    def __init__(
        self, words: Sequence[str], phrases: Sequence[str], language: str, text: str = ""
    ) -> None:
        unique: dict[str, None] = dict.fromkeys(word.casefold() for word in words)
        self.words = tuple(unique)
        self._language = language
        self._phrases = [literal_pattern(phrase) for phrase in phrases]
        self._stems = {term(word, language) for word in words}
        if language == CODE:
            self._stems |= {part for word in words for part in name_terms(word)}
            terms = [name_terms(name.text) for name in identifiers(text)]
            self._stems |= {whole for whole, *parts in terms if parts}
        self._name_stems = frozenset(
            stem for word in words for stem in name_stems(word, NAMES_LANGUAGE)
        )
        self._met: dict[str, tuple[str, ...]] = {}  # a name of code → what of the query is in it

    @cached_property
    def _finder(self) -> TermFinder:
        return TermFinder(self._language, self._stems)

    @cached_property
    def _literal(self) -> list[re.Pattern[str]]:
        return [literal_pattern(word) for word in self.words]

    def literal_share(self, *texts: str) -> float:
        """The share (0–1) of the query's words that stand in any of ``texts`` as whole words."""
        if not self.words:
            return 0.0
        found = sum(any(p.search(text) for text in texts) for p in self._literal)
        return found / len(self.words)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where words (in any inflection) and whole phrases stand, merged and in order."""
        found = [m.span() for pattern in self._phrases for m in pattern.finditer(text)]
        found += [(start, end) for start, end, _ in self._words(text)]
        return _merged(found)

    def met(self, text: str) -> set[str]:
        """The different words and phrases of the query that stand in ``text``."""
        met = {found for _, _, found in self._words(text)}
        met.update(f"phrase {n}" for n, p in enumerate(self._phrases) if p.search(text))
        return met

    def called(self, path: str) -> set[str]:
        """What of the query is in the path of a definition: words, and stems of words."""
        stems = {stem for name in path.split(".") for stem in name_stems(name, NAMES_LANGUAGE)}
        return self.met(path) | (self._name_stems & stems)

    def most(self, text: str) -> float:
        """At most so many characters have these together."""
        if self._language != CODE or not text.isascii():
            return math.inf
        folded = text.lower()
        phrases = sum(len(f"phrase {n}") for n in range(len(self._phrases)))
        return sum(len(stem) for stem in self._inside if stem in folded) + phrases

    def hits(self, text: str) -> list[Hit]:
        """Words and whole phrases where they stand, in order."""
        found = self._words(text)
        for number, pattern in enumerate(self._phrases):
            found += [(*match.span(), f"phrase {number}") for match in pattern.finditer(text)]
        return sorted(found)

    def _likely(self, text: str) -> list[Word]:
        """The names of code that may hold something of the query: the parts of a name stand in it,
        in small letters or capitals."""
        if not text.isascii():
            return identifiers(text)
        folded = text.lower()
        stems = [stem for stem in self._inside if stem in folded]
        if not stems:
            return []
        found, end = [], 0
        for hit in sorted([hit for stem in stems for hit in _places(stem, folded)]):
            if hit < end:
                continue
            start = hit
            while start > end and (text[start - 1].isalnum() or text[start - 1] == "_"):
                start -= 1
            behind = _BEHIND_NAME.search(text, hit)
            end = behind.start() if behind else len(text)
            found.append(Word(text[start:end], start, end))
        return found

    @cached_property
    def _inside(self) -> list[str]:
        """What is in a name of ASCII, in small letters, that has a stem of the query."""
        return [stem for stem in self._stems if stem and not _BEHIND_NAME.search(stem)]

    def _words(self, text: str) -> list[Hit]:
        if self._language == CODE:
            known, names = self._met, self._likely(text)
            if not names:
                return []
            for name in {one.text for one in names} - known.keys():
                known[name] = tuple(self._stems.intersection(name_terms(name)))
            return [(name.start, name.end, found) for name in names for found in known[name.text]]
        return self._finder.places(text)


def densest(hits: Sequence[Hit], width: int) -> int | None:
    """Where the stretch of ``width`` characters with most different words starts.

    Longer (rarer) words break ties, then words that stand closer together, then the earlier place.
    ``None`` without any.
    """
    best: tuple[int, int, int] | None = None
    place: int | None = None
    for index, (start, _, _) in enumerate(hits):
        inside: dict[str, int] = {}  # where each ends first
        for begins, end, key in hits[index : index + 64]:
            if begins >= start + width:
                break
            if end <= start + width and key not in inside:
                inside[key] = end
        if best is not None and len(inside) < best[0]:
            continue
        merit = (
            len(inside),
            sum(map(len, inside)),
            start - max(inside.values(), default=start),
        )
        if best is None or merit > best:
            best, place = merit, start
    return place


def _places(stem: str, text: str) -> list[int]:
    """Where a stem stands in a text."""
    found, at = [], text.find(stem)
    while at >= 0:
        found.append(at)
        at = text.find(stem, at + len(stem))
    return found


def _bounded(word: str, marks: str) -> str:
    """A word's pattern: itself, with any apostrophe for an apostrophe, and no part of a word, but
    in a script without spaces."""
    body = re.sub(f"[{_APOSTROPHES}]", f"[{_APOSTROPHES}]", re.escape(word))
    inside = rf"[^\W_]|[{marks}]" if marks else r"[^\W_]"
    unspaced = [bool(marks and unspaced_letter().match(end)) for end in (word[0], word[-1])]
    before = "" if unspaced[0] else rf"(?<!{inside})"
    after = "" if unspaced[1] else rf"(?!{inside})"
    return f"{before}{body}{after}"


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans joined, in order."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
