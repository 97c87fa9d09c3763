"""Who may ask the word index what: whether terms occur, and which words begin so.

Boundary: that a term occurs, and in how many memories, is what a search for it in quotes says, in
its totals: the search grant's own. So an asker who may not read all that they may search asks as
they would search, one term at a time, of the collections that they may search alone, by keyed
hashes; how a term is spelled (``exact``) only opened text or the lexicon can say, and is refused.
The words themselves are text: they are given of the collections alone that the asker may search and
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_store.access.grants import Grants, NotPermittedError
from memory_store.errors import BadInputError
from memory_store.records.words import Existence, ExistsRequest, WordCount, WordsRequest

if TYPE_CHECKING:
    from memory_store.store import MemoryStore


def exists(store: MemoryStore, grants: Grants, asked: ExistsRequest) -> list[Existence]:
    """Whether memories hold each term, as far as the asker may know.

    Raises :class:`NotPermittedError` and BadInputError.
    """
    if not grants.search:
        raise NotPermittedError("searching needs the permission hybrid-search")
    if not grants.decrypt.covers(grants.search):
        if asked.exact:
            raise NotPermittedError(
                "exact: how a word is spelled needs the permission hybrid-decrypt"
            )
        if len(asked.term) > 1:
            raise BadInputError(
                "term: one at a time, without the permission hybrid-decrypt", "term"
            )
    inside = store.limited_to(grants.search, readable=grants.decrypt)
    return inside.exists(*asked.term, collections=asked.collection, exact=asked.exact)


def words(store: MemoryStore, grants: Grants, asked: WordsRequest) -> list[WordCount]:
    """The words that begin so, those of most memories first.

    Raises :class:`NotPermittedError` and BadInputError.
    """
    readable = grants.search & grants.decrypt
    if not readable:
        raise NotPermittedError("words need the permissions hybrid-search and hybrid-decrypt")
    inside = store.limited_to(readable)
    return inside.words(asked.prefix, collections=asked.collection, limit=asked.limit)
