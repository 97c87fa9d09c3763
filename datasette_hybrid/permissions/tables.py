"""Which of a vault's tables an actor may read through Datasette: the doors beside the search.

Boundary: the tables of a vault, and the download of its file, are closed to every visitor who is
granted nothing on it, also where Datasette's defaults or another plugin's tables allow it. This
module says what is open to which asker; ``connections.py`` enforces it for all SQL, and the
permission hooks here do for pages and the download. Tables that are no vault's are never refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from memory_store.host import LATER_TABLES, MEMORY_TABLES, VAULT_TABLES

from .. import compat
from .asker import NO_ASKER, Asker, asker
from .grants import resolve_one


class Access(IntEnum):
    """How far a visitor may look into a vault's tables."""

    NONE = 0
    MEMORIES = 1
    """The tables of memories, without their sealed columns: for those who may search or read."""
    ALL = 2
    """Everything, and the download: for those who administer the vault."""


MACHINERY_PREFIX = "vault_"
SEALED = frozenset(
    {
        *(("memories", "head"), ("memory_bodies", "body"), ("memory_bodies", "tag")),
        *(("collections", "name"), ("memory_sources", "origin")),
        *(("memory_sources", "draft"), ("memory_sources", "file")),
    }
)
"""Columns that hold nothing without a key: empty for everybody who does not administer the vault.
What stands in them is shown by its own pages, functions and cells."""

VIEW_TABLE, DOWNLOAD, EXECUTE_SQL = "view-table", "view-database-download", "execute-sql"
ACTIONS = (VIEW_TABLE, DOWNLOAD, EXECUTE_SQL)
"""Datasette's own actions of which a vault has a say."""


def access_of(known: Asker, database: str | None) -> Access:
    """What ``known`` may read of the vault in ``database``.

    To administer it takes all four permissions on the database as a whole. That holds while the
    vault is locked, too; the other grants need it open. An actor who may write where they may not
    search gets nothing: the hash of a topic that they write there would confirm those of others.
    """
    if database is None:
        return Access.NONE
    if known.at(database).issuperset(compat.ACTIONS):
        return Access.ALL
    grants = known.on(database)
    known_to = grants.search | grants.decrypt
    return Access.MEMORIES if known_to and known_to.covers(grants.write) else Access.NONE


def needed(table: str) -> Access:
    """What it takes to read a table that stands in one file with a vault."""
    name = table.lower()
    if name.startswith(MACHINERY_PREFIX):
        return Access.ALL
    return Access.MEMORIES if name in MEMORY_TABLES else Access.NONE


async def decide(datasette: Any, actor: Any, action: str, resource: Any) -> bool | None:
    """For 0.65's ``permission_allowed``: a denial, or ``None`` for no opinion."""
    database, table = resource if isinstance(resource, tuple) else (resource, None)
    if database not in _vaults(datasette):
        return None
    if action == VIEW_TABLE:
        least = needed(str(table))
    elif action == DOWNLOAD or not _guarded(datasette, database):
        least = Access.ALL
    else:
        return None
    if least is Access.NONE or await _access(datasette, actor, database) >= least:
        return None
    return False


async def rules_by_sql(datasette: Any, actor: Any, action: str) -> Any:
    """The same for 1.0's ``permission_resources_sql``: denials alone."""
    rules = []
    for database in _vaults(datasette):
        if action == EXECUTE_SQL and _guarded(datasette, database):
            continue
        access = await _access(datasette, actor, database)
        denied: Iterable[str | None]
        if action == VIEW_TABLE:
            tables = (*MEMORY_TABLES, *VAULT_TABLES, *LATER_TABLES)
            denied = [table for table in tables if access < needed(table)]
        else:
            denied = [None] if access < Access.ALL else []
        reason = "closed to everyone without a grant on the vault"
        rules += [compat.Rule(database, table, False, reason) for table in denied]
    return compat.permission_rules(rules)


def _vaults(datasette: Any) -> list[str]:
    from ..vaults.registry import names_found

    return names_found(datasette)


def _guarded(datasette: Any, database: str) -> bool:
    from ..vaults.registry import vaults_of

    return database not in vaults_of(datasette).unguarded


async def _access(datasette: Any, actor: Any, database: str) -> Access:
    """Of the request's own actor as it was found when the request began; of others, once.

    Datasette asks of each table whether an anonymous visitor might see it, too.
    """
    known = asker.get()
    if known is NO_ASKER:
        return access_of(await resolve_one(datasette, actor, database), database)
    if actor == known.actor:
        return access_of(known, database)
    key = (repr(actor), database)
    if key not in known.others:
        known.others[key] = await resolve_one(datasette, actor, database)
    return access_of(known.others[key], database)
