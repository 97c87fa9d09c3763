"""Retrieval quality on development sets, over encrypted vaults.

    python -m benchmarks.quality --evals FOLDER [--only SET …] [--keep FOLDER]

Every set is imported into a sealed vault of its own through the public store and ranked through
the search pipeline to depth 100. The keyword leg is held against FTS5 over the same plain terms,
the vector leg against an exhaustive scan. Fails (exit 1) under the gates below.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from memory_store.evaluation import (
    Estimate,
    Measure,
    estimate,
    ndcg,
    per_query,
    read_judgements,
    recall,
    reciprocal_rank,
)
from memory_store.records import MemoryDraft, SearchOptions
from memory_store.search.fusion import rrf
from memory_store.search.pipeline import rank
from memory_store.store import MemoryStore

DEPTH = 100
BATCH = 512
PASSPHRASE = "for measurement only"
DEMO = Path(__file__).resolve().parent.parent / "demo"


@dataclass(frozen=True)
class Part:
    """One searchable corpus: records by reference, and its judged queries."""

    records: dict[str, MemoryDraft]
    queries: dict[str, str]
    judgements: dict[str, dict[str, int]]


@dataclass(frozen=True)
class DevelopmentSet:
    """A set, the measure it is known by, plain figures to compare with, and its gate."""

    name: str
    parts: list[Part]
    measure: Measure = ndcg
    measured: str = "nDCG@10"
    peers: dict[str, str] = field(default_factory=dict)
    gate: float | None = None
    gate_best_leg: bool = False


def tidy(folder: Path) -> Part:
    """A set in the form corpus.jsonl, queries.jsonl, qrels.tsv; empty documents are no memories."""
    records = {
        row["id"]: MemoryDraft(row["text"], title=row.get("title") or "", ref=row["id"])
        for row in _lines(folder / "corpus.jsonl")
        if row["text"].strip() or row.get("title")
    }
    queries = {str(row["id"]): row["text"] for row in _lines(folder / "queries.jsonl")}
    return Part(records, queries, read_judgements(folder / "qrels.tsv"))


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def locomo(folder: Path) -> list[Part]:
    """LoCoMo, one part a conversation: turns as memories, questions of categories 1 to 4."""
    spec = importlib.util.spec_from_file_location("locomo_load", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    parts = []
    for _, memories, questions in loader.load():
        records = {
            reference: MemoryDraft(f"{speaker}: {text}", ref=reference, created=when)
            for reference, text, when, speaker in memories
        }
        asked = {
            str(n): (question, evidence)
            for n, (question, evidence, category) in enumerate(questions)
            if evidence and category in (1, 2, 3, 4)
        }
        parts.append(
            Part(
                records,
                {n: question for n, (question, _) in asked.items()},
                {n: dict.fromkeys(evidence, 1) for n, (_, evidence) in asked.items()},
            )
        )
    return parts


def demo_notes() -> Part:
    """The demo notes with their own judgements (references are paths)."""
    from memory_store.importing.readers import read_file
    from memory_store.importing.walk import SourceFile, walk

    records = {}
    for found in walk([DEMO / "notes"]):
        if isinstance(found, SourceFile):
            for draft in read_file(found):
                if isinstance(draft, MemoryDraft):
                    records[draft.ref or found.ref] = draft
    queries = {row["id"]: row["text"] for row in _lines(DEMO / "queries.jsonl")}
    return Part(records, queries, read_judgements(DEMO / "qrels.tsv"))


def development_sets(evals: Path | None) -> list[DevelopmentSet]:
    """The demo's own set, and those of ``evals`` that are there."""
    sets = [DevelopmentSet("demo", [demo_notes()], gate_best_leg=True)]
    if evals is None:
        return sets
    peers = {
        "scifact": {"FTS5": ".687", "MiniLM": ".648", "equal RRF": ".720"},
        "cranfield": {"FTS5": ".359", "MiniLM": ".378", "equal RRF": ".411"},
        "xquad-de": {"FTS5": ".925", "MiniLM": ".72", "equal RRF": ".86"},
        "locomo": {"FTS5": ".612", "MiniLM": ".437", "equal RRF": ".559"},
    }
    gates = {"scifact": 0.720, "cranfield": 0.410}
    for name in ("scifact", "cranfield", "xquad-de"):
        if (evals / name / "corpus.jsonl").exists():
            sets.append(
                DevelopmentSet(
                    name,
                    [tidy(evals / name)],
                    peers=peers[name],
                    gate=gates.get(name),
                    gate_best_leg=name == "xquad-de",
                )
            )
    if (evals / "locomo" / "load.py").exists():
        sets.append(
            DevelopmentSet(
                "locomo", locomo(evals / "locomo"), recall, "R@10", peers["locomo"], gate=0.615
            )
        )
    return sets


class SealedPart:
    """A part in an encrypted vault, ready to be ranked."""

    def __init__(self, part: Part, path: Path) -> None:
        self.part = part
        if path.exists():
            self.store = MemoryStore.open(path, passphrase=PASSPHRASE)
        else:
            self.store, _ = MemoryStore.create(path, passphrase=PASSPHRASE)
        present = self.store.stats()["memories"]
        drafts = list(part.records.values())
        for start in range(present, len(drafts), BATCH):
            self.store.add_many(drafts[start : start + BATCH])
        self.references = {m.id: str(m.ref) for m in self.store.list(limit=len(drafts))}

    def run(self, **options: str) -> dict[str, list[str]]:
        """Query id → references, best first, to depth 100."""
        context = self.store.search_context()
        wanted = SearchOptions(**options)  # type: ignore[arg-type]
        return {
            query: [
                self.references[memory] for memory, _ in rank(context, text, wanted, depth=DEPTH)
            ]
            for query, text in self.part.queries.items()
            if query in self.part.judgements
        }


