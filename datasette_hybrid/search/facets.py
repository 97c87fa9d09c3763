"""What a search is restricted to, and how its result divides: chips, facets, and ways out.

Boundary: works on what :mod:`memory_store.access` left of an answer: a facet that its asker
may not see is not there.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_store.records import SearchResponse

from .addresses import Asked, changed, pairs_of
from .forms import last, values

FILTERS = (
    *("collection", "type", "topic", "status", "since", "until", "as_of", "superseded", "by"),
    *("meta", "min_score"),
)
LAST_COUNTS = ("status", "min_score", "since", "until", "as_of", "superseded", "by")
HEADINGS = {
    "topic": "Topics",
    "type": "Type",
    "collection": "Collection",
    "folder": "Folder",
    "created": "Written",
    "status": "Status",
}
SHOWN_AT_ONCE = 8  # values of a facet; the others unfold
MOST_VALUES = 40
MANY_VALUED = ("topic", "folder")  # a memory may have several: each further one leaves fewer


@dataclass(frozen=True)
class Chip:
    """A restriction of the search, and the address of the search without it."""

    kind: str
    label: str
    name: str
    value: str
    href: str


@dataclass(frozen=True)
class ValueView:
    """One value of a facet: the results it has, and the address that adds or takes it away."""

    label: str
    value: str
    count: str
    selected: bool
    href: str


@dataclass(frozen=True)
class FacetView:
    """A facet: its first values, chosen ones among them, and the others to unfold."""

    facet: str
    heading: str
    first: Sequence[ValueView]
    more: Sequence[ValueView]


def found(response: SearchResponse, given: Mapping[str, Any]) -> str:
    """How many results there are: ``64``; ``10+`` where some were not looked at; or nothing."""
    number = _number(response, given)
    return "" if number is None else f"{number:,}{'+' if response.in_part else ''}"


def how_many(response: SearchResponse, given: Mapping[str, Any]) -> str:
    """The same in plain words, with how many of them are certain."""
    number = _number(response, given)
    return "" if number is None else response.how_many(number)


def _number(response: SearchResponse, given: Mapping[str, Any]) -> int | None:
    counts, chosen = response.facets.get("status"), _chosen(given, "status")
    if counts is None:
        return None
    return sum(count for name, count in counts.items() if not chosen or name in chosen)


def holding(response: SearchResponse) -> str:
    """How many memories hold a word of the query, where that is more than there are results."""
    more = response.holding and response.holding > response.found
    return f"{response.holding:,}" if more else ""


def chips(given: Mapping[str, Any], path: str, like: str = "") -> list[Chip]:
    """What restricts the search besides its words; ``like`` is the title of that memory."""
    shown: list[Chip] = []
    asked = Asked(path, given)
    for name, value in pairs_of(given):
        kind, label = name.replace("_", " "), value
        if name == "narrow":
            kind, _, label = value.partition(":")
            label = labelled(kind, label)
        elif name == "like":
            label = like or value[:8]
        elif name not in FILTERS:
            continue
        elif name in LAST_COUNTS and value != last(given, name):
            continue  # of these the last one counts
        if name == "superseded":
            kind, label = "also", "superseded"
        kind = "written" if kind == "created" else kind
        shown.append(Chip(kind, label, name, value, asked.switched(name, value)))
    return shown


def facets(response: SearchResponse, given: Mapping[str, Any], asked: Asked) -> list[FacetView]:
    """The facets that divide the result, or that it is narrowed by; ``asked`` makes addresses."""
    views = []
    for facet, heading in HEADINGS.items():
        counts = response.facets.get(facet, {})
        chosen = _chosen(given, facet)
        # of several values a memory may have, even one leaves others out
        if chosen or (any(counts.values()) if facet in MANY_VALUED else len(counts) > 1):
            shown = list(_values(facet, counts, chosen, asked, response.in_part))
            first, more = shown[:SHOWN_AT_ONCE], shown[SHOWN_AT_ONCE:]
            views.append(FacetView(facet, heading, first, more))
    return views


def widened(given: Mapping[str, Any], path: str) -> str:
    """The address of a search through all that the result is narrowed to; empty if it is not."""
    chosen = [value.partition(":") for value in values(given, "narrow")]
    narrowed = [one for one in chosen if one[0] != "folder"]  # no filter is by folder
    if not narrowed:
        return ""
    kept = pairs_of(given, without=("narrow", "continue"))
    kept += [("narrow", "".join(one)) for one in chosen if one[0] == "folder"]
    times = sorted(value for facet, _, value in narrowed if facet == "created")
    kept += [(facet, value) for facet, _, value in narrowed if facet != "created"]
    kept += [("since", times[0]), ("until", times[-1])] if times else []
    return changed(_grouped(dict.fromkeys(kept)), path)


def relaxed(given: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What one might do without, each with the search that does: a label and its parameters."""
    ways = []
    for chip in chips(given, ""):
        if chip.name != "like":
            kept = [one for one in pairs_of(given, ("continue",)) if one != (chip.name, chip.value)]
            label = f"without {chip.kind} {chip.label}"
            label = "whenever it was written" if chip.kind == "written" else label
            ways.append((label, _grouped(kept)))
    query = last(given, "q")
    if '"' in query:
        ways.append(("without the quotation marks", {**given, "q": [query.replace('"', " ")]}))
    return ways


def cleared(given: Mapping[str, Any], path: str) -> str:
    """The address of the same search without any of the chips."""
    return changed(given, path, continue_=None, like=None, narrow=None, **dict.fromkeys(FILTERS))


def _chosen(given: Mapping[str, Any], facet: str) -> list[str]:
    pairs = (value.partition(":") for value in values(given, "narrow"))
    return [value for name, _, value in pairs if name == facet]


def _values(
    facet: str,
    counts: Mapping[str, int],
    chosen: Sequence[str],
    asked: Asked,
    part: bool,
) -> Iterable[ValueView]:
    """Chosen ones first, then the others in the order of their facet."""
    adds = "+" if chosen and facet not in MANY_VALUED else ""
    for value in [*chosen, *(one for one in counts if one not in chosen)][:MOST_VALUES]:
        selected, count = value in chosen, counts.get(value)
        text = "" if count is None else f"{count:,}{'+' if part else ''}"
        pair = f"{facet}:{value}"
        yield ValueView(
            label=labelled(facet, value),
            value=pair,
            count=text if selected else adds + text,
            selected=selected,
            href=asked.switched("narrow", pair),
        )


def labelled(facet: str, value: str) -> str:
    """A month by its name, everything else as it is."""
    year, dash, month = value.partition("-")
    if facet == "created" and dash and month.isdigit() and 1 <= int(month) <= 12:
        return f"{calendar.month_name[int(month)]} {year}"
    return value


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    together: dict[str, Any] = {}
    for name, value in pairs:
        together.setdefault(name, []).append(value)
    return together
