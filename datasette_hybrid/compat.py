"""Every difference between Datasette 0.65 and 1.0, found by feature and never by version."""

from __future__ import annotations

import contextvars
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datasette.plugins import pm
from datasette.utils import actor_matches_allow, await_me_maybe

try:
    from datasette.permissions import Action, PermissionSQL
    from datasette.resources import DatabaseResource
    from datasette.tokens import TokenInvalid
except ImportError:  # 0.65
    Action = PermissionSQL = DatabaseResource = None

    class TokenInvalid(Exception):  # type: ignore[no-redef]
        """1.0 raises it for a rejected token; 0.65 has nothing that does."""


try:
    from datasette.permissions import _permission_check_cache
except ImportError:  # 0.65 remembers nothing
    _permission_check_cache = None


SEARCH, DECRYPT, WRITE = ON_COLLECTIONS = ("hybrid-search", "hybrid-decrypt", "hybrid-write")
AUDIT = "hybrid-audit"
ACTIONS = (*ON_COLLECTIONS, AUDIT)
DESCRIPTIONS = {
    SEARCH: "Search a vault: ids, scores and metadata (can confirm guessed words)",
    DECRYPT: "Read the text of a vault's memories",
    WRITE: "Add, change and delete a vault's memories",
    AUDIT: "Read a vault's audit trail: who asked for what, and when",
}
KNOWN_ON_065 = ("datasette.default_permissions", "hybrid", "datasette_hybrid")
"""Plugins whose rules for our actions are known; others have to be asked about each collection."""


@dataclass(frozen=True)
class Rule:
    """A decision about one of our actions on a database (no ``collection``) or on a collection."""

    database: str
    collection: str | None
    allowed: bool
    reason: str


@dataclass(frozen=True)
class Known:
    """A vault's collections as an actor may come by them: open ones, and those of their roles.

    ``by_role`` maps an action to the closed collections in which the actor's role includes it.
    """

    open: frozenset[str] = frozenset()
    by_role: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def usable(self, action: str) -> frozenset[str]:
        """The collections in which nothing but a permission is wanting to do ``action``."""
        return self.open | self.by_role.get(action, frozenset())


@dataclass(frozen=True)
class Held:
    """Where an actor holds one permission: on a database itself, and on which collections."""

    database: bool = False
    collections: frozenset[str] = frozenset()


_probe: contextvars.ContextVar[bool] = contextvars.ContextVar("hybrid_probe", default=False)


def configuration(datasette: Any) -> Mapping[str, Any]:
    """The plugin's own configuration as written: ``{"$env": …}`` and literals still apart."""
    if hasattr(datasette, "config"):
        plugins = (datasette.config or {}).get("plugins")
    else:
        plugins = datasette.metadata("plugins")
    found = (plugins or {}).get("datasette-hybrid") or {}
    return found if isinstance(found, Mapping) else {}


def actions(on_collections: Any) -> list[Any]:
    """The plugin's actions for 1.0's ``register_actions``; 0.65 needs no such list.

    ``on_collections`` is the class of resources that a collection is.

    Asked about a database, an action on collections answers for the database as a whole, as those
    on tables do.
    """
    classes = {AUDIT: DatabaseResource}
    return [
        Action(
            name=name,
            description=DESCRIPTIONS[name],
            resource_class=classes.get(name, on_collections),
        )
        for name in ACTIONS
    ]


def permission_rules(rules: Iterable[Rule]) -> Any:
    """1.0's answer to ``permission_resources_sql``; ``None``: no opinion, for want of a rule."""
    rows = [[one.database, one.collection, int(one.allowed), one.reason] for one in rules]
    if not rows:
        return None
    columns = ("parent", "child", "allow", "reason")
    chosen = ", ".join(
        f"json_extract(value, '$[{place}]') as {column}" for place, column in enumerate(columns)
    )
    return PermissionSQL(
        sql=f"select {chosen} from json_each(:hybrid_rules)",
        params={"hybrid_rules": json.dumps(rows)},
    )


def denials(denied: Iterable[tuple[Sequence[str], Sequence[str | None]]], reason: str) -> Any:
    """The same of databases and what is denied in each of them (``None``: the database itself)."""
    parts, params = [], {"hybrid_why": reason}
    for n, (databases, resources) in enumerate(denied):
        if databases and resources:
            parts.append(
                "select d.value as parent, r.value as child, 0 as allow, :hybrid_why as reason "
                f"from json_each(:hybrid_in{n}) as d, json_each(:hybrid_of{n}) as r"
            )
            params |= {f"hybrid_in{n}": json.dumps(databases)}
            params |= {f"hybrid_of{n}": json.dumps(resources)}
    return PermissionSQL(sql=" union all ".join(parts), params=params) if parts else None


