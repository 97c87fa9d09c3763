"""MemoryStore: an opened vault as every surface uses it.

Boundary: plain text goes in and comes out here, for whoever holds the key. Who may ask is decided
before: the command line's user holds the key, Datasette asks its grants.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from memory_store.importing.drafts import checked_type, clean_topics
from memory_store.index.creating import create_vault
from memory_store.index.embedders import Embedders, ModelState
from memory_store.index.held_vectors import HeldVectors
from memory_store.index.opened import OpenVault, open_vault
from memory_store.keys import secrets_to_create, secrets_to_open
from memory_store.operations import (
    collections,
    editing,
    members,
    publishing,
    reading,
    searching,
    statistics,
    writing,
)
from memory_store.records import (
    ANSWER_BUDGET,
    ANSWER_SOURCES,
    Addition,
    Answer,
    CollectionInfo,
    ImportReport,
    Memory,
    MemoryDraft,
    MemoryEdit,
    MemoryHead,
    Ranking,
    Reference,
    SearchResponse,
)
from memory_store.scopes import EVERYTHING, Scope
from memory_store.search.options import several
from memory_store.text.tokens import forget_words
from memory_store.vault import audit
from memory_store.vault.audit import AuditEvent
from memory_store.vault.settings import AUTO

if TYPE_CHECKING:
    from memory_store.importing.pipeline import Progress
    from memory_store.index.snapshot import Snapshot
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder
    from memory_store.search.context import SearchContext

Method = TypeVar("Method", bound=Callable[..., Any])


def _inside(method: Method) -> Method:
    """A method that uses the opened vault: no lock clears anything up while it runs."""

    @wraps(method)
    def entered(self: MemoryStore, *arguments: Any, **options: Any) -> Any:
        with self._vault.gate.entered():
            result = method(self, *arguments, **options)
        if self.heard is not None:
            self.heard(method.__name__, result)
        return result

    return cast(Method, entered)


class MemoryStore:
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
        self._vault = vault
        self._embedders = Embedders(vault, embedder)
        self.expander = expander
        """The language model that expands queries; ``None``: ``MEMORY_STORE_EXPANDER``, or none."""
        self.heard: Callable[[str, Any], None] | None = None
        """Told of every method that used the vault, by its name, and what it returned."""
        self._vectors = vectors or HeldVectors(vault)

    def limited_to(
        self, scope: Scope, *, creating: bool = False, named: Scope = EVERYTHING
    ) -> MemoryStore:
        """The same opened vault with nothing of other collections in it at all.

        Others' memories are NotFoundError, others' collections do not exist, and every count and
        score is what it would be without them. Cheap: make one for each request. ``creating``:
        whether adding to a collection of an unknown name makes one; else that is BadInputError.
        Collections outside of ``named`` go by their ids. Closing it does nothing. For the scope
        of everything it is the store itself.
        """
        if scope == named == EVERYTHING:
            return self
        limited = MemoryStore(
            self._vault.limited_to(scope, creating=creating, named=named),
            embedder=self._embedders.usual,
            expander=self.expander,
            vectors=self._vectors,
        )
        limited.heard = self.heard
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
        embedder: str | None = None,
    ) -> tuple[MemoryStore, str]:
        """A new vault, opened, and its recovery code (told once, stored nowhere in clear).

        Raises BadInputError without any key, or when the file holds a vault already.
        """
        database = Path(path)
        secrets, recovery_code = secrets_to_create(
            database, key_file=key_file, passphrase=passphrase, keyring=keyring
        )
        vault = create_vault(database, secrets, profile)
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

        Raises NotAVaultError, FormatError, BadInputError (an unusable key file), WrongKeyError.
        """
        database = Path(path)
        secrets = secrets_to_open(
            database,
            key_file=key_file,
            passphrase=passphrase,
            recovery_code=recovery_code,
            keyring=keyring,
        )
        return MemoryStore(open_vault(database, secrets), embedder=embedder, expander=expander)

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
    def profile(self) -> str:
        return self._vault.settings.profile

    def __repr__(self) -> str:
        return f"<MemoryStore {self.path.name}{' locked' if self.locked else ''}>"

    # -- the model ----------------------------------------------------------------------

    def embedder(self, collection: str | None = None) -> Embedder:
        """The embedding model of a collection (name or id), or of the vault, loaded.

        Raises ModelUnavailableError or ModelMismatchError.
        """
        return self._embedders.load(self._collection_id(collection))

    @_inside
    def embedder_name(self, collection: str | None = None) -> str | None:
        """The name or folder under which :meth:`embedder` looks; ``None``: the usual model."""
        return self._embedders.name(self._collection_id(collection))

    @_inside
    def model_state(self, collection: str | None = None) -> ModelState:
        """Whether meaning can be searched in a collection, and if not, why and what mends it."""
        return self._embedders.state(self._collection_id(collection))

    def _collection_id(self, name: str | None) -> str | None:
        return None if name is None else self._vault.find_collection(name)

    @_inside
    def warm(self) -> None:
        """Load the index and the model now rather than in the first search."""
        self._vault.snapshot()
        self.model_state()

    # -- writing ------------------------------------------------------------------------

    def add(self, text: str, **draft: Any) -> Memory:
        """Add one memory. Keywords are the other fields of :class:`MemoryDraft`."""
        return self.add_many([writing.draft_of(text, draft)])[0]

    @_inside
    def add_many(
        self, drafts: Iterable[MemoryDraft], *, embed: bool = True
    ) -> builtins.list[Memory]:
        """Add memories; each batch of 64 is one transaction. Raises BadInputError, adding none."""
        return writing.add_many(self._vault, self._embedders, drafts, embed=embed)

    @_inside
    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        type: str | None = None,
        topics: Sequence[str] | None = None,
        add_topics: Sequence[str] = (),
        remove_topics: Sequence[str] = (),
        metadata: dict[str, Any] | None = None,
        valid_from: str | None = None,
        valid_to: str | None = None,
        collection: str | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """Change a memory; what is None stays. An empty ``valid_from`` or ``valid_to`` goes.

        Raises NotFoundError, ConflictError (see ``expected_version``), BadInputError.
        """
        change = MemoryEdit(
            memory_id,
            text=text,
            title=title,
            type=type,
            topics=None if topics is None else tuple(topics),
            add_topics=tuple(add_topics),
            remove_topics=tuple(remove_topics),
            metadata=metadata,
            valid_from=valid_from,
            valid_to=valid_to,
            collection=collection,
            expected_version=expected_version,
        )
        return editing.edit_many(self._vault, self._embedders, [change])[0]

    @_inside
    def edit_many(
        self, edits: Iterable[MemoryEdit], *, refs: bool = True
    ) -> builtins.list[Memory]:
        """Change memories, all of them or none. ``refs=False``: named by id alone.

        Raises NotFoundError, ConflictError (its ``ids`` are at other versions than expected),
        BadRowsError.
        """
        return editing.edit_many(self._vault, self._embedders, [*edits], refs=refs)

    @_inside
    def add_once(
        self, drafts: Iterable[MemoryDraft], *, embed: bool = True
    ) -> builtins.list[Addition]:
        """Add memories, all of them or none; one that is there already, just as given, stays.

        Sent twice with ids chosen by the sender, the same memories are added once. Raises
        BadRowsError, and ConflictError with the ``ids`` that hold something else.
        """
        return editing.add_once(self._vault, self._embedders, [*drafts], embed=embed)

    @_inside
    def done(self, memory_id: str) -> Memory:
        """Mark a memory completed: ``task`` becomes ``task_done``."""
        return editing.done(self._vault, self._embedders, memory_id)

    @_inside
    def reopen(self, memory_id: str) -> Memory:
        """Mark a completed memory open again: ``task_done`` becomes ``task``."""
        return editing.reopen(self._vault, self._embedders, memory_id)

    @_inside
    def publish(self, memory_id: str, collection: str) -> Memory:
        """The same content in another collection, too: a copy with an id of its own.

        Published again, the copy that is there is returned. Raises NotFoundError, BadInputError.
        """
        return publishing.publish(self._vault, self._embedders, memory_id, collection)

    @_inside
    def delete(self, memory_id: str) -> None:
        """Delete a memory everywhere: rows, index, write-ahead log. Raises NotFoundError."""
        editing.delete_many(self._vault, {memory_id: None})

    @_inside
    def delete_many(
        self, ids: Iterable[str] | Mapping[str, int | None], *, refs: bool = True
    ) -> None:
        """Delete memories everywhere, all of them or (NotFoundError) none.

        A mapping says which version each must have; ConflictError where one has another.
        """
        versions = ids if isinstance(ids, Mapping) else dict.fromkeys(ids)
        editing.delete_many(self._vault, versions, refs=refs)

    def import_paths(
        self,
        paths: str | Path | Sequence[str | Path] = (),
        *,
        collection: str | None = None,
        type: str | None = None,
        topics: Sequence[str] = (),
        glob: Sequence[str] = (),
        exclude: Sequence[str] = (),
        table: str | None = None,
        text_column: str | None = None,
        dry_run: bool = False,
        prune: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import files, folders and ``-`` (standard input); without paths, every source again.

        Each batch is committed by itself: whatever stops an import, run it again to go on.
        """
        from memory_store.importing.session import ImportOptions

        options = ImportOptions(
            collection=collection,
            type=checked_type(type) if type else None,
            topics=clean_topics(topics),
            glob=tuple(glob),
            exclude=tuple(exclude),
            table=table,
            text_column=text_column,
        )
        return writing.import_paths(
            self._vault,
            self._embedders,
            paths,
            options,
            embed=embed,
            dry_run=dry_run,
            prune=prune,
            progress=progress,
        )

    def reindex(
        self,
        *,
        collection: str | Sequence[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Give every memory the vectors and terms of its collection's model and analyser.

        Of some collections, or of all. A model named by the environment becomes the vault's.
        Returns how many were done. Resumable: what is up to date already is left alone. Raises
        ModelUnavailableError when all was done that needs no absent model.
        """
        return writing.reindex(self._vault, self._embedders, several(collection), progress)

    # -- reading ------------------------------------------------------------------------

    @_inside
    def get(self, memory_id: str, *, refs: bool = True) -> Memory:
        """One memory with its whole text, by id, the beginning of an id, or ref.

        A ref is sealed, so looking for one opens every head; ``refs=False`` does not.
        """
        return reading.get(self._vault, memory_id, refs=refs)

    @_inside
    def find_id(self, given: str, *, refs: bool = True) -> str:
        """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

        Raises NotFoundError, also for memories of collections that this key may not read.
        """
        return reading.resolve(self._vault, given, refs=refs)

    @_inside
    def present(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of some whole ids that are memories in here; opens nothing."""
        return reading.present(self._vault, ids)

    @_inside
    def heads(self, ids: Sequence[str]) -> dict[str, MemoryHead]:
        """Id → title, collection and topics of those memories that are there; opens no body."""
        return reading.heads(self._vault, ids)

    @_inside
    def texts(self, contents: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Id of a body (``memories.content``) → the id of a memory that holds it, and the text."""
        return reading.texts(self._vault, contents)

    @_inside
    def list(
        self,
        *,
        collection: str | Sequence[str] = (),
        type: str | Sequence[str] = (),
        topic: str | Sequence[str] = (),
        status: str = "all",
        since: str | None = None,
        until: str | None = None,
        limit: int = 100,
        offset: int = 0,
        after: tuple[str, str] | None = None,
    ) -> builtins.list[Memory]:
        """Memories, newest first, with their texts.

        ``after``, the ``created`` and the id of the last one seen, goes on behind it, whatever was
        added or deleted meanwhile.
        """
        return reading.newest_first(
            self._vault,
            collections=several(collection),
            types=several(type),
            topics=several(topic),
            status=status,
            since=since,
            until=until,
            limit=limit,
            offset=offset,
            after=after,
        )

    @_inside
    def collections(self) -> builtins.list[CollectionInfo]:
        """The collections this key may read, with counts."""
        return self._vault.collection_infos()

    @_inside
    def collection_names(self) -> dict[str, str]:
        """Id → name of the collections this key may read, in the order they were made."""
        return self._vault.collection_names()

    @_inside
    def create_collection(
        self,
        name: str,
        *,
        embedder: str | None = None,
        analyser: str = AUTO,
        owner: str | None = None,
    ) -> CollectionInfo:
        """A new collection. ``embedder`` (a name or folder) and ``analyser`` are for it alone.

        With an ``owner`` (an actor's id) it is closed to all but its members. Raises BadInputError
        for a name that is taken or an analyser nobody knows, ModelUnavailableError.
        """
        return collections.create_collection(
            self._vault, self._embedders, name, embedder, analyser, owner
        )

    @_inside
    def set_collection(
        self, name: str, *, embedder: str | None = None, analyser: str | None = None
    ) -> CollectionInfo:
        """Choose another model or analyser for a collection; what is None stays.

        The ``embedder`` ``default`` is the vault's. What the collection holds stays as it is until
        :meth:`reindex`. Raises NotFoundError, BadInputError, ModelUnavailableError.
        """
        return collections.set_collection(self._vault, self._embedders, name, embedder, analyser)

    @_inside
    def stale(self) -> dict[str, int]:
        """Collection name → how many of its memories are indexed with earlier settings."""
        return collections.stale(self._vault)

    @_inside
    def rename_collection(self, name: str, new_name: str) -> None:
        self._vault.rename_collection(name, new_name)

    # -- members ------------------------------------------------------------------------

    @_inside
    def members(self, collection: str) -> Mapping[str, str]:
        """Actor id → role (see :data:`memory_store.vault.members.ROLES`) in a collection.

        Empty where it is open. Raises NotFoundError.
        """
        return members.members(self._vault, collection)

    @_inside
    def change_members(
        self, collection: str, add: Mapping[str, str] | None = None, remove: Sequence[str] = ()
    ) -> Mapping[str, str]:
        """Let actors in by role, or change theirs, and let others go, all at once.

        Returns the members afterwards. The first member closes a collection and owns it; one with
        members keeps an owner. Raises NotFoundError, BadInputError.
        """
        return members.change_members(self._vault, collection, add or {}, remove)

    def set_member(self, collection: str, actor: str, role: str) -> None:
        """Give an actor a role in a collection. Raises as :meth:`change_members`."""
        self.change_members(collection, {actor: role})

    def remove_member(self, collection: str, actor: str) -> None:
        """Take an actor's role away. Raises as :meth:`change_members`."""
        self.change_members(collection, remove=[actor])

    @_inside
    def open_collection(self, collection: str) -> None:
        """Take away all members of a collection: it is open again. Raises NotFoundError."""
        members.open_collection(self._vault, collection)

    @_inside
    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Id of every collection → actor → role; no actor where it is open.

        Cheap enough for every request: made anew only when the settings changed.
        """
        return self._vault.membership()

    @_inside
    def topics(self, *, collection: str | Sequence[str] = ()) -> dict[str, int]:
        """Topic → how many memories carry it, most frequent first. Opens every head, no body."""
        return collections.topics(self._vault, several(collection))

    @_inside
    def recent_topics(self, memories: int = 500) -> builtins.list[str]:
        """The topics of the newest so many memories, most frequent first; opens their heads."""
        return reading.recent_topics(self._vault, memories)

    @_inside
    def topic_hash(self, text: str, collection: str | None = None) -> str:
        """The keyed hash of a topic as ``memory_topics`` stores it, in hex."""
        return collections.topic_hash(self._vault, text, collection)

    @_inside
    def stats(self) -> dict[str, Any]:
        """Sizes and counts."""
        return statistics.stats(self._vault, self._vectors)

    @_inside
    def verify(self, progress: Progress | None = None) -> dict[str, Any]:
        """Authenticate every record and hold it against the accounts. Changes nothing."""
        from memory_store.index.verifying import verify

        return verify(self._vault.whole_vault(), progress)

    # -- the audit trail ----------------------------------------------------------------

    @_inside
    def keep_audit(self, events: Sequence[AuditEvent], *, days: float, most: int) -> None:
        """Write events to the audit trail, sealed; keep so many ``days`` and events of it.

        ``days`` of 0 keeps them however old. Raises ReadOnlyError, TamperedError.
        """
        self._vault.keep_audit(events, days=days, most=most)

    @_inside
    def audit_trail(self) -> builtins.list[AuditEvent]:
        """Every event that was written, oldest first. Raises TamperedError."""
        return audit.events(self._vault.reader(), self._vault.keyring)

    # -- searching ----------------------------------------------------------------------

    @_inside
    def search(self, query: str = "", **options: Any) -> SearchResponse:
        """Search. Keywords are the fields of :class:`SearchOptions`.

        Raises BadInputError naming the parameter, LockedError after a lock.
        """
        return searching.search(self._vault, self.search_context, query, options)

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
        from memory_store.search.asking import answer

        found = self._found_again([row.id for row in response.rows])
        return answer(response, found, model=model, budget=budget, on_text=on_text)

    @_inside
    def _found_again(self, ids: Sequence[str]) -> builtins.list[Memory]:
        """The memories of those ids, in that order, less those deleted meanwhile."""
        return reading.found_again(self._vault, ids)

    @_inside
    def rank(self, query: str, *, depth: int = 100, **options: Any) -> Ranking:
        """The order of the same search to ``depth``, for evaluation. Raises as :meth:`search`."""
        return searching.rank(self._vault, self.search_context, query, depth, options)

    @_inside
    def references(self) -> builtins.list[Reference]:
        """Every memory's id, ref and content, for evaluation. Opens every head, no body."""
        return reading.references(self._vault)

    def search_context(self) -> SearchContext:
        """One consistent view of the vault for one search."""
        return searching.search_context(self._vault, self._vectors, self.embedder, self.expander)

    def vector_index(self, snapshot: Snapshot | None = None) -> VectorIndex:
        """The vector index over a snapshot (the newest unless given), made once for each."""
        return self._vectors.index(snapshot)
