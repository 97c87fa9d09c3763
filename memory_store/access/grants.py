"""What an asker may do with a vault: one record, worked out once for a request.

Boundary: nothing is granted unless it is said here. A vault that is open grants nothing by itself.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import astuple, replace

from memory_store.errors import MemoryStoreError
from memory_store.scopes import EVERYTHING, NOTHING, Scope


class NotPermittedError(MemoryStoreError):
    """The question needs a permission that the asker does not have (HTTP 403)."""


class Grants(Struct, frozen=True):
    """What a caller may do with one vault: in which collections find, read and change memories.

    ``audit`` is whether they may read the audit trail. ``models`` is whether they may choose the
    language model that their query is sent to: remote ones cost money, and see the query. An
    asker of a server may not. ``create`` is whether they may make collections,
    ``manage`` whose members they choose.
    """

    search: Scope = NOTHING
    decrypt: Scope = NOTHING
    write: Scope = NOTHING
    audit: bool = False
    models: bool = False
    create: bool = False
    manage: Scope = NOTHING

    def __or__(self, other: Grants) -> Grants:
        both = zip(astuple(self), astuple(other), strict=True)
        return Grants(*(mine | theirs for mine, theirs in both))

    def __bool__(self) -> bool:
        return bool(self.search or self.decrypt or self.write or self.audit)


def without_writing(grants: Grants) -> Grants:
    """The same for one who only finds and reads."""
    return Grants(search=grants.search, decrypt=grants.decrypt, audit=grants.audit)


NO_GRANTS = Grants()
ALL_GRANTS = Grants(
    search=EVERYTHING, decrypt=EVERYTHING, write=EVERYTHING, create=True, manage=EVERYTHING
)
KEY_HOLDER = replace(ALL_GRANTS, audit=True, models=True)
"""For the one who opened the vault with its key, on their own machine."""
