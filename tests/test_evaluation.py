"""Figures mean what the field means by them; a judged memory is found under any of its names."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.evaluation import (
    MEASURES,
    compare,
    estimate,
    evaluate,
    evaluation_folders,
    ndcg,
    one_evaluation_folder,
    parse_judgements,
    parse_queries,
    read_judgements,
    recall,
    reciprocal_rank,
)
from memory_store.evaluation.calibration import SAMPLED, evenly
from memory_store.records import MemoryDraft, Ranking, Reference
from memory_store.store import MemoryStore

GRADES = st.dictionaries(st.sampled_from("abcdefghijklmnopqrst"), st.integers(-1, 4), min_size=1)
RANKED = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), unique=True, max_size=26)
VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.63, 1.0]), min_size=1, max_size=30)


class TestMeasures:
    def test_ndcg_by_hand(self) -> None:
        grades = {"a": 3, "b": 2, "c": 1, "d": 0}
        found = 2 / math.log2(2) + 3 / math.log2(4)
        ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
        assert ndcg(["b", "x", "a", "d"], grades) == pytest.approx(found / ideal)
        assert ndcg(["b", "x", "a", "d"], grades) == pytest.approx(0.7350, abs=5e-5)

    def test_the_same_thing_twice_counts_once(self) -> None:
        assert ndcg(["a", "a", "b"], {"a": 1, "b": 1}) == 1.0
        assert recall(["a"] * 10 + ["b"], {"a": 1, "b": 1}) == 1.0

    @given(RANKED, GRADES)
    def test_they_equal_their_definitions(self, ranked: list[str], grades: dict[str, int]) -> None:
        assert ndcg(ranked, grades) == pytest.approx(slow_ndcg(ranked, grades))
        good = [item for item in grades if grades[item] >= 1]
        found = [item for item in good if item in ranked and ranked.index(item) <= 9]
        assert recall(ranked, grades) == pytest.approx(len(found) / len(good) if good else 0)
        first = min((ranked.index(item) + 1 for item in found), default=math.inf)
        assert reciprocal_rank(ranked, grades) == pytest.approx(1 / first)

    @given(RANKED, GRADES)
    def test_no_order_beats_the_ideal_one(self, ranked: list[str], grades: dict[str, int]) -> None:
        ideal = sorted(grades, key=lambda item: -grades[item])
        for measure in MEASURES.values():
            assert 0.0 <= measure(ranked, grades) <= measure(ideal, grades) + 1e-12 <= 1.0 + 1e-9


def slow_ndcg(ranked: list[str], grades: dict[str, int]) -> float:
    """The definition, rank by rank: Järvelin and Kekäläinen's gain over the ideal one's."""
    gain = sum(
        grades[ranked[rank - 1]] / math.log2(1 + rank)
        for rank in range(1, min(10, len(ranked)) + 1)
        if grades.get(ranked[rank - 1], 0) > 0
    )
    best = 0.0
    left = [grade for grade in grades.values() if grade > 0]
    for rank in range(1, 11):
        if left:
            left.remove(top := max(left))
            best += top / math.log2(1 + rank)
    return gain / best if best else 0.0


class TestStatistics:
    def test_an_interval_holds_the_mean_and_is_the_same_each_time(self) -> None:
        values = np.linspace(0, 1, 50)
        one, again = estimate(values), estimate(values)
        assert one == again
        assert one.mean == pytest.approx(0.5)
        assert one.low < 0.5 < one.high
        assert estimate(values, seed=1) != one

    def test_an_interval_is_as_wide_as_theory_says(self) -> None:
        values = np.random.default_rng(3).normal(0.5, 0.2, 400)
        found = estimate(values)
        error = values.std() / math.sqrt(len(values))
        assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)

    def test_nothing_measured_is_no_error(self) -> None:
        assert estimate(np.array([])).queries == 0
        assert compare(np.array([]), np.array([])).p == 1.0

    @given(VALUES)
    def test_a_run_does_not_differ_from_itself(self, given_values: list[float]) -> None:
        values = np.array(given_values)
        found = compare(values, values)
        assert (found.difference, found.p, found.better, found.worse) == (0.0, 1.0, 0, 0)

    def test_a_clearly_better_run_is_distinguished_from_chance(self) -> None:
        random = np.random.default_rng(5)
        before = random.uniform(0, 0.7, 60)
        found = compare(before + random.uniform(0, 0.3, 60), before)
        assert found.p < 0.05
        assert found.low > 0
        assert (found.better, found.worse) == (60, 0)

    def test_chance_is_not_called_a_difference(self) -> None:
        random = np.random.default_rng(8)
        assert compare(random.uniform(size=60), random.uniform(size=60)).p > 0.05

    def test_few_queries_have_the_p_value_that_counting_gives(self) -> None:
        """Five queries, all better: 2 of 32 sign patterns are as extreme."""
        found = compare(np.full(5, 0.6), np.full(5, 0.5))
        assert found.p == pytest.approx(2 / 32, abs=0.01)

    @given(VALUES, st.integers(0, 5))
    def test_both_directions_have_one_p_value(self, values: list[float], seed: int) -> None:
        one = np.array(values)
        other = np.random.default_rng(seed).permutation(one)
        there, back = compare(one, other), compare(other, one)
        assert there.p == pytest.approx(back.p)
        assert there.difference == pytest.approx(-back.difference)

    def test_runs_of_different_queries_are_not_compared(self) -> None:
        with pytest.raises(ValueError, match="same queries"):
            compare(np.ones(3), np.ones(4))


class TestFiles:
    def test_judgements_in_three_columns_or_in_trec_s_four(self) -> None:
        three = parse_judgements("q1\ta b.md\t3\r\nq1\tc.md\t0\n\nq2\td\t1\n", "r")
        assert three == {"q1": {"a b.md": 3, "c.md": 0}, "q2": {"d": 1}}
        assert parse_judgements("q1 0 c.md 0\nq1\tQ0\ta b.md\t3\nq2   0 d  1", "r") == three

    def test_a_line_of_headings_is_passed_over(self) -> None:
        text = "query-id\tcorpus-id\tscore\nq1\ta\t2\n"
        assert parse_judgements(text, "r") == {"q1": {"a": 2}}

    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("q1\ta\t1\nq1\tb\n", "r.tsv:2"),
            ("q1\ta\tgood\n", "r.tsv:1"),
            ("q1\ta\t1.5\n", "r.tsv:1"),
            ("q1 a 1\n", "r.tsv:1"),
            ("\n\nq1\ta\t1\tx\ty\n", "r.tsv:3"),
            ("q1\t\t1\n", "r.tsv:1"),
            ("q1\ta\t1\nq1\ta\t2\n", "r.tsv:2"),
        ],
    )
    def test_what_is_no_judgement_is_named_by_file_and_line(self, text: str, place: str) -> None:
        with pytest.raises(BadInputError, match=f"^{place}: ") as error:
            parse_judgements(text, "r.tsv")
        assert error.value.parameter == "qrels"

    def test_queries_are_json_lines(self) -> None:
        text = '{"id": "q1", "text": "a\\u2028b", "kind": "x"}\n\n{"id": 7, "text": "c"}\n'
        assert parse_queries(text, "q") == {"q1": "a\u2028b", "7": "c"}

    @pytest.mark.parametrize(
        "line",
        [
            '{"text": "secret"}',
            '{"id": "", "text": "secret"}',
            '{"id": true, "text": "secret"}',
            '{"id": "q2"}',
            '{"id": "q2", "text": " "}',
            '{"id": "q1", "text": "secret"}',
            '["q2", "secret"]',
            "q2: secret",
            "[" * 100_000,
        ],
    )
    def test_what_is_no_query_is_named_by_file_and_line(self, line: str) -> None:
        with pytest.raises(BadInputError, match=r"^q\.jsonl:2: ") as error:
            parse_queries('{"id": "q1", "text": "one"}\n' + line, "q.jsonl")
        assert "secret" not in str(error.value)

    @given(st.text())
    def test_any_text_is_judgements_or_a_named_error(self, text: str) -> None:
        for parse in (parse_judgements, parse_queries):
            message = ""
            try:
                parse(text, "file")
            except BadInputError as error:
                message = str(error)
            assert message == "" or message.startswith("file:")

    def test_a_file_that_is_not_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "r.tsv").write_bytes(b"q1\t\xff\t1\n")
        with pytest.raises(BadInputError, match=r"r\.tsv: not UTF-8"):
            read_judgements(tmp_path / "r.tsv")


def beir(folder: Path, **files: str) -> Path:
    """A set in BEIR's layout, some of its files as given."""
    written = {
        "corpus.jsonl": '{"_id": "d1", "title": "Keys", "text": "Under the pot"}\n'
        '{"_id": "d2", "title": "", "text": " "}\n{"_id": 3, "title": "Ferry", "text": ""}\n',
        "queries.jsonl": '{"_id": "q1", "text": "spare key", "metadata": {}}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t0\n",
    }
    (folder / "qrels").mkdir(parents=True)
    for name, text in (written | files).items():
        (folder / name).write_text(text, "utf-8")
    return folder


