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
from contextlib import suppress
from http.cookies import CookieError
from typing import Any

from ..requests import cookies
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from .sessions import Session

NAMESPACE = "hybrid-unlock"
LOGOUT = "/-/logout"  # of Datasette


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
    _end(datasette, request.cookies, vault)
    lifetime = vault.settings.absolute_seconds
    until = time.time() + lifetime if lifetime else None
    token = vault.sessions.begin(Session(identity(request.actor), vault.unlock_id, until))
    signed = datasette.sign({"database": vault.database, "session": token}, NAMESPACE)
    seconds = max(1, round(lifetime)) if lifetime else None
    cookies.give(datasette, request, response, _cookie_name(vault), signed, seconds)


def end_session(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """End the request's session, and take the cookie out of the browser."""
    _end(datasette, request.cookies, vault)
    path = datasette.setting("base_url")
    response.set_cookie(_cookie_name(vault), "", path=path, max_age=0, expires=0)


def ending_at_logout(datasette: Any, scope: Mapping[str, Any], send: Any) -> Any:
    """``send``, which ends the browser's sessions where Datasette's own logout is carried out."""
    base = str(datasette.setting("base_url"))
    path = str(scope.get("path", ""))
    path = f"/{path.removeprefix(base)}" if path.startswith(base) else path
    if scope.get("method") != "POST" or path != LOGOUT:
        return send

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 400:
            held: Mapping[str, str] = {}
            with suppress(CookieError):
                held = cookies.cookies_in(scope)
            gone = [
                (
                    b"set-cookie",
                    f"{_cookie_name(vault)}=; Path={base}; Max-Age=0; HttpOnly".encode("latin-1"),
                )
                for vault in vaults_of(datasette).all()
                if _end(datasette, held, vault)
            ]
            message = {**message, "headers": [*message.get("headers", ()), *gone]}
        await send(message)

    return sent


def _end(datasette: Any, held: Mapping[str, str], vault: Vault) -> bool:
    """End the session that a cookie names; whether there was such a cookie."""
    token = _token(datasette, held, vault)
    if token is not None:
        vault.sessions.end(token)
    return token is not None


def _token(datasette: Any, held: Mapping[str, str], vault: Vault) -> str | None:
    """The session that a cookie for this vault names; ``None`` for none, or a forged one."""
    said = cookies.signed(datasette, held, _cookie_name(vault), NAMESPACE, vault.database)
    token = said.get("session")
    return token if isinstance(token, str) else None


def _cookie_name(vault: Vault) -> str:
    """One for each vault and database: a copy of a vault has its id, and locks of its own."""
    return cookies.cookie_name("ds_hybrid", f"{vault.vault_id} {vault.database}")
