"""Answers in JSON, and the headers that every answer of ours carries.

Boundary: an answer may hold opened text, so no cache keeps it and no other site learns its address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasette import Response

from memory_store.host import write_json

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def refusal(
    message: str,
    status: int,
    extra: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """``{"ok": false, "error": …, "errors": […], "status": …}``."""
    data = {"ok": False, "error": message, "errors": [message], "status": status, **(extra or {})}
    return Response.json(data, status=status, headers={**HEADERS, **(headers or {})})


def answer(data: Any, status: int = 200) -> Response:
    """``data`` as JSON with the headers every answer carries."""
    body = write_json(data)
    return Response(
        body, status=status, headers=dict(HEADERS), content_type="application/json; charset=utf-8"
    )
