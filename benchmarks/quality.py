"""Retrieval quality on development sets, over encrypted vaults.

    python -m benchmarks.quality --evals FOLDER [--only SET …] [--keep FOLDER] [--json FILE]

Every set is imported into sealed vaults of its own through the public store, and every recipe is
measured as ``memory-store eval`` measures it. Documents without dates are imported in shuffled
order; what the order of their file adds is printed beside. The keyword leg is held against FTS5
over the same plain terms, the vector leg against an exact float32 scan, and the default ranking
against the same search with nothing sealed. Fails (exit 1) under the gates of ``benchmarks.gates``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec.structs import replace

from benchmarks.development_sets import (
    DevelopmentSet,
    development_sets,
    set_names,
    sets_parser,
    vault_folder,
)
from benchmarks.gates import MAXSIM_SLACK, Figures, Reranking, failures
from benchmarks.plain import PlainPart
from benchmarks.reference import PlainKeywords, is_plain
from benchmarks.report import write_figures
from benchmarks.sealed import EQUAL, SealedPart
from memory_store.evaluation import MEASURES, Evaluation, compare, estimate, evaluate
from memory_store.search import recipes
from memory_store.search.recipes import DEFAULT, RECIPES

OURS = "default"
FUSION = "fusion"  # ours without any reranking stage
MAXSIM = "maxsim"
PLACES = "by places"  # ours before fusion was learned: weighted reciprocal rank fusion
PEERS = ("gnosis", "gno", "qmd", "prx")  # other systems' rankings, as recipes
RUNS: Mapping[str, Mapping[str, Any]] = {
    OURS: {},
    FUSION: {"rerank": False},
    "keyword": {"mode": "keyword"},
    "vector": {"mode": "vector"},
    EQUAL: {"mode": EQUAL},
    **{name: {"recipe": name} for name in (PLACES, *PEERS)},
}
recipes.RECIPES = MappingProxyType(
    {**RECIPES, PLACES: replace(DEFAULT, name=PLACES, learned=False)}
)
PLAIN_RUNS: Mapping[str, Mapping[str, Any]] = {OURS: {}, "vector": {"mode": "vector"}}
FIRST = 10  # of a ranking are held against another's


def measured(wanted: DevelopmentSet, folder: Path, reranker: str | None = None) -> Figures:
    """Everything about one set. Vaults that are in ``folder`` already are used as they are."""
    started = time.perf_counter()
    parts = [
        SealedPart(part, wanted.vault(folder, number, part), reranker)
        for number, part in enumerate(wanted.parts)
    ]
    as_filed = _as_filed(wanted, folder, parts)
    built = time.perf_counter()
    plain = [PlainPart(part) for part in parts]
    rerankers = {name: {"reranker": name} for name in wanted.rerankers}
    sealed_found = [_evaluated(part, part, {**RUNS, **rerankers}) for part in parts]
    plain_found = [
        _evaluated(one, part, PLAIN_RUNS) for one, part in zip(plain, parts, strict=True)
    ]
    agreed = [_like_fts5(part, found) for part, found in zip(parts, sealed_found, strict=True)]
    for part in parts:
        part.close()
    values = {name: pooled(sealed_found, name, wanted.measure) for name in RUNS}
    others = [name for name in RUNS if name not in (OURS, FUSION)]
    asked = {**({reranker: OURS} if reranker else {}), **{name: name for name in rerankers}}
    return Figures(
        name=wanted.name,
        measure=MEASURES[wanted.measure].label,
        memories=wanted.size,
        estimates={name: estimate(values[name]) for name in (OURS, *others)},
        comparisons={name: compare(values[OURS], values[name]) for name in others},
        mrr=estimate(pooled(sealed_found, OURS, "mrr@10")),
        as_filed=estimate(pooled(as_filed, OURS, wanted.measure)) if as_filed else None,
        rerankings={
            name: _reranking(sealed_found, run, wanted.measure) for name, run in asked.items()
        },
        plain=estimate(pooled(plain_found, OURS, wanted.measure)),
        plain_agrees=sum(map(_alike, sealed_found, plain_found)),
        keyword_agrees=sum(same for same, _ in agreed),
        keyword_queries=sum(queries for _, queries in agreed),
        vector_recall=float(np.mean([*map(_vector_recall, sealed_found, plain_found)])),
        float32=float(np.mean([one.float32 for one in plain])),
        seconds_to_build=built - started,
        seconds_to_rank=time.perf_counter() - built,
    )


def _as_filed(
    wanted: DevelopmentSet, folder: Path, parts: Sequence[SealedPart]
) -> list[Evaluation]:
    """Our ranking of the records in the order of their file, with the vectors of ``parts``."""
    found = []
    for number, part in enumerate(wanted.as_filed):
        shuffled = parts[number]
        again = SealedPart(part, wanted.vault(folder, number, part), known=shuffled.float32)
        found.append(_evaluated(again, shuffled, {OURS: {}}))
        again.close()
    return found


def _evaluated(
    ranker: SealedPart | PlainPart, part: SealedPart, runs: Mapping[str, Mapping[str, Any]]
) -> Evaluation:
    return evaluate(ranker, part.part.queries, part.part.judgements, runs)


def _reranking(found: Sequence[Evaluation], run: str, measure: str) -> Reranking:
    """One run's order against fusion's, and how much was read for it."""
    ours, fusion = pooled(found, run, measure), pooled(found, FUSION, measure)
    return Reranking(
        found=estimate(ours),
        fusion=estimate(fusion),
        against=compare(ours, fusion),
        read=sum(one.run(run).reranked for one in found),
        slack=MAXSIM_SLACK if run == MAXSIM else 0.0,
    )


def pooled(evaluations: Sequence[Evaluation], run: str, measure: str) -> Any:
    """The values of all parts' queries together."""
    return np.concatenate([one.run(run).values[measure] for one in evaluations])