def forget_permissions() -> None:
    """Have permissions asked anew: 1.0 remembers its answers from a request's start to its end."""
    known = _permission_check_cache and _permission_check_cache.get()
    if known:
        known.clear()


async def ask_together(datasette: Any, actor: Any, database: str) -> None:
    """1.0: one query for all that a request asks about a database; it remembers the answers."""
    if hasattr(datasette, "allowed_many"):
        await datasette.allowed_many(
            actions=("view-database", *ACTIONS), resource=DatabaseResource(database), actor=actor
        )


async def held(
    datasette: Any, actor: Any, databases: Mapping[str, Known]
) -> dict[str, dict[str, Held]]:
    """Database → action → where ``actor`` holds it, roles in closed collections included."""
    if hasattr(datasette, "allowed"):
        return await _held_by_sql(datasette, actor, databases)
    return {
        database: {
            action: await _held_by_hook(datasette, actor, action, database, known)
            for action in ACTIONS
        }
        for database, known in databases.items()
    }


async def _held_by_sql(
    datasette: Any, actor: Any, databases: Mapping[str, Known]
) -> dict[str, dict[str, Held]]:
    """1.0: one query for all actions on all collections, and one for each database."""
    wanted = any(known.open or known.by_role for known in databases.values())
    allowed = await _allowed_collections(datasette, actor) if wanted else {}
    result: dict[str, dict[str, Held]] = {}
    for database, known in databases.items():
        whole = await datasette.allowed_many(
            actions=ACTIONS, resource=DatabaseResource(database), actor=actor
        )
        result[database] = {
            action: Held(
                bool(whole[action]),
                known.usable(action).intersection(allowed.get((database, action), ())),
            )
            for action in ACTIONS
        }
    return result


async def _allowed_collections(datasette: Any, actor: Any) -> dict[tuple[str, str], set[str]]:
    """(Database, action) → ids of collections, by Datasette's own queries for each action.

    Asked in one: a query of its own for each action costs every request 1 ms more (measured).
    """
    parts: list[str] = []
    values: dict[str, Any] = {}
    for place, action in enumerate(ON_COLLECTIONS):
        query, parameters = await datasette.allowed_resources_sql(action=action, actor=actor)
        for name, value in parameters.items():
            # each action's parameters have the same names
            query = re.sub(rf":{re.escape(name)}(?![A-Za-z0-9_])", f":hybrid{place}_{name}", query)
            values[f"hybrid{place}_{name}"] = value
        parts.append(f"select {place} as place, parent, child from ({query})")
    found = await datasette.get_internal_database().execute(" union all ".join(parts), values)
    allowed: dict[tuple[str, str], set[str]] = {}
    for row in found.rows:
        key = (row["parent"], ON_COLLECTIONS[row["place"]])
        allowed.setdefault(key, set()).add(row["child"])
    return allowed


async def _held_by_hook(
    datasette: Any, actor: Any, action: str, database: str, known: Known
) -> Held:
    """0.65: the database's answer holds for each open collection, unless a plugin says else."""
    whole = bool(await datasette.permission_allowed(actor, action, database, default=False))
    asking = _others_have_rules()
    found = set()
    for collection in known.usable(action) if action in ON_COLLECTIONS else ():
        if not within_restrictions(actor, action, database, collection):
            continue
        if collection not in known.open:
            found.add(collection)
        elif asking:
            place = (database, collection)
            if await datasette.permission_allowed(actor, action, place, default=whole):
                found.add(collection)
        elif whole:
            found.add(collection)
    return Held(whole and within_restrictions(actor, action, database), frozenset(found))


def _others_have_rules() -> bool:
    """Whether a plugin might decide by collection: asking of each costs 30 µs (measured)."""
    known = {one.plugin_name for one in pm.hook.permission_allowed.get_hookimpls()}
    return not known.issubset(KNOWN_ON_065)


async def allowed(datasette: Any, actor: Any, action: str, database: str) -> bool:
    """Whether ``actor`` may do ``action`` on ``database``, tokens' restrictions included."""
    if hasattr(datasette, "allowed"):
        resource = DatabaseResource(database=database)
        return bool(await datasette.allowed(action=action, resource=resource, actor=actor))
    if not within_restrictions(actor, action, database):
        return False
    default = not action.startswith("hybrid-")
    return bool(await datasette.permission_allowed(actor, action, database, default=default))


