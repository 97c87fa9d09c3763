"""Which memories may hold what a pattern needs, as far as the sealed index knows.

Boundary: a pattern's words and texts become keyed hashes here; nothing is opened.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memory_store.errors import TamperedError
from memory_store.index.snapshot import Mask
from memory_store.index.terms import has_term
from memory_store.search.context import SearchContext
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.regular_expressions import Needs, whole_words
from memory_store.text.grams import grams

DOTLESS = frozenset({"tr", "az"})  # languages in which I is no capital of i, as RE2 has it


class Holders:
    """Asks the index of one search about needs. Masks are bool [documents]."""

    def __init__(self, context: SearchContext) -> None:
        self._context, self._snapshot = context, context.snapshot
        self._blinding = Blinding(context)
        self._trigrams = tuple(context.trigrams())
        self._unknown = self._every()  # documents of which no trigrams are there
        for part, trigrams in self._trigrams:
            self._unknown[part.span] = ~trigrams.written

    def of(self, needed: Needs) -> Mask:
        """Those that may hold all of it."""
        held = self._every()
        for word in needed.words:
            held &= self.word(word)
        for text in needed.texts:
            held &= self.text(text)
        for branches in needed.choices:
            held &= np.logical_or.reduce([self.of(branch) for branch in branches])
        return held

    def word(self, word: str) -> Mask:
        """Those that hold a whole word."""
        if "i" in word.casefold() and not DOTLESS.isdisjoint(self._snapshot.languages):
            return self._every()
        return has_term(self._snapshot, self._blinding.term(word))

    def text(self, text: str) -> Mask:
        """Those that may hold a text: by its trigrams, or else by the whole words in it."""
        held = self._unknown.copy()
        for word in whole_words(text) if held.any() else ():
            held &= self.word(word)
        numbers = grams(text)
        for part, trigrams in self._trigrams:
            hashes = np.unique(self._context.blinder(part.collection).grams(numbers))
            try:
                held[part.span] |= trigrams.holding(hashes)
            except ValueError as error:
                raise TamperedError(str(error)) from None
        return held

    def lacking(self, needed: Needs, ordinal: int) -> Iterator[str]:
        """What of it one document lacks, in words."""
        for word in sorted(needed.words):
            if not self.word(word)[ordinal]:
                yield f"the word {word!r}, which it lacks"
        for text in sorted(needed.texts):
            if not self.text(text)[ordinal]:
                yield f"the text {text!r}, which it lacks"
        for branches in needed.choices:
            if not any(self.of(branch)[ordinal] for branch in branches):
                named = [name for branch in branches for name in branch.named()]
                yield f"one of {', '.join(map(repr, named))}, which it lacks"

    def each(self, needed: Needs) -> Iterator[tuple[str, Mask]]:
        """Every word and text mentioned, with those that may hold it."""
        yield from ((word, self.word(word)) for word in sorted(needed.words))
        yield from ((text, self.text(text)) for text in sorted(needed.texts))
        for branches in needed.choices:
            for branch in branches:
                yield from self.each(branch)

    def _every(self) -> Mask:
        return np.ones(self._snapshot.size, dtype=np.bool_)
