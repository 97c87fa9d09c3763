"""MemoryStore: an opened vault as every surface uses it.

Boundary: plain text goes in and comes out here, for whoever holds the key. Who may ask is decided
before: the command line's user holds the key, Datasette asks its grants.
"""

from __future__ import annotations

import builtins
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from memory_store.dates import parse_moment
from memory_store.importing.drafts import (
    checked_metadata,
    checked_type,
    clean_topics,
    done_type,
    memory_from_draft,
    next_version,
)
from memory_store.index.creating import create_vault
from memory_store.index.embedders import Embedders, WritingEmbedders, without_model
from memory_store.index.opened import OpenVault, checked_analyser, open_vault
from memory_store.index.preparing import Preparer
from memory_store.index.snapshot import Filters, Snapshot
from memory_store.index.writing import write_batch
from memory_store.keys import secrets_to_create, secrets_to_open
from memory_store.records import (
    ANSWER_BUDGET,
    ANSWER_SOURCES,
    STATUSES,
    Answer,
    BadInputError,
    CollectionInfo,
    ConflictError,
    ImportReport,
    Memory,
    MemoryDraft,
    ModelMismatchError,
    ModelUnavailableError,
    NotFoundError,
    Ranking,
    Reference,
    SearchResponse,
)
from memory_store.search.options import search_options, several
from memory_store.text.canonical import canonical_text, normalise_topic
from memory_store.text.tokens import forget_words
from memory_store.vault.heads import count_topics, find_by_ref, read_refs
from memory_store.vault.page_keys import PageKeys
from memory_store.vault.rows import Origin, open_memories, read_rows, resolve_id
from memory_store.vault.settings import AUTO, CollectionSettings
from memory_store.vault.transactions import reading

if TYPE_CHECKING:
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.embedder import Embedder
    from memory_store.models.reranker import Reranker
    from memory_store.search.context import SearchContext

ADD_BATCH = 64


@dataclass(frozen=True, slots=True)
class ModelState:
    """The embedding model as loaded (None: not there), and what its absence switches off."""

    embedder_name: str | None
    degraded: tuple[str, ...]


Method = TypeVar("Method", bound=Callable[..., Any])


def _inside(method: Method) -> Method:
    """A method that uses the opened vault: no lock clears anything up while it runs."""

    @wraps(method)
    def entered(self: MemoryStore, *arguments: Any, **options: Any) -> Any:
        with self._vault.gate.entered():
            return method(self, *arguments, **options)

    return cast(Method, entered)


