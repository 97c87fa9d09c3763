"""The collections of an opened vault: found, made, named, chosen for, and whose they are.

Boundary: nothing of a memory. Names are those of the owner's sealed settings, or of what the owner
signed for a member; no row that a member may write names a collection. A limited vault is asked for
everything, so that what it hides is hidden here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.errors import BadInputError, NotFoundError, TamperedError
from memory_store.records import CollectionInfo
from memory_store.records.collections import several_of_that_name
from memory_store.vault.collections import check_named, checked_name
from memory_store.vault.settings import CollectionSettings, Settings

if TYPE_CHECKING:
    from memory_store.session.opened_vault import ChangeRoles, OpenVault

PERSONAL = "personal"
"""The name of the collection that a new vault has."""


class CollectionChange(Struct, frozen=True):
    """What the settings are to say of a collection: its name, how it is indexed, and what becomes
    of its members. What is ``None`` stays."""

    name: str | None = None
    choice: CollectionSettings | None = None
    members: ChangeRoles | None = None


class Collections:
    """Those that a vault's key may read."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._membership: tuple[Settings, Mapping[str, Mapping[str, str]]] | None = None

    def names(self) -> dict[str, str]:
        """Id → name of every collection this key may read, in the order they were made.

        The id itself for those that go by their ids.
        """
        self._vault.follow_settings()
        return self.known_names()

    def known_names(self) -> dict[str, str]:
        """The same, as of the last time that the vault was looked at."""
        settings, unnamed = self._vault.settings, self._vault.unnamed
        known = set(self._vault.keyring.readable())
        return {
            one: one if one in unnamed else settings.names[one]
            for one in settings.collections
            if one in known
        }

    def analysers(self) -> list[tuple[str, str]]:
        """The name of each and the analyser that it is indexed with, as :meth:`infos` has them."""
        names, settings = self.names(), self._vault.settings
        return [(name, settings.of(one).analyser) for one, name in names.items()]

    def infos(self) -> list[CollectionInfo]:
        """Every readable collection with its count, in the order they were made."""
        names, settings = self.names(), self._vault.settings
        storage = self._vault.reader()
        check_named(storage, self._vault.keyring.principal)
        counts, created = storage.memories.counts(names), storage.collections.created()
        for one in names.keys() - created.keys():
            raise TamperedError(f"collections: the row of {one} is missing")
        return [
            CollectionInfo(
                held.collection,
                names[held.collection],
                int(counts.get(held.collection, 0)),
                created[held.collection],
                held.analyser,
                held.embedder or None,
                bool(settings.chosen(held.collection).embedder),
            )
            for held in map(settings.of, names)
        ]

    def find(self, given: str | None) -> str:
        """The id of the collection of that name or id; the personal one for None.

        Raises NotFoundError, and BadInputError for a name that several collections have. In a
        limited vault no refusal lists the names there are: a writer need not be a reader.
        """
        if given is None:
            return self._vault.settings.personal or self._only()
        names = self.names()
        if given in names:
            return given
        found = [collection for collection, name in names.items() if name == given]
        if len(found) > 1:
            raise BadInputError(several_of_that_name(given, found), "collection")
        if found:
            return found[0]
        if given == PERSONAL and self._vault.settings.personal in self._vault.unnamed:
            return self._vault.settings.personal  # whatever its name is by now
        known = "" if self._vault.limited else f"; there is: {', '.join(sorted(names.values()))}"
        raise NotFoundError(f"no collection {given!r}{known}")

    def _only(self) -> str:
        """The one collection that is shared. Raises BadInputError where there are several."""
        shared = self._vault.keyring.readable()
        if self._vault.limited or len(shared) != 1:
            raise BadInputError("collection: say which; the personal one is hidden", "collection")
        return shared[0]

    def find_or_create(self, given: str | None) -> str:
        """As :meth:`find`, making a collection of a name that is not there yet, where that is
        allowed. Where some go by their ids here, an unknown name may be theirs: none is made.
        """
        unnamed = self._vault.unnamed
        try:
            return self.find(given)
        except NotFoundError as error:
            if self._vault.creating and not unnamed:
                return self.create(str(given))
            hint = "; those whose names you may not read go by their ids" if unnamed else ""
            raise BadInputError(f"collection: {error}{hint}", "collection") from None

    def create(
        self, name: str, choice: CollectionSettings | None = None, owner: str | None = None
    ) -> str:
        """A new collection with a key of its own, indexed as chosen. Returns its id.

        With an ``owner`` (an actor's id) it is closed, else open.
        """
        name = self._free(checked_name(name))
        return self._vault.add_collection(name, choice or CollectionSettings(""), owner)

    def choose(self, choice: CollectionSettings) -> None:
        """Set how a collection is indexed from now on. What is there is stale until reindexed."""
        self._vault.edit_collection(choice.collection, CollectionChange(choice=choice))

    def change_members(
        self, collection: str, change: ChangeRoles, new_name: str | None = None
    ) -> None:
        """Give a collection the members (actor → role) that ``change`` makes of the present ones.

        No members at all open it. With a :meth:`new_name`, it gets that name at once.
        """
        self._vault.edit_collection(collection, CollectionChange(new_name, members=change))

    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Collection id → actor → role, of every collection; no actor where it is open.

        Follows what other processes write, at the cost of one look at the settings' revision.
        """
        self._vault.follow_settings()
        settings, known = self._vault.settings, self._membership
        if known is None or known[0] is not settings:
            known = self._membership = (settings, settings.membership())
        return known[1]

    def rename(self, given: str, name: str) -> None:
        """Give a collection another name. Its id and its memories stay as they are.

        Raises NotFoundError, and BadInputError for a name that is taken, or a key that is not the
        owner's.
        """
        collection = self.find(given)
        if not self._vault.keyring.is_owner:
            raise BadInputError(
                f"only the owner of the vault names its collections; {given!r} is shared with you "
                "under the owner's name",
                "key",
            )
        fresh = self.new_name(collection, name)
        if fresh is not None:
            self._vault.edit_collection(collection, CollectionChange(fresh))

    def new_name(self, collection: str, name: str) -> str | None:
        """Another name for a collection, checked; ``None`` if that is its name already."""
        name = checked_name(name)
        return None if self.names().get(collection) == name else self._free(name)

    def _free(self, name: str) -> str:
        """The name, if no collection has it. Raises BadInputError."""
        if name in self.names().values():
            raise BadInputError(f"there is a collection {name!r} already", "collection")
        return name
