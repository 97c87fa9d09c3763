"""How the plugin sits in Datasette: start, stop, routes, SQL functions, menus."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

from datasette.utils.sqlite import sqlite3

from memory_store import host
from memory_store.access import NO_GRANTS
from memory_store.errors import BusyError, LockedError, MemoryStoreError, NotAVaultError
from memory_store.host import HybridFunctions, StoreAndGrants

from . import compat
from .audit.recorder import SQL, surface
from .connections import guard_answers, is_guarded
from .landing import landing_on_search
from .permissions.asker import NO_ASKER, Asker, asker
from .permissions.grants import renewing
from .permissions.session_cookies import ending_at_logout
from .requests.admission import seats_in_sql, work
from .requests.cookies import refused_cookies
from .requests.late_bodies import lingering
from .requests.policy import note_opened, protected, protection
from .requests.turns import Requests, let_others_go_first
from .tables.cells import Page, page
from .tables.hooks import describe_new
from .tracebacks import free_cursors, print_no_sql, print_no_variables
from .vaults.registry import vaults_of

NO_ANSWER = StoreAndGrants(None, NO_GRANTS)
FUNCTION = b"hybrid_search"  # in the address of a query that searches
OURS = "/-/hybrid"  # in the address of every page and endpoint of this plugin
SQL_SHARE = 0.8
"""Of Datasette's time limit: a search that uses it up would be reported as an interrupted query."""


def start(datasette: Any) -> Callable[[], Awaitable[None]]:
    """Check the configuration now (it may stop the start); open the vaults when awaited."""
    guard_answers(datasette)
    print_no_variables()
    print_no_sql()
    vaults = vaults_of(datasette)
    vaults.attach()

    async def opening() -> None:
        free_cursors(datasette)
        await compat.carry_context_into_sql(datasette)
        await asyncio.to_thread(vaults.open_at_start)
        await describe_new(datasette)
        await check_guards(datasette)

    return opening


async def check_guards(datasette: Any) -> None:
    """Where a plugin keeps connections from being guarded, take SQL from those without grants."""
    vaults = vaults_of(datasette)
    for vault in await asyncio.to_thread(vaults.all):
        if not await is_guarded(datasette, vault.database):
            vaults.unguarded.add(vault.database)
            vault.log("some plugin reads past its guard: only those who administer it may run SQL")


def wrapper(datasette: Any) -> Callable[[Any], Any]:
    """ASGI middleware around the whole of Datasette."""
    reference = weakref.ref(datasette)
    requests = Requests()

    def wrap(app: Any) -> Any:
        async def wrapped(scope: Any, receive: Any, send: Any) -> None:
            guard_answers(reference())
            if scope["type"] == "lifespan":
                await app(scope, _following(reference, receive), send)
                return
            from .requests.cross_site import refused_json  # with every endpoint: not while starting

            receive, send = lingering(scope, receive, send)
            send = ending_at_logout(reference(), scope, send)
            send = landing_on_search(reference(), scope, send)
            path = scope.get("path", "")
            refusal = (OURS in path and refused_cookies(scope)) or refused_json(scope)
            if refusal:
                await refusal.asgi_send(send)
                return
            # A request made by Datasette inside another one must neither see nor leave an asker.
            token = asker.set(NO_ASKER)
            shown = page.set(Page(path))
            try:
                in_sql = scope.get("method") == "GET" and FUNCTION in scope.get("query_string", b"")
                with requests.answering(search=in_sql or OURS in path), protection():
                    async with _turn_in_sql(reference(), in_sql) as answers:
                        await let_others_go_first()
                        await describe_new(reference())
                        sending = protected(reference(), path, _before(answers, send))
                        await app(scope, renewing(receive), sending)
            finally:
                page.reset(shown)
                asker.reset(token)

        return wrapped

    return wrap


def _turn_in_sql(datasette: Any, in_sql: bool) -> AbstractAsyncContextManager[Callable[[], None]]:
    """For a request that says in its address that it will search in SQL: its turn, before it takes
    a thread that it would wait in. What is called once it is answered."""
    return seats_in_sql(datasette).turn() if in_sql else nullcontext(lambda: None)


def _before(answers: Callable[[], None], send: Any) -> Any:
    async def sent(message: Any) -> None:
        answers()
        await send(message)

    return sent


def _following(reference: weakref.ref[Any], receive: Any) -> Any:
    """A server says when it begins to serve and when it ends; a single request has no server."""

    async def received() -> Any:
        message = await receive()
        datasette = reference()
        if datasette is not None:
            if message["type"] == "lifespan.startup":
                gc.freeze()  # all modules: looking through them made one page in twenty wait
                processes = await asyncio.to_thread(vaults_of(datasette).stay)
                work.widen(processes * host.DEPTH)
            if message["type"] == "lifespan.shutdown":
                await asyncio.to_thread(vaults_of(datasette).lock_all)
        return message

    return received


