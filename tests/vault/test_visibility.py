"""What an asker who may search, but not read, sees of each field of each answer.

The table names every field, so that a caller who adds one has to say here who sees it.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from memory_store.access import without_text
from memory_store.access.answers import shown_unread
from memory_store.records import (
    Memory,
    Passage,
    SealedMemory,
    SearchResponse,
    SearchResult,
    explanation,
)
from memory_store.records.visibility import Seen, shown_to_searchers, visibility

TIMES = "milliseconds cpu_milliseconds"
PLACES = "rank id fusion_rank keyword_rank topic_rank vector_rank fusion_score score"
DERIVED = "fusion_sum contributions boost ranks steps"

SEEN: dict[type[Struct], dict[Seen | None, str]] = {
    SearchResponse: {
        Seen.BY_SEARCHERS: "query mode counts totals opened total next truncated nearest "
        "milliseconds",
        Seen.UNLESS_STRICT: "types",
        Seen.IN_PART: "rows facets degraded explain why",
        None: "topics budget holding also_searched",
    },
    SearchResult: {
        Seen.BY_SEARCHERS: "rank id score band keyword_rank topic_rank vector_rank fusion_score",
        Seen.UNLESS_STRICT: "type created",
        None: "ref collection topics title preview complete vector_score rerank_score passages "
        "line end_line symbol last_author last_changed superseded_by by matches title_highlights",
    },
    Passage: {None: "start end text highlights place line end_line symbol"},
    Memory: {
        Seen.BY_SEARCHERS: "id version",
        Seen.UNLESS_STRICT: "type created updated",
        None: "collection title text topics ref source valid_from valid_to supersedes "
        "superseded_by parent metadata original",
    },
    explanation.LegCount: {Seen.BY_SEARCHERS: "leg kind found", None: "best last"},
    explanation.LegPlace: {
        Seen.BY_SEARCHERS: "leg kind rank taken because",
        None: "score last_score",
    },
    explanation.Account: {
        Seen.BY_SEARCHERS: PLACES,
        Seen.UNLESS_STRICT: DERIVED,
        None: "rerank_score",
    },
    explanation.Verdict: {
        Seen.BY_SEARCHERS: f"{PLACES} returned filters words pool last_score page",
        Seen.UNLESS_STRICT: DERIVED,
        Seen.IN_PART: "reason legs",
        None: "rerank_score stage twin coverage",
    },
    explanation.Analyse: {
        Seen.BY_SEARCHERS: f"{TIMES} language keywords topic_groups searchable of filters",
        None: "words like",
    },
    explanation.Expand: {
        Seen.BY_SEARCHERS: f"{TIMES} model skipped variants dropped dropped_for",
        None: "cached sent lines",
    },
    explanation.Fetch: {
        Seen.BY_SEARCHERS: f"{TIMES} feedback_from candidates leg_milliseconds model index",
        Seen.IN_PART: "lists",
        None: "sequential_collections",
    },
    explanation.Fuse: {Seen.BY_SEARCHERS: f"{TIMES} recipe candidates pool k weights read lists"},
    explanation.Open: {
        Seen.BY_SEARCHERS: f"{TIMES} opened kept",
        Seen.IN_PART: "results",
        None: "matched",
    },
    explanation.Rerank: {Seen.BY_SEARCHERS: f"{TIMES} skipped how reranked calibrated"},
    explanation.Adjust: {
        Seen.BY_SEARCHERS: TIMES,
        Seen.IN_PART: "results",
        None: "moved",
    },
    explanation.Preview: {
        Seen.BY_SEARCHERS: f"{TIMES} returned",
        None: "complete budget tokens tokens_counted_with skipped_for_budget",
    },
}


@pytest.mark.parametrize("record", SEEN)
def test_every_field_says_who_sees_it(record: type[Struct]) -> None:
    said = {name: seen for seen, names in SEEN[record].items() for name in names.split()}
    assert dict(visibility(record)) == said


def test_every_stage_is_in_the_table() -> None:
    assert set(explanation.Stage.__subclasses__()) <= set(SEEN)


def test_a_field_that_says_nothing_is_withheld() -> None:
    class Wider(SearchResult, frozen=True):
        secret: str = ""

    assert "secret" not in shown_to_searchers(Wider, strict=False)
    assert visibility(SealedMemory) == visibility(Memory)


@pytest.mark.parametrize("strict", [False, True])
def test_an_answer_keeps_what_its_fields_let_through(strict: bool) -> None:
    row = SearchResult(
        1, "a", "r", 0.5, "high", "c", "note", "2024", ("t",), "title", "text", True, 1, 2, 3, 0.9
    )
    lists = (explanation.LegCount("vector", "original", 3, 0.9, 0.1),)
    stage = explanation.Fetch(1.0, lists=lists, sequential_collections={"c": 0.5})
    response = SearchResponse(
        "q", "keyword", (row,), "1", 1, 9, topics={"t": 1}, types={"note": 1}, explain=(stage,)
    )
    seen = shown_unread(response, strict=strict)
    assert (seen.rows[0].id, seen.rows[0].title, seen.rows[0].vector_score) == ("a", "", None)
    assert (seen.rows[0].type, seen.types) == (("", {}) if strict else ("note", {"note": 1}))
    assert (seen.topics, seen.total) == ({}, 9)
    places = {"leg": "vector", "kind": "original", "found": 3, "best": None, "last": None}
    assert seen.explain[0].details == {"lists": [places]}
    assert shown_unread(response, strict=strict, readable={"a"}).rows == (row,)
    data: dict[str, Any] = without_text(row, strict=strict)
    assert {name for name, value in data.items() if value is not None} <= {
        *shown_to_searchers(SearchResult, strict=strict)
    }
