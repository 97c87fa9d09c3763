"""The landscape of a vault as a page with a map, and as JSON.

Boundary: shows names of topics and titles, of those collections alone that the asker may read.
The names go into addresses of searches, except where queries are kept out of these.
"""

from __future__ import annotations

from typing import Any

from datasette import Response
from msgspec import Struct

from memory_store.host import MAP_HEIGHT, MAP_WIDTH
from memory_store.records import Landscape, LandscapeRegion

from .requests import questions
from .requests.admission import work
from .requests.answers import answer
from .requests.frame import hybrid_path, page, render
from .search.addresses import address
from .search.api import endpoint
from .search.forms import last
from .vaults.vault import Vault

LETTER = 11.0  # width of a letter of the map, in its units
COUNTED_FROM = 38.0  # radius that has room for a number under the name
NAMED_FROM = 3  # letters that a circle must have room for, to be given a name


class RegionView(Struct, frozen=True):
    """A region, the address of a search for it, and its name as its circle has room for it."""

    region: LandscapeRegion
    href: str
    tasks_href: str
    label: str
    counted: bool
    summary: str


@page("GET", "HEAD")
async def landscape_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/landscape``."""
    vault, found = await _landscape(datasette, request)
    path = hybrid_path(datasette, vault.database)
    context = {
        "database": vault.database,
        "path": path,
        "landscape": found,
        "views": [_view(one, path) for one in found.regions],
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "as_of": last(questions.arguments(request), "as_of"),
        "private_queries": vault.settings.private_queries,
        "topic_href": lambda topic: address(path, [("topic", topic)]),
    }
    return await render(datasette, request, "hybrid_landscape.html", context)


@endpoint("GET", "HEAD")
async def landscape_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/landscape.json``."""
    _, found = await _landscape(datasette, request)
    return answer({"ok": True, **found.as_dict()})


async def _landscape(datasette: Any, request: Any) -> tuple[Vault, Landscape]:
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    as_of = last(questions.arguments(request), "as_of") or None
    return vault, await work.run(lambda: vault.use(grants.decrypt).landscape(as_of=as_of))


def _view(one: LandscapeRegion, path: str) -> RegionView:
    room = int(one.radius * 1.8 / LETTER)
    label = one.name if len(one.name) <= room else f"{one.name[: room - 1]}…"
    tasks = [("topic", one.name), ("type", "task"), ("status", "open")]
    return RegionView(
        region=one,
        href=address(path, [("topic", one.name)]),
        tasks_href=address(path, tasks),
        label=label if room >= NAMED_FROM else "",
        counted=one.radius >= COUNTED_FROM,
        summary=f"{one.name}: {one.memories:,} memor{'y' if one.memories == 1 else 'ies'}",
    )
