"""Explain: every result's place follows from what is said about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.records import MemoryDraft, SearchResponse
from memory_store.search.candidates import Candidate, LegList
from memory_store.search.explain.account import contributions
from memory_store.search.explain.words import (
    accounts,
    boost_sentence,
    changes,
    moves,
    ordinal,
    stage_words,
    terms,
)
from memory_store.search.fusion.rank_fusion import Merged, fuse
from memory_store.search.recipes import RECIPES
from memory_store.store import MemoryStore

QUERY = "the spare key"
TYPES = ("note", "preference", "summary_done")
_PAGE = Path(__file__).parents[2] / "docs" / "how-it-works" / "search.md"
_DIAGRAM = _PAGE.read_text("utf-8").split("\n\n")[1]
DOCUMENTED_STAGES = _DIAGRAM.splitlines()[0].strip().split(" → ")[1:]
DOCUMENTED_LISTS = _DIAGRAM.splitlines()[1].split("↑")[0].strip().split(" · ")


def stages(response: SearchResponse) -> dict[str, Mapping[str, Any]]:
    return {report.stage: report.details for report in response.explain}


@pytest.fixture
def typed(store: MemoryStore) -> MemoryStore:
    """Forty notes on one matter, some of a type that counts more or less."""
    kinds = ["note"] * 30 + ["preference", "summary", "result", "task_done", "preference_done"] * 2
    store.add_many(
        MemoryDraft(f"{QUERY} " * (n % 5 + 1) + f"of house {n}", type=kind, ref=str(n))
        for n, kind in enumerate(kinds)
    )
    store.add_many(MemoryDraft(f"Weather of day {n}") for n in range(60))
    return store


@st.composite
def fused_lists(draw: st.DrawFn) -> tuple[list[LegList], dict[int, str], str]:
    """Lists of legs as fusion gets them, a type for each memory, and a recipe."""
    lists = []
    for leg in ("keyword", "topic", "vector", "vector"):
        found = draw(st.lists(st.integers(0, 20), unique=True, max_size=12))
        strength = st.floats(0.01, 1.0)
        strengths = draw(
            st.one_of(st.just([]), st.lists(strength, min_size=len(found), max_size=len(found)))
        )
        weight = draw(st.floats(0.1, 3.0))
        lists.append(LegList(leg, tuple(found), weight=weight, strengths=tuple(strengths)))
    types = {n: draw(st.sampled_from(TYPES)) for n in range(21)}
    return lists, types, draw(st.sampled_from(sorted(RECIPES)))


@given(fused_lists())
def test_the_contributions_sum_to_the_fusion_score(
    made: tuple[list[LegList], dict[int, str], str],
) -> None:
    lists, types, name = made
    recipe = RECIPES[name]
    ordered = fuse(lists, recipe, types=types, tie_break=lambda _: {n: (n,) for n in range(21)})
    merged = Merged((), tuple(ordered), {}, tuple(lists))
    for rank, one in enumerate(ordered, 1):
        share = min(1.0, one.share)
        candidate = Candidate(one.ordinal, "", types[one.ordinal], share, rank, boost=one.boost)
        parts = contributions(candidate, merged, recipe)
        assert sum(part["term"] for part in parts) == pytest.approx(one.score, rel=1e-9)
        assert sum(part["points"] for part in parts) == pytest.approx(share, abs=1e-3)


class TestAccounts:
    @pytest.mark.parametrize("recipe", sorted(RECIPES))
    def test_every_row_is_accounted_for(
        self, typed: MemoryStore, reranker: str, recipe: str
    ) -> None:
        for options in ({}, {"rerank": False}, {"sealed": True}, {"mode": "keyword"}):
            response = typed.search(QUERY, limit=32, recipe=recipe, explain=True, **options)
            told_of = accounts(response)
            assert list(told_of) == [row.id for row in response.rows]
            for row in response.rows:
                account = told_of[row.id]
                assert account["rank"] == account["ranks"][-1]["rank"] == row.rank
                assert account["score"] == pytest.approx(row.score, abs=1e-3)
                assert account["ranks"][0]["rank"] == account["fusion_rank"]
                parts = sum(part["points"] for part in account["contributions"])
                assert parts == pytest.approx(row.fusion_score, abs=2e-3)

    def test_steps_lead_from_the_reranker_s_score_to_the_final_one(
        self, typed: MemoryStore, reranker: str
    ) -> None:
        seen = set()
        response = typed.search(QUERY, deep=True, limit=100, explain=True)
        for account in accounts(response).values():
            before = account["rerank_score"]
            for step in account["steps"]:
                assert step["before"] == before
                before = step["after"]
                seen.add(step["step"])
            assert before == account["score"]
        assert {"preference boost", "summary boost", "result demotion", "done penalty"} <= seen

    def test_rank_changes_are_shown_stage_by_stage(self, typed: MemoryStore, reranker: str) -> None:
        response = typed.search(QUERY, limit=32, explain=True)
        names = {move.name for account in accounts(response).values() for move in moves(account)}
        assert {"fusion", "rerank", "summary boost", "others demoted"} <= names
        for account in accounts(response).values():
            ranks = [entry["rank"] for entry in account["ranks"]]
            way = moves(account)
            assert (way[0].rank, way[-1].rank) == (ranks[0], ranks[-1])
            assert sum(move.up for move in way) == ranks[0] - ranks[-1]

    def test_a_boost_is_named_with_what_it_decides(self, typed: MemoryStore) -> None:
        default = accounts(typed.search(QUERY, limit=32, explain=True, rerank=False)).values()
        assert "summary boost × 1.4, for the pool only" in map(boost_sentence, default)
        gnosis = accounts(
            typed.search("meaning of the spare key", limit=32, explain=True, recipe="gnosis")
        ).values()
        assert "summary boost × 1.4" in map(boost_sentence, gnosis)
        assert "summary boost" in {term.name for account in gnosis for term in terms(account)}

    def test_pages_go_on_counting(self, typed: MemoryStore) -> None:
        first = typed.search(QUERY, limit=5, rerank=False)
        second = typed.search(QUERY, limit=5, rerank=False, continue_=first.next, explain=True)
        assert [one["rank"] for one in accounts(second).values()] == [6, 7, 8, 9, 10]


class TestStages:
    def test_each_stage_is_said_in_order_with_times(
        self, notes: MemoryStore, reranker: str
    ) -> None:
        response = notes.search("spare key", explain=True)
        assert [report.stage for report in response.explain] == DOCUMENTED_STAGES
        unread = notes.search("spare key", explain=True, rerank=False)
        order = ["analyse", "expand", "fetch", "fuse", "rerank", "adjust", "open", "preview"]
        assert [report.stage for report in unread.explain] == order
        assert sorted(order) == sorted(DOCUMENTED_STAGES)
        lists = {one.stage: stage_words(one).tables for one in unread.explain}["fetch"][0]
        assert [row[0] for row in lists.rows] == DOCUMENTED_LISTS
        assert all(report.milliseconds >= 0 for report in response.explain)
        assert sum(report.cpu_milliseconds for report in response.explain) > 0
        assert notes.search("spare key").explain == ()

    def test_filters_are_shown_one_by_one(self, notes: MemoryStore) -> None:
        options: dict[str, Any] = {"topic": "house", "since": "2024-05", "explain": True}
        details = stages(notes.search('key -lease "spare"', **options))["analyse"]
        assert (details["searchable"], details["of"]) == (0, 12)
        assert details["filters"] == [
            {"filter": "topic:house", "lets_through": 6},
            {"filter": "since:2024-05", "lets_through": 8},
            {"filter": '"spare"', "lets_through": 2},
            {"filter": "-lease", "lets_through": 11},
        ]

    def test_legs_show_what_they_found_and_with_what(self, notes: MemoryStore) -> None:
        details = stages(notes.search("spare key", explain=True))["fetch"]
        lists = {one["leg"]: one for one in details["lists"]}
        assert lists["keyword"]["found"] == 2
        assert lists["keyword"]["best"] >= lists["keyword"]["last"] > 0
        assert details["model"]
        assert details["index"] in ("vec0", "numpy")
        assert set(details["leg_milliseconds"]) == {"keyword", "topic", "vector"}

    def test_weights_are_shown_with_the_reason_for_each_factor(self, notes: MemoryStore) -> None:
        details = stages(notes.search("spare key", recipe="qmd", explain=True))["fuse"]
        assert details["recipe"] == "qmd"
        assert details["k"] == 60
        keyword = next(one for one in details["lists"] if one["leg"] == "keyword")
        assert keyword["factors"] == {"recipe": 1.0, "the query as typed": 2.0}
        assert keyword["weight"] == 2.0
        symbol = stages(notes.search("spare_key", recipe="prx", explain=True))["fuse"]
        assert any("for a symbol" in one["factors"] for one in symbol["lists"])

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"sealed": True}, "sealed"),
            ({"rerank": False}, "switched off"),
            ({"mode": "keyword"}, "keeps the order of its leg"),
            ({}, "no reranking model"),
        ],
    )
    def test_a_reranker_that_did_not_run_is_said_with_the_reason(
        self, typed: MemoryStore, options: dict[str, Any], reason: str
    ) -> None:
        details = stages(typed.search(QUERY, explain=True, **options))["rerank"]
        assert reason in details["skipped"]

    def test_everything_is_said_in_words(self, typed: MemoryStore, reranker: str) -> None:
        response = typed.search(f"{QUERY} status:x", explain=True, status="open")
        words = {one.stage: one for one in map(stage_words, response.explain)}
        assert ("searchable", f"{stages(response)['analyse']['searchable']:,} of 100") in words[
            "analyse"
        ].figures
        (table,) = words["analyse"].tables
        assert table.rows == (("status:open", "96"),)
        assert [row[0] for row in words["fetch"].tables[0].rows][:1] == ["words"]
        assert dict(words["rerank"].figures)["by"] == "ms-marco-TinyBERT-L-2-v2"

    def test_explaining_opens_nothing_and_changes_nothing(
        self, typed: MemoryStore, reranker: str
    ) -> None:
        for options in ({}, {"sealed": True}, {"rerank": False}):
            plain = typed.search(QUERY, **options)
            explained = typed.search(QUERY, explain=True, why=plain.rows[-1].id, **options)
            assert explained.opened == plain.opened
            assert [(r.id, r.score) for r in explained.rows] == [
                (r.id, r.score) for r in plain.rows
            ]


def test_explaining_a_wide_pool_costs_little(typed: MemoryStore, reranker: str) -> None:
    """The account itself, over a pool of a deep search: bounded generously for a busy machine."""
    typed.add_many(MemoryDraft(f"{QUERY} of yard {n}") for n in range(250))
    options: dict[str, Any] = {"deep": True, "limit": 100, "mode": "keyword"}

    def spent(explain: bool) -> float:
        start = time.process_time()
        typed.search(f"{QUERY} house", explain=explain, **options)
        return time.process_time() - start

    spent(True), spent(False)
    explained, plain = min(spent(True) for _ in range(5)), min(spent(False) for _ in range(5))
    assert explained - plain < 0.02


def test_ordinals_are_english() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip


def test_late_interaction_is_a_stage_of_the_way(typed: MemoryStore) -> None:
    response = typed.search(QUERY, limit=32, reranker="maxsim", explain=True)
    told_of = accounts(response)
    assert all(moves(one)[1].name == "late interaction" for one in told_of.values())
    assert [one["ranks"][-1]["rank"] for one in told_of.values()] == list(range(1, 33))


def test_a_score_that_late_interaction_gave_is_not_shown_as_one_without_a_reranker(
    typed: MemoryStore,
) -> None:
    response = typed.search(QUERY, limit=32, reranker="maxsim", explain=True)
    read = stages(response)["rerank"]["reranked"]
    moved = stages(response)["adjust"]["moved"]
    assert moved["late interaction"] == read
    for one in accounts(response).values():
        named = {name for name, _, _ in changes(one)}
        assert ("late interaction" in named) == (one["rerank_score"] is not None)


def test_rules_for_files_are_stages_of_the_way(typed: MemoryStore) -> None:
    response = typed.search(QUERY, limit=32, recipe="prx", explain=True)
    stages_told = {entry["after"] for one in accounts(response).values() for entry in one["ranks"]}
    assert {"fusion", "file coherence"} <= stages_told


def test_a_literal_search_is_explained_too(notes: MemoryStore) -> None:
    response = notes.search("Spare keys?", mode="literal", explain=True, topic="errands")
    (account,) = accounts(response).values()
    assert [(move.name, move.rank) for move in moves(account)] == [("words", 1)]
    response = notes.search("Spare keys", mode="literal", explain=True)
    (account,) = accounts(response).values()
    assert account["ranks"][-1]["rank"] == 1
    assert account["score"] == response.rows[0].score == 1.0  # it matches: no share of words
    assert stages(response)["analyse"]["of"] == 12


def test_one_leg_alone_is_called_by_its_name(notes: MemoryStore) -> None:
    for mode, name in (("keyword", "words"), ("vector", "meaning")):
        response = notes.search("spare key", mode=mode, explain=True)
        for row, account in zip(response.rows, accounts(response).values(), strict=True):
            assert moves(account)[0].name == name
            told_of = [(change, pytest.approx(after)) for change, _, after in changes(account)]
            assert told_of == ([("without a reranker", round(row.score, 4))] if row.score else [])
    listed = accounts(notes.search("topic:house", explain=True)).values()
    assert {moves(account)[0].name for account in listed} == {"newest"}
