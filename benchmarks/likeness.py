"""How well "more like this" finds: from each judged memory of a set to the others like it.

    python -m benchmarks.likeness --evals FOLDER [--only SET …] [--keep FOLDER] [--json FILE]

No set says which memories are alike. Those count as alike that answer a query together (the demo's
notes, Cranfield) or are paragraphs of one article (XQuAD-de): each of them is searched by, and the
others ought to be found. Every set is ranked in one collection, and again with every other memory
in a second one, where words and topics cannot be compared. Fails (exit 1) where in one collection
all of it together finds less than words or meaning alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from benchmarks.development_sets import (
    DevelopmentSet,
    Part,
    development_sets,
    sets_parser,
    vault_folder,
)
from benchmarks.report import write_figures
from benchmarks.sealed import Ranker, SealedPart
from memory_store.evaluation import (
    MEASURES,
    Comparison,
    Estimate,
    Evaluation,
    Judgements,
    compare,
    estimate,
    evaluate,
)
from memory_store.evaluation.runs import DEFAULT_DEPTH, Catalogue
from memory_store.records import Ranking, Reference, SearchRequest
from memory_store.search.fusion.learned import as_learned
from memory_store.search.fusion.rank_fusion import merge
from memory_store.search.legs.retrieval import fetch
from memory_store.search.query.analysis import analyse
from memory_store.search.query.language import parse
from memory_store.search.query.plan import Search, make_plan
from memory_store.search.recipes import DEFAULT, Recipe
from memory_store.search.reranking.cross_encoder import in_fusion_order
from memory_store.search.trace import Trace

MEASURE = "ndcg@10"
OURS = "default"
HEAVY = "heavy words"  # the default ranking with the words of a memory as heavy as a query's
RUNS: Mapping[str, Mapping[str, Any]] = {
    OURS: {},
    "keyword": {"mode": "keyword"},
    "vector": {"mode": "vector"},
    HEAVY: {"mode": HEAVY},
}
HEAVIER = replace(DEFAULT, like_keyword_weight=1.0)
ANSWERED_TOGETHER = {"demo": 2, "cranfield": 1}  # set → least grade; the demo's 1 only touches it
BY_ARTICLE = ("xquad-de",)  # a ref is the article's name, "_" and the paragraph's number
HALVES = ("one half", "the other half")
DIGITS = 6


class Figures(Struct, frozen=True):
    """What was measured of one set: from ``searched_by`` of its ``memories``, by run.

    ``comparisons`` hold the default ranking against each other run. ``in_halves`` is the same as
    ``together``, with the memories in two collections.
    """

    name: str
    memories: int
    searched_by: int
    together: Mapping[str, Estimate]
    comparisons: Mapping[str, Comparison]
    in_halves: Mapping[str, Estimate]

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON-ready data."""
        return {"measure": MEASURES[MEASURE].label, **_rounded(to_builtins(self))}


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, DIGITS) if isinstance(value, float) else value


class ByMemory:
    """Ranks by memories: what is asked is the ref of the one that others should be like."""

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker
        self._ids = {one.ref: one.id for one in ranker.references()}

    def references(self) -> Sequence[Reference]:
        return self._ranker.references()

    def rank(self, query: str, *, depth: int = 100, **options: Any) -> Ranking:
        like = self._ids[query]
        if options.get("mode") != HEAVY:
            return self._ranker.rank("", depth=depth, like=like, **options)
        ids = fused(self._ranker, SearchRequest(like=like), HEAVIER)
        places = tuple((id_, 1.0 / place) for place, id_ in enumerate(ids[:depth], start=1))
        return Ranking(places, pool=len(ids), opened=0)


def fused(ranker: Ranker, request: SearchRequest, recipe: Recipe) -> list[str]:
    """The ids that a recipe ranks, best first, by the product's own stages."""
    analysis = analyse(parse(request), ranker.context, request)
    plan = replace(make_plan("hybrid", request, depth=DEFAULT_DEPTH), recipe=recipe)
    search = as_learned(Search(ranker.context, plan, analysis, Trace()))
    merged = merge(fetch(search), search, plan.pool)
    return [one.candidate.id for one in in_fusion_order(merged.pool, search.recipe)]


