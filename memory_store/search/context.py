"""What a search may reach: one consistent view of an unlocked vault.

Boundary: of everything here only :attr:`SearchContext.open_memories` yields plain text, and only
:mod:`memory_store.search.opening` calls it. :attr:`SearchContext.lexicon` yields words, and only
:mod:`memory_store.search.query.spelling` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memory_store.code.symbols import FileSymbols
    from memory_store.crypto.blinding import Blinder
    from memory_store.index.lexicon import Lexicon
    from memory_store.index.snapshot import Mask, Part, Snapshot
    from memory_store.index.trigrams import Trigrams
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder
    from memory_store.models.reranker import Reranker
    from memory_store.records import Memory
    from memory_store.records.degraded import Degraded
    from memory_store.records.fusion import FusionNumbers
    from memory_store.search.query.language import ParsedQuery
    from memory_store.session.code_files import CodeFiles
    from memory_store.vault.page_keys import PageKeys
    from memory_store.vault.settings import CollectionSettings


class SearchContext(Struct, frozen=True):
    """An unlocked vault as one search sees it, whatever is written meanwhile.

    ``blinder`` takes a collection id. ``embedder`` and ``reranker`` load on first use and raise
    :class:`ModelUnavailableError` or :class:`ModelMismatchError`; ``embedder`` takes the id of a
    collection (none: the vault's model), ``indexed_with`` says of each what its vectors were made
    with, ``own_models`` which do not follow the vault; ``fitted`` are the numbers of learned fusion
    that the vault has of its own, by the model's name; the reranker is asked for by
    name, ``None`` meaning the usual one. ``open_memories`` decrypts the memories at the given
    ordinals of the snapshot, in that order; those of ``unnamed`` collections stay sealed (see
    :class:`SealedMemory`). ``collection_names`` maps id to opened name;
    those ``unnamed`` map to their id, and what is in them is not to be named either.
    ``lexicon`` gives the words as spelled of those of some collections (``None``: of all) whose
    memories may be opened; it is ``None`` where no word is to be corrected. ``trigrams`` gives
    those of the same, keyed, segment by segment.
    ``code_files`` are the source files of those, with who imports whom; ``symbols`` are those of
    the file at an ordinal, ``descriptions`` what its definitions are about. ``sources`` numbers the
    source of each document of some collections (int32 [size]), without its name; 0 where it has
    none, or may not be opened. ``folders`` gives, segment by segment, the number of each document's
    folder and what names a number's, of memories that may be opened.
    ``page_keys`` seal the place between two pages.
    ``by_places`` says that the caller may not read, so that orders and scores are to follow from
    places alone. ``parsed`` is the query where the caller had to take it apart before.
    ``degraded`` holds what the vault already knows to be missing; ``typed_vault`` is what
    commands that mend it are to be given, with the blank before. ``vector_index`` is ``None``
    in a vault without vectors. ``expander`` names the language model that was chosen to expand
    queries with; ``find_expansion`` and ``keep_expansion`` reach what it answered before, under
    everything that decides the answer. ``fetch_model`` gives the command that has to come before
    ``reindex``, in a vault without vectors whose model is not on this machine; empty where it is.
    ``earlier_embedder`` loads a model of before by its fingerprint, as ``embedder`` does, and
    ``earlier_models`` names them.
    """

    snapshot: Snapshot
    vector_index: VectorIndex | None
    blinder: Callable[[str], Blinder]
    embedder: Callable[..., Embedder]
    reranker: Callable[[str | None], Reranker]
    open_memories: Callable[[Sequence[int]], Sequence[Memory]]
    collection_names: Mapping[str, str]
    page_keys: Callable[[], PageKeys]
    find_expansion: Callable[..., bytes | None]
    keep_expansion: Callable[..., None]
    fetch_model: Callable[[], str]
    earlier_embedder: Callable[[str], Embedder] | None = None
    earlier_models: Mapping[str, str] = field(default_factory=dict)
    trigrams: Callable[[], Iterable[tuple[Part, Trigrams]]] = tuple
    code_files: Callable[[], CodeFiles] | None = None
    symbols: Callable[[int], FileSymbols | None] = lambda ordinal: None
    descriptions: Callable[[int], Sequence[str]] = lambda ordinal: ()
    sources: Callable[[Collection[str]], npt.NDArray[np.int32]] | None = None
    folders: Callable[[], Iterable[tuple[Part, npt.NDArray[np.int32], Callable[[int], str]]]] = (
        tuple
    )
    expander: str | None = None
    indexed_with: Mapping[str, CollectionSettings] = field(default_factory=dict)
    own_models: frozenset[str] = frozenset()
    fitted: Mapping[str, FusionNumbers] = field(default_factory=dict)
    unnamed: frozenset[str] = frozenset()
    degraded: tuple[Degraded, ...] = ()
    typed_vault: Callable[[], str] = lambda: " DB"
    strict: bool = False
    by_places: bool = False
    parsed: ParsedQuery | None = None
    lexicon: Callable[[Collection[str] | None], Iterable[tuple[Part, Lexicon]]] | None = None

    def contents(self, ordinals: Sequence[int]) -> Sequence[Hashable]:
        """What tells the contents of memories from each other, in the order given.

        One in an ``unnamed`` collection is like no other: that it says just what a memory of the
        caller's own says would confirm a guess of its whole text, to the last comma.
        """
        tags, snapshot = self.snapshot.tags_of(ordinals), self.snapshot
        if not self.unnamed:
            return tags
        return [
            ordinal if snapshot.collection(ordinal) in self.unnamed else tag
            for ordinal, tag in zip(ordinals, tags, strict=True)
        ]

    def copies_of(self, ordinal: int) -> Mask:
        """bool [documents]: the memory itself, and all whose :meth:`contents` are the same."""
        snapshot = self.snapshot
        same: Mask = (snapshot.content_tags == snapshot.content_tags[ordinal]).all(axis=1)
        if self.unnamed:
            same &= ~snapshot.visible(self.unnamed) & (
                snapshot.collection(ordinal) not in self.unnamed
            )
        same[ordinal] = True
        return same