async def may_view(datasette: Any, actor: Any, database: str) -> bool:
    """Whether ``actor`` may see the instance and this database at all.

    A restricted token that names one of our permissions there need not name ``view-database``, as
    one for inserting rows need not: it is enough that its actor may.
    """
    if await _may_view(datasette, actor, database):
        return True
    if not _is_restricted(actor) or not any(
        restricted_to(actor, action, database) for action in ACTIONS
    ):
        return False
    unrestricted = {name: value for name, value in actor.items() if name != "_r"}
    return await _may_view(datasette, unrestricted, database)


async def _may_view(datasette: Any, actor: Any, database: str) -> bool:
    if hasattr(datasette, "allowed"):
        return await allowed(datasette, actor, "view-database", database)
    visible, _ = await datasette.check_visibility(
        actor, permissions=[("view-database", database), "view-instance"]
    )
    return bool(visible)


def _is_restricted(actor: Any) -> bool:
    return isinstance(actor, Mapping) and actor.get("_r") is not None


def within_restrictions(
    actor: Any, action: str, database: str, collection: str | None = None
) -> bool:
    """Whether a token's restrictions (``_r``) leave it the action there; everything without any."""
    if not _is_restricted(actor):
        return True
    restrictions = actor["_r"]
    if not isinstance(restrictions, Mapping):
        return False
    places = [restrictions.get("a"), _under(restrictions.get("d"), database)]
    if collection is not None:
        places.append(_under(_under(restrictions.get("r"), database), collection))
    return any(isinstance(names, list | tuple) and action in names for names in places)


def restricted_to(actor: Any, action: str, database: str) -> bool:
    """Whether a restricted token names the action for the database or anything in it."""
    if within_restrictions(actor, action, database):
        return True
    restrictions = actor["_r"] if _is_restricted(actor) else None
    resources = _under(_under(restrictions, "r"), database)
    return isinstance(resources, Mapping) and any(
        within_restrictions(actor, action, database, collection) for collection in resources
    )


def _under(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def matches(actor: Any, allow: Any) -> bool:
    """Datasette's allow-block rule, with a missing block denying instead of allowing."""
    return allow is not None and bool(actor_matches_allow(actor, allow))


async def first_actor(datasette: Any, answers: Iterable[Any]) -> Any:
    """The actor that ``actor_from_request`` hooks agree on, as this Datasette would choose.

    1.0 awaits every hook and lets a rejected token (``TokenInvalid``) override them all; 0.65
    stops at the first answer. Awaiting all of them satisfies both.
    """
    actor, rejection = None, None
    for answer in answers:
        try:
            found = await await_me_maybe(answer)
        except TokenInvalid as error:
            rejection = rejection or error
            continue
        actor = actor or found
    if rejection is not None:
        raise rejection
    return actor


async def still_recognised(datasette: Any, request: Any) -> bool:
    """Ask for the request's actor once more; whether nothing rejects what it is known by.

    0.65 has no rejections: a token that is worth nothing any more has no actor.
    """
    try:
        for answer in pm.hook.actor_from_request(datasette=datasette, request=request):
            await await_me_maybe(answer)
    except TokenInvalid:
        return False
    return True


async def carry_context_into_sql(datasette: Any) -> None:
    """Let SQL functions see who is asking: 0.65 starts its SQL threads without the context.

    Without it every text column of :func:`hybrid_search` would be NULL there. Nothing is changed
    where a probe shows that the context arrives by itself.
    """
    token = _probe.set(True)
    try:
        arrived = await _any_database(datasette).execute_fn(lambda connection: _probe.get())
    finally:
        _probe.reset(token)
    executor = datasette.executor
    if arrived or executor is None:
        return
    plain_submit = executor.submit

    def submit(function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any:
        return plain_submit(contextvars.copy_context().run, function, *arguments, **keywords)

    executor.submit = submit


def _any_database(datasette: Any) -> Any:
    if hasattr(datasette, "get_internal_database"):
        return datasette.get_internal_database()
    return datasette.databases["_internal"]


async def body(request: Any, limit: int) -> bytes | None:
    """The request's body; ``None`` when it is longer than ``limit`` bytes. 0.65 has no limit."""
    chunks, size, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            return b""  # the client went away
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > limit:
            return None
    return b"".join(chunks)


def is_https(datasette: Any, request: Any) -> bool:
    """Whether cookies may be marked Secure."""
    return request.scheme == "https" or bool(datasette.setting("force_https_urls"))