class TestFolders:
    def test_the_layout_of_beir_is_read_as_it_is(self, tmp_path: Path) -> None:
        (found,) = evaluation_folders(beir(tmp_path / "pots"))
        assert found.name == "pots"
        documents = found.documents(shuffled=False)
        assert [(one.ref, one.title, one.text) for one in documents] == [
            ("d1", "Keys", "Under the pot"),
            ("3", "Ferry", ""),
        ]
        assert found.queries() == {"q1": "spare key"}
        assert found.judgements() == {"q1": {"d1": 2, "3": 0}}

    def test_plain_judgements_come_before_those_of_beir(self, tmp_path: Path) -> None:
        folder = beir(tmp_path / "pots", **{"qrels.tsv": "q1\td9\t1\n"})
        assert one_evaluation_folder(folder).judgements() == {"q1": {"d9": 1}}

    def test_a_folder_of_folders_holds_several_sets(self, tmp_path: Path) -> None:
        beir(tmp_path / "b")
        beir(tmp_path / "a")
        (tmp_path / "c").mkdir()
        assert [one.name for one in evaluation_folders(tmp_path)] == ["a", "b"]
        with pytest.raises(BadInputError, match="several sets: a, b"):
            one_evaluation_folder(tmp_path)
        with pytest.raises(BadInputError, match=r"does not hold corpus\.jsonl"):
            one_evaluation_folder(tmp_path / "c")

    @pytest.mark.parametrize(
        ("corpus", "reason"),
        [
            ('{"_id": "d1", "text": "a"}\n{"_id": "d1", "text": "b"}', "2: a second document"),
            ('{"text": "secret"}', "1: a document without an id"),
            ('{"_id": "d1", "text": ["secret"]}', "1: title and text must be texts"),
            ("secret", "1: not a line of JSON"),
        ],
    )
    def test_a_wrong_document_is_named_by_its_line(
        self, corpus: str, reason: str, tmp_path: Path
    ) -> None:
        folder = one_evaluation_folder(beir(tmp_path / "pots", **{"corpus.jsonl": corpus}))
        with pytest.raises(BadInputError, match=rf"corpus\.jsonl:{reason}") as refused:
            folder.documents()
        assert "secret" not in str(refused.value)


