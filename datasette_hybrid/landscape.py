"""The landscape of a vault as a page with a map, and as JSON.

Boundary: shows names of topics and folders, words and titles, of those collections alone that the
asker may read. Topics and words go into addresses of searches, except where queries are kept out of
these.
"""

from __future__ import annotations

from textwrap import wrap
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

SIZES = (18, 15, 12)  # of a name's letters, in the map's units: the largest that has room
LETTER, LINES = 0.6, 2  # width of a letter, of its size; lines of a name
COUNTED_FROM = 38.0  # radius that has room for a number under the name
NAMED_FROM = 3  # letters that a circle must have room for, to be given a name
CUT = "…"


class RegionView(Struct, frozen=True):
    """A region, the fields of a search for it, and its name as its circle has room for it."""

    region: LandscapeRegion
    fields: list[tuple[str, str]]
    tasks: list[tuple[str, str]]
    lines: list[str]
    size: int
    counted: bool
    summary: str


@page("GET", "HEAD")
async def landscape_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/landscape``."""
    vault, found = await _landscape(datasette, request)
    path = hybrid_path(datasette, vault.database)
    context = {
        "landscape": found,
        "views": [_view(one) for one in found.regions],
        "width": MAP_WIDTH,
        "height": MAP_HEIGHT,
        "as_of": last(questions.arguments(request), "as_of"),
        "private_queries": vault.settings.private_queries,
        "href": lambda fields: address(path, fields),
    }
    return await render(datasette, request, "hybrid_landscape.html", context, vault=vault)


@endpoint("GET", "HEAD", takes=("as_of",))
async def landscape_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/landscape.json``."""
    _, found = await _landscape(datasette, request)
    return answer({"ok": True, **found.as_dict()})


async def _landscape(datasette: Any, request: Any) -> tuple[Vault, Landscape]:
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    as_of = last(questions.arguments(request), "as_of") or None
    return vault, await work.run(lambda: vault.use(grants.decrypt).landscape(as_of=as_of))


def _view(one: LandscapeRegion) -> RegionView:
    lines, size = _named(one.name, one.radius * 1.8)
    fields = [("topic", one.name)] if one.topics else [("q", " ".join(one.words) or one.name)]
    return RegionView(
        region=one,
        fields=fields,
        tasks=[*fields, ("type", "task"), ("status", "open")],
        lines=lines,
        size=size,
        counted=one.radius >= COUNTED_FROM,
        summary=f"{one.name}: {one.memories:,} memor{'y' if one.memories == 1 else 'ies'}",
    )


def _named(name: str, width: float) -> tuple[list[str], int]:
    """The lines of a name and their size, in a circle of that width: whole words, where they fit
    at any size; else the beginning."""
    for size in SIZES:
        room = int(width / (LETTER * size))
        for said in dict.fromkeys((name, name.rpartition("/")[2])):
            lines = wrap(said, max(room, 1), break_long_words=False)
            if len(lines) <= LINES and max(map(len, lines), default=0) <= room:
                return lines, size
    if room < NAMED_FROM:
        return [], size
    lines = wrap(said, room, max_lines=LINES, placeholder=CUT, break_long_words=False)
    return [one if len(one) <= room else one[: room - 1] + CUT for one in lines], size
