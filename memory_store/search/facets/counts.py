"""Facets: how a whole result divides by type, status, collection, topic, folder and time.

Counted over the whole result, not the page alone. Where values are
:mod:`selected <memory_store.search.facets.selection>`, each facet counts what the other facets
keep: choosing another value of it adds as many results as its number says.

Types, dates and collections of sealed memories are in the index. Topics are there as keyed
hashes: those whose names are known, from memories opened anyhow, can be counted in all others.
Folders are in the index of those that may be opened: one counts what lies in it and below it.

Boundary: opens nothing. Names come from the collections that were opened, from their index and from
rows that are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from memory_store.index.places import folders_above
from memory_store.index.topics import topic_counts
from memory_store.records import base_type
from memory_store.search.candidates import Scored
from memory_store.search.context import SearchContext
from memory_store.search.facets.selection import Narrowing, countable, periods
from memory_store.search.query.analysis import Blinding
from memory_store.text.canonical import normalise_topic

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask

Facets = dict[str, dict[str, int]]
Ordinals = npt.NDArray[np.intp]

MOST_FOLDERS = 100
MOST_MONTHS = 12  # more become years: a list that you read at a glance


def facets(
    context: SearchContext,
    results: Sequence[Scored],
    rows: Sequence[Scored],
    listed: Mask | None,
    narrowing: Narrowing | None = None,
) -> Facets:
    """Facet → value → how many of ``results`` have it, most frequent first; times newest first.

    With ``listed`` (bool [documents], of a list by filters alone) all of those are counted.
    Topics are complete where every result is open; else they are those of the ``rows``.
    """
    snapshot = context.snapshot
    if listed is None:
        whole = np.array([result.candidate.ordinal for result in results], dtype=np.intp)
    else:
        whole = np.flatnonzero(listed)

    def among(facet: str) -> Ordinals:
        kept = None if narrowing is None else narrowing.besides(facet)
        found = whole if kept is None else whole[kept[whole]]
        return found[countable(context, facet)[found]]

    names = [context.collection_names.get(id_, id_) for id_ in snapshot.collections]
    types = [base_type(name) for name in snapshot.types]
    by_status = among("status")
    done = int(np.count_nonzero(snapshot.done[by_status]))
    topics = _topics(context, results, rows, among("topic"), listed is not None)
    return {
        "type": _sorted(_coded(types, snapshot.type_codes[among("type")])),
        "status": _sorted({"open": len(by_status) - done, "done": done}),
        "collection": _sorted(_coded(names, snapshot.collection_codes[among("collection")])),
        "topic": _sorted(topics),
        "folder": dict(islice(_sorted(_folders(context, among("folder"))).items(), MOST_FOLDERS)),
        "created": _created(context, whole, among("created"), narrowing),
    }


def counted(names: Iterable[str]) -> dict[str, int]:
    """Names with how often they occur, most frequent first, then by name."""
    return _sorted(Counter(names))


def _coded(names: Sequence[str], codes: npt.NDArray[np.int16]) -> Counter[str]:
    """Names with how often their codes occur; types without ``_done``, as one filters by them."""
    counts: Counter[str] = Counter()
    for name, count in zip(names, np.bincount(codes, minlength=len(names)), strict=False):
        counts[name] += int(count)
    return counts


def _created(
    context: SearchContext, whole: Ordinals, among: Ordinals, narrowing: Narrowing | None
) -> dict[str, int]:
    """Month or year → how many were created in it; the unit is that of the whole result."""
    if not len(whole):
        return {}
    created = context.snapshot.created
    by_month = len(set(periods(created[whole], "M").tolist())) <= MOST_MONTHS
    by_month = by_month and not (narrowing and narrowing.by_year)
    written = periods(created[among], "M" if by_month else "Y")
    values, counts = np.unique(written, return_counts=True)
    return dict(zip(values[::-1].astype(str).tolist(), counts[::-1].tolist(), strict=True))


def _folders(context: SearchContext, among: Ordinals) -> Counter[str]:
    """Folder → how many lie in it or below it."""
    found = np.zeros(context.snapshot.size, dtype=np.bool_)
    found[among] = True
    counts: Counter[str] = Counter()
    for part, numbers, named in context.folders() if len(among) else ():
        each = np.bincount(numbers[found[part.span]])
        for number in each.nonzero()[0].tolist():
            for folder in folders_above(named(number)):
                counts[folder] += int(each[number])
    return counts


def _topics(
    context: SearchContext,
    results: Sequence[Scored],
    rows: Sequence[Scored],
    among: Ordinals,
    listing: bool,
) -> Counter[str]:
    """Topic → how many carry it, by the names that opened memories give them."""
    whole = not listing and all(result.memory is not None for result in results)
    shown = set(among.tolist())
    named: dict[str, str] = {}
    carried: Counter[str] = Counter()
    for result in results if whole else rows:
        if result.candidate.ordinal not in shown:
            continue
        for name in result.opened.topics:
            topic = normalise_topic(name)
            named.setdefault(topic, name)
            carried[topic] += 1
    if named and not whole:
        mask = np.zeros(context.snapshot.size, dtype=np.bool_)
        mask[among] = True
        counts = topic_counts(context.snapshot, Blinding(context).topics(named), mask)
        carried = Counter(dict(zip(named, counts, strict=True)))
    return Counter({named[topic]: number for topic, number in carried.items()})


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: count for name, count in ordered if count}
