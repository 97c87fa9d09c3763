"""Browser sessions that unlocked a vault: a signed cookie bound to the vault and to that unlock.

Boundary: the cookie proves that this browser once sent the right secret; it holds no key. It is
worth nothing after the vault was locked, for another vault, or beside an ``Authorization`` header
(a restricted token must not borrow a person's session).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from itsdangerous import BadSignature

from . import compat

if TYPE_CHECKING:
    from .vaults import Vault

NAMESPACE = "hybrid-unlock"
LIFETIME = 12 * 60 * 60  # seconds; the vault itself is locked by then


def cookie_name(vault: Vault) -> str:
    """One cookie per vault, so that several can be open in one browser."""
    return f"ds_hybrid_{vault.vault_id[:16]}"


def session_unlock(datasette: Any, request: Any, vault: Vault) -> bool:
    """Whether the request comes from a session that unlocked this vault and still may."""
    if not vault.unlock_id or "authorization" in request.headers:
        return False
    signed = request.cookies.get(cookie_name(vault))
    if not signed:
        return False
    try:
        value = datasette.unsign(signed, NAMESPACE)
    except BadSignature:
        return False
    return bool(value == {"vault": vault.vault_id, "unlock": vault.unlock_id})


def grant_session(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """Put the cookie into the response."""
    value = {"vault": vault.vault_id, "unlock": vault.unlock_id}
    response.set_cookie(
        cookie_name(vault),
        datasette.sign(value, NAMESPACE),
        path=datasette.setting("base_url"),
        max_age=LIFETIME,
        httponly=True,
        # strict: another site cannot even make the browser open a search and time the answer
        samesite="strict",
        secure=compat.is_https(datasette, request),
    )


def end_session(datasette: Any, response: Any, vault: Vault) -> None:
    """Take the cookie out of the browser."""
    path = datasette.setting("base_url")
    response.set_cookie(cookie_name(vault), "", path=path, max_age=0, expires=0)
