"""Datasette's own pages of a vault: menus, search boxes, descriptions, and what must not be done.

Boundary: nothing here opens a memory. A link or a box is shown to those alone whom the page behind
it will serve, which checks again. A vault's tables cannot be changed through Datasette: a row
that was not sealed where it belongs would be one that does not open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from datasette.utils import tilde_decode
from markupsafe import Markup

from memory_store.errors import NotAVaultError
from memory_store.host import LATER_TABLES, MEMORY_TABLES, VAULT_TABLES

from ..connections import REFUSED
from ..permissions.asker import asker
from ..permissions.grants import may_see
from ..permissions.tables import Access, needed
from ..requests.frame import hybrid_path, unlock_page
from ..vaults.registry import MANY, names_found, vaults_of
from ..vaults.vault import Vault
from . import cells, filters
from . import compat as compat_native
from .cells import Link, link, memory_actions
from .descriptions import TABLES

_described: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""By Datasette: the databases whose tables it knows of."""

Links = Callable[[], Awaitable[list[Link]]]


# -- menus ------------------------------------------------------------------------------


def menu(datasette: Any, actor: Any) -> Links:
    """The link in Datasette's menu, where there is a vault to search."""

    async def links() -> list[Link]:
        seen = asker.get().visible
        first = sorted(vaults_of(datasette).all(), key=lambda one: not seen.get(one.database))
        for vault in first:
            if await may_see(datasette, actor, vault.database):
                return [{"href": datasette.urls.path("/-/hybrid"), "label": "Search memories"}]
        return []

    return links


def database_actions(datasette: Any, database: str) -> list[Link]:
    """What the menu of a database offers, when it holds a vault."""
    vault = _vault(datasette, database)
    if vault is None:
        return []
    path = hybrid_path(datasette, database)
    grants = vault.offered(asker.get().on(database))
    if vault.locked or not grants:
        way = "Open this vault with its passphrase, key or recovery code."
        return [link(path, "Unlock and search memories", way)]
    how = "By name or by meaning, in the order of relevance."
    offered = [
        (grants.search, path, "Search memories", how),
        (grants.write, f"{path}/new", "New memory", "Write one; it is sealed as it is saved."),
    ]
    return [link(*one) for allowed, *one in offered if allowed]


def table_actions(datasette: Any, request: Any, database: str, table: str) -> list[Link]:
    """What the menu of a vault's table offers; on a page of found rows their order of relevance."""
    vault = _vault(datasette, database)
    if vault is None or table not in MEMORY_TABLES:
        return []
    offered = database_actions(datasette, database)
    ranked = _ranked(datasette, vault, request) if table == "memories" else None
    if ranked is None:
        return offered
    way = "The same search on the search page, with excerpts."
    return [link(ranked, "On the search page", way), *offered]


def row_actions(datasette: Any, database: str, table: str, row: Any) -> list[Link]:
    """What the menu of a memory's row offers (1.0; on 0.65 the row's title is followed by it)."""
    vault = _vault(datasette, database)
    if vault is None or table != "memories" or vault.locked:
        return []
    return memory_actions(datasette, vault, row)


def _ranked(datasette: Any, vault: Vault, request: Any) -> str | None:
    """The search page's address of the query in a table page's; ``None`` where there is none."""
    query = filters.asked_for(request) if request is not None else ""
    if not query or vault.settings.private_queries or not asker.get().on(vault.database).search:
        return None
    pairs = {"q": [query], **filters.options_asked(request)}
    return f"{hybrid_path(datasette, vault.database)}?{urlencode(pairs, doseq=True)}"


def jump_items(datasette: Any, request: Any) -> list[Any]:
    """Searches in 1.0's jump menu: what was typed there, asked of each vault."""
    typed = (request.args.get("q") or "").strip() if request is not None else ""
    items = []
    for vault in _searchable(datasette):
        path = hybrid_path(datasette, vault.database)
        label = f"Search {vault.database}"
        if typed and not vault.settings.private_queries:
            path, label = f"{path}?{urlencode({'q': typed})}", f"{label} for “{typed}”"
        words = f"search memories {vault.database} {typed}"
        items.append(compat_native.jump_item(label, path, "Memories", words))
    return items


async def before_rendering(
    datasette: Any, request: Any, view_name: str | None, database: str | None, table: str | None
) -> dict[str, Any]:
    """Fill in the sealed cells of a page, and what its search box needs.

    0.65 asks no plugin for a box; 1.0 leaves the one of memories empty after a search.
    """
    await cells.fill(datasette, view_name)
    if view_name == "index" and not compat_native.has_boxes_of_plugins():
        return {"hybrid_box": await home_box(datasette, request)}
    if view_name == "database" and not compat_native.has_boxes_of_plugins():
        return {"hybrid_box": await database_box(datasette, request, str(database))}
    if request is None or (view_name, table) != ("table", "memories"):
        return {}
    vault = _vault(datasette, str(database))
    if vault is None or vault.settings.private_queries:
        return {}
    return {"search": filters.asked_for(request), **filters.shown_order(request)}