class MemoryStore:
    """An unlocked vault. Close it, or use it as a context manager, to lock it again.

    Many threads may search and read at once; writes wait for one another.
    """

    def __init__(
        self, vault: OpenVault, *, embedder: str | None = None, expander: str | None = None
    ) -> None:
        self._vault = vault
        self._embedders = Embedders(vault, embedder)
        self.expander = expander
        """The language model that expands queries; ``None``: ``MEMORY_STORE_EXPANDER``, or none."""
        self._embedder_name = embedder
        self._vector_index: tuple[Snapshot, VectorIndex] | None = None
        self._vector_lock = threading.Lock()
        vault.when_cleared_up = self._drop_vectors

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

    def _drop_vectors(self) -> None:
        with self._vector_lock:
            index, self._vector_index = self._vector_index, None
        if index is not None:
            index[1].wipe()

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
        found = None if collection is None else self._vault.find_collection(collection)
        return self._embedders.load(found)

    @_inside
    def embedder_name(self, collection: str | None = None) -> str | None:
        """The name or folder under which :meth:`embedder` looks; ``None``: the usual model."""
        found = None if collection is None else self._vault.find_collection(collection)
        return self._embedders.name(found)

    @_inside
    def model_state(self, collection: str | None = None) -> ModelState:
        """Whether meaning can be searched in a collection, and if not, why and what mends it."""
        try:
            return ModelState(self.embedder(collection).name, ())
        except ModelUnavailableError as error:
            return ModelState(None, (f"no vectors: {str(error).rstrip('.')}. Try: {error.remedy}",))
        except ModelMismatchError as error:
            return ModelState(None, (f"no vectors: {error}",))

    @_inside
    def warm(self) -> None:
        """Load the index and the model now rather than in the first search."""
        self._vault.snapshot()
        self.model_state()

    # -- writing ------------------------------------------------------------------------

    def add(self, text: str, **draft: Any) -> Memory:
        """Add one memory. Keywords are the other fields of :class:`MemoryDraft`."""
        known = {f.name for f in fields(MemoryDraft)}
        unknown = sorted(set(draft) - known)
        if unknown:
            raise BadInputError(f"no field {unknown[0]!r} in a memory", unknown[0])
        if draft.get("metadata") is None:
            draft.pop("metadata", None)
        draft["topics"] = tuple(draft.get("topics") or ())
        return self.add_many([MemoryDraft(text, **draft)])[0]

    @_inside
    def add_many(
        self, drafts: Iterable[MemoryDraft], *, embed: bool = True
    ) -> builtins.list[Memory]:
        """Add memories; each batch of 64 is one transaction. Raises BadInputError, adding none."""
        memories = [
            memory_from_draft(draft, self._vault.find_or_create_collection(draft.collection))
            for draft in drafts
        ]
        taken = read_rows(self._vault.reader(), [memory.id for memory in memories])
        if taken:
            raise ConflictError(f"there is a memory {next(iter(taken))} already")
        for start in range(0, len(memories), ADD_BATCH):
            self._write(memories[start : start + ADD_BATCH], embed=embed)
        return self._shown(memories)

    @_inside
    def edit(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        type: str | None = None,
        topics: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        collection: str | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """Change a memory; what is None stays.

        Raises NotFoundError, ConflictError (see ``expected_version``), BadInputError.
        """
        before = self._open_one(memory_id)
        if expected_version is not None and before.version != expected_version:
            raise ConflictError(
                f"memory {before.id} is at version {before.version}, not {expected_version}"
            )
        changes: dict[str, Any] = {}
        if text is not None:
            changes["text"] = canonical_text(text)
        if title is not None:
            changes["title"] = " ".join(canonical_text(title).split())
        if type is not None:
            changes["type"] = checked_type(type)
        if topics is not None:
            changes["topics"] = clean_topics(topics)
        if metadata is not None:
            changes["metadata"] = checked_metadata(metadata)
        if collection is not None:
            changes["collection"] = self._vault.find_or_create_collection(collection)
        after = next_version(before, **changes)
        if not after.text.strip() and (text is not None or not after.title):
            raise BadInputError("an empty memory: it has neither text nor title", "text")
        self._write([after])
        return self._shown([after])[0]

    @_inside
    def done(self, memory_id: str) -> Memory:
        """Mark a memory completed: ``task`` becomes ``task_done``."""
        before = self.get(memory_id)
        kind = done_type(before.type)
        return before if kind == before.type else self.edit(before.id, type=kind)

    @_inside
    def delete(self, memory_id: str) -> None:
        """Delete a memory everywhere: rows, index, write-ahead log. Raises NotFoundError."""
        resolved = self._resolve(memory_id)
        self._vault.forget([resolved])

    def _write(self, memories: Sequence[Memory], *, embed: bool = True) -> None:
        embedders = WritingEmbedders(self._embedders, self._vault) if embed else without_model
        preparer = Preparer(self._vault, embedders)
        try:
            origins = self._origins([memory.id for memory in memories])
            prepared = preparer.prepare([(m, origins.get(m.id, Origin())) for m in memories])
            with self._vault.writing() as connection:
                write_batch(
                    connection,
                    self._vault.keyring,
                    prepared,
                    strict=self._vault.strict,
                    model=preparer.model,
                )
                self._vault.index.compact(connection)
        finally:
            preparer.close()

    def _origins(self, ids: Sequence[str]) -> dict[str, Origin]:
        """An edited memory keeps its source, but no longer equals what was read there."""
        connection = self._vault.reader()
        found = {}
        for memory in ids:
            row = connection.execute(
                "select origin, file from memory_sources where memory = ?", (memory,)
            ).fetchone()
            if row is not None:
                found[memory] = Origin(row[0], None, row[1])
        return found

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
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> ImportReport:
        """Import files, folders and ``-`` (standard input); without paths, every source again.

        Each batch is committed by itself: whatever stops an import, run it again to go on.
        """
        from memory_store.importing.runs import run_imports
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
        embedders = WritingEmbedders(self._embedders, self._vault)
        report = run_imports(
            self._vault,
            [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)],
            options,
            embedders if embed else without_model,
            dry_run=dry_run,
            prune=prune,
            progress=progress,
        )
        return replace(report, degraded=embedders.degraded)

    def reindex(
        self,
        *,
        collection: str | Sequence[str] = (),
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> int:
        """Give every memory the vectors and terms of its collection's model and analyser.

        Of some collections, or of all. A model named by the environment becomes the vault's.
        Returns how many were done. Resumable: what is up to date already is left alone. Raises
        ModelUnavailableError when all was done that needs no absent model.
        """
        from memory_store.index.reindexing import reindex

        with self._vault.gate.entered():
            chosen = self._collection_ids(several(collection))
        return reindex(self._vault, self._embedders.load_to_adopt, chosen, progress)

    # -- reading ------------------------------------------------------------------------

    @_inside
    def get(self, memory_id: str, *, refs: bool = True) -> Memory:
        """One memory with its whole text, by id, the beginning of an id, or ref.

        A ref is sealed, so looking for one opens every head; ``refs=False`` does not.
        """
        return self._shown([self._open_one(memory_id, refs=refs)])[0]

    def _shown(self, memories: Sequence[Memory]) -> builtins.list[Memory]:
        """Memories as callers see them: with their collection's name for its id."""
        names = self._vault.collection_names()
        return [replace(memory, collection=names[memory.collection]) for memory in memories]

    def _open(self, ids: Sequence[str]) -> builtins.list[Memory]:
        return list(open_memories(self._vault.reader(), self._vault.keyring, ids))

    def _open_one(self, given: str, *, refs: bool = True) -> Memory:
        opened = self._open([self._resolve(given, refs=refs)])
        if not opened:  # somebody deleted it since it was resolved
            raise NotFoundError(f"no memory {given!r}")
        return opened[0]

    @_inside
    def find_id(self, given: str, *, refs: bool = True) -> str:
        """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

        Raises NotFoundError, also for memories of collections that this key may not read.
        """
        return self._resolve(given, refs=refs)

    def _resolve(self, given: str, *, refs: bool = True) -> str:
        with reading(self._vault.reader()) as connection:
            try:
                found = resolve_id(connection, given)
            except NotFoundError:
                if not refs:
                    raise
                found = find_by_ref(connection, self._vault.keyring, given)
            self._vault.keyring.of(read_rows(connection, [found])[found].collection)
        return found

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
    ) -> builtins.list[Memory]:
        """Memories, newest first, with their texts."""
        if status not in STATUSES:
            raise BadInputError(f"no status {status!r}; there is: {', '.join(STATUSES)}", "status")
        if limit < 0 or offset < 0:
            raise BadInputError("limit and offset are 0 or more", "limit")
        snapshot = self._vault.snapshot()
        mask = snapshot.mask(
            Filters(
                collections=self._collection_ids(several(collection)),
                types=several(type),
                topics_any=tuple(self._topic_group(name) for name in several(topic)),
                status=status,
                since=parse_moment(since, parameter="since") if since else None,
                until=parse_moment(until, parameter="until", end=True) if until else None,
            )
        )
        ordinals = mask.nonzero()[0]
        newest = ordinals[(-snapshot.created[ordinals]).argsort(kind="stable")]
        return self._shown(self._open(snapshot.ids(newest[offset : offset + limit])))

    def _collection_ids(self, names: Sequence[str]) -> tuple[str, ...] | None:
        return tuple(self._vault.find_collection(name) for name in names) or None

    def _topic_group(self, topic: str) -> dict[str, builtins.list[bytes]]:
        normalised = normalise_topic(topic)
        if not normalised:
            raise BadInputError(f"{topic!r} is no topic", "topic")
        return {
            collection: [self._vault.keyring.of(collection).blinder.topic(normalised)]
            for collection in self._vault.keyring.readable()
        }

    @_inside
    def collections(self) -> builtins.list[CollectionInfo]:
        """The collections this key may read, with counts."""
        return self._vault.collection_infos()

    @_inside
    def create_collection(
        self, name: str, *, embedder: str | None = None, analyser: str = AUTO
    ) -> CollectionInfo:
        """A new collection. ``embedder`` (a name or folder) and ``analyser`` are for it alone.

        Raises BadInputError for a name that is taken or an analyser nobody knows,
        ModelUnavailableError.
        """
        choice = CollectionSettings("", checked_analyser(analyser))
        choice = self._embedders.chosen(choice, embedder) if embedder else choice
        return self._collection_info(self._vault.create_collection(name, choice))

    @_inside
    def set_collection(
        self, name: str, *, embedder: str | None = None, analyser: str | None = None
    ) -> CollectionInfo:
        """Choose another model or analyser for a collection; what is None stays.

        The ``embedder`` ``default`` is the vault's. What the collection holds stays as it is until
        :meth:`reindex`. Raises NotFoundError, BadInputError, ModelUnavailableError.
        """
        self._vault.follow_settings()
        collection = self._vault.find_collection(name)
        choice = self._vault.settings.chosen(collection)
        if analyser is not None:
            choice = replace(choice, analyser=checked_analyser(analyser))
        if embedder is not None:
            choice = self._embedders.chosen(choice, embedder)
        if choice != self._vault.settings.chosen(collection):
            self._vault.choose(choice)
        return self._collection_info(collection)

    def _collection_info(self, collection: str) -> CollectionInfo:
        return next(info for info in self._vault.collection_infos() if info.id == collection)

    @_inside
    def stale(self) -> dict[str, int]:
        """Collection name → how many of its memories are indexed with earlier settings."""
        snapshot = self._vault.snapshot()
        names = self._vault.collection_names()
        counts = Counter(map(snapshot.collection, snapshot.stale.nonzero()[0].tolist()))
        return {names[collection]: count for collection, count in counts.items()}

    @_inside
    def rename_collection(self, name: str, new_name: str) -> None:
        self._vault.rename_collection(name, new_name)

    @_inside
    def topics(self, *, collection: str | Sequence[str] = ()) -> dict[str, int]:
        """Topic → how many memories carry it, most frequent first. Opens every head, no body."""
        wanted = self._collection_ids(several(collection)) or self._vault.keyring.readable()
        return count_topics(self._vault.reader(), self._vault.keyring, set(wanted))

    @_inside
    def topic_hash(self, text: str, collection: str | None = None) -> str:
        """The keyed hash of a topic as ``memory_topics`` stores it, in hex."""
        normalised = normalise_topic(text)
        keys = self._vault.keyring.of(self._vault.find_collection(collection))
        return keys.blinder.topic(normalised).hex()

    @_inside
    def stats(self) -> dict[str, Any]:
        """Sizes and counts."""
        from memory_store.vault.statistics import vault_statistics

        snapshot = self._vault.snapshot()
        return {
            **vault_statistics(self._vault.reader(), self._vault.path),
            "memories": int(snapshot.total),
            "vectors": int(snapshot.vectors),
            "languages": snapshot_languages(snapshot, self._vault.keyring.readable()),
            "model": self._vault.settings.embedder or None,
            "fingerprint": self._vault.settings.fingerprint[:12] or None,
            "profile": self._vault.settings.profile,
            "vector_index": self.vector_index().reason if snapshot.vectors else "no vectors",
        }

    @_inside
    def verify(
        self, progress: Callable[[str, int, int | None], None] | None = None
    ) -> dict[str, Any]:
        """Authenticate every record and hold it against the accounts. Changes nothing."""
        from memory_store.index.verifying import verify

        return verify(self._vault, progress)

    # -- searching ----------------------------------------------------------------------

    @_inside
    def search(self, query: str, **options: Any) -> SearchResponse:
        """Search. Keywords are the fields of :class:`SearchOptions`.

        Raises BadInputError naming the parameter, LockedError after a lock.
        """
        started = monotonic()  # a time limit counts the loading of the index and of the models
        from memory_store.search.pipeline import run

        wanted = search_options(**options)
        if wanted.reranker is not None:
            _check_reranker(wanted.reranker)
        if wanted.why is not None:
            with contextlib.suppress(NotFoundError):  # the answer itself says so
                wanted = replace(wanted, why=self._resolve(wanted.why))
        response = run(self.search_context(), query, wanted, started=started)
        return replace(response, degraded=tuple(map(self._runnable, response.degraded)))

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
        opened = {memory.id: memory for memory in self._open(ids)}
        return [opened[one] for one in ids if one in opened]

    def _runnable(self, line: str) -> str:
        """A line of ``degraded`` whose command can be run as it stands."""
        return line.replace("memory-store doctor DB", f"memory-store doctor {self.path}")

    @_inside
    def rank(self, query: str, *, depth: int = 100, **options: Any) -> Ranking:
        """The order of the same search to ``depth``, for evaluation. Raises as :meth:`search`."""
        from memory_store.search.pipeline import rank

        wanted = search_options(**options)
        if wanted.reranker is not None:
            _check_reranker(wanted.reranker)
        ranking = rank(self.search_context(), query, wanted, depth)
        return replace(ranking, degraded=tuple(map(self._runnable, ranking.degraded)))

    @_inside
    def references(self) -> builtins.list[Reference]:
        """Every memory's id, ref and content, for evaluation. Opens every head, no body."""
        snapshot = self._vault.snapshot()
        readable = set(self._vault.keyring.readable())
        refs = read_refs(self._vault.reader(), self._vault.keyring, readable)
        contents: dict[bytes, int] = {}
        return [
            Reference(
                memory := snapshot.id(int(ordinal)),
                refs.get(memory),
                contents.setdefault(snapshot.content_tags[ordinal].tobytes(), len(contents)),
            )
            for ordinal in snapshot.alive.nonzero()[0]
        ]

    def search_context(self) -> SearchContext:
        """One consistent view of the vault for one search."""
        from memory_store.models.expander import chosen_expander
        from memory_store.search.context import SearchContext

        snapshot, settings = self._vault.snapshot(), self._vault.settings
        keyring, expansions = self._vault.keyring, self._vault.expansions

        def open_ordinals(ordinals: Sequence[int]) -> builtins.list[Memory]:
            return self._open(snapshot.ids(ordinals))

        return SearchContext(
            snapshot=snapshot,
            vector_index=self.vector_index(snapshot) if snapshot.vectors else None,
            blinder=lambda collection: keyring.of(collection).blinder,
            embedder=self.embedder,
            reranker=_load_reranker,
            open_memories=open_ordinals,
            collection_names=self._vault.collection_names(),
            page_keys=lambda: PageKeys.of(keyring),
            indexed_with={c: settings.of(c) for c in snapshot.collections},
            own_models=frozenset(one.collection for one in settings.choices if one.embedder),
            find_expansion=lambda *question: expansions.find(self._vault.reader(), *question),
            keep_expansion=expansions.keep,
            expander=chosen_expander(self.expander),
            degraded=self._vault.warnings,
            database=str(self.path),
            strict=self._vault.strict,
        )

    def vector_index(self, snapshot: Snapshot | None = None) -> VectorIndex:
        """The vector index over a snapshot (the newest unless given), made once for each."""
        from memory_store.index.vectors import make_vector_index

        snapshot = snapshot or self._vault.snapshot()
        with self._vector_lock:
            self._vault.keyring.check_open()
            held = self._vector_index
            if held is None or held[0] is not snapshot:
                previous = held[1] if held is not None else None
                made = make_vector_index(snapshot, strict=self._vault.strict, previous=previous)
                held = self._vector_index = (snapshot, made)
            return held[1]


def _load_reranker(name: str | None) -> Reranker:
    """Imported when first asked for: a keyword search need not wait for it."""
    from memory_store.models.reranker import load_reranker

    return load_reranker(name)


def _check_reranker(name: str) -> None:
    """Raise BadInputError for a name that no model has. A merely absent one degrades the search."""
    from memory_store.models.maxsim import NAME as MAXSIM
    from memory_store.models.reranker import locate_reranker

    if name == MAXSIM:  # runs on the embedding model
        return
    with contextlib.suppress(ModelUnavailableError):
        locate_reranker(name)


def snapshot_languages(snapshot: Snapshot, collections: Iterable[str]) -> dict[str, int]:
    """Language → living memories in it, over some collections."""
    counts: Counter[str] = Counter()
    for collection in collections:
        counts.update(snapshot.languages_in(collection))
    return dict(counts.most_common())
