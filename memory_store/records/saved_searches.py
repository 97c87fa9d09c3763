"""A search that was kept under a name."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memory_store.records.request import SearchRequest, read_request

HOLDER = "root"
"""The actor who holds the vault's key: whom ``serve`` and ``datasette --root`` sign in. Whose saved
searches are of a terminal, and of a browser that sent the vault's secret and has no actor."""


class SavedSearch(Struct, frozen=True):
    """A search under a name, and the actor whose it is.

    ``search`` are the fields of a search as JSON names them, only those that were said. ``feed`` is
    the SHA-256 of the feed's token, in hex; empty without a feed.
    """

    id: str
    name: str
    owner: str
    search: dict[str, Any]
    created: str
    feed: str = ""

    def request(self) -> SearchRequest:
        """The search that it is. Raises BadInputError for what this version does not know."""
        return read_request(self.search)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON; of the feed whether there is one."""
        return {**asdict(self), "feed": bool(self.feed)}
