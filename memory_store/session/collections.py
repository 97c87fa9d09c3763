"""The collections of an opened vault: found, made, named, chosen for, and whose they are.

Boundary: nothing of a memory. Names are those of the owner's sealed settings, or of what he signed
for a member; no row that a member may write names a collection. What is written goes through the
vault's one writer, inside a transaction that reads the settings anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import CollectionInfo
from memory_store.records.collections import several_of_that_name
from memory_store.vault.collections import check_named, checked_name, insert_collection
from memory_store.vault.members import OWNER_ROLE, changed_members
from memory_store.vault.settings import CollectionSettings, Settings
from memory_store.vault.transactions import transaction

if TYPE_CHECKING:
    from memory_store.session.opened_vault import OpenVault


class Collections:
    """Those that a vault's key may read. Made by :class:`.OpenVault`."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._membership: tuple[Settings, Mapping[str, Mapping[str, str]]] | None = None

    def names(self) -> dict[str, str]:
        """Id → name of every collection this key may read, in the order they were made."""
        self._vault.follow_settings()
        known = set(self._vault.keyring.readable())
        names = self._vault.settings.names
        return {one: names[one] for one in self._vault.settings.collections if one in known}

    def analysers(self) -> list[tuple[str, str]]:
        """The name of each and the analyser that it is indexed with, as :meth:`told` has them."""
        self._vault.follow_settings()
        settings = self._vault.settings
        return [(name, settings.of(one).analyser) for one, name in self.names().items()]

    def told(self) -> list[CollectionInfo]:
        """Every readable collection with its count, in the order they were made."""
        self._vault.follow_settings()
        names, settings = self.names(), self._vault.settings
        connection = self._vault.reader()
        check_named(connection, self._vault.keyring.principal)
        counts = dict(
            connection.execute(
                "select collection, count(*) from memories group by collection"
            ).fetchall()
        )
        created = dict(connection.execute("select id, created from collections").fetchall())
        held = {collection: settings.of(collection) for collection in names}
        return [
            CollectionInfo(
                collection,
                name,
                int(counts.get(collection, 0)),
                created[collection],
                held[collection].analyser,
                held[collection].embedder or None,
                bool(settings.chosen(collection).embedder),
            )
            for collection, name in names.items()
        ]

    def find(self, given: str | None) -> str:
        """The id of the collection of that name or id; the personal one for None.

        Raises NotFoundError, and BadInputError for a name that several collections have.
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
        known = ", ".join(sorted(names.values()))
        raise NotFoundError(f"no collection {given!r}; there is: {known}")

    def _only(self) -> str:
        """The one collection that is shared. Raises BadInputError where there are several."""
        shared = self._vault.keyring.readable()
        if len(shared) != 1:
            raise BadInputError("collection: say which; the personal one is hidden", "collection")
        return shared[0]

    def find_or_create(self, given: str | None) -> str:
        """As :meth:`find`, making a collection of a name that is not there yet."""
        try:
            return self.find(given)
        except NotFoundError:
            return self.create(str(given))

    def create(
        self, name: str, choice: CollectionSettings | None = None, owner: str | None = None
    ) -> str:
        """A new collection with a key of its own, indexed as chosen. Returns its id.

        With an ``owner`` (an actor's id) it is closed, else open.
        """
        return self.insert(self._free(checked_name(name)), choice, owner)

    def insert(self, name: str, choice: CollectionSettings | None, owner: str | None) -> str:
        """As :meth:`create`, of a name that was looked at before."""
        with self._vault.writing() as connection, transaction(connection, self._vault.keyring):
            known = self._vault.stored_settings(connection)
            collection = insert_collection(connection, self._vault.keyring)
            owners = {} if owner is None else changed_members({}, {owner: OWNER_ROLE}, ())
            chosen = replace(choice or CollectionSettings(""), collection=collection)
            self._vault.change_settings(
                connection,
                present=known,
                collections=(*known.collections, collection),
                choices=known.with_choice(chosen),
                members=known.with_members(collection, owners),
                names={**known.names, collection: name},
            )
            return collection

    def choose(self, choice: CollectionSettings) -> None:
        """Set how a collection is indexed from now on. What is there is stale until reindexed."""
        with self._vault.writing() as connection, transaction(connection, self._vault.keyring):
            known = self._vault.stored_settings(connection)
            self._vault.change_settings(connection, choices=known.with_choice(choice))

    def change_members(
        self,
        collection: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        new_name: str | None = None,
    ) -> None:
        """Give a collection the members (actor → role) that ``change`` makes of the present ones.

        No members at all open it. With a :meth:`new_name`, it gets that name at once.
        """
        with self._vault.writing() as connection, transaction(connection, self._vault.keyring):
            known = self._vault.stored_settings(connection)
            roles = change(known.members_of(collection))
            members, names = known.with_members(collection, roles), known.names
            if new_name is not None:
                names = {**names, collection: new_name}
            self._vault.change_settings(connection, present=known, members=members, names=names)

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
        owner's: names are his.
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
            self.name(collection, fresh)

    def name(self, collection: str, name: str) -> None:
        """Write a collection's name, which was looked at before."""
        with self._vault.writing() as connection, transaction(connection, self._vault.keyring):
            known = self._vault.stored_settings(connection)
            names = {**known.names, collection: name}
            self._vault.change_settings(connection, present=known, names=names)

    def new_name(self, collection: str, name: str) -> str | None:
        """Another name for a collection, looked at; ``None`` if that is its name already."""
        name = checked_name(name)
        return None if self.names().get(collection) == name else self._free(name)

    def _free(self, name: str) -> str:
        """The name, if no collection has it. Raises BadInputError."""
        if name in self.names().values():
            raise BadInputError(f"there is a collection {name!r} already", "collection")
        return name