def _ids(evaluation: Evaluation, run: str) -> dict[str, list[str]]:
    rankings = evaluation.run(run).rankings
    return {query: [place.id for place in ranking] for query, ranking in rankings.items()}


def _alike(sealed: Evaluation, plain: Evaluation) -> int:
    """Queries whose first ten by the default ranking are the same, in order, sealed and plain."""
    ours, theirs = _ids(sealed, OURS), _ids(plain, OURS)
    return sum(ours[query][:FIRST] == theirs[query][:FIRST] for query in ours)


def _vector_recall(sealed: Evaluation, plain: Evaluation) -> float:
    """The mean share of the exact scan's first ten that the sealed vector leg has in its own."""
    ours, exact = _ids(sealed, "vector"), _ids(plain, "vector")
    shares = [
        len(set(ours[query][:FIRST]) & set(exact[query][:FIRST])) / len(exact[query][:FIRST])
        for query in exact
        if exact[query]
    ]
    return float(np.mean(shares))


def _like_fts5(part: SealedPart, found: Evaluation) -> tuple[int, int]:
    """(queries whose first 100 by keyword are FTS5's, in order; queries of words alone)."""
    reference, queries = PlainKeywords(part.context), part.part.queries
    plain = {
        query: ids for query, ids in _ids(found, "keyword").items() if is_plain(queries[query])
    }
    return sum(reference.agrees(queries[query], ids) for query, ids in plain.items()), len(plain)


def table(figures: Figures, wanted: DevelopmentSet) -> Iterator[str]:
    """The figures of one set as lines to read."""
    queries = figures.default.queries
    yield (
        f"{figures.name}: {figures.memories:,} memories, {queries:,} queries, {figures.measure} "
        f"(built in {figures.seconds_to_build:.0f} s, ranked in {figures.seconds_to_rank:.0f} s)"
    )
    for name, found in figures.estimates.items():
        ahead = "" if name == OURS else f"   default {figures.comparisons[name]}"
        yield f"  {name:<10}{found}{ahead}"
    gate = wanted.gate
    if gate.least is not None:
        yield f"  gate {gate.least:.3f}, aim {gate.aim or gate.least:.2f}"
    if wanted.elsewhere:
        told = ", ".join(f"{name} {figure}" for name, figure in wanted.elsewhere.items())
        yield f"  measured apart: {told}"
    if figures.as_filed is not None:
        yield f"  in the file's order {figures.as_filed}"
    yield f"  its MRR@10 {figures.mrr}"
    for name, one in figures.rerankings.items():
        yield f"  {name:<10}{one.found}   fusion {one.fusion}: {one.against}, {one.read:,} read"
    if not figures.rerankings:
        yield "  reranking not measured: no reranker"
    yield (
        f"  nothing sealed {figures.plain}: sealed ÷ plain {figures.sealed_ratio:.4f}, "
        f"the same first ten on {figures.plain_agrees:,} of {queries:,} queries"
    )
    yield (
        f"  keyword order equals FTS5's on {figures.keyword_agrees:,} of "
        f"{figures.keyword_queries:,} queries of words alone"
    )
    yield (
        f"  vector recall@10 of an exact scan {figures.vector_recall:.4f} "
        f"({figures.float32:.0%} of its vectors as the model made them)"
    )


def all_measured(
    sets: Sequence[DevelopmentSet], folder: Path, reranker: str | None, jobs: int
) -> Iterator[Figures]:
    """The figures of each set in turn. With several ``jobs`` processes share the work, the largest
    sets first, so that none of them waits for one at the end.
    """
    if jobs < 2 or len(sets) < 2:
        yield from (measured(wanted, folder, reranker) for wanted in sets)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {
            wanted.name: pool.submit(measured, wanted, folder, reranker)
            for wanted in sorted(sets, key=lambda one: one.size, reverse=True)
        }
        yield from (running[wanted.name].result() for wanted in sets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether every gate holds."""
    parser = sets_parser(__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here, too")
    parser.add_argument("--jobs", type=int, default=2, help="sets measured at a time (2)")
    parser.add_argument("--reranker", help="rerank with this model (else: no reranker)")
    given = parser.parse_args(arguments)
    if given.evals is not None and not given.evals.is_dir():
        parser.error(f"{given.evals} is not a folder")
    names = set_names(given.evals)
    for name in given.only or ():
        if name not in names:
            parser.error(f"no set {name!r}; there is: {', '.join(names)}")
    if given.evals is not None and names == ["demo"]:
        parser.error(f"{given.evals} holds no corpus.jsonl, queries.jsonl and qrels.tsv")
    sets = list(development_sets(given.evals, given.only))
    found: list[Figures] = []
    failed: list[str] = []
    with vault_folder(given.keep) as folder:
        every = all_measured(sets, folder, given.reranker, given.jobs)
        for wanted, figures in zip(sets, every, strict=True):
            print("\n".join(table(figures, wanted)), flush=True)
            found.append(figures)
            failed += failures(figures, wanted.gate)
    kept = [
        {**one.as_dict(), "elsewhere": dict(wanted.elsewhere)}
        for one, wanted in zip(found, sets, strict=True)
    ]
    write_figures(given.json, kept)
    for failure in failed:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