def evaluate(
    parts: Sequence[SealedPart], measure: Measure, **options: str
) -> tuple[Estimate, list[dict[str, list[str]]]]:
    """The measure over all parts' queries together, and the runs it comes from."""
    runs = [part.run(**options) for part in parts]
    values = [
        per_query(run, part.part.judgements, measure) for run, part in zip(runs, parts, strict=True)
    ]
    return estimate(np.concatenate(values)), runs


def equal_fusion(
    parts: Sequence[SealedPart],
    keyword: Sequence[dict[str, list[str]]],
    vector: Sequence[dict[str, list[str]]],
    measure: Measure,
) -> Estimate:
    """What plain reciprocal rank fusion of the two legs reaches: k 60, equal weights."""
    values = []
    for part, by_words, by_meaning in zip(parts, keyword, vector, strict=True):
        run = {}
        for query, ranked in by_words.items():
            scores = rrf([ranked, by_meaning[query]], k=60)
            run[query] = sorted(scores, key=lambda ref: (-scores[ref], ref))
        values.append(per_query(run, part.part.judgements, measure))
    return estimate(np.concatenate(values))


def keyword_agreement(part: SealedPart, run: dict[str, list[str]]) -> tuple[int, int]:
    """(queries whose first 100 equal FTS5's in order, queries of words alone).

    Memories that share one content count once, as in every search; equal scores may swap.
    """
    from benchmarks.reference import PlainKeywords, is_plain

    reference = PlainKeywords(part.store)
    same = 0
    plain = {query: ranked for query, ranked in run.items() if is_plain(part.part.queries[query])}
    for query, ranked in plain.items():
        scores, best = reference.ranked_scores(part.part.queries[query])
        expected = best[: len(ranked)]
        ours = [scores.get(ref) for ref in ranked]
        if None not in ours and np.allclose(expected, np.array(ours, float), rtol=1e-4):
            same += 1
    return same, len(plain)


def vector_recall(part: SealedPart) -> float:
    """Mean share of the exhaustive float32 scan's first ten that the vector leg finds."""
    from benchmarks.reference import exhaustive_nearest, is_plain

    queries = [text for text in part.part.queries.values() if is_plain(text)]
    return exhaustive_nearest(part.store, queries[:200])


def report(wanted: DevelopmentSet, folder: Path) -> tuple[list[str], list[str]]:
    """The table's lines for one set, and the gates it fails."""
    started = time.perf_counter()
    parts = [
        SealedPart(part, folder / f"{wanted.name}-{number}.db")
        for number, part in enumerate(wanted.parts)
    ]
    built = time.perf_counter() - started
    found: dict[str, Estimate] = {}
    failures: list[str] = []
    by_name: dict[str, list[dict[str, list[str]]]] = {}
    for name, options in (
        ("keyword", {"mode": "keyword"}),
        ("vector", {"mode": "vector"}),
        ("default", {"mode": "hybrid"}),
        ("gnosis", {"mode": "hybrid", "recipe": "gnosis"}),
    ):
        found[name], these = evaluate(parts, wanted.measure, **options)
        by_name[name] = these
        if name == "default":
            values = [
                per_query(run, part.part.judgements, reciprocal_rank)
                for run, part in zip(these, parts, strict=True)
            ]
            mrr = estimate(np.concatenate(values))
    found["equal"] = equal_fusion(parts, by_name["keyword"], by_name["vector"], wanted.measure)
    agreed = [
        keyword_agreement(part, run) for part, run in zip(parts, by_name["keyword"], strict=True)
    ]
    same, queries = sum(a for a, _ in agreed), sum(q for _, q in agreed)
    exact = float(np.mean([vector_recall(part) for part in parts]))
    peers = ", ".join(f"{peer} {figure}" for peer, figure in wanted.peers.items())
    records = sum(len(part.records) for part in wanted.parts)
    lines = [
        f"{wanted.name}: {records:,} memories, {found['default'].queries:,} queries, "
        f"{wanted.measured} (vaults ready in {built:.0f} s)",
        *(f"  {name:<9}{value}" for name, value in found.items()),
        f"  plain     {peers or '-'}",
        f"  default MRR@10 {mrr}",
        f"  keyword order equals FTS5's: {same} of {queries} queries",
        f"  vector leg recall@10 of an exhaustive scan: {exact:.4f}",
    ]
    best = max(found["keyword"].mean, found["vector"].mean)
    if same != queries:
        failures.append(f"{wanted.name}: keyword order differs on {queries - same} queries")
    if exact < 0.99:
        failures.append(f"{wanted.name}: vector recall {exact:.4f} < .99")
    if wanted.gate is not None and found["default"].mean < wanted.gate:
        failures.append(f"{wanted.name}: default {found['default'].mean:.4f} < {wanted.gate}")
    slack = 0.0 if wanted.gate_best_leg else 0.005
    if found["default"].mean < best - slack:
        failures.append(f"{wanted.name}: default {found['default'].mean:.4f} < leg {best:.4f}")
    for part in parts:
        part.store.close()
    return lines, failures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--evals", type=Path, help="folder of development sets")
    parser.add_argument("--only", action="append", help="a set's name (repeatable)")
    parser.add_argument("--keep", type=Path, help="keep the sealed vaults here, for the next run")
    given = parser.parse_args(arguments)
    if given.evals is not None and not given.evals.is_dir():
        parser.error(f"{given.evals} is not a folder")
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for wanted in development_sets(given.evals):
            if not given.only or wanted.name in given.only:
                lines, failed = report(wanted, folder)
                print("\n".join(lines), flush=True)
                failures += failed
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
