"""A list of memories as asked for over JSON: its filters, its scope, and its pages.

Boundary: nothing here opens a memory. A list that would disclose what is sealed is refused to those
who may not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette import Forbidden

from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import Scope, checked_id, checked_type, epoch
from memory_store.records import Memory

from ..search.api import absolute_url
from ..vaults.vault import Vault

LIST_FILTERS = frozenset({"collection", "type", "topic", "status", "since", "until"})


@dataclass(frozen=True)
class Listing:
    """A page of a list: ``size`` memories that ``filters`` let through, behind ``after``."""

    filters: Mapping[str, Any]
    size: int
    after: tuple[str, str] | None


def listing(datasette: Any, given: Mapping[str, list[str]]) -> Listing:
    """The page that parameters ask for. Raises :class:`BadInputError`."""
    return Listing(_filters(given), _size(datasette, given), _place(given))


def _filters(given: Mapping[str, list[str]]) -> dict[str, Any]:
    """The filters of a list. Raises :class:`BadInputError`."""
    filters: dict[str, Any] = {}
    for name, values in given.items():
        if name.startswith("_"):
            continue
        if name not in LIST_FILTERS:
            raise BadInputError(f"{name}: a list has no such filter", name)
        said = [value for value in values if value]
        if said:
            filters[name] = said if name in ("collection", "type", "topic") else said[-1]
    for kind in filters.get("type", ()):
        checked_type(kind)
    return filters


def scope_of(asked: Listing, vault: Vault, grants: Grants) -> Scope:
    """The collections to list. Raises ``Forbidden`` where the list itself would disclose too much.

    Names of collections are sealed, and in a strict vault times, and so the order, too.
    """
    if not vault.strict and "collection" not in asked.filters:
        return grants.search | grants.decrypt
    if not grants.decrypt:
        what = "a list by time" if vault.strict else "collection: a list by its name"
        raise Forbidden(f"{what} needs the permission hybrid-decrypt")
    return grants.decrypt


def _size(datasette: Any, given: Mapping[str, list[str]]) -> int:
    """``_size`` as on Datasette's own tables: its default, its greatest, ``max`` for that one."""
    greatest = int(datasette.setting("max_returned_rows"))
    said = (given.get("_size") or [""])[-1]
    if not said:
        return min(int(datasette.setting("default_page_size")), greatest)
    if said == "max":
        return greatest
    if not said.isascii() or not said.isdigit() or not 1 <= int(said) <= greatest:
        raise BadInputError(f"_size: 1 to {greatest}, or max, expected", "_size")
    return int(said)


def _place(given: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Where the page before ended, from ``_next``."""
    token = (given.get("_next") or [""])[-1]
    if not token:
        return None
    created, _, memory_id = token.rpartition(",")
    try:
        epoch(created)
        checked_id(memory_id)
    except BadInputError:
        raise BadInputError("_next: this is not the next of an answer", "_next") from None
    return created, memory_id


def token_behind(memory: Memory) -> str:
    """The value of ``_next`` for the page behind a memory."""
    return f"{memory.created},{memory.id}"


def next_url(datasette: Any, request: Any, token: str | None) -> str | None:
    """The address of the following page."""
    if token is None:
        return None
    given = parse_qsl(request.query_string, keep_blank_values=True)
    pairs = [(name, value) for name, value in given if name != "_next"]
    path = f"{request.path}?{urlencode([*pairs, ('_next', token)])}"
    return absolute_url(datasette, request, path)
