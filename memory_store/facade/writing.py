"""The store's calls that write memories.

Boundary: plain text goes in here and is sealed below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store import actions
from memory_store.facade.opened import OpenedStore, inside
from memory_store.records import (
    Addition,
    Embedded,
    ImportReport,
    Memory,
    MemoryDraft,
    MemoryEdit,
    Progress,
    several,
    unheard,
)
from memory_store.scopes import EVERYTHING, Scope
from memory_store.vault.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.importing.job import ImportJob


class Writing(OpenedStore):
    """Adding, changing and deleting memories."""

    def add(self, text: str, **draft: Any) -> Memory:
        """Add one memory. Keywords are the other fields of :class:`MemoryDraft`."""
        return self.add_many([actions.writes.draft_of(text, draft)])[0]

    @inside
    def add_many(self, drafts: Iterable[MemoryDraft], *, embed: bool = True) -> list[Memory]:
        """Add memories; each batch of 64 is one transaction. Raises BadInputError, adding none."""
        return actions.writes.add_many(self._vault, self._embedders, drafts, embed=embed)

    @inside
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
        return actions.edits.edit_many(self._vault, self._embedders, [change])[0]

    @inside
    def edit_many(self, edits: Iterable[MemoryEdit], *, refs: bool = True) -> list[Memory]:
        """Change memories, all of them or none. ``refs=False``: named by id alone.

        Raises NotFoundError, ConflictError (its ``ids`` are at other versions than expected),
        BadRowsError.
        """
        return actions.edits.edit_many(self._vault, self._embedders, [*edits], refs=refs)

    @inside
    def add_once(
        self,
        drafts: Iterable[MemoryDraft],
        *,
        embed: bool = True,
        readable: Scope = EVERYTHING,
    ) -> list[Addition]:
        """Add memories, all of them or none; one that is there already, just as given, stays.

        Sent twice with ids chosen by the sender, the same memories are added once. Raises
        BadRowsError, and ConflictError with the ``ids`` that hold something else; outside of the
        ``readable`` collections, whatever they hold.
        """
        return actions.edits.add_once(
            self._vault, self._embedders, [*drafts], embed=embed, readable=readable
        )

    @inside
    def done(self, memory_id: str) -> Memory:
        """Mark a memory completed: ``task`` becomes ``task_done``."""
        return actions.edits.done(self._vault, self._embedders, memory_id)

    @inside
    def reopen(self, memory_id: str) -> Memory:
        """Mark a completed memory open again: ``task_done`` becomes ``task``."""
        return actions.edits.reopen(self._vault, self._embedders, memory_id)

    @inside
    def publish(self, memory_id: str, collection: str, *, readable: Scope = EVERYTHING) -> Memory:
        """The same content in another collection, too: a copy with an id of its own.

        Published again, the copy that is there is returned. ``readable``: the collections that
        whoever asks may read. Raises NotFoundError, BadInputError.
        """
        return actions.publication.publish(
            self._vault, self._embedders, memory_id, collection, readable
        )

    @inside
    def delete(self, memory_id: str) -> None:
        """Delete a memory everywhere: rows, index, write-ahead log. Raises NotFoundError."""
        actions.edits.delete_many(self._vault, {memory_id: None})

    @inside
    def delete_many(
        self, ids: Iterable[str] | Mapping[str, int | None], *, refs: bool = True
    ) -> int:
        """Delete memories everywhere, all of them or (NotFoundError) none. Returns how many.

        A mapping says which version each must have; ConflictError where one has another.
        """
        versions = ids if isinstance(ids, Mapping) else dict.fromkeys(ids)
        return actions.edits.delete_many(self._vault, versions, refs=refs)

    def import_paths(
        self,
        paths: str | Path | Sequence[str | Path] = (),
        *,
        progress: Progress = unheard,
        embedded: Embedded = unheard,
        **options: Any,
    ) -> ImportReport:
        """Import files, folders and ``-`` (standard input); without paths, every source again.

        Keywords are the other fields of :class:`ImportRequest`. Each batch is committed by itself:
        after a stop, run it again to go on. ``progress`` is called with the name of a file, the
        number done and the number of files, ``embedded`` with how many windows of a batch have
        vectors, and how many it has.
        """
        from memory_store.importing.job import ImportJob, ImportRequest

        request = ImportRequest.of_paths(paths, **options)
        return self.run_import(ImportJob(request=request, progress=progress, embedded=embedded))

    def run_import(self, job: ImportJob) -> ImportReport:
        """Import the files of a job, or the paths of its request, or every known source again.

        A record is known again by collection and ref. What was imported from a folder is known
        by the end of its path where it is uploaded into a ``readable`` collection: the same is
        unchanged, and of what says something else ``differing`` decides.
        """
        with vault_faults(self._vault.path):
            return actions.writes.run_import(self._vault, self._embedders, job)

    def reindex(
        self,
        *,
        collection: str | Sequence[str] = (),
        whole: bool = False,
        progress: Progress | None = None,
    ) -> int:
        """Give every memory the vectors and terms of its collection's model and analyser.

        Of some collections, or of all. A model named by the environment becomes the vault's.
        Returns how many were done. Resumable: what is up to date already is left alone, unless
        ``whole``: then every entry is made anew from its text. Raises
        ModelUnavailableError when all was done that needs no absent model.
        """
        with vault_faults(self._vault.path):
            return actions.writes.reindex(
                self._vault, self._embedders, several(collection), progress, whole=whole
            )
