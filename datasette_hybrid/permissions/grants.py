"""Who may search, read and change: the one checkpoint in front of every surface.

Boundary: everything is denied unless this module says otherwise. A grant on a database comes from
an allow block (by default for the actor ``root``) or from another plugin's permission rules, and
covers its open collections; a closed collection's comes from the role of a member; both only as
far as a token's restrictions go. A browser session that unlocked the vault with its
secret stands for the holder of the key, and covers everything. No grant ever comes from a vault
being open. Pages, JSON, SQL functions and table cells all read the same answer, which is worked
out once per request, before any SQL runs: asking Datasette from inside a SQL thread can deadlock.
And once more when the request's body has arrived, which may be long after its headers: see
:func:`renewing`, through which every body comes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from datasette import Request
from datasette.utils import tilde_decode
from msgspec.structs import replace

from memory_store.access import ALL_GRANTS, NO_GRANTS, Grants
from memory_store.errors import NotAVaultError
from memory_store.host import Scope

from .. import compat, configuration
from ..vaults.memberships import about, asked_about, memberships, remembered
from ..vaults.registry import MANY, vaults_of
from ..vaults.vault import Vault
from .asker import NO_ASKER, Asker, asker
from .membership import Membership, rules
from .session_cookies import session_unlock

_BELOW_ONE = re.compile(r"(?:\A|/)([^/]+)/-/hybrid(?:\.json|\.csv|/.*)?\Z")
FORMAT = re.compile(r"\.\w+$")
FOR_PROGRAMS = (".json", ".csv", "/mcp")  # without a menu, which names all that can be searched
SESSION = replace(ALL_GRANTS, audit=True)
"""Of a browser that unlocked the vault. Still not ``models``: the server pays for those."""


async def recognise(datasette: Any, request: Any, answers: Iterable[Any]) -> Any:
    """Settle on the request's actor and work out the grants. Returns the actor."""
    actor = await compat.first_actor(datasette, answers)
    if "/-/static" not in request.path:
        known = actor or request.scope.get("actor")
        found = await resolve(datasette, request, known)
        # Datasette will note the actor in the request's scope, where a default one stands now
        as_it_came = Request(dict(request.scope), request.receive)
        asker.set(replace(found, again=partial(_recognised_anew, datasette, as_it_came)))
    return actor


async def _recognised_anew(datasette: Any, request: Any) -> Asker:
    """Who is asking by now: a token may have been revoked, or have run out."""
    if not await compat.still_recognised(datasette, request):
        return NO_ASKER
    return asker.get()  # which asking for the actor has set


async def resolve(datasette: Any, request: Any, actor: Any) -> Asker:
    """Grants of ``actor`` (and of the request's unlock cookies) on every vault that the request
    can reach and they may see.

    They are those of now, and not renewed: ``again`` is for code that recognises a request.
    """
    compat.forget_permissions()
    vaults, more = _reached(datasette, request.path)
    found = replace(await _on(datasette, request, actor, vaults), path=request.path)
    if not more:
        return found
    others = found.others

    async def of_another(database: str) -> Asker:
        key = (repr(actor), database)
        if key not in others:
            vaults = vaults_of(datasette).some([database])
            others[key] = await _on(datasette, request, actor, vaults)
        return others[key]

    return replace(found, more=of_another, loop=asyncio.get_running_loop())


async def _on(datasette: Any, request: Any, actor: Any, vaults: Sequence[Vault]) -> Asker:
    """Grants of a request on some vaults, with what its browser has unlocked."""

    def unlocked() -> frozenset[str]:
        found = (one for one in vaults if session_unlock(datasette, request, one, actor))
        return frozenset(vault.database for vault in found)

    return await resolve_some(datasette, actor, [one.database for one in vaults], unlocked)


def _reached(datasette: Any, path: str) -> tuple[list[Vault], bool]:
    """The vaults that an answer can be about, and whether SQL may name others.

    All. Below one vault's address that one alone, where no menu names the others, and none below
    another database's. Of very many below one database its own: it costs the same however many
    there are.
    """
    known, below = vaults_of(datasette), _BELOW_ONE.search(path)
    names, menu = known.names(), not path.endswith(FOR_PROGRAMS)
    many = len(names) > MANY
    if below is not None and (many or not menu):
        try:
            return [known.of(tilde_decode(below[1]))], False
        except NotAVaultError:
            return [], False
    database, _ = place(datasette, path)
    alone = many or (not menu and database not in names)
    # of another one a thread asks that holds one of those in which the question is answered
    if alone and database and not datasette.crossdb and datasette.setting("num_sql_threads") > 1:
        return known.some([database]), True
    return known.all(), False


def place(datasette: Any, path: str) -> tuple[str | None, str]:
    """The database and the table that a path is below, as far as it is; ``None``: no database."""
    inside = path.removeprefix(datasette.setting("base_url").rstrip("/")).lstrip("/")
    route, _, rest = inside.partition("/")
    routes = {one.route or name: name for name, one in datasette.databases.items()}
    database = routes.get(tilde_decode(route)) or routes.get(tilde_decode(FORMAT.sub("", route)))
    return database, tilde_decode(FORMAT.sub("", rest.partition("/")[0]))


