"""``benchmarks.likeness`` measures what it says, by memories instead of questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks import likeness
from benchmarks.development_sets import DevelopmentSet, Part
from benchmarks.sealed import SealedPart
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.search.recipes import DEFAULT

TEXTS = {
    "slugs_1": "Slugs eat the lettuce in the raised bed when the night is wet",
    "slugs_2": "Copper tape around the raised bed keeps slugs from the lettuce",
    "slugs_3": "Copper tape around the raised bed keeps slugs from the lettuce",
    "boiler_1": "The boiler was serviced and its filter replaced",
    "boiler_2": "A new filter for a boiler costs less than its service",
    "lease_1": "A landlord wants his deposit settled before May",
}
TOGETHER = {"1": {"slugs_1": 1, "slugs_2": 2, "slugs_3": 1, "gone": 1}, "2": {"boiler_1": 0}}


@pytest.fixture
def small_set(
    tiny_model: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> DevelopmentSet:
    """Six memories, two of them the same, and a model that is small enough."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    records = tuple(MemoryDraft(text, ref=ref) for ref, text in TEXTS.items())
    return DevelopmentSet("small", (Part(records, {"1": "slugs"}, TOGETHER),))


def test_others_that_answer_the_same_query_ought_to_be_found(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    figures = likeness.measured(small_set, tmp_path)
    assert (figures.memories, figures.searched_by) == (6, 3)
    assert set(figures.together) == set(figures.in_halves) == set(likeness.RUNS)
    assert figures.together["keyword"].mean == 1.0, "they share their words, the others do not"
    assert figures.in_halves["keyword"].mean < 1.0, "words are compared in one collection alone"
    assert figures.in_halves["vector"] == figures.together["vector"]
    assert json.loads(json.dumps(figures.as_dict()))["searched_by"] == 3
    assert "by 3 of 6 memories, nDCG@10" in "\n".join(likeness.table(figures))


def test_copies_are_no_others_and_what_is_gone_is_not_missed(
    small_set: DevelopmentSet, tmp_path: Path
) -> None:
    (part,) = small_set.parts
    sealed = SealedPart(part, tmp_path / "small.db")
    alike = likeness.judgements(likeness.groups(small_set), sealed.references())
    assert {ref: set(others) for ref, others in alike.items()} == {
        "slugs_1": {"slugs_2", "slugs_3"},
        "slugs_2": {"slugs_1"},
        "slugs_3": {"slugs_1"},
    }
    sealed.close()


def test_paragraphs_of_one_article_are_alike(small_set: DevelopmentSet) -> None:
    articles = replace(small_set, name="xquad-de")
    assert sorted(map(sorted, likeness.groups(articles))) == [
        ["boiler_1", "boiler_2"],
        ["lease_1"],
        ["slugs_1", "slugs_2", "slugs_3"],
    ]


def test_it_ranks_as_the_product_does(small_set: DevelopmentSet, tmp_path: Path) -> None:
    (part,) = small_set.parts
    sealed = SealedPart(part, tmp_path / "small.db")
    ranked = likeness.ByMemory(sealed)
    for one in sealed.references():
        asked = sealed.store.search(like=one.id)
        found = ranked.rank(one.ref or "", **likeness.RUNS["default"])
        assert [row.id for row in asked.rows] == [id_ for id_, _ in found.results]
        assert likeness.fused(sealed, SearchRequest(like=one.id), DEFAULT) == [
            row.id for row in asked.rows
        ]
    sealed.close()


def test_a_leg_that_finds_more_alone_is_said(small_set: DevelopmentSet, tmp_path: Path) -> None:
    figures = likeness.measured(small_set, tmp_path)
    better = replace(figures.together["vector"], mean=figures.together["default"].mean + 0.01)
    worse = replace(figures, together={**figures.together, "vector": better})
    assert "small: default is below vector alone" in list(likeness.failures(worse))


def test_a_set_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        likeness.main(["--only", "scifact"])
    assert exit_.value.code == 2
    assert "no set 'scifact'; there is: demo" in capsys.readouterr().err
