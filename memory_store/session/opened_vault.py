"""What searches and actions may do with an opened vault, whether it is whole or limited.

Boundary: this list is what a view of some collections has to answer for. What is not in it needs
:meth:`OpenVault.whole_vault`, which a limited view refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memory_store.scopes import EVERYTHING, Scope
from memory_store.sqlite import FileAccess
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.index.snapshot import Snapshot
    from memory_store.models.embedder import Embedder
    from memory_store.session.collections import Collections
    from memory_store.session.gate import Gate
    from memory_store.session.known_rows import KnownRows
    from memory_store.session.whole_vault import WholeVault
    from memory_store.vault.expansions import Expansions
    from memory_store.vault.keyring import Keyring
    from memory_store.vault.settings import CollectionSettings, Settings

ChangeRoles = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From the roles of a collection's members (actor → role) to those they are to have."""


class OpenVault(Protocol):
    """A :class:`.WholeVault`, or a :class:`.LimitedVault` of some of its collections."""

    # -- what it is ---------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """Its file."""

    @property
    def access(self) -> FileAccess:
        """How the file is opened."""

    @property
    def vault(self) -> bytes:
        """Its public id."""

    @property
    def locked(self) -> bool:
        """Whether its keys are gone."""

    @property
    def gate(self) -> Gate:
        """Entered by each action, so that a lock waits for it."""

    @property
    def keyring(self) -> Keyring:
        """The keys of its collections."""

    @property
    def settings(self) -> Settings:
        """The settings as they were last read."""

    @property
    def strict(self) -> bool:
        """Whether nothing but row ids and collection ids stands in clear."""

    @property
    def collections(self) -> Collections:
        """The collections that its key may read."""

    @property
    def expansions(self) -> Expansions:
        """What language models answered to queries."""

    @property
    def older(self) -> str | None:
        """A warning where its file was older than the one last used here, until it is accepted."""

    def untold(self) -> str | None:
        """The same warning, once, and what an upgrade changed: to be shown to a person."""

    # -- its limits ---------------------------------------------------------------------

    def limited_to(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        told: Scope = EVERYTHING,
        writer: str = "",
    ) -> OpenVault:
        """The vault as if there were no other collections than those in ``scope``."""

    def whole_vault(self) -> WholeVault:
        """The vault, for what is about its whole file. Raises OutsideLimitsError in a part."""

    @property
    def limits(self) -> str:
        """What distinguishes a search of this view from those of others; empty: the whole vault."""

    @property
    def limited(self) -> bool:
        """Whether it is a view of some collections, though these may be all."""

    @property
    def creating(self) -> bool:
        """Whether writing to a collection of an unknown name makes one."""

    @property
    def unnamed(self) -> frozenset[str]:
        """The collections that go by their ids here."""

    def tells(self, collection: str) -> bool:
        """Whether a writer into a collection may learn what is in there."""

    # -- reading ------------------------------------------------------------------------

    def reader(self) -> Storage:
        """This thread's reading connection."""

    def moment(self, *, counted: bool = False) -> AbstractContextManager[tuple[Storage, KnownRows]]:
        """This thread's reading connection at one moment, and what the index knew of its rows then.

        Within another moment it is that one's. ``counted``: no row may be missing.
        """

    def snapshot(self, *, whole: bool = False) -> Snapshot:
        """The index as last committed; ``whole`` holds every entry to the accounts."""

    @property
    def index_loaded(self) -> bool:
        """Whether the index was read before."""

    def follow_settings(self) -> None:
        """Read the settings again if another process has written newer ones."""

    def refresh_settings(self) -> None:
        """Read the settings again."""

    # -- writing ------------------------------------------------------------------------

    def writing(self) -> AbstractContextManager[Storage]:
        """The writing connection, to one thread at a time. Raises ReadOnlyError."""

    def settings_in(self, connection: Storage) -> Settings:
        """The settings that hold in the caller's transaction."""

    def row_tags(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The row tags of memories, as last committed by any process."""

    def adopt_model(
        self, connection: Storage, embedder: Embedder, collection: str | None = None
    ) -> None:
        """Make ``embedder`` the model of a collection that has its own, else of the vault.

        Inside the caller's transaction.
        """

    def add_collection(self, name: str, choice: CollectionSettings, owner: str | None) -> str:
        """A new collection of a checked name, closed where it has an ``owner``. Returns its id."""

    def edit_collection(
        self,
        collection: str,
        *,
        name: str | None = None,
        choice: CollectionSettings | None = None,
        members: ChangeRoles | None = None,
    ) -> None:
        """Write what the settings say of one collection; what is ``None`` stays."""

    # -- the end ------------------------------------------------------------------------

    def lock(self) -> None:
        """Wipe keys and index and close every connection; nothing in a limited view."""
