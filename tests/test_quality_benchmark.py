"""``make quality`` measures what it says, and its gates shut."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks are no part of the package

from benchmarks import quality
from benchmarks.development_sets import DevelopmentSet, Gate, tidy
from benchmarks.gates import Figures, failures
from memory_store.evaluation import Estimate

TEXTS = {
    "lease": "The lease of the flat ends in May. The landlord wants the deposit settled.",
    "key": "Mina keeps the spare key under the blue pot",
    "keys": "Spare keys were cut in March, three of them",
    "car": "The automobile needs new brake pads before winter",
    "copy": "The automobile needs new brake pads before winter",
    "bread": "Sourdough wants a warm corner and a day of patience. " * 12,
    "boiler": "Der Kessler hat die Heizung gewartet und den Filter getauscht",
}
QUERIES = {
    "1": ("spare key", {"key": 2, "keys": 1}),
    "2": ("car brakes", {"copy": 1}),
    "3": ('"spare key"', {"key": 1}),
    "4": ("patience with sourdough -landlord", {"bread": 1}),
    "5": ("wer hat die Heizung gewartet", {"boiler": 1}),
}


@pytest.fixture
def small_set(
    tmp_path: Path, tiny_model: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> DevelopmentSet:
    """A set in the form of the others, and a model that is small enough."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    folder = tmp_path / "small"
    folder.mkdir()
    corpus = [json.dumps({"id": ref, "title": "", "text": text}) for ref, text in TEXTS.items()]
    queries = [json.dumps({"id": name, "text": text}) for name, (text, _) in QUERIES.items()]
    judged = [f"{q}\t{ref}\t{g}" for q, (_, grades) in QUERIES.items() for ref, g in grades.items()]
    for name, lines in (
        ("corpus.jsonl", corpus),
        ("queries.jsonl", queries),
        ("qrels.tsv", judged),
    ):
        (folder / name).write_text("\n".join(lines), "utf-8")
    return DevelopmentSet("small", (tidy(folder),))


def test_sealing_costs_nothing_and_the_references_agree(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    for reused in (False, True):
        figures = quality.measured(small_set, tmp_path / "small")
        assert figures.memories == len(TEXTS)
        assert figures.default.queries == len(QUERIES)
        assert figures.sealed_ratio == 1.0
        assert figures.plain_agrees == len(QUERIES)
        assert (figures.keyword_agrees, figures.keyword_queries) == (3, 3)
        assert figures.vector_recall == 1.0
        assert figures.float32 == 1.0, f"with vaults made {'before' if reused else 'now'}"
        assert figures.fusion == figures.default
        assert set(figures.comparisons) == {
            *("keyword", "vector", "equal RRF", "gnosis", "gno", "qmd", "prx"),
        }
        assert json.loads(json.dumps(figures.as_dict()))["sealed_ratio"] == 1.0
        assert "sealed ÷ plain 1.0000" in "\n".join(quality.table(figures, small_set))


def test_every_gate_shuts(small_set: DevelopmentSet, tmp_path: Path) -> None:
    good = quality.measured(small_set, tmp_path / "small")
    assert list(failures(good, Gate(least=0.1))) == []
    worse: list[tuple[Figures, Gate, str]] = [
        (good, Gate(least=1.1), "is below 1.1"),
        (with_leg(good, good.default.mean + 0.01), Gate(), "is below its best leg"),
        (replace(good, fusion=estimate_of(1.1)), Gate(), "reranking lowers"),
        (replace(good, keyword_agrees=2), Gate(), "differs from FTS5's on 1 queries"),
        (replace(good, vector_recall=0.98), Gate(), "vector recall@10 0.9800"),
        (replace(good, plain=estimate_of(good.default.mean * 1.01)), Gate(), "sealed ÷ plain"),
    ]
    for figures, gate, told in worse:
        assert [line for line in failures(figures, gate) if told in line], told


def with_leg(figures: Figures, mean: float) -> Figures:
    return replace(figures, estimates={**figures.estimates, "keyword": estimate_of(mean)})


def estimate_of(mean: float) -> Estimate:
    return Estimate(mean, mean, mean, 5)


def test_a_set_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        quality.main(["--only", "no-such-set"])
    assert exit_.value.code == 2
    assert "no set 'no-such-set'; there is: demo" in capsys.readouterr().err
