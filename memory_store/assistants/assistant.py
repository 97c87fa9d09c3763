"""An assistant: the vault as it may see it, what it may do there, and its name.

Boundary: what an :class:`Assistant` offers is limited to its collections and its grants. Tools use
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from memory_store.access import KEY_HOLDER, Grants
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from memory_store.assistants.allowance import Allowance

Access = Literal["read", "append", "write"]
RIGHTS = {"read": "only read", "append": "only read and add", "write": "read and write"}
ORDER: tuple[Access, ...] = ("read", "append", "write")
WITHHELD = (
    "This connection may search memories that it may not read: of these it gets ids and scores. "
    "To read them it needs the permission hybrid-decrypt."
)


class RefusedError(MemoryStoreError):
    """What this assistant was not given the right to."""


class Assistant(Struct, frozen=True):
    """One assistant: the vault as it may see it, what it may do, and its name.

    ``store`` is limited to its collections. ``access`` is ``read``, ``append`` (add, and nothing
    else) or ``write``. ``name`` stands in the metadata of what it adds, as ``by``, and with what
    it changes or deletes in the trash. ``grants`` are
    those of the key's holder where it runs on the user's machine, of an actor on a server.
    ``allowance`` is how much it may ask (``None``: not counted). ``last_came`` says when it did so
    before, ISO 8601; empty where that is not known. ``embed_later`` begins to embed, in the
    background, what was added in words alone (``None``: all is embedded before the answer).
    ``into`` is where it adds what names no collection; empty for the personal one.
    """

    store: MemoryStore
    access: Access = "read"
    name: str = "assistant"
    grants: Grants = KEY_HOLDER
    allowance: Allowance | None = None
    last_came: Callable[[], str] = str
    embed_later: Callable[[], None] | None = None
    into: str = ""

    def spend(self, size: int) -> None:
        """Count what it asks, so many bytes. Raises RefusedError where that is too much."""
        if self.allowance is not None:
            self.allowance.spend(size)

    @property
    def reads_all(self) -> bool:
        """Whether it may read whatever it may search."""
        return self.grants.decrypt.covers(self.grants.search)

    @property
    def reader(self) -> MemoryStore:
        """What it may both find and read."""
        return self.store.limited_to(self.grants.search & self.grants.decrypt)

    @property
    def finder(self) -> MemoryStore:
        """What it may find or read; of what it may not read nothing is opened."""
        grants = self.grants
        return self.store.limited_to(grants.search | grants.decrypt, readable=grants.decrypt)

    @property
    def adder(self) -> MemoryStore:
        """What it may add to."""
        limited = self.store.limited_to(self.grants.write, creating=self.grants.create)
        return limited.on_behalf_of(self.name)

    @property
    def editor(self) -> MemoryStore:
        """What it may change: of what it may write, what it may read, too."""
        limited = self.store.limited_to(self.grants.write & self.grants.decrypt)
        return limited.on_behalf_of(self.name)


def access_of(grants: Grants) -> Access:
    """The most that grants let an assistant do. Changing needs that it may read what it changes."""
    if grants.write & grants.decrypt:
        return "write"
    return "append" if grants.write else "read"


def least(one: Access, other: Access) -> Access:
    """What both of two kinds of access allow."""
    return min(one, other, key=ORDER.index)


def only(store: MemoryStore, names: Sequence[str]) -> MemoryStore:
    """The store with the named collections alone, or (no names) all. Raises BadInputError."""
    if not names:
        return store.limited_to(EVERYTHING)
    return store.limited_to(Scope.of(ids_of(store, names)))


def sole(names: Sequence[str]) -> str:
    """The one collection that was named; empty where there are several or none."""
    return names[0] if len(names) == 1 else ""


def ids_of(store: MemoryStore, names: Sequence[str]) -> list[str]:
    """The ids of collections by their names. Raises BadInputError.

    It lists no others: what a collection is called is data, and an error is none.
    """
    known = {one.name: one.id for one in store.collections.list()} if names else {}
    for name in names:
        if name not in known:
            raise BadInputError(f"collection: there is none named {name!r}", "collection")
    return [known[name] for name in names]
