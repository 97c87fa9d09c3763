"""Asking the word index: whether terms occur, and which words begin with some letters.

Boundary: whether a term occurs follows from keyed hashes, and opens nothing; what is exact opens
the memories that may spell it so, or asks the lexicon. Words are told of the collections whose
memories the view may open, and of no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from memory_store.actions.action import Opened, action
from memory_store.actions.collections import collection_ids
from memory_store.actions.reads import open_all
from memory_store.actions.searches import context
from memory_store.errors import BadInputError
from memory_store.index.snapshot import Mask, Snapshot
from memory_store.records.words import Existence, WordCount
from memory_store.search.context import SearchContext
from memory_store.search.query.analysis import Blinding, holds
from memory_store.search.query.language import Phrase
from memory_store.search.query.spelling import words_beginning
from memory_store.search.query.word_matcher import spelled
from memory_store.session.extras import lexicons
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import folded
from memory_store.text.spelling import is_spelled
from memory_store.text.words import query_words
from memory_store.vault.audit_events import SEARCH

MOST_TERMS = 100  # of one question
MOST_OPENED = 256  # memories of one term, newest first, as literal search opens a page of them
MOST_WORDS = 1_000


def _counted(found: Sequence[Existence]) -> tuple[int, int]:
    return sum(one.opened for one in found), 0


@action(SEARCH, writes=False, counts=_counted)
def exists(
    opened: Opened, *terms: str, collections: Sequence[str] = (), exact: bool = False
) -> list[Existence]:
    """Whether memories hold each term: a word, or several side by side.

    Judged by stems and without opening anything, as a search for it in quotes would: "no" is
    certain. ``exact`` also asks for its spelling, upper and lower case alike. ``collections`` are
    names or ids (none: all). Raises BadInputError for a term without a word, and NotFoundError.
    """
    if not terms or len(terms) > MOST_TERMS:
        raise BadInputError(f"term: give 1 to {MOST_TERMS} words, or words in quotes", "term")
    index = _WordIndex(opened, collection_ids(opened.vault, collections), exact=exact)
    return [index.find(term) for term in terms]


@action(SEARCH, writes=False)
def words(
    opened: Opened, prefix: str = "", *, collections: Sequence[str] = (), limit: int = 20
) -> list[WordCount]:
    """The words that begin so, those of most memories first, as far as memories may be opened.

    Without a prefix those that most memories hold. ``collections`` are names or ids (none: all).
    """
    if not 1 <= limit <= MOST_WORDS:
        raise BadInputError(f"limit: 1 to {MOST_WORDS}", "limit")
    vault, snapshot = opened.vault, opened.vault.snapshot()
    held = list(lexicons(vault, snapshot, collection_ids(vault, collections)))
    return [WordCount(word, count) for word, count in words_beginning(prefix, held, limit)]


class _WordIndex:
    """The word index of some collections at one moment."""

    def __init__(self, opened: Opened, collections: tuple[str, ...] | None, *, exact: bool) -> None:
        self._vault: OpenVault = opened.vault
        self._context: SearchContext = context(opened)
        self._snapshot: Snapshot = self._context.snapshot
        self._blinding = Blinding(self._context)
        self._collections = collections
        self._visible: Mask = self._snapshot.visible(collections) & self._snapshot.alive
        self._exact = exact
        sealed = set(self._context.unnamed) & set(collections or self._snapshot.collections)
        if exact and sealed:
            raise BadInputError("exact: it opens memories, and some of these you may not", "exact")

    def find(self, term: str) -> Existence:
        found = tuple(word.text for word in query_words(term))
        if not found:
            raise BadInputError(f"term: {term!r} has no word in it", "term")
        held = holds(Phrase(term, found), self._context, self._blinding) & self._visible
        count = int(np.count_nonzero(held))
        if not self._exact or not count:
            return Existence(term, exists=count > 0, memories=count, exact=self._exact)
        if len(found) == 1 and is_spelled(folded(term)) and not self._lacking[held].any():
            return Existence(term, self._spelled(term, held), count, exact=True)
        return self._read(term, held, count)

    @cached_property
    def _lacking(self) -> Mask:
        """bool [documents]: those whose words the lexicon does not know yet."""
        lacking = np.ones(self._snapshot.size, np.bool_)
        for part, lexicon in lexicons(self._vault, self._snapshot, self._collections):
            lacking[part.span] = ~lexicon.there
        return lacking

    def _spelled(self, word: str, held: Mask) -> bool:
        spelled = folded(word).encode("utf-8", "replace")
        return any(
            (place := lexicon.place(spelled)) is not None
            and bool(lexicon.counts(place, place + 1, part.alive & held[part.span]).any())
            for part, lexicon in lexicons(self._vault, self._snapshot, self._collections)
        )

    def _read(self, term: str, held: Mask, count: int) -> Existence:
        """Opens memories until one spells the term so, the newest first."""
        ordinals: npt.NDArray[np.intp] = np.flatnonzero(held)
        newest = ordinals[np.argsort(-self._snapshot.created[ordinals])][:MOST_OPENED]
        is_in = spelled(term)
        for done, memory_id in enumerate(self._snapshot.ids(newest), start=1):
            for memory in open_all(self._vault, [memory_id]):
                if is_in(memory.title) or is_in(memory.text):
                    return Existence(term, exists=True, memories=count, exact=True, opened=done)
        left = count - len(newest)
        said = None if left else False
        return Existence(term, said, count, exact=True, opened=len(newest), left=left)
