"""What permissions can be given on besides a database: one collection of its vault (1.0 only)."""

from __future__ import annotations

from typing import Any

from datasette.permissions import Resource
from datasette.resources import DatabaseResource

from ..vaults.memberships import memberships


class CollectionResource(Resource):  # type: ignore[misc]  # Datasette has no types
    """A collection of the vault in a database, by its id: names are sealed."""

    name = "hybrid-collection"
    parent_class = DatabaseResource

    def __init__(self, database: str, collection: str | None) -> None:
        super().__init__(parent=database, child=collection)

    @classmethod
    async def resources_sql(cls, datasette: Any, actor: Any = None) -> str:
        """Every collection of the vaults that are not locked, as SQL that needs no parameters."""
        known = await memberships(datasette)
        values = ", ".join(
            f"({_literal(database)}, {_literal(collection)})"
            for database, membership in known.items()
            for collection in sorted(membership.collections)
        )
        if not values:
            return "select null as parent, null as child where 0"
        return f"select column1 as parent, column2 as child from (values {values})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
