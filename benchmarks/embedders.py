"""Embedding models side by side, by vectors alone: how well they find, time and memory.

    python -m benchmarks.embedders --evals FOLDER --only xquad-zh --model multilingual [--model …]

Each model runs in a process of its own. Each document is embedded in windows, as an import does it;
its best window counts. Nothing is sealed here: that changes no vector.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from memory_store.models.embedder import load_embedder
from memory_store.session.entries import embed_contents

DEPTH = 10


def measured(folder: Path, model: str, queries: int) -> dict[str, Any]:
    """nDCG@10 over the first ``queries``, processor seconds per document and query, memory."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8")]
    judged: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        judged.setdefault(query, {})[document] = int(grade)
    asked = [one for one in asked if str(_id(one)) in judged][:queries]
    embedder = load_embedder(model)
    names = [str(_id(one)) for one in corpus]
    began = time.process_time()
    contents = {
        name.encode(): (one.get("title") or "", one["text"])
        for name, one in zip(names, corpus, strict=True)
    }
    found = embed_contents(embedder, contents)
    documents = time.process_time() - began
    windows = np.concatenate([found[name.encode()].vectors for name in names])
    owner = np.repeat(np.arange(len(names)), [len(found[name.encode()].vectors) for name in names])
    began = time.process_time()
    vectors = embedder.embed_queries([one["text"] for one in asked])
    searched = time.process_time() - began
    scores = np.full((len(asked), len(names)), -1.0, dtype=np.float32)
    np.maximum.at(scores.T, owner, (vectors @ windows.T.astype(np.float32)).T)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
    gains = [
        _ndcg([names[n] for n in row], judged[str(_id(one))])
        for row, one in zip(best, asked, strict=True)
    ]
    return {
        "set": folder.name,
        "model": embedder.name.rsplit("/", 1)[-1],
        "queries": len(asked),
        "ndcg": round(float(np.mean(gains)), 3),
        "ms per document": round(1000 * documents / len(names)),
        "ms per query": round(1000 * searched / len(asked), 1),
        "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _id(record: dict[str, Any]) -> Any:
    return record.get("_id", record.get("id"))


def _ndcg(ranked: list[str], grades: dict[str, int]) -> float:
    gain = sum(grades.get(one, 0) / math.log2(n + 2) for n, one in enumerate(ranked))
    ideal = sorted(grades.values(), reverse=True)[:DEPTH]
    return gain / sum(grade / math.log2(n + 2) for n, grade in enumerate(ideal))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=Path, required=True, help="folder of development sets")
    parser.add_argument("--only", action="append", required=True, help="a set's name (repeatable)")
    parser.add_argument("--model", action="append", required=True, help="a model (repeatable)")
    parser.add_argument("--queries", type=int, default=300, help="of each set at most (300)")
    chosen = parser.parse_args()
    if len(chosen.only) == len(chosen.model) == 1:
        result = measured(chosen.evals / chosen.only[0], chosen.model[0], chosen.queries)
        print(json.dumps(result), flush=True)
        return
    for name in chosen.only:
        for model in chosen.model:
            one = ["--evals", str(chosen.evals), "--only", name, "--model", model]
            command = [sys.executable, "-m", "benchmarks.embedders", *one]
            subprocess.run([*command, "--queries", str(chosen.queries)], check=True)


if __name__ == "__main__":
    main()
