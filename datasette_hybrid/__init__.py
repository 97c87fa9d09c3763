# mypy: allow-untyped-decorators
"""A Datasette plugin: private memories, sealed at rest and searchable by name and by meaning.

Hook implementations only, each one delegating. Everything heavy is imported inside a hook, so
that ``datasette --help`` stays as fast as it was. The rooms behind them:

``vaults`` opens, rests and locks what lies behind the databases; ``permissions`` says who may do
what there; ``requests`` turns a request into a question and lets it in. On these stand the
surfaces: ``search``, ``memories`` (one memory, read and written), ``collections``, ``uploads``,
``unlock``, ``audit``, and ``tables``, Datasette's own pages of a vault's tables. ``openapi``
describes the JSON API of them all. Of the store they import four modules: ``host``, ``records``,
``errors`` and ``access``.
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
def register_output_renderer(datasette: Any) -> list[Any]:
    """Datasette's own JSON, with the order that rows of memories really stand in.

    A Datasette that is being made asks for this before it connects to any database.
    """
    from .connections import guard_connections
    from .tables.json_pages import render_json

    guard_connections()
    return [{"extension": "json", "render": render_json}]


@hookimpl
def prepare_jinja2_environment(env: Any) -> None:
    """Give the scripts of templates a nonce, which scripts in data cannot have."""
    from .requests.policy import mark_scripts

    mark_scripts(env)


@hookimpl
def shutdown(datasette: Any) -> None:
    """Wipe the keys (1.0; on 0.65 the lifespan message in ``asgi_wrapper`` does it)."""
    from .vaults.registry import vaults_of

    vaults_of(datasette).lock_all()


@hookimpl
def get_metadata(datasette: Any, key: str | None, table: str | None) -> dict[str, Any]:
    """What the tables of every vault are, for 0.65; 1.0 learns it when a vault is found."""
    from .tables.hooks import metadata

    return metadata(datasette, key, table)


@hookimpl
def asgi_wrapper(datasette: Any) -> Any:
    """Forget who was asking after every request, and lock the vaults at the last message."""
    from .serving import wrapper

    return wrapper(datasette)


@hookimpl(hookwrapper=True)
def actor_from_request(datasette: Any, request: Any) -> Any:
    """Work out what the request's actor may do as soon as the actor is known."""
    from .permissions.grants import recognise

    outcome = yield
    outcome.force_result([recognise(datasette, request, outcome.get_result())])


@hookimpl
def register_actions(datasette: Any) -> list[Any]:
    """The four permissions, for 1.0."""
    from .compat import actions
    from .permissions.resources import CollectionResource

    return actions(CollectionResource)


@hookimpl
def permission_resources_sql(datasette: Any, actor: Any, action: str) -> Any:
    """Allow blocks, root's default, membership of collections, closed tables, for 1.0."""
    from . import compat
    from .permissions import grants, tables
    from .tables import compat as compat_native
    from .tables import hooks as native

    if action in tables.ACTIONS:
        return tables.rules_by_sql(datasette, actor, action)
    if action in (*compat_native.CHANGES, compat_native.CREATE_VIEW):
        return native.no_changes(datasette, action)
    if action not in compat.ACTIONS:
        return None
    return grants.rules_by_sql(datasette, actor, action)


@hookimpl
def permission_allowed(datasette: Any, actor: Any, action: str, resource: Any) -> bool | None:
    """Allow blocks and root's default, for 0.65."""
    from . import compat
    from .permissions import grants

    if action not in compat.ACTIONS or not isinstance(resource, str):
        return None
    return grants.configured(datasette, actor, action, resource) or None


@hookimpl(specname="permission_allowed", tryfirst=True)
def permission_allowed_on_open(datasette: Any, actor: Any, action: str, resource: Any) -> Any:
    """Open collections, for 0.65, where the last plugin that has a say is heard."""
    return _allowed_on_collections(datasette, actor, action, resource, closed=False)


@hookimpl(specname="permission_allowed", trylast=True)
def permission_allowed_on_closed(datasette: Any, actor: Any, action: str, resource: Any) -> Any:
    """Closed collections, for 0.65: here it is ours."""
    return _allowed_on_collections(datasette, actor, action, resource, closed=True)


def _allowed_on_collections(
    datasette: Any, actor: Any, action: str, resource: Any, *, closed: bool
) -> Any:
    from . import compat
    from .permissions import grants

    if action not in compat.ON_COLLECTIONS or not isinstance(resource, tuple):
        return None
    return grants.decide(datasette, actor, action, *resource, closed=closed)