async def resolve_some(
    datasette: Any,
    actor: Any,
    databases: Sequence[str],
    unlocked: Callable[[], frozenset[str]] = frozenset,
) -> Asker:
    """Grants of an ``actor`` who need not be the request's on some vaults.

    A session that ``unlocked`` one stands for the holder of its key; asked once the vaults that
    were due have been locked.
    """
    actor_id = id_of(actor)
    async with remembered(datasette, actor_id, databases) as known:
        for name in databases:
            with about(name):
                await compat.ask_together(datasette, actor, name)
        visible = {name: await compat.may_view(datasette, actor, name) for name in databases}
        seen = [name for name in databases if visible[name]]
        sessions = unlocked().intersection(seen)
        asked = {name: _known(known.get(name), actor_id) for name in seen if name not in sessions}
        held = await compat.held(datasette, actor, asked)
    grants = {name: _grants(held[name], known.get(name), actor_id) for name in held}
    whole = {
        name: frozenset(action for action, one in actions.items() if one.database)
        for name, actions in held.items()
    }
    return Asker(
        grants | dict.fromkeys(sessions, SESSION),
        actor_id,
        whole | dict.fromkeys(sessions, frozenset(compat.ACTIONS)),
        sessions,
        actor=actor,
        visible=visible,
    )


async def may_see(datasette: Any, actor: Any, database: str) -> bool:
    """Whether ``actor`` may see a database: as it was found when their own request began.

    On 0.65 each time it is asked costs as much as a tenth of a search page.
    """
    known = asker.get()
    if database in known.visible and actor == known.actor:
        return known.visible[database]
    return await compat.may_view(datasette, actor, database)


def renewing(receive: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """An ASGI ``receive`` after whose last piece of a body the grants are what they are then.

    A client that sends headers, loses a right, and sends the body afterwards has lost it; so has a
    token that was revoked meanwhile.
    """

    async def received() -> Any:
        message = await receive()
        again = asker.get().again
        if again and not message.get("more_body"):  # or the client is gone: that is the end, too
            asker.set(await again())
        return message

    return received


def _known(membership: Membership | None, actor_id: str | None) -> compat.Known:
    """What may come into question. While locked it is not known what is closed: nothing."""
    if membership is None:
        return compat.Known()
    roles = {action: membership.of(actor_id, action) for action in compat.ON_COLLECTIONS}
    return compat.Known(membership.open, roles)


def _grants(
    held: Mapping[str, compat.Held], membership: Membership | None, actor_id: str | None
) -> Grants:
    if membership is None:
        return NO_GRANTS
    search, decrypt, write = (held[action].collections for action in compat.ON_COLLECTIONS)
    return Grants(
        search=Scope.of(search),
        decrypt=Scope.of(decrypt),
        write=Scope.of(write),
        audit=held[compat.AUDIT].database,
        create=held[compat.WRITE].database,
        manage=Scope.of(membership.owned(actor_id) & search & decrypt & write),
    )


def id_of(actor: Any) -> str | None:
    """An actor's id as text, as members are listed; ``None`` for an actor without one."""
    given = actor.get("id") if isinstance(actor, Mapping) else None
    known = isinstance(given, str | int) and not isinstance(given, bool)
    return str(given) or None if known else None


def configured(datasette: Any, actor: Any, action: str, database: str) -> bool:
    """Whether the plugin's own configuration lets ``actor`` do ``action`` on ``database``."""
    settings = vaults_of(datasette).settings.get(database)
    settings = settings or configuration.DatabaseSettings(database)
    return compat.matches(actor, settings.allow_block(action))


async def rules_by_sql(datasette: Any, actor: Any, action: str) -> Any:
    """Allow blocks, root's default and membership, for 1.0's ``permission_resources_sql``.

    Of all databases a thousand rules, made for each of seven questions, took as long as a search.
    """
    named = vaults_of(datasette).settings
    usual = compat.matches(actor, configuration.DatabaseSettings("").allow_block(action))
    on_databases = [
        compat.Rule(name, None, True, "datasette-hybrid configuration")
        for name in asked_about(datasette)
        if (configured(datasette, actor, action, name) if name in named else usual)
    ]
    if action == compat.AUDIT:
        return compat.permission_rules(on_databases)
    known = await memberships(datasette)
    return compat.permission_rules([*on_databases, *rules(known, id_of(actor), action)])


async def decide(
    datasette: Any, actor: Any, action: str, database: str, collection: str, *, closed: bool
) -> bool | None:
    """For 0.65's ``permission_allowed`` about ``(database, id)``.

    Of an open collection: what holds on the database. Of a ``closed`` one: what the actor's role
    there includes, and nothing else.
    """
    membership = (await memberships(datasette)).get(database)
    if membership is None or collection not in (membership.closed if closed else membership.open):
        return None
    within = compat.within_restrictions(actor, action, database, collection)
    if closed:
        return membership.lets(id_of(actor), action, collection) and within
    allowed = await datasette.permission_allowed(actor, action, database, default=False)
    return (bool(allowed) and within) or None
