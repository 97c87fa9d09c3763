"""The store's calls about collections: their settings, their members, the topics in them.

Boundary: opens names and, for topics, heads of memories; no body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory_store.actions import collections, members, reads, topics
from memory_store.facade.opened import OpenedStore, inside
from memory_store.records import CollectionInfo, several
from memory_store.vault.settings import AUTO


class Collections(OpenedStore):
    """Collections and who may use them."""

    @inside
    def collections(self) -> list[CollectionInfo]:
        """The collections this key may read, with counts."""
        return self._vault.collections.told()

    @inside
    def collection_names(self) -> dict[str, str]:
        """Id → name of the collections this key may read, in the order they were made."""
        return self._vault.collections.names()

    @inside
    def collection_id(self, named: str) -> str:
        """The id of the collection of that name or id. Raises NotFoundError."""
        return self._vault.collections.find(named)

    @inside
    def analysers(self) -> list[tuple[str, str]]:
        """The name and the analyser of each collection this key may read; nothing is counted."""
        return self._vault.collections.analysers()

    @inside
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

    @inside
    def set_collection(
        self, name: str, *, embedder: str | None = None, analyser: str | None = None
    ) -> CollectionInfo:
        """Choose another model or analyser for a collection; what is None stays.

        The ``embedder`` ``default`` is the vault's. What the collection holds stays as it is until
        :meth:`reindex`. Raises NotFoundError, BadInputError, ModelUnavailableError.
        """
        return collections.set_collection(self._vault, self._embedders, name, embedder, analyser)

    @inside
    def stale(self) -> dict[str, int]:
        """Collection name → how many of its memories are indexed with earlier settings."""
        return collections.stale(self._vault)

    @inside
    def rename_collection(self, name: str, new_name: str) -> None:
        self._vault.collections.rename(name, new_name)

    # -- members ------------------------------------------------------------------------

    @inside
    def members(self, collection: str) -> Mapping[str, str]:
        """Actor id → role (see :data:`memory_store.vault.members.ROLES`) in a collection.

        Empty where it is open. Raises NotFoundError.
        """
        return members.members(self._vault, collection)

    @inside
    def change_members(
        self,
        collection: str,
        add: Mapping[str, str] | None = None,
        remove: Sequence[str] = (),
        *,
        by: str | None = None,
        new_name: str | None = None,
    ) -> Mapping[str, str]:
        """Let actors in by role, or change theirs, and let others go, all at once.

        Returns the members afterwards. The first member closes a collection and owns it; one with
        members keeps an owner. ``by``: an actor who must be an owner when it is written;
        ``new_name``: what the collection is called from then on. Raises NotFoundError,
        BadInputError.
        """
        return members.change_members(
            self._vault, collection, add or {}, remove, by=by, new_name=new_name
        )

    def set_member(self, collection: str, actor: str, role: str) -> None:
        """Give an actor a role in a collection. Raises as :meth:`change_members`."""
        self.change_members(collection, {actor: role})

    def remove_member(self, collection: str, actor: str) -> None:
        """Take an actor's role away. Raises as :meth:`change_members`."""
        self.change_members(collection, remove=[actor])

    @inside
    def open_collection(
        self, collection: str, *, by: str | None = None, new_name: str | None = None
    ) -> None:
        """Take away all members of a collection: it is open again. As :meth:`change_members`."""
        members.open_collection(self._vault, collection, by=by, new_name=new_name)

    @inside
    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Id of every collection → actor → role; no actor where it is open.

        Cheap enough for every request: made anew only when the settings changed.
        """
        return self._vault.collections.membership()

    @inside
    def topics(self, *, collection: str | Sequence[str] = ()) -> dict[str, int]:
        """Topic → how many memories carry it, most frequent first. Opens every head, no body."""
        return collections.topics(self._vault, several(collection))

    @inside
    def frequent_topics(self, most: int = 10) -> dict[str, int]:
        """The topics that most memories carry, with how many. Opens the heads of a few of them."""
        return topics.frequent_topics(self._vault, most)

    @inside
    def recent_topics(self, memories: int = 500) -> list[str]:
        """The topics of the newest so many memories, most frequent first; opens their heads."""
        return reads.recent_topics(self._vault, memories)

    @inside
    def topic_hash(self, text: str, collection: str | None = None) -> str | None:
        """The keyed hash of a topic as ``memory_topics`` stores it, in hex.

        ``None`` while :meth:`set_topics` fills that table. Where topics are kept in memory alone
        the table is empty, and the hash finds nothing.
        """
        return collections.topic_hash(self._vault, text, collection)
