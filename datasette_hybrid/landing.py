"""Where the one-time link of ``datasette --root`` leads: to the search page."""

from __future__ import annotations

import asyncio
from typing import Any

from datasette.utils import tilde_encode

from .vaults.registry import vaults_of

ONE_TIME_LINK = "/-/auth-token"


def landing_on_search(datasette: Any, scope: Any, send: Any) -> Any:
    """``send``, or for the one-time link one that goes on to the search page where there is one.

    Datasette itself goes on to its first page. The cookie that it sets is left as it is.
    """
    if datasette is None or not scope.get("path", "").endswith(ONE_TIME_LINK):
        return send

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] == 302:
            vaults = await asyncio.to_thread(vaults_of(datasette).all)
            if vaults:
                one = f"/{tilde_encode(vaults[0].database)}" if len(vaults) == 1 else ""
                page = datasette.urls.path(f"{one}/-/hybrid").encode()
                others = [pair for pair in message["headers"] if pair[0].lower() != b"location"]
                message = {**message, "headers": [*others, (b"location", page)]}
        await send(message)

    return sending
