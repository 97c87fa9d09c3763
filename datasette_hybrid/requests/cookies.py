"""Cookies that cannot be read: refused before Datasette, which fails at them, sees them.

Boundary: reads a request's headers and quotes nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

UNREADABLE = "Cookie: this header is no list of cookies; delete this site's cookies and try again"


def refused_cookies(scope: Mapping[str, Any]) -> Any:
    """The answer to a request whose cookies Python cannot read; ``None`` where it can."""
    given = [value for name, value in scope["headers"] if name.lower() == b"cookie"]
    if all(map(_readable, given)):
        return None
    from ..search.api import refusal  # with every endpoint: not while starting

    return refusal(UNREADABLE, 400)


def _readable(value: bytes) -> bool:
    """As Datasette 0.65 reads them, in UTF-8, and as both versions do, byte by byte."""
    try:
        SimpleCookie().load(value.decode())
        SimpleCookie().load(value.decode("latin-1"))
    except (CookieError, UnicodeDecodeError):
        return False
    return True
