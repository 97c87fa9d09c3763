"""Which of a vault's tables an actor may read through Datasette: the doors beside the search.

Boundary: the tables of a vault, and the download of its file, are closed to every visitor who is
granted nothing on it, also where Datasette's defaults or another plugin's tables allow it. This
module says what is open to which asker; ``connections.py`` enforces it for all SQL, and the
permission hooks here do for pages and the download. Tables that are no vault's are never refused.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from typing import Any

from memory_store.host import LATER_TABLES, MEMORY_TABLES, VAULT_TABLES

from .. import compat
from .asker import NO_ASKER, Asker, asker
from .grants import resolve_some


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
    if database not in _vaults_with_a_say(datasette, action):
        return None
    least = needed(str(table)) if action == VIEW_TABLE else Access.ALL
    if least is Access.NONE or await _access(datasette, actor, database) >= least:
        return None
    return False


async def rules_by_sql(datasette: Any, actor: Any, action: str) -> Any:
    """The same for 1.0's ``permission_resources_sql``: denials alone.

    A database that the request does not reach is denied as a whole, and nothing asked about it: a
    rule for each table of a thousand made Datasette's list of tables take .15 s.
    """
    tables: tuple[str | None, ...] = (None,)
    if action == VIEW_TABLE:
        tables = (*MEMORY_TABLES, *VAULT_TABLES, *LATER_TABLES)
    known, found, others = asker.get(), defaultdict[Access, list[str]](list), list[str]()
    for database in _vaults_with_a_say(datasette, action):
        if known is NO_ASKER or database in known.visible:
            found[await _access(datasette, actor, database)].append(database)
        else:
            others.append(database)
    denied: list[tuple[list[str], list[str | None]]] = [(others, [None])]
    for access, databases in found.items():
        shut = [one for one in tables if access < (needed(one) if one else Access.ALL)]
        denied.append((databases, shut))
    return compat.denials(denied, "closed to everyone without a grant on the vault")


def _vaults_with_a_say(datasette: Any, action: str) -> list[str]:
    """The databases with a vault; SQL is decided about where its connections are not guarded."""
    from ..vaults.registry import names_found, vaults_of

    names = names_found(datasette)
    if action != EXECUTE_SQL:
        return names
    return [name for name in names if name in vaults_of(datasette).unguarded]


async def _access(datasette: Any, actor: Any, database: str) -> Access:
    """Of the request's own actor as it was found when the request began; of others, once.

    Datasette asks of each table whether an anonymous visitor might see it, too.
    """
    known = asker.get()
    if known.more is not None and actor == known.actor and database not in known.visible:
        known = await known.more(database)
    elif known is NO_ASKER or actor != known.actor:
        others, key = known.others if known is not NO_ASKER else {}, (repr(actor), database)
        if key not in others:
            others[key] = await resolve_some(datasette, actor, [database])
        known = others[key]
    return access_of(known, database)
