"""Browser sessions that unlocked a vault: kept here on the server, named by a signed cookie.

Boundary: the cookie proves that this browser once sent the right secret; it holds no key, and a
random name of a session that can be ended here. A session is worth nothing after the vault was
locked, for another vault or database, when its time is over (counted from the unlocking in this
browser), or beside an ``Authorization`` header (a restricted token must not borrow a person's
session). It belongs to the actor who began it. One that began without an actor belongs to the first
who signs in with that browser. A cookie that comes without its actor, or with another one, ends its
session for good: so a copy of it is worth nothing after a logout.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any

from itsdangerous import BadSignature
from msgspec import Struct
from msgspec.structs import replace

from .. import compat

if TYPE_CHECKING:
    from ..vaults.vault import Vault

NAMESPACE = "hybrid-unlock"
NAME_DIGITS = 16
MOST_SESSIONS = 1_000  # of one vault; who begins another one ends the oldest
TOKEN_BYTES = 16
LOGOUT = "/-/logout"  # of Datasette


class Session(Struct, frozen=True):
    """Whose it is (``None``: a visitor's), of which unlocking, and until when."""

    actor: str | None
    unlock: str
    until: float | None


class Sessions:
    """The sessions of one vault between an unlock and a lock. Safe to use from many threads."""

    def __init__(self) -> None:
        self._held: dict[bytes, Session] = {}
        self._lock = threading.Lock()

    def begin(self, session: Session) -> str:
        """A new session. Returns its name."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self._lock:
            while len(self._held) >= MOST_SESSIONS:
                del self._held[next(iter(self._held))]
            self._held[_digest(token)] = session
        return token

    def holds(self, token: str, unlock: str, actor: str | None) -> bool:
        """Whether a request of ``actor`` comes from that session; ends it for another actor."""
        name = _digest(token)
        with self._lock:
            found = self._held.get(name)
            if found is None:
                return False
            over = found.until is not None and time.time() >= found.until
            if over or found.unlock != unlock or found.actor not in (None, actor):
                del self._held[name]
                return False
            if found.actor != actor:
                self._held[name] = replace(found, actor=actor)
            return True

    def end(self, token: str) -> None:
        """Forget a session."""
        with self._lock:
            self._held.pop(_digest(token), None)

    def wipe(self) -> None:
        """Forget all: the vault is locked."""
        with self._lock:
            self._held.clear()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


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
    from ..vaults.registry import vaults_of

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
