"""The store's calls that read memories.

Boundary: opened text comes out here, of the collections that this key opens and the view allows.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Iterator, Sequence

from memory_store.actions import reads
from memory_store.facade.opened import OpenedStore, inside
from memory_store.records import Memory, MemoryHead, Reference, several


class Reading(OpenedStore):
    """Memories by name and in lists, whole or in part."""

    @inside
    def get(self, memory_id: str, *, refs: bool = True) -> Memory:
        """One memory with its whole text, by id, the beginning of an id, or ref.

        A ref is sealed, so looking for one opens every head; ``refs=False`` does not.
        """
        return reads.get(self._vault, memory_id, refs=refs)

    @inside
    def find_id(self, given: str, *, refs: bool = True) -> str:
        """The id of the memory that an id, its beginning or (``refs``) a ref names; opens no text.

        Raises NotFoundError, also for memories of collections that this key may not read.
        """
        return reads.resolve(self._vault, given, refs=refs)

    @inside
    def present(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of some whole ids that are memories in here; opens nothing."""
        return reads.present(self._vault, ids)

    @inside
    def generation(self) -> tuple[object, ...]:
        """Equal to an earlier one only while nothing in here was changed by anybody: no memory, no
        model, no name of a collection. Opens those names alone."""
        snapshot = self._vault.snapshot()
        names = self._vault.collections.names()
        return weakref.ref(snapshot), self._vault.settings, tuple(names.items())

    @inside
    def heads(self, ids: Sequence[str]) -> dict[str, MemoryHead]:
        """Id → title, collection and topics of those memories that are there; opens no body."""
        return reads.heads(self._vault, ids)

    @inside
    def texts(self, contents: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Id of a body (``memories.content``) → the id of a memory that holds it, and the text.

        Opens that memory's head, too, which names its body.
        """
        return reads.texts(self._vault, contents)

    @inside
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
        return reads.newest_first(
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

    def every(self) -> Iterator[Memory]:
        """Every memory with its text, newest first and of one moment, whoever writes meanwhile.

        Holds a few of them in memory, however many there are. One thread has to ask for all.
        """
        return reads.every(self._vault)

    @inside
    def references(self) -> builtins.list[Reference]:
        """Every memory's id, ref and content, for evaluation. Opens every head, no body."""
        return reads.references(self._vault)
