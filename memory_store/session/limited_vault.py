"""A vault as it is for an actor who may use some of its collections: the others do not exist.

Boundary: everything in here is made of the keys of those collections alone. What needs other keys
(to write settings, to make a collection) is left to the whole vault, which gives nothing back.
Closed by default: it is no subclass of :class:`.WholeVault`; what is not written here is refused.

A limited vault is cheap to make, one for each request: connections, index and settings are the
whole vault's, and the columns of its snapshot are kept beside the whole one's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from memory_store.errors import OutsideLimitsError
from memory_store.scopes import Limits
from memory_store.session.collections import CollectionChange, Collections
from memory_store.vault.keyring import LimitedKeyring
from memory_store.vault.settings import CollectionSettings, Settings
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.index.snapshot import Snapshot
    from memory_store.session.link_graph import LinkGraph
    from memory_store.session.readers import KnownRows
    from memory_store.session.whole_vault import WholeVault


class LimitedVault:
    """An :class:`.OpenVault` of some collections, and of those that are made through it.

    Collections outside of ``readable`` stay sealed: they go by their ids, they can be searched, and
    no key in here opens a memory of theirs. ``creating``: whether writing to a collection of an
    unknown name makes one, as it does in the whole vault. Names are compared with those of the
    collections in here alone, so that none gives away whether a hidden collection has it; two of
    one name differ in their ids.

    Outside of ``disclosed`` a ``writer`` learns nothing by writing: those collections go by their
    ids, nothing is recognised there but what this writer wrote, and no body is shared.
    """

    limited = True

    def __init__(self, whole: WholeVault, limits: Limits) -> None:
        self._whole, self._limits = whole, limits
        self.creating, self.asker = limits.creating, limits.asker
        self.path, self.vault, self.access = whole.path, whole.vault, whole.access
        self.gate, self.expansions = whole.gate, whole.expansions
        self.likenesses = whole.likenesses
        self.reader, self.writing, self.row_tags = whole.reader, whole.writing, whole.row_tags
        self.kept_vectors, self.trashed = whole.kept_vectors, whole.trashed
        self.adopt_model, self.first_warning = whole.adopt_model, whole.first_warning
        self.forget_earlier_models = whole.forget_earlier_models
        self.keyring = LimitedKeyring(whole.keyring, limits)

    if not TYPE_CHECKING:  # so that mypy refuses it, too

        def __getattr__(self, name: str) -> NoReturn:
            raise OutsideLimitsError(
                "this is done with a whole vault, not with some of its collections"
            )

    # -- its limits ---------------------------------------------------------------------

    def limited_to(self, limits: Limits) -> LimitedVault:
        """Of its collections those of these limits, too."""
        return LimitedVault(self._whole, self._limits & limits)

    def whole_vault(self) -> NoReturn:
        """Refused: this is a part of it."""
        raise OutsideLimitsError(
            "this is done with a whole vault, not with some of its collections"
        )

    @property
    def limits(self) -> str:
        """A digest of the collections in here; empty where there are no others."""
        held = self.keyring.readable()
        if len(held) == len(self._whole.keyring.readable()):
            return ""
        return hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest()

    @property
    def unnamed(self) -> frozenset[str]:
        """The collections that may not be read, or of which a writer learns nothing."""
        readable = self._limits.readable
        held = self.keyring.readable()
        return frozenset(one for one in held if one not in readable or not self.discloses(one))

    def discloses(self, collection: str) -> bool:
        return self.keyring.discloses(collection)

    # -- of the whole vault -------------------------------------------------------------

    @property
    def older(self) -> str | None:
        return self._whole.older

    @property
    def index_loaded(self) -> bool:
        return self._whole.index_loaded

    # -- of its collections alone -------------------------------------------------------

    @property
    def collections(self) -> Collections:
        return Collections(self)

    @property
    def settings(self) -> Settings:
        """The vault's settings, without those of other collections."""
        settings = self._whole.settings
        held = self.keyring.collections
        return replace(
            settings,
            personal=settings.personal if settings.personal in held else "",
            collections=tuple(one for one in settings.collections if one in held),
            choices=tuple(one for one in settings.choices if one.collection in held),
            members=tuple(one for one in settings.members if one.collection in held),
            names={one: name for one, name in settings.names.items() if one in held},
        )

    def settings_in(self, storage: Storage) -> Settings:
        self._whole.settings_in(storage)
        self.keyring.follow()
        return self.settings

    def refresh_settings(self) -> None:
        self._whole.refresh_settings()
        self.keyring.follow()

    def follow_settings(self) -> None:
        self._whole.follow_settings()
        self.keyring.follow()

    @contextmanager
    def moment(self, *, counted: bool = False) -> Iterator[tuple[Storage, KnownRows]]:
        with self._whole.moment(counted=counted) as (storage, known):
            self.keyring.follow()
            yield storage, known

    def looked_at(self, snapshot: Snapshot) -> tuple[Storage, KnownRows]:
        return self._whole.looked_at(snapshot)

    def snapshot(self, *, whole: bool = False, late: bool = False) -> Snapshot:
        snapshot = self._whole.snapshot(whole=whole, late=late)
        self.keyring.follow()
        return snapshot.limited_to(self.keyring.readable())

    def link_graph(self) -> LinkGraph:
        """Which memory links to which, of those that may be opened here."""
        return self._whole.link_graphs.of(self)

    def add_collection(self, name: str, choice: CollectionSettings, owner: str | None) -> str:
        """A new collection in the vault, and in here from now on."""
        collection = self._whole.add_collection(name, choice, owner)
        self.keyring.extend(collection)
        return collection

    def edit_collection(self, collection: str, change: CollectionChange) -> None:
        """Write what the settings say of one of its collections. Raises NotFoundError."""
        self.keyring.of(collection)
        self._whole.edit_collection(collection, change)

    def lock(self) -> None:
        """Nothing: the whole vault is locked where it was opened, and this view with it."""
