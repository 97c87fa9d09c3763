"""Whole addresses of this server, as answers for programs have them."""

from __future__ import annotations

from typing import Any


def absolute_url(datasette: Any, request: Any, path: str) -> str:
    """The whole address of a path; the path alone where the request's Host is no address."""
    try:
        return str(datasette.absolute_url(request, path))
    except ValueError:  # "[", as of an IPv6 address, that is never closed
        return path
