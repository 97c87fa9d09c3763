"""Cookies: those of a request, refused where Datasette would fail at them, and those we give.

Boundary: reads a request's headers and quotes nothing of them. What we give no script can read, and
no other site can make a browser send: strictly, so that it cannot time the answer of a search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from itsdangerous import BadSignature

from .. import compat
from .answers import refusal

UNREADABLE = "Cookie: this header is no list of cookies; delete this site's cookies and try again"
NAME_DIGITS = 16


def refused_cookies(scope: Mapping[str, Any]) -> Any:
    """The answer to a request whose cookies Python cannot read; ``None`` where it can.

    Datasette 0.65 reads them in UTF-8, and both versions byte by byte.
    """
    try:
        for encoding in ("utf-8", "latin-1"):
            cookies_in(scope, encoding)
    except (CookieError, UnicodeDecodeError):
        return refusal(UNREADABLE, 400)
    return None


def cookies_in(scope: Mapping[str, Any], encoding: str = "latin-1") -> dict[str, str]:
    """The cookies of a request by name. Raises ``CookieError``, ``UnicodeDecodeError``."""
    read: SimpleCookie = SimpleCookie()
    for name, value in scope["headers"]:
        if name.lower() == b"cookie":
            read.load(value.decode(encoding))
    return {name: one.value for name, one in read.items()}


def cookie_name(kind: str, of: str) -> str:
    """The name of one of our cookies of a kind, which says nothing of what it is ``of``."""
    return f"{kind}_{hashlib.sha256(of.encode('utf-8', 'surrogatepass')).hexdigest()[:NAME_DIGITS]}"


def give(
    datasette: Any, request: Any, response: Any, name: str, value: str, seconds: int | None = None
) -> None:
    """Put a cookie into a response, for so many seconds, or until the browser closes."""
    response.set_cookie(
        name,
        value,
        path=datasette.setting("base_url"),
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=compat.is_https(datasette, request),
    )


def signed(
    datasette: Any, cookies: Mapping[str, str], name: str, namespace: str, database: str
) -> Mapping[str, Any]:
    """What a cookie says that we have signed for a database; nothing without, or if forged."""
    given = cookies.get(name)
    try:
        value = datasette.unsign(given, namespace) if given else None
    except BadSignature:
        return {}
    return value if isinstance(value, dict) and value.get("database") == database else {}
