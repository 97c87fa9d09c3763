"""``make quality`` measures what it says, and its gates shut."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks import quality, switches, tuning
from benchmarks.development_sets import DevelopmentSet, Gate, development_sets, set_names, tidy
from benchmarks.gates import Figures, Reranking, failures
from benchmarks.sealed import SealedPart
from memory_store.evaluation import Estimate, compare, evaluate, fusion_fit, one_evaluation_folder
from memory_store.search.fusion.evidence import FEATURES
from memory_store.search.fusion.learned import USUAL, column, numbers_for
from memory_store.search.recipes import DEFAULT, recipe_named

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
    return DevelopmentSet(
        "small",
        (tidy(one_evaluation_folder(folder)),),
        as_filed=(tidy(one_evaluation_folder(folder), shuffled=False),),
        rerankers=("maxsim",),
    )


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
        assert figures.as_filed is not None
        assert figures.as_filed.queries == len(QUERIES)
        assert figures.rerankings["maxsim"].fusion == figures.default
        assert figures.rerankings["maxsim"].read > 0
        assert set(figures.comparisons) == {
            *("by places", "keyword", "vector", "equal RRF", "gnosis", "gno", "qmd", "prx"),
        }
        assert json.loads(json.dumps(figures.as_dict()))["sealed_ratio"] == 1.0
        assert "sealed ÷ plain 1.0000" in "\n".join(quality.table(figures, small_set))


def test_every_gate_shuts(small_set: DevelopmentSet, tmp_path: Path) -> None:
    good = quality.measured(small_set, tmp_path / "small")
    assert list(failures(good, Gate(least=0.1))) == []
    worse: list[tuple[Figures, Gate, str]] = [
        (good, Gate(least=1.1), "is below 1.1"),
        (with_leg(good, good.default.mean + 0.01), Gate(), "is below its best leg"),
        (with_reranker(good, 0.006, read=7), Gate(), "maxsim lowers"),
        (with_reranker(good, 0.0, read=0), Gate(), "maxsim read nothing"),
        (replace(good, keyword_agrees=2), Gate(), "differs from FTS5's on 1 queries"),
        (replace(good, vector_recall=0.98), Gate(), "vector recall@10 0.9800"),
        (replace(good, plain=estimate_of(good.default.mean * 1.01)), Gate(), "sealed ÷ plain"),
    ]
    for figures, gate, reported in worse:
        assert [line for line in failures(figures, gate) if reported in line], reported


def with_leg(figures: Figures, mean: float) -> Figures:
    return replace(figures, estimates={**figures.estimates, "keyword": estimate_of(mean)})


def with_reranker(figures: Figures, loss: float, read: int) -> Figures:
    mean = figures.default.mean
    against = compare(np.array([mean - loss]), np.array([mean]))
    one = Reranking(estimate_of(mean - loss), figures.default, against, read, slack=0.005)
    return replace(figures, rerankings={"maxsim": one})


def estimate_of(mean: float) -> Estimate:
    return Estimate(mean, mean, mean, 5)


def test_documents_without_dates_lose_the_order_of_their_file(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    (shuffled,), (as_filed,) = small_set.parts, small_set.as_filed
    assert [one.ref for one in as_filed.records] == list(TEXTS)
    assert [one.ref for one in shuffled.records] != list(TEXTS)
    assert {one.ref for one in shuffled.records} == set(TEXTS)
    again = tidy(one_evaluation_folder(tmp_path / "small"))
    assert again.records == shuffled.records, "the same order every time"
    assert small_set.vault(tmp_path, 0, shuffled) != small_set.vault(tmp_path, 0, as_filed)


def test_any_folder_is_a_set_and_so_are_the_folders_in_one(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    assert set_names(tmp_path) == set_names(tmp_path / "small") == ["demo", "small"]
    (found,) = development_sets(tmp_path, ["small"])
    assert found.parts == small_set.parts
    assert found.gate == Gate(), "every set must reach its best leg"


def test_vectors_are_kept_by_model_and_corpus(small_set: DevelopmentSet, tmp_path: Path) -> None:
    (part,) = small_set.parts
    path = small_set.vault(tmp_path, 0, part)
    changed = replace(part, records=part.records[1:])
    assert small_set.vault(tmp_path, 0, replace(part, records=tuple(part.records))) == path
    assert small_set.vault(tmp_path, 0, changed) != path
    sealed = SealedPart(part, path)
    first = sealed.rank("spare key")
    sealed.close()
    again = SealedPart(part, path)

    def embed(text: str) -> None:
        raise AssertionError("a query that is known is not embedded again")

    again.context.embedder()._real.embed_query = embed
    try:
        assert again.rank("spare key").results == first.results
    finally:
        del again.context.embedder()._real.embed_query
        again.close()


def test_a_reranker_that_no_one_asked_for_is_not_measured(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    without = replace(small_set, rerankers=(), as_filed=())
    figures = quality.measured(without, tmp_path)
    assert figures.rerankings == {}
    assert "reranking not measured" in "\n".join(quality.table(figures, without))


def test_tuning_ranks_as_the_product_does(small_set: DevelopmentSet, tmp_path: Path) -> None:
    (part,) = small_set.parts
    words = {name: text for name, (text, _) in QUERIES.items() if name in "125"}
    sealed = SealedPart(part, tmp_path / "small.db")
    found = evaluate(sealed, words, {q: QUERIES[q][1] for q in words}, {"default": {}})
    sealed.close()
    tried = tuning.searches(small_set, tmp_path, most=10)
    assert len(tried.read) == len(words)
    shipped = column(numbers_for(USUAL).weights)
    reached = tried.reached(tried.scores(shipped))
    assert reached == pytest.approx(found.run("default").estimate("ndcg@10").mean)


def searches_where(best: int, seed: int) -> fusion_fit.Searches:
    """Forty searches of thirty candidates; the feature ``best`` says which of them is relevant."""
    rng = np.random.default_rng(seed)
    features = rng.random((40, 30, len(FEATURES))).astype(np.float32)
    grades = np.zeros((40, 30))
    grades[np.arange(40), features[:, :, best].argmax(axis=1)] = 1
    ones = np.ones(40)
    return fusion_fit.Searches("made up", features, grades, ones, ones, ones, 0.5, False)


def test_the_feature_that_tells_answers_apart_is_found() -> None:
    for best in (0, 2, 5):
        tried = searches_where(best, seed=best)
        weights = fusion_fit.fitted([tried])
        assert tried.reached(tried.scores(weights)) > 0.95
        assert weights[best] == max(weights[[0, 1, 2, 5]])


def test_probabilities_are_as_often_right_as_they_say() -> None:
    sets = [searches_where(2, seed) for seed in range(6)]
    weights = fusion_fit.fitted(sets[:5])
    first = sets[5].first(weights, fusion_fit.READ)
    relevant = first.relevant
    said = fusion_fit.calibrated(sets[:5], weights).of(first)
    assert said.mean() == pytest.approx(relevant.mean(), abs=0.02)
    assert fusion_fit.calibration_error(said, relevant) < 0.05
    assert fusion_fit.calibration_error(np.full(len(relevant), 0.9), relevant) > 0.5


def test_what_is_learned_without_a_set_is_measured_on_it() -> None:
    sets = [searches_where(2, 1), searches_where(2, 2), searches_where(0, 3)]
    noise = replace(sets[0], grades=np.zeros_like(sets[0].grades))
    every = [tuning.Gathered(one, noise) for one in sets]
    *_, other = tuning.held_out(every, fusion_fit.fitted(sets))
    assert other.held_out.mean == sets[2].reached(sets[2].scores(fusion_fit.fitted(sets[:2])))
    assert other.held_out.mean < sets[2].reached(sets[2].scores(fusion_fit.fitted(sets[2:])))


def test_a_feature_brings_what_is_lost_without_it() -> None:
    sets = [replace(searches_where(2, seed), name=f"set {seed}") for seed in range(3)]
    noise = replace(sets[0], grades=np.zeros_like(sets[0].grades))
    every = [tuning.Gathered(one, noise) for one in sets]
    whole, first, _, telling, *_ = found = [*tuning.without(every, jobs=2)]
    assert [one.feature for one in found] == ["", *FEATURES]
    assert telling.feature == FEATURES[2]
    assert telling.brought > 0.5 > abs(first.brought)
    assert whole.brought == 0


def test_each_switch_is_compared_with_what_differs_by_it_alone(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    figures = tmp_path / "switches.json"
    evals = ["--evals", str(tmp_path), "--only", "small"]
    assert switches.main([*evals, "--keep", str(tmp_path / "kept"), "--json", str(figures)]) == 0
    found = {one["switch"]: one["difference"] for one in json.loads(figures.read_text("utf-8"))}
    assert set(found) == {*switches.SWITCHES, switches.MAXSIM}
    assert found["without neighbours in conversations"] == 0, "no two notes were written in turn"
    assert found["by places, without neighbours"] == 0
    assert found["without what boosts and demotes types"] == 0, "they have one type"
    assert recipe_named("default") is DEFAULT


def test_a_set_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        quality.main(["--only", "no-such-set"])
    assert exit_.value.code == 2
    assert "no set 'no-such-set'; there is: demo" in capsys.readouterr().err


def test_a_folder_without_a_set_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        quality.main(["--evals", str(tmp_path)])
    assert "holds no corpus.jsonl" in capsys.readouterr().err