def add_vec_functions(connection: Any) -> None:
    """sqlite-vec's ``vec_*`` functions, unless this Python's SQLite loads no extensions."""
    with contextlib.suppress(host.ExtensionUnavailable):  # the plugin itself needs none of them
        host.load_vec(connection)


_functions: weakref.WeakKeyDictionary[Any, dict[tuple[str, bool], HybridFunctions]] = (
    weakref.WeakKeyDictionary()
)


def add_functions(connection: Any, database: str, datasette: Any) -> None:
    """Register the SQL functions on one of Datasette's connections.

    One that writes gets functions that answer nothing: a trigger in another database would call
    them on behalf of the writer, and keep the results where everyone reads.
    """
    found = datasette.databases.get(database)
    private = found is not None and found.is_memory and not found.memory_name
    writes = not private and is_writable(connection)
    of_databases = _functions.setdefault(datasette, {})
    functions = of_databases.get((database, writes))
    if functions is None:
        functions = functions_of(datasette, database, silent=writes)
        of_databases[database, writes] = functions
    functions.register(connection)


_first: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def read_without_room(datasette: Any, database: str) -> None:
    """Make Datasette's own connections to a file read it where its disk is full.

    SQLite shares what it knows of a log among the connections of a process. A connection that does
    not want to write there comes first, and stays: then those of Datasette read as it does.
    """
    found = datasette.databases.get(database)
    if found is None or found.path is None or not found.is_mutable or datasette.nolock:
        return
    first, path = _first.setdefault(datasette, {}), Path(found.path)
    if database in first:
        return
    with contextlib.suppress(MemoryStoreError, sqlite3.Error, OSError):  # Datasette says so itself
        access = host.file_access(path)
        if access.parameters == host.WITHOUT_SHARING:
            connection = host.connect(path, read_only=True, access=access)
            connection.execute("select 1 from sqlite_master").fetchone()
            first[database] = connection


def is_writable(connection: Any) -> bool:
    """Whether a connection can change its database: tried, without waiting, and taken back.

    Neither the address nor ``pragma query_only`` says so alone: files are opened read-only, shared
    memory is queried only, and 1.0 opens some files for writing wherever they are read.
    """
    (timeout,) = connection.execute("pragma busy_timeout").fetchone()
    try:
        connection.execute("pragma busy_timeout = 0").fetchall()
        connection.execute("begin")
        connection.execute("pragma user_version = 0")
    except sqlite3.DatabaseError as error:
        return "readonly" not in str(error)  # busy: another program is writing
    else:
        return True
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.execute(f"pragma busy_timeout = {int(timeout)}").fetchall()


def functions_of(datasette: Any, database: str, *, silent: bool = False) -> HybridFunctions:
    """The SQL functions of one database, which ask what the request's actor may do.

    ``silent`` ones take everybody for a stranger.
    """
    reference = weakref.ref(datasette)

    def resolve(named: str | None) -> StoreAndGrants:
        datasette = reference()
        if datasette is None or silent:
            return NO_ANSWER
        try:
            vault = vaults_of(datasette).of(named or database)
        except NotAVaultError:
            if named in (None, database):
                raise
            return NO_ANSWER  # as where there is one, but not for the asker
        vault.server.check()
        known, budget = asker.get(), int(datasette.setting("sql_time_limit_ms") * SQL_SHARE)
        if not known.knows(vault.database):
            known = _of_another(datasette, known, vault.database, budget / 1_000)
        grants = known.on(vault.database)
        if not grants:
            return NO_ANSWER
        surface.set(SQL)
        try:
            store = vault.use(grants.search | grants.decrypt, readable=grants.decrypt)
        except LockedError:
            return StoreAndGrants(None, grants)
        if grants.decrypt:
            note_opened()
        seats = seats_in_sql(datasette)
        return StoreAndGrants(store, grants, budget, lambda call: seats.run(call, budget / 1_000))

    settings = vaults_of(datasette).settings.get(database)
    return HybridFunctions(resolve, table=settings is None or settings.table_function)


def _of_another(datasette: Any, known: Asker, database: str, seconds: float) -> Asker:
    """What the asker may do on a database that the request's address does not name, for SQL.

    An SQL thread waits for this, so it takes a seat: of those threads one is free to answer.
    """
    more, loop = known.more, known.loop
    assert more is not None
    assert loop is not None

    def asked() -> Asker:
        return asyncio.run_coroutine_threadsafe(more(database), loop).result(seconds)

    try:
        return seats_in_sql(datasette).run(asked, seconds)
    except TimeoutError:
        raise BusyError("what you may do there was not found in time: try again") from None