def measured(wanted: DevelopmentSet, folder: Path) -> Figures:
    """Everything about one set. Vaults that are in ``folder`` already are used as they are."""
    (part,) = wanted.parts
    whole = SealedPart(part, wanted.vault(folder, 0, part))
    apart = replace(wanted, name=f"{wanted.name}-halves")
    halves = SealedPart(halved(part), apart.vault(folder, 0, part), known=whole.float32)
    alike = judgements(groups(wanted), whole.references())
    together, in_halves = (_evaluated(one, alike) for one in (whole, halves))
    for one in (whole, halves):
        one.close()
    values = {name: together.run(name).values[MEASURE] for name in RUNS}
    return Figures(
        name=wanted.name,
        memories=wanted.size,
        searched_by=len(together.queries),
        together={name: estimate(found) for name, found in values.items()},
        comparisons={
            name: compare(values[OURS], found) for name, found in values.items() if name != OURS
        },
        in_halves={name: in_halves.run(name).estimate(MEASURE) for name in RUNS},
    )


def halved(part: Part) -> Part:
    """The same with every other memory in a second collection."""
    records = [
        replace(record, collection=HALVES[number % 2]) for number, record in enumerate(part.records)
    ]
    return replace(part, records=tuple(records))


def groups(wanted: DevelopmentSet) -> Iterator[set[str]]:
    """The refs of what is alike: a memory may be in several groups."""
    (part,) = wanted.parts
    if wanted.name in BY_ARTICLE:
        articles: dict[str, set[str]] = {}
        for record in part.records:
            ref = record.ref or ""
            articles.setdefault(ref.rpartition("_")[0], set()).add(ref)
        yield from articles.values()
        return
    least = ANSWERED_TOGETHER.get(wanted.name, 1)
    for grades in part.judgements.values():
        yield {ref for ref, grade in grades.items() if grade >= least}


def judgements(alike: Iterator[set[str]], references: Sequence[Reference]) -> Judgements:
    """Ref → the refs of others in a group with it, each 1. A copy of a memory is no other, and
    what is not in the vault cannot be found."""
    catalogue = Catalogue(references)
    found: dict[str, dict[str, int]] = {}
    for group in alike:
        present = sorted(ref for ref in group if catalogue.contents(ref))
        for ref in present:
            own = catalogue.contents(ref)
            others = [one for one in present if catalogue.contents(one) != own]
            found.setdefault(ref, {}).update(dict.fromkeys(others, 1))
    return found


def _evaluated(part: SealedPart, alike: Judgements) -> Evaluation:
    return evaluate(ByMemory(part), {ref: ref for ref in alike}, alike, RUNS)


def table(figures: Figures) -> Iterator[str]:
    """The figures of one set as lines to read."""
    yield (
        f"{figures.name}: by {figures.searched_by:,} of {figures.memories:,} memories, "
        f"{MEASURES[MEASURE].label}, in one collection and in two"
    )
    for name, found in figures.together.items():
        ahead = "" if name == OURS else f"   default {figures.comparisons[name]}"
        yield f"  {name:<12}{found}   {figures.in_halves[name]}{ahead}"


def failures(figures: Figures) -> Iterator[str]:
    """Which leg finds more alone than all of them together, in words."""
    for leg in ("keyword", "vector"):
        if figures.together[OURS].mean < figures.together[leg].mean:
            yield f"{figures.name}: default is below {leg} alone"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the legs gain from each other."""
    parser = sets_parser(__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    given = parser.parse_args(arguments)
    sets = list(development_sets(given.evals, (*ANSWERED_TOGETHER, *BY_ARTICLE)))
    for name in given.only or ():
        if name not in [wanted.name for wanted in sets]:
            parser.error(f"no set {name!r}; there is: {', '.join(one.name for one in sets)}")
    found = []
    with vault_folder(given.keep) as folder:
        for wanted in sets:
            if not given.only or wanted.name in given.only:
                found.append(measured(wanted, folder))
                print("\n".join(table(found[-1])), flush=True)
    kept = [one.as_dict() for one in found]
    write_figures(given.json, kept)
    failed = [line for one in found for line in failures(one)]
    for line in failed:
        print(f"FAILED {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
