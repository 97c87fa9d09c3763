"""Every difference between Datasette 0.65 and 1.0, told apart by feature and never by version."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from datasette.utils import actor_matches_allow, await_me_maybe

try:
    from datasette.permissions import Action, PermissionSQL
    from datasette.resources import DatabaseResource
    from datasette.tokens import TokenInvalid
except ImportError:  # 0.65
    Action = PermissionSQL = DatabaseResource = None

    class TokenInvalid(Exception):  # type: ignore[no-redef]
        """1.0 raises it for a rejected token; 0.65 has nothing that does."""


SEARCH, DECRYPT, WRITE = ACTIONS = ("hybrid-search", "hybrid-decrypt", "hybrid-write")
DESCRIPTIONS = {
    SEARCH: "Search a vault: ids, scores and metadata (can confirm guessed words)",
    DECRYPT: "Read the text of a vault's memories",
    WRITE: "Add, change and delete a vault's memories",
}

_probe: contextvars.ContextVar[bool] = contextvars.ContextVar("hybrid_probe", default=False)


def configuration(datasette: Any) -> Mapping[str, Any]:
    """The plugin's own configuration as written: ``{"$env": …}`` and literals still apart."""
    if hasattr(datasette, "config"):
        plugins = (datasette.config or {}).get("plugins")
    else:
        plugins = datasette.metadata("plugins")
    found = (plugins or {}).get("datasette-hybrid") or {}
    return found if isinstance(found, Mapping) else {}


def actions() -> list[Any]:
    """The plugin's actions for 1.0's ``register_actions``; 0.65 needs no such list."""
    return [
        Action(name=name, description=DESCRIPTIONS[name], resource_class=DatabaseResource)
        for name in ACTIONS
    ]


def permission_rules(databases: Iterable[str]) -> Any:
    """1.0's answer to ``permission_resources_sql``: these databases are allowed, or no opinion."""
    names = list(databases)
    if not names:
        return None
    selects = [
        f"select :hybrid_{i} as parent, null as child, 1 as allow, "
        "'datasette-hybrid configuration' as reason"
        for i in range(len(names))
    ]
    return PermissionSQL(
        sql=" union all ".join(selects),
        params={f"hybrid_{i}": name for i, name in enumerate(names)},
    )


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
    """Whether ``actor`` may see the instance and this database at all."""
    if hasattr(datasette, "allowed"):
        return await allowed(datasette, actor, "view-database", database)
    visible, _ = await datasette.check_visibility(
        actor, permissions=[("view-database", database), "view-instance"]
    )
    return bool(visible)


def within_restrictions(actor: Any, action: str, database: str) -> bool:
    """Whether a restricted token's allow-list (``_r``) names the action. 1.0 does this itself."""
    restrictions = actor.get("_r") if isinstance(actor, Mapping) else None
    if restrictions is None:
        return True
    if not isinstance(restrictions, Mapping):
        return False
    everywhere = restrictions.get("a") or ()
    here = (restrictions.get("d") or {}).get(database) or ()
    return action in everywhere or action in here


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
