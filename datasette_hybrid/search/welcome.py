"""The search page before a question: how much there is, and ways in.

Boundary: asks as a search does, through :mod:`memory_store.access`; who may not read sees
numbers alone. Nothing that was searched for before is kept anywhere, so none of it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_store.access import Grants
from memory_store.errors import MemoryStoreError
from memory_store.records import SearchRequest

from ..requests import questions
from ..requests.admission import work
from ..vaults.vault import Vault
from .addresses import Asked, address
from .facets import HEADINGS, labelled
from .result_views import ResultView, results
from .understood import quoted

EVERYTHING = "since:0001"  # a list of all, newest first
OPENED = 32  # of them, for the newest, and for the names of topics where these are all there are
NEWEST = 5
MOST_WAYS = 10  # of one kind
PREFIXES = {"topic": "topic", "type": "type", "collection": "in"}


@dataclass(frozen=True)
class Way:
    """A way in: what it is called, the query it is, its address, and how many it leads to."""

    label: str
    query: str
    href: str
    count: int


@dataclass(frozen=True)
class Welcome:
    """How many memories there are, the newest, and ways in by heading."""

    memories: int
    newest: Sequence[ResultView] = ()
    ways: Sequence[tuple[str, Sequence[Way]]] = ()


async def welcome(vault: Vault, grants: Grants, path: str) -> Welcome:
    """What to show before the first query.

    The same to all actors with the same grants, until something in their collections changes: it is
    a search that opens 32 memories, and people come by this page all the time.
    """
    return await work.run(lambda: _kept(vault, grants, path))


def _kept(vault: Vault, grants: Grants, path: str) -> Welcome:
    # names that may be read are part of the page; ids of collections stand for the others
    now = vault.use(grants.search).generation(), vault.use(grants.decrypt).generation()
    made: Welcome
    made, anew = vault.views.of((welcome, grants, path), now, lambda: _made(vault, grants, path))
    if not anew:  # the trail counts titles that were shown, whether or not they were opened now
        vault.audit.note("search", returned=len(made.newest))
    return made


def _made(vault: Vault, grants: Grants, path: str) -> Welcome:
    try:
        response = questions.answer(vault, grants, SearchRequest(EVERYTHING, limit=OPENED))
    except MemoryStoreError:  # times are sealed in a strict vault
        return Welcome(vault.use(grants.search).stats()["memories"])
    counted = dict(response.facets)
    if response.total > OPENED and grants.decrypt:  # the page's own are those of the newest
        store = vault.use(grants.search, readable=grants.decrypt)
        counted["topic"] = store.frequent_topics(MOST_WAYS)
    ways = [
        (heading, _ways(facet, counted.get(facet, {}), path))
        for facet, heading in HEADINGS.items()
        if facet in PREFIXES or facet == "created"
    ]
    newest = results(response, grants, Asked(path, {}))[:NEWEST] if grants.decrypt else []
    return Welcome(response.total, newest, [way for way in ways if len(way[1]) > 1])


def _ways(facet: str, counts: Mapping[str, int], path: str) -> list[Way]:
    """The values of a facet, each as the query that one would type for it."""
    several = {value: count for value, count in counts.items() if count > 1 or facet != "topic"}
    ways = []
    for value, count in list((several or counts).items())[:MOST_WAYS]:
        query = f"{PREFIXES.get(facet)}:{quoted(value)}"
        if facet == "created":
            query = f"since:{value} until:{value}"
        ways.append(Way(labelled(facet, value), query, address(path, [("q", query)]), count))
    return ways
