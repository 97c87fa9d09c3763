"""What learned fusion would weigh for judged queries, beside what is relevant.

Boundary: queries pass through in clear; what is gathered are numbers. Nothing is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.evaluation.fusion_fit import DEPTH, DISCOUNTS, READ, Searches
from memory_store.evaluation.runs import DEFAULT_DEPTH, Catalogue
from memory_store.records import search_request
from memory_store.search.context import SearchContext
from memory_store.search.fusion.evidence import FEATURES, Evidence
from memory_store.search.fusion.learned import weighable
from memory_store.search.fusion.resemblance import whole_evidence
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse, resolve_mode
from memory_store.search.query.plan import Search, make_plan
from memory_store.search.recipes import DEFAULT
from memory_store.search.trace import Trace

MODE = "hybrid"


class JudgedSearch(Struct, frozen=True, eq=False):
    """The evidence for what one query finds, and the grade of each candidate (0: not relevant).

    ``ideal`` is the discounted gain of the best order possible, ``relevant`` how many there are.
    """

    evidence: Evidence
    grades: Sequence[int]
    ideal: float
    relevant: int


def by_fusion(query: str) -> bool:
    """Whether fusion alone ranks a query's answers: nothing must be opened for it."""
    request = search_request(query)
    parsed = parse(request)
    return resolve_mode(request) == MODE and not (parsed.required or parsed.excluded)


def judged_search(
    context: SearchContext, query: str, grades: Mapping[str, int], catalogue: Catalogue
) -> JudgedSearch:
    """One query through the stages of a search, as far as fusion."""
    request = search_request(query)
    analysis = analyse(parse(request), context, request)
    plan = replace(make_plan(MODE, request, depth=DEFAULT_DEPTH), recipe=DEFAULT)
    search = Search(context, plan, analysis, Trace())
    found = whole_evidence(fetch(search), search)
    ids = [context.snapshot.id(ordinal) for ordinal in found.ordinals.tolist()]
    judged = catalogue.judged(grades)
    best = sorted((grade for grade in judged.values() if grade > 0), reverse=True)
    return JudgedSearch(
        found,
        [max(judged.get(unit, 0), 0) for unit in catalogue.units(ids)],
        float((np.array(best[:DEPTH]) * DISCOUNTS[: len(best)]).sum()),
        len(best),
    )


def as_searches(
    found: Sequence[JudgedSearch], name: str = "", best_leg: float = 1.0, by_recall: bool = False
) -> Searches:
    """All of one set together, padded to the longest list."""
    shape = (len(found), max([READ, *(len(one.grades) for one in found)]))
    table, grades = np.zeros((*shape, len(FEATURES)), np.float32), np.full(shape, -1.0)
    for row, one in enumerate(found):
        table[row, : len(one.grades)] = weighable(one.evidence)
        grades[row, : len(one.grades)] = one.grades
    return Searches(
        name,
        table,
        grades,
        np.array([one.ideal for one in found]),
        np.array([one.relevant for one in found], float),
        np.array([one.evidence.best_read for one in found]),
        best_leg,
        by_recall,
    )