# -- in place of a page that is closed --------------------------------------------------


def closed_page(datasette: Any, request: Any, reason: str) -> Any:
    """What a visitor may do who may not see a vault's table; ``None`` where it is none's."""
    place = request.url_vars or {}
    vault = _vault(datasette, tilde_decode(place.get("database") or ""))
    if vault is None or cells.DATA.search(request.path):
        return None
    table = tilde_decode(place.get("table") or "")
    closed = needed(table) is not Access.NONE or reason.startswith(REFUSED)
    if not closed or not asker.get().visible.get(vault.database):
        return None
    return unlock_page(datasette, request, vault, status=403, refusal=reason)


# -- search boxes -----------------------------------------------------------------------


async def home_box(datasette: Any, request: Any) -> Markup | None:
    """On the home page: a box for every vault that the asker may search."""
    found = _searchable(datasette)
    private = any(vault.settings.private_queries for vault in found)
    path = datasette.urls.path("/-/hybrid")
    return await _box(datasette, request, path, "memories", private) if found else None


async def database_box(datasette: Any, request: Any, database: str) -> Markup | None:
    """On the page of a database that holds a vault which the asker may search, or unlock first."""
    here = _vault(datasette, database)
    if here is not None and here.locked:  # the way to it, for everybody who sees the page
        href = f"{hybrid_path(datasette, database)}/unlock"
        return Markup('<p>{} is locked. <a href="{}">Unlock</a></p>').format(database, href)
    for vault in _searchable(datasette):
        if vault.database == database:
            path, private = hybrid_path(datasette, database), vault.settings.private_queries
            return await _box(datasette, request, path, database, private)
    return None


async def table_box(datasette: Any, request: Any, database: str, table: str) -> Markup | None:
    """On the page of memories: the way to the ranking, or a box where Datasette's own may not be.

    Datasette's box sends its query in the address, which a vault with private queries does not
    have. On the pages of a vault's other tables there is the box of the database.
    """
    vault = _vault(datasette, database)
    if vault is None or table not in MEMORY_TABLES:
        return None
    if vault.locked or table != "memories" or vault.settings.private_queries:
        return await database_box(datasette, request, database)
    ranked = _ranked(datasette, vault, request)
    if ranked is None:
        return None
    return Markup('<p><a href="{}">On the search page</a>, with excerpts</p>').format(ranked)


async def _box(datasette: Any, request: Any, path: str, name: str, private_queries: bool) -> Markup:
    context = {"path": path, "name": name, "private_queries": private_queries}
    return Markup(await datasette.render_template("_hybrid_box.html", context, request=request))


def style_sheets(datasette: Any, database: str | None, table: str | None) -> list[str]:
    """For the pages of a vault's tables alone: ids on one line, the first row higher up."""
    if database is None or table not in MEMORY_TABLES or _vault(datasette, database) is None:
        return []
    return [datasette.urls.static_plugins("datasette-hybrid", "tables.css")]


# -- what 1.0 and 0.65 learn about the tables ------------------------------------------


def metadata(datasette: Any, key: str | None, table: str | None) -> dict[str, Any]:
    """Descriptions, default order and hidden tables of the vaults found so far, for 0.65.

    Asked for in the middle of reading the configuration, too: nothing is known before that. When
    Datasette looks for a ``key`` above the tables it looks for permissions, of which we say
    nothing; what it learns it copies for each table, which doubled what its home page takes.
    """
    if table is None and key not in (None, "databases"):
        return {}
    return {
        "databases": {
            name: {"tables": compat_native.unsaid(datasette, name, TABLES)}
            for name in names_found(datasette)
        }
    }


async def describe_new(datasette: Any) -> None:
    """The same for 1.0, which keeps it: for vaults that it does not know of yet.

    Not of many: it goes through all that is said of any table for each permission that it checks.
    """
    if datasette is None or len(names_found(datasette)) > MANY:
        return
    vaults = vaults_of(datasette).all()
    if len(vaults) > MANY:
        return
    described = _described.setdefault(datasette, set())
    for vault in vaults:
        if vault.database not in described:
            described.add(vault.database)
            await compat_native.describe(datasette, vault.database, TABLES)


# -- what no actor may do ---------------------------------------------------------------


def no_changes(datasette: Any, action: str) -> Any:
    """1.0's rule that a vault's tables are changed through the vault alone."""
    databases = [vault.database for vault in vaults_of(datasette).all()]
    whole = action == compat_native.CREATE_VIEW
    tables = [None] if whole else [*MEMORY_TABLES, *VAULT_TABLES, *LATER_TABLES]
    return compat_native.no_changes(databases, tables)


def _searchable(datasette: Any) -> list[Vault]:
    known = asker.get()
    return [
        vault
        for vault in vaults_of(datasette).all()
        if known.on(vault.database).search and not vault.locked
    ]


def _vault(datasette: Any, database: str) -> Vault | None:
    try:
        return vaults_of(datasette).of(database)
    except NotAVaultError:
        return None
