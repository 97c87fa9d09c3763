"""A vault as it is for somebody who may use some of its collections: the others do not exist.

Boundary: everything in here is made of the keys of those collections alone. What needs other keys
(to write settings, to make a collection) is left to the whole vault, which tells nothing back.
A limited vault is cheap to make, one for each request: connections, index and settings are the
whole vault's, and the columns of its snapshot are kept beside the whole one's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memory_store.errors import BadInputError, NotFoundError
from memory_store.index.known_rows import KnownRows
from memory_store.index.snapshot import Snapshot
from memory_store.scopes import EVERYTHING, Scope
from memory_store.session.collections import Collections
from memory_store.session.creation import PERSONAL
from memory_store.session.opened_vault import OpenVault
from memory_store.sqlite import sqlite3
from memory_store.vault.limited_keyring import LimitedKeyring
from memory_store.vault.settings import CollectionSettings, Settings

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


class LimitedVault(OpenVault):
    """An :class:`OpenVault` of some collections, and of those that are made through it.

    Collections outside of ``readable`` stay sealed: they go by their ids, they can be searched, and
    there is no key in here that opens a memory of theirs. ``creating``: whether writing to a
    collection of an unknown name makes one, as it does in the whole vault. Names are told apart
    among the collections in here alone, so that none gives away whether a hidden collection has it;
    two of one name differ in their ids.

    Outside of ``told`` a ``writer`` learns nothing by writing: those collections go by their ids,
    nothing is recognised there but what this writer wrote, and no body is shared.
    """

    keyring: LimitedKeyring

    def __init__(
        self,
        whole: OpenVault,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> None:
        self.whole = whole
        self.scope = scope
        self.creating = creating
        self.readable = readable
        self.told = told
        self.writer = writer
        self.path, self.vault, self.access = whole.path, whole.vault, whole.access
        self.gate, self.index, self.expansions = whole.gate, whole.index, whole.expansions
        self.keyring = LimitedKeyring(whole.keyring, scope, readable, told=told, writer=writer)

    @property
    def collections(self) -> LimitedCollections:
        """Its collections: what they are told by is what this view of the vault may tell."""
        return LimitedCollections(self)

    @property
    def older(self) -> str | None:
        """See :attr:`OpenVault.older`."""
        return self.whole.older

    def untold(self) -> str | None:
        """See :meth:`OpenVault.untold`."""
        return self.whole.untold()

    @property
    def settings(self) -> Settings:
        """The vault's settings, without those of other collections."""
        settings = self.whole.settings
        held = self.keyring.collections
        return replace(
            settings,
            personal=settings.personal if settings.personal in held else "",
            collections=tuple(one for one in settings.collections if one in held),
            choices=tuple(one for one in settings.choices if one.collection in held),
            members=tuple(one for one in settings.members if one.collection in held),
            names={one: name for one, name in settings.names.items() if one in held},
        )

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection of the vault, to one thread at a time."""
        with self.whole.writing() as connection:
            yield connection

    def reader(self) -> sqlite3.Connection:
        """This thread's reading connection."""
        return self.whole.reader()

    @contextmanager
    def moment(self, *, counted: bool = False) -> Iterator[tuple[sqlite3.Connection, KnownRows]]:
        """See :meth:`OpenVault.moment`."""
        with self.whole.moment(counted=counted) as (connection, known):
            self.keyring.follow()
            yield connection, known

    def row_tags(self, ids: Sequence[str]) -> dict[str, bytes]:
        """See :meth:`OpenVault.row_tags`."""
        return self.whole.row_tags(ids)

    def snapshot(self, *, whole: bool = False) -> Snapshot:
        """The index of its collections as last committed by anybody."""
        snapshot = self.whole.snapshot(whole=whole)
        self.keyring.follow()
        return snapshot.limited_to(self.keyring.readable())

    def settings_in(self, connection: sqlite3.Connection) -> Settings:
        """The vault's, as they hold in the caller's transaction."""
        self.whole.settings_in(connection)
        self.keyring.follow()
        return self.settings

    def refresh_settings(self) -> None:
        """Read the settings again."""
        self.whole.refresh_settings()
        self.keyring.follow()

    def adopt_model(
        self, connection: sqlite3.Connection, embedder: Embedder, collection: str | None = None
    ) -> None:
        """Make ``embedder`` the model of a collection that has its own, else of the vault."""
        self.whole.adopt_model(connection, embedder, collection)

    def follow_settings(self) -> None:
        """Read the settings again if another process has written newer ones."""
        self.whole.follow_settings()
        self.keyring.follow()

    def limited_to(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> LimitedVault:
        """Of its collections those in ``scope``, too."""
        return LimitedVault(
            self.whole,
            self.scope & scope,
            creating=creating,
            readable=self.readable & readable,
            told=self.told & told,
            writer=writer or self.writer,
        )

    def tells(self, collection: str) -> bool:
        """See :meth:`OpenVault.tells`."""
        return self.keyring.tells(collection)

    @property
    def limits(self) -> str:
        """A digest of the collections in here; empty where there are no others."""
        held = self.keyring.readable()
        if len(held) == len(self.whole.keyring.readable()):
            return ""
        return hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()

    @property
    def unnamed(self) -> frozenset[str]:
        """The collections that go by their ids here."""
        held = self.keyring.readable()
        return frozenset(one for one in held if one not in self.readable or not self.tells(one))

    def whole_vault(self) -> OpenVault:
        """Refused: this is a part of it."""
        raise BadInputError("this is done with a whole vault, not with some of its collections")

    def lock(self) -> None:
        """Nothing: the whole vault is locked by whoever opened it, and this one with it."""


class LimitedCollections(Collections):
    """The collections of a :class:`LimitedVault`."""

    def __init__(self, vault: LimitedVault) -> None:
        super().__init__(vault)
        self._limited = vault

    def names(self) -> dict[str, str]:
        """Id → opened name of each of its collections; the id itself where names are sealed."""
        unnamed = self._limited.unnamed
        return {one: one if one in unnamed else name for one, name in super().names().items()}

    def find(self, given: str | None) -> str:
        """As in the whole vault; without a name BadInputError where the personal one is hidden.

        No refusal lists the names there are: whoever may write here need not be a reader.
        """
        personal = self._limited.settings.personal
        if given is None and not personal:
            raise BadInputError("collection: say which; the personal one is hidden", "collection")
        try:
            return super().find(given)
        except NotFoundError:
            if given == PERSONAL and personal in self._limited.unnamed:
                return personal  # whatever it is called by now
            raise NotFoundError(f"no collection {given!r}") from None

    def find_or_create(self, given: str | None) -> str:
        """As in the whole vault; BadInputError for an unknown name unless ``creating``.

        Where some go by their ids here, an unknown name may be one of theirs: none is made.
        """
        unnamed = self._limited.unnamed
        if given is None or (self._limited.creating and not unnamed):
            return super().find_or_create(given)
        try:
            return self.find(given)
        except NotFoundError as error:
            hint = "; those whose names you may not read go by their ids" if unnamed else ""
            raise BadInputError(f"collection: {error}{hint}", "collection") from None

    def insert(self, name: str, choice: CollectionSettings | None, owner: str | None) -> str:
        """A new collection in the vault, and in here from now on."""
        collection = self._limited.whole.collections.insert(name, choice, owner)
        self._limited.keyring.extend(collection)
        return collection

    def choose(self, choice: CollectionSettings) -> None:
        """Set how one of its collections is indexed from now on."""
        self._limited.keyring.of(choice.collection)
        self._limited.whole.collections.choose(choice)

    def change_members(
        self,
        collection: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        new_name: str | None = None,
    ) -> None:
        """Give one of its collections other members."""
        self._limited.keyring.of(collection)
        self._limited.whole.collections.change_members(collection, change, new_name)

    def name(self, collection: str, name: str) -> None:
        """Write the name of one of its collections."""
        self._limited.keyring.of(collection)
        self._limited.whole.collections.name(collection, name)

    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Of its collections alone, what :meth:`Collections.membership` says."""
        known, keyring = self._limited.whole.collections.membership(), self._limited.keyring
        keyring.follow()
        return {name: roles for name, roles in known.items() if name in keyring.collections}
