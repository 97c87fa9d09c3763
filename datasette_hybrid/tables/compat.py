"""The differences between Datasette 0.65 and 1.0 on their own pages; the others: ``compat.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from datasette.plugins import pm

from ..compat import denials, may_view

try:
    from datasette.jump import JumpSQL
    from datasette.permissions import PermissionSQL
except ImportError:  # 0.65
    JumpSQL = PermissionSQL = None

CHANGES = (
    *("insert-row", "update-row", "delete-row"),
    *("alter-table", "set-column-type", "drop-table"),
)
"""1.0's actions on a table that change what stands in it, or what it is."""
CREATE_VIEW = "create-view"
"""Of a database: a vault stays shut while a view of it has a name like its tables'."""
METADATA = frozenset({"columns", "description"})
"""What 1.0 keeps apart from configuration, in its internal database."""


def has_row_menu() -> bool:
    """Whether row pages have a menu of actions that plugins add to."""
    hook = getattr(pm.hook, "row_actions", None)
    return hook is not None and hook.has_spec()


def has_boxes_of_plugins() -> bool:
    """Whether the home page and pages of databases show what plugins put on top of them."""
    hook = getattr(pm.hook, "top_homepage", None)
    return hook is not None and hook.has_spec()


def no_changes(databases: Sequence[str], tables: Sequence[str | None]) -> Any:
    """1.0's answer to ``permission_resources_sql``: not even root does it to those tables.

    ``None`` is the database itself.
    """
    why = "a vault is changed through its own pages, API and commands"
    return denials([(databases, tables)], why)


def jump_item(label: str, url: str, description: str, search_text: str) -> Any:
    """An entry of 1.0's jump menu."""
    return JumpSQL.menu_item(
        label=label, url=url, description=description, search_text=search_text, item_type="search"
    )


async def describe(datasette: Any, database: str, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Describe a database's tables to 1.0; what is configured, or was said before, stays.

    Every visitor sees the configuration: it names no database that is hidden from an actor, unless
    it names it already. 0.65 asks for the same by its hook ``get_metadata``.
    """
    if not hasattr(datasette, "set_column_metadata"):
        return
    named = (datasette.config or {}).get("databases") or {}
    if database in named or await may_view(datasette, None, database):
        _configure(datasette, database, tables)
    for table, said in tables.items():
        known = await datasette.get_resource_metadata(database, table)
        if "description" in said and not known.get("description"):
            await datasette.set_resource_metadata(
                database, table, "description", said["description"]
            )
        for column, description in said.get("columns", {}).items():
            known = await datasette.get_column_metadata(database, table, column)
            if not known.get("description"):
                await datasette.set_column_metadata(
                    database, table, column, "description", description
                )


def configured(said: Mapping[str, Any], own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Of what is ``said`` of a table, what configuration holds and the user's ``own`` leaves open.

    A table is sorted one way: another ``sort`` of theirs takes the place of both of ours.
    """
    sorted_already = {"sort", "sort_desc"}.intersection(own or ())
    not_said = METADATA | ({"sort", "sort_desc"} if sorted_already else set())
    return {name: value for name, value in said.items() if name not in not_said}


_unsaid: WeakKeyDictionary[Any, dict[str, tuple[Any, Mapping[str, Mapping[str, Any]]]]] = (
    WeakKeyDictionary()
)
"""By Datasette and database: the user's own metadata, and what we add to it."""


def unsaid(
    datasette: Any, database: str, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What 0.65's hook ``get_metadata`` adds to a user's own metadata, which it goes under.

    In new mappings each time, since Datasette writes the user's own into them. It asks for every
    permission, a dozen times for a page.
    """
    local = getattr(datasette, "_metadata_local", None)
    databases = _unsaid.setdefault(datasette, {})
    known = databases.get(database)
    if known is None or known[0] is not local:
        known = databases[database] = (local, _worked_out(local or {}, database, tables))
    return {table: _copied(said) for table, said in known[1].items()}


def _worked_out(
    local: Mapping[str, Any], database: str, tables: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    own = ((local.get("databases") or {}).get(database) or {}).get("tables") or {}
    return {
        table: {
            **configured(said, own.get(table)),
            **{name: said[name] for name in METADATA.intersection(said)},
        }
        for table, said in tables.items()
    }


def _copied(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if type(value) is dict else value for name, value in said.items()}


def _configure(datasette: Any, database: str, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Add what 1.0 reads from its configuration, in new mappings: the old are the user's."""
    config = datasette.config or {}
    databases = config.get("databases") or {}
    own = databases.get(database) or {}
    own_tables = own.get("tables") or {}
    merged = dict(own_tables)
    for table, said in tables.items():
        merged[table] = {**configured(said, own_tables.get(table)), **(own_tables.get(table) or {})}
    own = {**own, "tables": merged}
    datasette.config = {**config, "databases": {**databases, database: own}}
