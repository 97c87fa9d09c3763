"""What searches and actions may do with an opened vault, whether it is whole or limited.

Boundary: this list is what a view of some collections has to answer for. What is not in it needs
:meth:`OpenVault.whole_vault`, which a limited view refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from memory_store.scopes import Limits
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
    """A :class:`.WholeVault`, which says what each does, or a :class:`.LimitedVault` of it."""

    # -- what it is ---------------------------------------------------------------------

    @property
    def path(self) -> Path: ...

    @property
    def access(self) -> FileAccess: ...

    @property
    def vault(self) -> bytes: ...

    @property
    def locked(self) -> bool: ...

    @property
    def gate(self) -> Gate: ...

    @property
    def keyring(self) -> Keyring: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def strict(self) -> bool: ...

    @property
    def collections(self) -> Collections: ...

    @property
    def expansions(self) -> Expansions: ...

    @property
    def older(self) -> str | None: ...

    def untold(self) -> str | None: ...

    # -- its limits ---------------------------------------------------------------------

    def limited_to(self, limits: Limits) -> OpenVault: ...

    def whole_vault(self) -> WholeVault: ...

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

    def tells(self, collection: str) -> bool: ...

    # -- reading ------------------------------------------------------------------------

    def reader(self) -> Storage: ...

    def moment(
        self, *, counted: bool = False
    ) -> AbstractContextManager[tuple[Storage, KnownRows]]: ...

    def snapshot(self, *, whole: bool = False) -> Snapshot: ...

    @property
    def index_loaded(self) -> bool: ...

    def follow_settings(self) -> None: ...

    def refresh_settings(self) -> None: ...

    # -- writing ------------------------------------------------------------------------

    def writing(self) -> AbstractContextManager[Storage]: ...

    def settings_in(self, storage: Storage) -> Settings: ...

    def row_tags(self, ids: Sequence[str]) -> dict[str, bytes]: ...

    def adopt_model(
        self, storage: Storage, embedder: Embedder, collection: str | None = None
    ) -> None: ...

    def add_collection(self, name: str, choice: CollectionSettings, owner: str | None) -> str: ...

    def edit_collection(
        self,
        collection: str,
        *,
        name: str | None = None,
        choice: CollectionSettings | None = None,
        members: ChangeRoles | None = None,
    ) -> None: ...

    # -- the end ------------------------------------------------------------------------

    def lock(self) -> None: ...