@pytest.fixture
def notes(store: MemoryStore) -> MemoryStore:
    texts = {
        "bread.md": "Sourdough wants a warm corner and patience",
        "copy/bread.md": "Sourdough wants a warm corner and patience",
        "key.md": "The spare key is under the blue pot",
        "keys.md": "Three spare keys were cut in March",
        "ferry.md": "The ferry to the islands leaves at seven",
        "boiler.md": "The boiler was serviced and its filter replaced",
    }
    store.add_many([MemoryDraft(text, ref=ref, title="") for ref, text in texts.items()])
    return store


class TestEvaluating:
    def test_every_run_is_measured_and_held_against_the_first(self, notes: MemoryStore) -> None:
        evaluation = evaluate(
            notes,
            {"q1": "spare key", "q2": "automobile", "q3": "ferry", "unjudged": "boiler"},
            {"q1": {"key.md": 1, "keys.md": 1}, "q2": {"boiler.md": 1}, "q3": {"ferry.md": 1}},
            {"default": {}, "keyword": {"mode": "keyword"}},
        )
        assert evaluation.queries == ("q1", "q2", "q3")
        assert [run.name for run in evaluation.runs] == ["default", "keyword"]
        keyword = evaluation.run("keyword")
        assert keyword.values["mrr@10"].tolist() == [1.0, 0.0, 1.0]
        assert keyword.estimate("recall@10").mean == pytest.approx(2 / 3)
        assert evaluation.baseline.estimate("recall@100").mean == 1.0
        (loss,) = evaluation.losses("keyword", 5)
        assert (loss.query, loss.value) == ("q2", 0.0)
        assert evaluation.comparison("keyword", "ndcg@10").worse == 1
        assert evaluation.comparison("default", "ndcg@10").p == 1.0

    def test_measuring_the_order_of_fusion_opens_nothing(self, notes: MemoryStore) -> None:
        evaluation = evaluate(notes, {"q": "key"}, {"q": {"key.md": 1}}, {"default": {}})
        assert evaluation.baseline.opened == 0
        assert evaluation.baseline.pool == 5

    def test_a_quoted_phrase_is_read_as_in_a_search(self, notes: MemoryStore) -> None:
        judgements = {"q": {"key.md": 1}}
        evaluation = evaluate(notes, {"q": '"spare key"'}, judgements, {"default": {}})
        assert evaluation.baseline.opened > 0
        assert [place.ref for place in evaluation.baseline.rankings["q"]] == ["key.md"]

    def test_what_equals_a_search_is_ranked_as_by_it(self, notes: MemoryStore) -> None:
        for options in ({}, {"mode": "keyword"}, {"recipe": "qmd"}, {"recipe": "prx"}):
            run = evaluate(
                notes, {"q": "a warm key"}, {"q": {"key.md": 1}}, {"run": options}
            ).baseline
            rows = notes.search("a warm key", limit=32, **options).rows  # type: ignore[arg-type]
            assert [p.id for p in run.rankings["q"]] == [row.id for row in rows]
            assert [p.score for p in run.rankings["q"]] == pytest.approx(
                [row.score for row in rows], abs=1e-5
            )

    def test_ids_serve_as_refs(self, notes: MemoryStore) -> None:
        memory = notes.get("ferry.md").id
        found = evaluate(notes, {"q": "ferry"}, {"q": {memory: 1}}, {"default": {}})
        assert found.baseline.values["mrr@10"].tolist() == [1.0]
        assert found.unknown_refs == ()

    @pytest.mark.parametrize(
        "judged", [{"bread.md": 2}, {"copy/bread.md": 2}, {"bread.md": 2, "copy/bread.md": 1}]
    )
    def test_a_copy_answers_for_the_judged_one(
        self, notes: MemoryStore, judged: dict[str, int]
    ) -> None:
        found = evaluate(notes, {"q": "sourdough"}, {"q": judged}, {"k": {"mode": "keyword"}})
        for name in MEASURES:
            assert found.baseline.values[name].tolist() == [1.0]
        (place,) = found.baseline.rankings["q"]
        assert place.ref in judged
        assert place.ref == max(judged, key=lambda ref: judged[ref])

    def test_a_ref_of_several_memories_means_all_of_them(self, store: MemoryStore) -> None:
        store.add_many(
            [
                MemoryDraft("apples and pears", ref="same.md", title=""),
                MemoryDraft("apples and plums", ref="same.md", title=""),
            ]
        )
        found = evaluate(store, {"q": "plums"}, {"q": {"same.md": 1}}, {"k": {"mode": "keyword"}})
        assert found.shared_refs == ("same.md",)
        assert found.baseline.values["recall@10"].tolist() == [0.5]

    def test_no_name_stands_twice_in_a_ranking(self, store: MemoryStore) -> None:
        store.add_many([MemoryDraft(f"apple {n}", ref="same.md", title="") for n in range(3)])
        found = evaluate(store, {"q": "apple"}, {"q": {"same.md": 1}}, {"default": {}})
        names = [place.ref for place in found.baseline.rankings["q"]]
        assert len(set(names)) == len(names) == 3

    def test_unknown_refs_count_as_not_found_and_are_named(self, notes: MemoryStore) -> None:
        judgements = {"q": {"ferry.md": 1, "gone.md": 1}}
        found = evaluate(notes, {"q": "ferry"}, judgements, {"default": {}})
        assert found.unknown_refs == ("gone.md",)
        assert found.baseline.values["recall@10"].tolist() == [0.5]

    def test_a_judged_query_without_a_text_counts_0(self, notes: MemoryStore) -> None:
        judgements = {"q": {"ferry.md": 1}, "lost": {"key.md": 1}, "none": {"key.md": 0}}
        found = evaluate(notes, {"q": "ferry", "none": "key"}, judgements, {"default": {}})
        assert found.textless == ("lost",)
        assert found.queries == ("q", "lost")
        assert found.baseline.estimate("mrr@10").mean == 0.5

    def test_measures_deeper_than_the_ranking_are_left_out(self, notes: MemoryStore) -> None:
        found = evaluate(notes, {"q": "ferry"}, {"q": {"ferry.md": 1}}, {"default": {}}, depth=10)
        assert "recall@100" not in found.measures
        assert "recall@100" not in found.baseline.values

    def test_progress_counts_queries_over_all_runs(self, notes: MemoryStore) -> None:
        reported: list[tuple[str, int, int | None]] = []
        evaluate(
            notes,
            {"q1": "ferry", "q2": "key"},
            {"q1": {"ferry.md": 1}, "q2": {"key.md": 1}},
            {"a": {}, "b": {}},
            progress=lambda *news: reported.append(news),
        )
        assert reported == [("a", 0, 4), ("a", 1, 4), ("b", 2, 4), ("b", 3, 4)]

    @pytest.mark.parametrize(
        ("options", "settings", "message"),
        [
            ({"recipe": "soup"}, {}, "recipe: 'soup' is not one of"),
            ({"mode": "literal"}, {}, "query 'q': mode: "),
            ({}, {"depth": 9}, "depth: must be from 10"),
        ],
    )
    def test_what_cannot_be_measured_is_refused_by_name(
        self,
        notes: MemoryStore,
        options: dict[str, Any],
        settings: dict[str, int],
        message: str,
    ) -> None:
        judgements = {"q": {"ferry.md": 1}}
        with pytest.raises(BadInputError, match=f"^{message}"):
            evaluate(notes, {"q": "ferry"}, judgements, {"run": options}, **settings)

    @pytest.mark.parametrize("judgements", [{}, {"q": {}}, {"q": {"a": 0}}, {"other": {"a": 1}}])
    def test_judgements_of_nothing_are_refused(
        self, notes: MemoryStore, judgements: dict[str, dict[str, int]]
    ) -> None:
        with pytest.raises(BadInputError, match="no query here has something relevant judged"):
            evaluate(notes, {"q": "ferry"}, judgements, {"default": {}})


