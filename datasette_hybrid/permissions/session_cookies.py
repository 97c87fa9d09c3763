"""The cookie that names a browser session, which unlocked a vault: set, read and taken away.

Boundary: the cookie proves that this browser once sent the right secret. It holds no key, only the
random name of a session that can be ended on the server. A session is worth nothing after the vault
was locked, for another vault or database, when its time is over (counted from the unlocking in this
browser), or beside an ``Authorization`` header (a restricted token must not borrow a person's
session).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from itsdangerous import BadSignature

from .. import compat
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from .sessions import Session

NAMESPACE = "hybrid-unlock"
NAME_DIGITS = 16
LOGOUT = "/-/logout"  # of Datasette


def cookie_name(vault: Vault) -> str:
    """One cookie per vault and database: a copy of a vault has its id, and locks of its own."""
    named = hashlib.sha256(f"{vault.vault_id} {vault.database}".encode()).hexdigest()
    return f"ds_hybrid_{named[:NAME_DIGITS]}"


def identity(actor: Any) -> str | None:
    """What identifies an actor: the id, else all that is known; ``None`` for a visitor."""
    if not actor:
        return None
    given = actor.get("id") if isinstance(actor, Mapping) else None
    if isinstance(given, str | int) and not isinstance(given, bool):
        return f"id {given}"
    whole = json.dumps(actor, sort_keys=True, default=repr)
    return f"no id {hashlib.sha256(whole.encode()).hexdigest()}"


def session_unlock(datasette: Any, request: Any, vault: Vault, actor: Any) -> bool:
    """Whether the request comes from a session that unlocked this vault and still may."""
    if not vault.unlock_id or "authorization" in request.headers:
        return False
    token = _token(datasette, request.cookies, vault)
    return token is not None and vault.sessions.holds(token, vault.unlock_id, identity(actor))


def grant_session(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """Put the cookie into the response. It ends when the vault would, counted from now."""
    if not vault.unlock_id:
        return  # locked again meanwhile
    former = _token(datasette, request.cookies, vault)
    if former is not None:
        vault.sessions.end(former)
    lifetime = vault.settings.absolute_seconds
    until = time.time() + lifetime if lifetime else None
    token = vault.sessions.begin(Session(identity(request.actor), vault.unlock_id, until))
    response.set_cookie(
        cookie_name(vault),
        datasette.sign({"database": vault.database, "session": token}, NAMESPACE),
        path=datasette.setting("base_url"),
        max_age=max(1, round(lifetime)) if lifetime else None,  # none: until the browser closes
        httponly=True,
        # strict: another site cannot even make the browser open a search and time the answer
        samesite="strict",
        secure=compat.is_https(datasette, request),
    )


def end_session(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """End the request's session, and take the cookie out of the browser."""
    token = _token(datasette, request.cookies, vault)
    if token is not None:
        vault.sessions.end(token)
    path = datasette.setting("base_url")
    response.set_cookie(cookie_name(vault), "", path=path, max_age=0, expires=0)


def ending_at_logout(datasette: Any, scope: Mapping[str, Any], send: Any) -> Any:
    """``send``, which ends the browser's sessions where Datasette's own logout is carried out."""
    if scope.get("method") != "POST" or _path(datasette, scope) != LOGOUT:
        return send

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 400:
            gone = _ended(datasette, _cookies(scope))
            message = {**message, "headers": [*message.get("headers", ()), *gone]}
        await send(message)

    return sent


def _ended(datasette: Any, cookies: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """End the sessions that the cookies name. Returns the headers that take these away."""
    headers = []
    for vault in vaults_of(datasette).all():
        token = _token(datasette, cookies, vault)
        if token is not None:
            vault.sessions.end(token)
            gone = (
                f"{cookie_name(vault)}=; Path={datasette.setting('base_url')}; Max-Age=0; HttpOnly"
            )
            headers.append((b"set-cookie", gone.encode("latin-1")))
    return headers


def _token(datasette: Any, cookies: Mapping[str, str], vault: Vault) -> str | None:
    """The session that a cookie for this vault names; ``None`` for none, or a forged one."""
    signed = cookies.get(cookie_name(vault))
    if not signed:
        return None
    try:
        value = datasette.unsign(signed, NAMESPACE)
    except BadSignature:
        return None
    if not isinstance(value, dict) or value.get("database") != vault.database:
        return None
    token = value.get("session")
    return token if isinstance(token, str) else None


def _cookies(scope: Mapping[str, Any]) -> dict[str, str]:
    read: SimpleCookie = SimpleCookie()
    try:
        for name, value in scope["headers"]:
            if name.lower() == b"cookie":
                read.load(value.decode("latin-1"))
    except CookieError:
        return {}
    return {name: one.value for name, one in read.items()}


def _path(datasette: Any, scope: Mapping[str, Any]) -> str:
    path, base = str(scope.get("path", "")), str(datasette.setting("base_url"))
    return f"/{path.removeprefix(base)}" if path.startswith(base) else path
