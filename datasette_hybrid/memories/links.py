"""How a memory hangs together with others: as JSON, and on its page.

Boundary: links, backlinks and their counts are those among the collections that the actor may
read, and what is near a memory those that they may search and read, too. In all others nothing is
opened, counted or named.
"""

from __future__ import annotations

from typing import Any

from datasette import Response
from msgspec import to_builtins

from memory_store.access import Grants
from memory_store.records import Related, Unfolded

from ..requests import questions
from ..requests.admission import work
from ..requests.answers import answer
from ..search.api import endpoint
from ..search.forms import whole
from ..vaults.vault import Vault
from .api import named_id
from .markdown import Notes

SHOWN = 5  # related memories on a page
NEAR, MOST = 10, 50  # in an answer, usually and at the most


@endpoint("GET", "HEAD")
async def links(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/links.json``."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    memory = named_id(request)
    found = await work.run(lambda: vault.use(grants.decrypt).links(memory, refs=False))
    return answer({"ok": True, **found.as_dict()})


@endpoint("GET", "HEAD", takes=("limit",))
async def related(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/related.json``."""
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt")
    memory = named_id(request)
    limit = whole(questions.arguments(request), "limit", NEAR, least=1, most=MOST)
    found = await work.run(lambda: near(vault, grants, memory, limit))
    return answer({"ok": True, "rows": [one.as_dict() for one in found]})


@endpoint("GET", "HEAD")
async def topics(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/topics.json``: those that memories near to it have."""
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    memory = named_id(request)
    found = await work.run(lambda: vault.use(grants.decrypt).suggested_topics(memory, refs=False))
    return answer({"ok": True, "rows": [to_builtins(one) for one in found]})


def near(vault: Vault, grants: Grants, memory: str, limit: int = SHOWN) -> list[Related]:
    """What is near a memory, of what the actor may search and read. Work for a thread."""
    scope = grants.search & grants.decrypt
    return vault.use(scope).related(memory, limit=limit, refs=False) if scope else []


def notes_of(path: str, found: Unfolded) -> Notes:
    """What the links in a memory mean, for its page below ``path``."""

    def address(memory: str) -> str:
        return f"{path}/memories/{memory}"

    return Notes(
        address,
        found.targets,
        {
            memory: (one.title, one.text, Notes(address, targets))
            for memory, (one, targets) in found.embedded.items()
        },
    )