class Shelf:
    """Something else that ranks: all it has, in one order."""

    def __init__(self, contents: list[int]) -> None:
        self.contents = contents

    def references(self) -> list[Reference]:
        return [Reference(f"id{n}", f"r{n}", c) for n, c in enumerate(self.contents)]

    def rank(self, query: str, *, depth: int = 100, **options: Any) -> Ranking:
        return Ranking(tuple((f"id{n}", 1.0) for n in range(len(self.contents))), pool=9, opened=0)


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.dictionaries(st.integers(0, 14), st.integers(0, 3), min_size=1),
)
def test_twins_never_make_a_figure_impossible(contents: list[int], judged: dict[int, int]) -> None:
    """However contents and judgements overlap, all stays within 0 and 1, and names are unique."""
    grades = {f"r{n}": grade for n, grade in judged.items()}
    if not any(grade > 0 for grade in grades.values()):
        return
    found = evaluate(Shelf(contents), {"q": "all"}, {"q": grades}, {"run": {}})
    for values in found.baseline.values.values():
        assert 0.0 <= values[0] <= 1.0 + 1e-9
    relevant = {contents[n] if n < len(contents) else f"r{n}" for n, g in judged.items() if g > 0}
    there = [unit for unit in relevant if isinstance(unit, int)]
    assert found.baseline.values["recall@100"][0] == pytest.approx(len(there) / len(relevant))
    names = [place.ref for place in found.baseline.rankings["q"]]
    assert len(set(names)) == len(names)


@given(st.integers(0, 100), st.integers(2, 20))
def test_a_sample_of_a_ranking_goes_evenly_from_first_to_last(length: int, most: int) -> None:
    chosen = [int(one) for one in evenly([str(n) for n in range(length)], most)]
    assert len(chosen) == min(length, most)
    if chosen:
        assert (chosen[0], chosen[-1]) == (0, length - 1)
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or (min(gaps) >= 1 and max(gaps) - min(gaps) <= 1)


def test_of_twenty_three_candidates_the_lower_half_is_sampled_too() -> None:
    chosen = [int(one) for one in evenly([str(n) for n in range(23)], SAMPLED)]
    assert chosen == list(range(0, 23, 2))