def routes() -> list[tuple[str, Any]]:
    """Addresses and the views behind them."""
    from . import collections, landscape, mcp, review
    from .audit import pages as audit_pages
    from .code import api as code_api
    from .memories import api as memories_api
    from .memories import form_pages, selected, trash
    from .memories import links as memory_links
    from .memories import page as memory_page
    from .openapi import description as openapi
    from .saved import api as saved_api
    from .saved import feeds as saved_feeds
    from .saved import pages as saved_pages
    from .search import api, neighbours, pages, words
    from .unlock import pages as unlocking
    from .uploads import pages as uploading

    base = r"^/(?P<database>[^/]+)/-/hybrid"
    one = r"/memories/(?P<id>[^/]+)"
    return [
        (r"^/-/hybrid$", pages.across),
        (r"^/-/hybrid/openapi\.json$", openapi.openapi),
        (r"^/-/hybrid/mcp$", mcp.only_vault),
        (base + r"/mcp$", mcp.vault),
        (base + r"\.json$", api.search),
        (base + r"\.csv$", api.search_csv),
        (base + r"$", pages.search),
        (base + r"/first$", neighbours.first),
        (base + r"/unlock$", unlocking.unlock),
        (base + r"/lock$", unlocking.lock),
        (base + r"/import$", uploading.import_page),
        (base + r"/import\.json$", uploading.import_json),
        (base + r"/import/(?P<job>[^/]+)\.json$", uploading.job_json),
        (base + r"/import/(?P<job>[^/]+)$", uploading.job_page),
        (base + r"/audit$", audit_pages.audit_page),
        (base + r"/audit\.json$", audit_pages.audit_json),
        (base + r"/audit\.csv$", audit_pages.audit_csv),
        (base + r"/landscape$", landscape.landscape_page),
        (base + r"/landscape\.json$", landscape.landscape_json),
        (base + r"/exists$", words.exists_page),
        (base + r"/exists\.json$", words.exists),
        (base + r"/words\.json$", words.words),
        (base + r"/code/context\.json$", code_api.context),
        (base + r"/code/outline\.json$", code_api.outline),
        (base + r"/code/symbols\.json$", code_api.symbols),
        (base + r"/code/references\.json$", code_api.references),
        (base + r"/code/impact\.json$", code_api.impact),
        (base + r"/code/read\.json$", code_api.read),
        (base + r"/review$", review.review_page),
        (base + r"/review\.json$", review.review_json),
        (base + r"/memories\.json$", memories_api.memories),
        (base + r"/memories/edit\.json$", memories_api.edit_many),
        (base + r"/memories/delete\.json$", memories_api.delete_many),
        (base + one + r"/done\.json$", memories_api.done),
        (base + one + r"/reopen\.json$", memories_api.reopen),
        (base + one + r"/publish\.json$", memories_api.publish),
        (base + one + r"/links\.json$", memory_links.links),
        (base + one + r"/related\.json$", memory_links.related),
        (base + one + r"/topics\.json$", memory_links.topics),
        (base + one + r"\.json$", memories_api.memory),
        (base + r"/trash$", trash.trash_page),
        (base + r"/trash/restore$", trash.restore),
        (base + r"/trash/empty$", trash.empty),
        (base + r"/trash\.json$", trash.trash_json),
        (base + r"/trash/restore\.json$", trash.restore_json),
        (base + r"/trash/empty\.json$", trash.empty_json),
        (base + r"/searches\.json$", saved_api.searches),
        (base + r"/searches/(?P<id>[^/]+)/feed\.json$", saved_api.feed),
        (base + r"/searches/(?P<id>[^/]+)\.json$", saved_api.one_search),
        (base + r"/searches$", saved_pages.searches),
        (base + r"/searches/(?P<id>[^/]+)/change$", saved_pages.change),
        (base + r"/searches/(?P<id>[^/]+)$", saved_pages.run),
        (base + r"/feeds/(?P<id>[^/]+)\.(?P<form>atom)$", saved_feeds.feed),
        (base + r"/feeds/(?P<id>[^/]+)\.(?P<form>json)$", saved_feeds.feed),
        (base + r"/selected$", selected.selected),
        (base + r"/new$", form_pages.new),
        (base + one + r"/edit$", form_pages.edit),
        (base + one + r"/done$", memory_page.done),
        (base + one + r"/reopen$", memory_page.reopen),
        (base + one + r"/topics$", memory_page.topics),
        (base + one + r"/publish$", memory_page.publish),
        (base + one + r"/delete$", memory_page.delete),
        (base + one + r"/original$", memory_page.original),
        (base + one + r"$", memory_page.memory),
        (base + r"/collections$", collections.collections_page),
        (base + r"/collections\.json$", collections.collections_json),
        (base + r"/collections/(?P<id>[^/]+)\.json$", collections.collection_json),
        (
            base + r"/collections/(?P<id>[^/]+)/members/(?P<actor>[^/]+)\.json$",
            collections.member_json,
        ),
        # the rest is nowhere: Datasette 0.65 would look for a table of that name, and break
        (base + r"[./](?:.*\.)?json$", api.nowhere),
        (base + r"[./].*$", pages.nowhere),
    ]