@hookimpl(specname="permission_allowed", trylast=True)
def permission_allowed_on_tables(datasette: Any, actor: Any, action: str, resource: Any) -> Any:
    """A vault's tables and the download of its file, for 0.65: here it is ours, too."""
    from .permissions import tables

    if action not in tables.ACTIONS or resource is None:
        return None
    return tables.decide(datasette, actor, action, resource)


@hookimpl(specname="prepare_connection", trylast=True)
def prepare_other_connection(conn: Any, database: str, datasette: Any) -> None:
    """A vault's tables are closed on connections that Datasette did not make, too."""
    from .connections import guard_other

    guard_other(conn, database, datasette)


@hookimpl
def prepare_connection(conn: Any, database: str, datasette: Any) -> None:
    """The SQL functions, and sqlite-vec's where this Python can load extensions."""
    from .serving import add_functions, add_vec_functions, read_without_room

    read_without_room(datasette, database)
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
    from .tables.cells import COLUMNS, sealed_cell

    if table is None or not (isinstance(value, bytes) or column in COLUMNS):
        return None
    return sealed_cell(datasette, database, table, row, column, value)


@hookimpl
def extra_template_vars(
    view_name: Any, database: Any, table: Any, request: Any, datasette: Any
) -> Any:
    """Just before a page is rendered its sealed cells are filled in."""
    from .tables.hooks import before_rendering

    return before_rendering(datasette, request, view_name, database, table)


@hookimpl
def extra_css_urls(database: Any, table: Any, datasette: Any) -> list[str]:
    """How a vault's own tables look."""
    from .tables.hooks import style_sheets

    return style_sheets(datasette, database, table)


@hookimpl(trylast=True)  # behind Datasette's own, which says that there is nothing to search
def filters_from_request(request: Any, database: str, table: str, datasette: Any) -> Any:
    """``?_hybrid=query`` and the search box on the table page of memories."""
    if table != "memories":
        return None
    from .tables.filters import found_memories

    return found_memories(datasette, request, database)


@hookimpl
def forbidden(datasette: Any, request: Any, message: str) -> Any:
    """The way to unlock, in place of a vault's table that is closed to the visitor."""
    from .tables.hooks import closed_page

    return closed_page(datasette, request, message)


@hookimpl
def skip_csrf(datasette: Any, scope: Any) -> bool:
    """The forms that show again what was typed are checked by themselves, for 0.65."""
    from .requests.cross_site import is_checked_here

    return is_checked_here(datasette, scope)


@hookimpl
def menu_links(datasette: Any, actor: Any, request: Any) -> Any:
    """A way to the search from every page."""
    from .tables.hooks import menu

    return menu(datasette, actor)


@hookimpl
def database_actions(datasette: Any, actor: Any, database: str, request: Any) -> Any:
    """A way to the search from the database's own page."""
    from .tables import hooks as native

    return native.database_actions(datasette, database)


@hookimpl
def table_actions(datasette: Any, actor: Any, database: str, table: str, request: Any) -> Any:
    """Ways to the search from the pages of a vault's tables."""
    from .tables import hooks as native

    return native.table_actions(datasette, request, database, table)


@hookimpl
def row_actions(datasette: Any, actor: Any, database: str, table: str, row: Any) -> Any:
    """What can be done with a memory, from its row (1.0)."""
    from .tables import hooks as native

    return native.row_actions(datasette, database, table, row)


@hookimpl
def jump_items_sql(datasette: Any, actor: Any, request: Any) -> Any:
    """Searches in the jump menu (1.0)."""
    from .tables.hooks import jump_items

    return jump_items(datasette, request)


@hookimpl
def top_homepage(datasette: Any, request: Any) -> Any:
    """A search box on the home page (1.0; on 0.65 a template shows it)."""
    from .tables.hooks import home_box

    return home_box(datasette, request)


@hookimpl
def top_database(datasette: Any, request: Any, database: str) -> Any:
    """A search box on the page of a vault's database (1.0; on 0.65 a template)."""
    from .tables.hooks import database_box

    return database_box(datasette, request, database)


@hookimpl
def top_table(datasette: Any, request: Any, database: str, table: str) -> Any:
    """The way from found rows to their ranking, or a search box (1.0)."""
    from .tables.hooks import table_box

    return table_box(datasette, request, database, table)
