# mypy: allow-untyped-decorators
"""A Datasette plugin: private memories, sealed at rest and searchable by name and by meaning.

Hook implementations only, each one delegating. Everything heavy is imported inside a hook, so
that ``datasette --help`` stays as fast as it was.
"""

from __future__ import annotations

from typing import Any

from datasette import hookimpl


@hookimpl
def startup(datasette: Any) -> Any:
    """Check the configuration, then open what it has keys for."""
    from .serving import start

    return start(datasette)


@hookimpl
def shutdown(datasette: Any) -> None:
    """Wipe the keys (1.0; on 0.65 the lifespan message in ``asgi_wrapper`` does it)."""
    from .vaults import vaults_of

    vaults_of(datasette).lock_all()


@hookimpl
def get_metadata(datasette: Any) -> dict[str, Any]:
    """Hide the machinery of every vault, for 0.65; 1.0 has no such hook and takes a list."""
    from .vaults import hidden_tables

    return hidden_tables(datasette)


@hookimpl
def asgi_wrapper(datasette: Any) -> Any:
    """Forget who was asking after every request, and lock the vaults at the last message."""
    from .serving import wrapper

    return wrapper(datasette)


@hookimpl(hookwrapper=True)
def actor_from_request(datasette: Any, request: Any) -> Any:
    """Work out what the request's actor may do as soon as the actor is known."""
    from .grants import recognise

    outcome = yield
    outcome.force_result([recognise(datasette, request, outcome.get_result())])


@hookimpl
def register_actions(datasette: Any) -> list[Any]:
    """The three permissions, for 1.0."""
    from .compat import actions

    return actions()


@hookimpl
def permission_resources_sql(datasette: Any, actor: Any, action: str) -> Any:
    """Allow blocks and root's default, for 1.0."""
    from . import compat, grants

    if action not in compat.ACTIONS:
        return None
    return compat.permission_rules(
        name for name in datasette.databases if grants.configured(datasette, actor, action, name)
    )


@hookimpl
def permission_allowed(datasette: Any, actor: Any, action: str, resource: Any) -> bool | None:
    """Allow blocks and root's default, for 0.65."""
    from . import compat, grants

    if action not in compat.ACTIONS or not isinstance(resource, str):
        return None
    return grants.configured(datasette, actor, action, resource) or None


@hookimpl
def prepare_connection(conn: Any, database: str, datasette: Any) -> None:
    """The SQL functions, and sqlite-vec's where this Python can load extensions."""
    from .serving import add_functions, add_vec_functions

    add_functions(conn, database, datasette)
    add_vec_functions(conn)


@hookimpl
def register_routes(datasette: Any) -> list[tuple[str, Any]]:
    """Pages and endpoints."""
    from .serving import routes

    return routes()


@hookimpl
def render_cell(
    row: Any, value: Any, column: str, table: Any, database: str, datasette: Any
) -> Any:
    """Sealed columns: what they are, and for those who may read, what they say."""
    if table is None or not isinstance(value, bytes):
        return None
    from .cells import sealed_cell

    return sealed_cell(datasette, database, table, row, column, value)


@hookimpl
def filters_from_request(request: Any, database: str, table: str, datasette: Any) -> Any:
    """``?_hybrid=query`` on the table page of memories."""
    if table != "memories" or not request.args.get("_hybrid"):
        return None
    from .filtering import found_memories

    return found_memories(datasette, request, database)


@hookimpl
def menu_links(datasette: Any, actor: Any, request: Any) -> Any:
    """A way to the search from every page."""
    from .serving import menu

    return menu(datasette, actor)


@hookimpl
def database_actions(datasette: Any, actor: Any, database: str, request: Any) -> Any:
    """A way to the search from the database's own page."""
    from .serving import database_menu

    return database_menu(datasette, database)
