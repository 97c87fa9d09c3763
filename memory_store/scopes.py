"""A set of collections that a permission covers: all of them, some, or none."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Scope(Struct, frozen=True):
    """Collections by id; ``None`` for all that there are and will be. Falsy when there are none.

    ``scope & other`` is what both hold, ``scope | other`` what either does.
    """

    collections: frozenset[str] | None = frozenset()

    @classmethod
    def of(cls, collections: Iterable[str]) -> Scope:
        """Those collections alone."""
        return cls(frozenset(collections))

    def __bool__(self) -> bool:
        return self.collections is None or bool(self.collections)

    def __contains__(self, collection: object) -> bool:
        return self.collections is None or collection in self.collections

    def __and__(self, other: Scope) -> Scope:
        if self.collections is None:
            return other
        if other.collections is None:
            return self
        return Scope(self.collections & other.collections)

    def __or__(self, other: Scope) -> Scope:
        if self.collections is None or other.collections is None:
            return EVERYTHING
        return Scope(self.collections | other.collections)

    def covers(self, other: Scope) -> bool:
        """Whether every collection of ``other`` is in here."""
        if self.collections is None:
            return True
        return other.collections is not None and other.collections <= self.collections


EVERYTHING = Scope(None)
NOTHING = Scope()


class Limits(Struct, frozen=True):
    """What a view of a vault is limited to; see :class:`memory_store.session.limited_vault`.

    ``asker`` is any text that stands for who asks: what a language model answered is kept for them.
    """

    scope: Scope
    readable: Scope = EVERYTHING
    disclosed: Scope = EVERYTHING
    writer: str = ""
    creating: bool = False
    asker: str = ""

    def __and__(self, other: Limits) -> Limits:
        """What both allow; ``writer``, ``asker`` and ``creating`` are those of the ``other``."""
        return Limits(
            self.scope & other.scope,
            self.readable & other.readable,
            self.disclosed & other.disclosed,
            other.writer or self.writer,
            other.creating,
            other.asker or self.asker,
        )
