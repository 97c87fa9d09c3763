"""What the JSON API takes: the store's own records, and here what is sent in lists or by a server.

Their docstrings are descriptions of the API, from which its schemas are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_store.host import ROLES
from memory_store.records import MemoryChange, MemoryDraft, SearchRequest

from ..memories.posted import MANY

Role = Annotated[str, Meta(extra_json_schema={"enum": list(ROLES)})]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Rows = Meta(min_length=1, max_length=MANY)
Drafts = Annotated[tuple[MemoryDraft, ...], Rows]


class NewMemories(Struct, forbid_unknown_fields=True):
    """Many new memories."""

    memories: Drafts


class NamedMemoryChange(MemoryChange, frozen=True, forbid_unknown_fields=True):
    """A change, and the memory that it is for."""


class MemoryChanges(Struct, forbid_unknown_fields=True):
    """Changes to many memories."""

    memories: Annotated[tuple[NamedMemoryChange, ...], Rows]


class Ids(Struct, forbid_unknown_fields=True):
    """Memories by their ids."""

    ids: Annotated[tuple[str, ...], Rows]


class Restoration(Struct):
    """What is put back: memories by their ids, or all of one change by its ``group``."""

    ids: Annotated[tuple[str, ...], Rows] | UnsetType = UNSET
    group: str | UnsetType = UNSET


class TrashIds(Struct):
    """Memories whose versions in the trash are erased; without ``ids``: all of it."""

    ids: Annotated[tuple[str, ...], Rows] | UnsetType = UNSET


class SearchName(Struct):
    """The name of a saved search."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]


class NewSearch(SearchName):
    """A search that is saved under a name."""

    search: SearchRequest


class Publication(Struct):
    """Where a memory is copied to: a collection's name or id."""

    collection: Annotated[str, Meta(min_length=1)]


class NewCollection(Struct, forbid_unknown_fields=True):
    """A new collection, open or the asker's own."""

    name: Name
    private: bool | UnsetType = UNSET


class CollectionChange(Struct, forbid_unknown_fields=True):
    """Another name, other members."""

    name: Name | UnsetType = UNSET
    members: Annotated[
        Annotated[Mapping[str, Role | None], Meta(min_length=1)] | UnsetType | None,
        Meta(description="Roles by actor, null for those who go; null opens the collection"),
    ] = UNSET


class RoleChange(Struct, forbid_unknown_fields=True):
    """A member's role."""

    role: Role
