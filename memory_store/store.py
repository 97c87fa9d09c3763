"""MemoryStore: an opened vault as every surface uses it.

Boundary: plain text goes in and comes out here, for whoever holds the key. Who may ask is decided
before: the command line's user holds the key, Datasette asks its grants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.actions import reads, searches, statistics
from memory_store.facade.checking import Checking
from memory_store.facade.collections import Collections
from memory_store.facade.keys import Keys
from memory_store.facade.opened import inside
from memory_store.facade.reading import Reading
from memory_store.facade.settings import Settings
from memory_store.facade.writing import Writing
from memory_store.records import (
    ANSWER_BUDGET,
    ANSWER_SOURCES,
    Answer,
    Memory,
    Ranking,
    SearchRequest,
    SearchResponse,
    search_request,
)
from memory_store.scopes import EVERYTHING, Scope
from memory_store.session.creation import create_vault
from memory_store.session.embedders import ModelState
from memory_store.session.held_vectors import HeldVectors
from memory_store.session.opened_vault import OpenVault
from memory_store.session.secrets_given import secrets_to_create, secrets_to_open
from memory_store.session.unlock import open_vault
from memory_store.sqlite import FileAccess
from memory_store.text.tokens import forget_words
from memory_store.vault.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.index.snapshot import Snapshot
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder
    from memory_store.search.context import SearchContext


SearchElsewhere = Callable[
    [tuple[tuple[Scope, Scope], ...], str, SearchRequest], SearchResponse | None
]
"""From views, a method and a request to the answer; ``None``: no process is free."""


class Opening(Struct, frozen=True):
    """How a vault that is open here is opened once more, besides its root key."""

    path: Path
    access: FileAccess
    principal: int
    pin: bytes
    embedder: str | None
    expander: str | None


class MemoryStore(Reading, Writing, Collections, Keys, Settings, Checking):
    """An unlocked vault. Close it, or use it as a context manager, to lock it again.

    Many threads may search and read at once; writes wait for one another.
    """

    def __init__(
        self,
        vault: OpenVault,
        *,
        embedder: str | None = None,
        expander: str | None = None,
        vectors: HeldVectors | None = None,
    ) -> None:
        super().__init__(vault, embedder)
        self.expander = expander
        """The language model that expands queries; ``None``: ``MEMORY_STORE_EXPANDER``, or none."""
        self._vectors = vectors or HeldVectors(vault.whole_vault())
        self.elsewhere: SearchElsewhere | None = None
        """Where searches run if there is room; its ``None`` means here. See ``searchers``."""
        self._views: tuple[tuple[Scope, Scope], ...] = ()

    def limited_to(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> MemoryStore:
        """The same opened vault with nothing of other collections in it at all.

        Others' memories are NotFoundError, others' collections do not exist, and every count and
        score is what it would be without them. Cheap: make one for each request. ``creating``:
        whether adding to a collection of an unknown name makes one; else that is BadInputError.
        Collections outside of ``readable`` stay sealed: they go by their ids, and where their
        memories are found or listed these are :class:`SealedMemory`, for there is no key to open
        one. Outside of ``told`` a ``writer`` (any text that stands for one) learns nothing of what
        is there by writing: collections go by their ids, nothing is recognised but what the same
        writer imported or published, and no content is shared with another memory.
        Closing it does nothing. For the scope of everything it is the store itself.
        """
        if scope == readable == told == EVERYTHING:
            return self
        limited = MemoryStore(
            self._vault.limited_to(
                scope, creating=creating, readable=readable, told=told, writer=writer
            ),
            embedder=self._embedders.usual,
            expander=self.expander,
            vectors=self._vectors,
        )
        limited.heard, limited.elsewhere = self.heard, self.elsewhere
        limited._views = (*self._views, (scope, readable))
        return limited

    # -- opening and locking ------------------------------------------------------------

    @staticmethod
    def create(
        path: str | Path,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        keyring: bool = False,
        profile: str = "default",
        topics: str | None = None,
        embedder: str | None = None,
        device_key: bool = True,
    ) -> tuple[MemoryStore, str]:
        """A new vault, opened, and its recovery code (told once, stored nowhere in clear).

        A passphrase opens it together with a device key, which is made here and kept in the state
        folder, so that the file alone cannot be guessed at; ``device_key=False`` for a passphrase
        that opens it on its own.
        ``topics``: see :meth:`set_topics`; a strict vault has them in memory in any case.

        Raises BadInputError without any key, or when the file holds a vault already.
        """
        database = Path(path)
        secrets, recovery_code = secrets_to_create(
            database,
            key_file=key_file,
            passphrase=passphrase,
            keyring=keyring,
            device_key=device_key,
        )
        vault = create_vault(database, secrets, profile, topics)
        return MemoryStore(vault, embedder=embedder), recovery_code

    @staticmethod
    def open(
        path: str | Path,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        recovery_code: str | None = None,
        keyring: bool = False,
        embedder: str | None = None,
        expander: str | None = None,
    ) -> MemoryStore:
        """Unlock a vault. ``embedder`` names another model than the usual one (see ``doctor``).

        ``expander`` names a language model for its searches to word queries in other ways with.

        Raises NotAVaultError, FormatError, BadInputError (an unusable key file), WrongKeyError
        (DeviceKeyError where this machine lacks the passphrase's device key), StorageError.
        """
        database = Path(path)
        secrets = secrets_to_open(
            database,
            key_file=key_file,
            passphrase=passphrase,
            recovery_code=recovery_code,
            keyring=keyring,
        )
        with vault_faults(database):
            vault = open_vault(database, secrets)
        return MemoryStore(vault, embedder=embedder, expander=expander)

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def lock(self) -> None:
        """Wipe keys, vectors and hashes from memory. Everything raises LockedError from now on."""
        self._vault.lock()
        forget_words()

    close = lock

    @property
    def locked(self) -> bool:
        return self._vault.locked

    @property
    def path(self) -> Path:
        return self._vault.path

    @property
    def vault_id(self) -> str:
        """The vault's public random id, in hex."""
        return self._vault.vault.hex()

    @property
    def principal(self) -> int:
        """Whose key opened it: 0 is the owner's, others' come from their public keys."""
        return self._vault.keyring.principal

    @property
    def is_owner(self) -> bool:
        """Whether the owner's key opened it, to which everything is open."""
        return self._vault.keyring.is_owner

    @property
    def profile(self) -> str:
        return self._vault.settings.profile

    @property
    def decrypted(self) -> dict[str, int]:
        """How many heads and bodies of memories were decrypted here since the vault was unlocked.

        By ``table.column``, as the one function that decrypts counts them: what ``opened`` in a
        response can be held against.
        """
        return dict(self._vault.keyring.counter.counts)

    def __repr__(self) -> str:
        return f"<MemoryStore {self.path.name}{' locked' if self.locked else ''}>"

    # -- the model ----------------------------------------------------------------------

    def embedder(self, collection: str | None = None) -> Embedder:
        """The embedding model of a collection (name or id), or of the vault, loaded.

        Raises ModelUnavailableError or ModelMismatchError.
        """
        return self._embedders.load(self._collection_id(collection))

    @inside
    def embedder_name(self, collection: str | None = None) -> str | None:
        """The name or folder under which :meth:`embedder` looks; ``None``: the usual model."""
        return self._embedders.name(self._collection_id(collection))

    @inside
    def model_state(self, collection: str | None = None) -> ModelState:
        """Whether meaning can be searched in a collection, and if not, why and what mends it."""
        return self._embedders.state(self._collection_id(collection))

    def _collection_id(self, name: str | None) -> str | None:
        return None if name is None else self._vault.collections.find(name)

    @inside
    def warm(self) -> None:
        """Load the index and the model now rather than in the first search."""
        self._vault.snapshot()
        self.model_state()

    @inside
    def stats(self) -> dict[str, Any]:
        """Sizes and counts."""
        return statistics.stats(self._vault, self._vectors)

    # -- searching ----------------------------------------------------------------------

    @inside
    def search(self, query: str | SearchRequest = "", **options: Any) -> SearchResponse:
        """Search. Keywords are the fields of :class:`SearchRequest`, or it is given whole.

        Raises BadInputError naming the parameter, LockedError after a lock.
        """
        request = search_request(query, **options)
        found = self._found_elsewhere("search", request)
        found = found or self._searched(self.search_context, request)
        warning = self._vault.untold()
        return replace(found, degraded=(warning, *found.degraded)) if warning else found

    @inside
    def search_by_places(self, request: SearchRequest) -> SearchResponse:
        """The same for an asker who may not read: order and scores follow from places alone.

        How near a memory is to chosen queries tells its vector, and the vector what it says.
        The similarities themselves are still in the response. Raises as :meth:`search`.
        """

        def context() -> SearchContext:
            return replace(self.search_context(), by_places=True)

        found = self._found_elsewhere("search_by_places", request)
        return found or self._searched(context, request)

    def _searched(
        self, context: Callable[[], SearchContext], request: SearchRequest
    ) -> SearchResponse:
        return searches.search(self._vault, self._embedders, context, request)

    def _found_elsewhere(self, method: str, request: SearchRequest) -> SearchResponse | None:
        return None if self.elsewhere is None else self.elsewhere(self._views, method, request)

    def lend(self, take: Callable[[Opening, bytearray], None]) -> None:
        """Give what opens this vault once more to a process of our own. Raises LockedError."""
        vault = self._vault.whole_vault()
        with vault.gate.entered():
            opening = Opening(
                vault.path,
                vault.access,
                vault.keyring.principal,
                vault.keyring.pin,
                self._embedders.usual,
                self.expander,
            )
            take(opening, vault.keyring.root.buffer)

    def ask(
        self,
        question: str,
        *,
        model: str | None = None,
        limit: int = ANSWER_SOURCES,
        budget: int = ANSWER_BUDGET,
        on_text: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Answer:
        """An answer in sentences with citations, written by a language model.

        Searches with ``options`` (those of :meth:`search`) and sends the text of what is found, at
        most ``limit`` memories and about ``budget`` tokens, to ``model``: a name or alias that
        ``llm`` knows, ``None`` for its default model. ``on_text`` is given the answer piece by
        piece as it arrives. Raises what :meth:`search` raises, and ModelUnavailableError.
        """
        response = self.search(question, limit=limit, **options)
        return self.answer(response, model=model, budget=budget, on_text=on_text)

    def answer(
        self,
        response: SearchResponse,
        *,
        model: str | None = None,
        budget: int = ANSWER_BUDGET,
        on_text: Callable[[str], None] | None = None,
    ) -> Answer:
        """An answer out of what a search has found; see :meth:`ask`.

        No lock has to wait for the model: only opening the memories uses the vault.
        """
        from memory_store.search.answer.cited_answer import answer

        found = self._found_again([row.id for row in response.rows])
        return answer(response, found, model=model, budget=budget, on_text=on_text)

    @inside
    def _found_again(self, ids: Sequence[str]) -> list[Memory]:
        """The memories of those ids, in that order, less those deleted meanwhile."""
        return reads.found_again(self._vault, ids)

    @inside
    def rank(self, query: str | SearchRequest, *, depth: int = 100, **options: Any) -> Ranking:
        """The order of the same search to ``depth``, for evaluation. Raises as :meth:`search`."""
        request = search_request(query, **options)
        return searches.rank(self._vault, self.search_context, request, depth)

    def search_context(self) -> SearchContext:
        """One consistent view of the vault for one search."""
        return searches.search_context(
            self._vault, self._vectors, self.embedder, self.expander, self._embedders.name()
        )

    def vector_index(self, snapshot: Snapshot | None = None) -> VectorIndex:
        """The vector index over a snapshot (the newest unless given), made once for each."""
        return self._vectors.index(snapshot or self._vault.snapshot())
