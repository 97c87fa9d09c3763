"""Why a memory is or is not in an answer: every stage that can lose one says so itself."""

from __future__ import annotations

from typing import Any

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore


def ids(store: MemoryStore) -> dict[str, str]:
    """Ref → id."""
    return {memory.ref or "": memory.id for memory in store.list(limit=1_000)}


def reported(store: MemoryStore, query: str, about: str, **options: Any) -> dict[str, Any]:
    """The answer to why; the reason is printed for a caller who reads a failure."""
    answer = store.search(query, why=about, **options).why
    assert answer is not None
    print(answer.reason)
    return answer.as_dict()


@pytest.fixture
def keys(store: MemoryStore) -> MemoryStore:
    """Eighty notes on one matter, each longer than the one before, and as many on others."""
    store.add_many(
        MemoryDraft(f"spare key number {n} " + "and more words " * n, ref=str(n)) for n in range(80)
    )
    store.add_many(MemoryDraft(f"weather of day {n}") for n in range(100))
    return store


class TestNames:
    def test_a_memory_may_be_named_by_id_its_beginning_or_ref(self, notes: MemoryStore) -> None:
        known = ids(notes)
        for mode in ("hybrid", "keyword", "vector", "literal"):
            for name in (known["5"], known["5"][:8], "5"):
                answer = reported(notes, "Harper", name, mode=mode)
                assert answer["id"] == known["5"], mode
                assert (answer["returned"], answer["rank"]) == (True, 1)

    @pytest.mark.parametrize("mode", ["hybrid", "keyword", "literal"])
    def test_what_is_not_there_is_unknown(self, notes: MemoryStore, mode: str) -> None:
        answer = reported(notes, "boiler", "00000000-0000-4000-8000-000000000000", mode=mode)
        assert "no such memory" in answer["reason"]
        assert answer["stage"] == "unknown"


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "options", "name", "because"),
        [
            ("Harper topic:errands", {}, "topic:errands", "does not carry this topic"),
            ("Harper", {"topic": "home office"}, 'topic:"home office"', "carry this topic"),
            ("Harper type:task type:decision", {}, "type:task or decision", "its type is note"),
            ("Harper", {"status": "done"}, "status:done", "it is open"),
            ("Harper since:2025", {}, "since:2025", "it is from 2024-06-01"),
            ("Harper", {"until": "2024-02"}, "until:2024-02", "it is from 2024-06-01"),
            ("Harper in:empty", {}, "in:empty", "it is in the collection personal"),
            ('Harper "report surveyor"', {}, '"report surveyor"', "side by side"),
            ('Harper "boiler"', {}, '"boiler"', "does not hold this word"),
            ("Harper -surveyor", {}, "-surveyor", "holds what is excluded"),
        ],
    )
    def test_the_filter_that_leaves_it_out_is_named(
        self, notes: MemoryStore, query: str, options: Any, name: str, because: str
    ) -> None:
        notes.add("Something", collection="empty")
        answer = reported(notes, query, "5", **options)
        assert (answer["stage"], answer["filters"]) == ("filter", [name])
        assert because in answer["reason"]

    def test_all_of_them_are_named(self, notes: MemoryStore) -> None:
        answer = reported(notes, "Harper topic:errands type:task -surveyor", "5")
        assert answer["filters"] == ["type:task", "topic:errands", "-surveyor"]


class TestLegs:
    def test_a_word_it_lacks_is_named_without_opening_it(self, notes: MemoryStore) -> None:
        answer = reported(notes, "boiler serviced Harper", "11", mode="keyword")
        assert answer["words"] == {"held": ["boiler", "serviced"], "missing": ["Harper"]}
        assert 0.4 < answer["coverage"] < 0.9
        lost = notes.search("boiler", mode="keyword", why="5")
        assert lost.why is not None
        assert lost.why["legs"] == [
            {
                "leg": "keyword",
                "kind": "original",
                "rank": None,
                "score": None,
                "taken": 1,
                "last_score": lost.why["legs"][0]["last_score"],
                "because": "it holds none of the words",
            }
        ]
        assert "lacks boiler" in lost.why["reason"]
        assert lost.opened == 1

    def test_its_place_in_each_leg_stands_beside_the_last_one_taken(
        self, keys: MemoryStore
    ) -> None:
        answer = reported(keys, "spare key", "79", recipe="qmd", rerank=False)
        legs = {leg["leg"]: leg for leg in answer["legs"]}
        assert answer["stage"] == "fetch"
        assert (legs["keyword"]["rank"], legs["keyword"]["taken"]) == (80, 20)
        assert legs["keyword"]["score"] < legs["keyword"]["last_score"]
        assert legs["vector"]["rank"] > legs["vector"]["taken"] == 20
        assert "words: place 80 (BM25 " in answer["reason"]

    def test_the_pool_ends_above_it(self, keys: MemoryStore) -> None:
        answer = reported(keys, "spare key", "79", rerank=False)
        assert answer["stage"] == "fuse"
        assert answer["fusion_rank"] > answer["pool"] == 64
        assert answer["fusion_score"] <= answer["last_score"]
        assert {leg["leg"] for leg in answer["legs"]} >= {"keyword", "vector"}

    def test_a_twin_stands_for_it(self, notes: MemoryStore) -> None:
        for ref in ("one", "two"):
            notes.add("Both of us say the same about zeppelins", ref=ref, title="Same")
        (row,) = notes.search("zeppelins", mode="keyword").rows
        (other,) = {"one", "two"} - {row.ref}
        answer = reported(notes, "zeppelins", other, mode="keyword")
        assert (answer["stage"], answer["twin"]) == ("twin", row.id)

    def test_a_search_by_filters_alone_has_no_legs(self, notes: MemoryStore) -> None:
        assert reported(notes, "topic:house", "5")["returned"]


class TestReading:
    def test_spelling_is_checked_in_the_opened_text(self, notes: MemoryStore) -> None:
        answer = reported(notes, '"spare keys"', "1")
        assert answer["stage"] == "open"
        assert '"spare keys" is spelled otherwise' in answer["reason"]

    def test_metadata_too(self, notes: MemoryStore) -> None:
        answer = reported(notes, "spare key", "1", meta=["colour=red"])
        assert "metadata does not say colour=red" in answer["reason"]

    def test_the_score_floor_and_min_score(self, notes: MemoryStore, reranker: str) -> None:
        rows = notes.search("spare key", limit=12).rows
        answer = reported(notes, "spare key", rows[-1].id, min_score=rows[0].score)
        assert answer["stage"] == "adjust"
        assert "below min_score" in answer["reason"]
        assert answer["ranks"][0]["after"] == "fusion"

    def test_another_page_is_named(self, notes: MemoryStore) -> None:
        first = notes.search("the spare key", limit=3)
        whole = notes.search("the spare key", limit=12)
        answer = reported(notes, "the spare key", whole.rows[7].id, limit=3)
        assert (answer["stage"], answer["rank"], answer["page"]) == ("page", 8, 3)
        assert answer["fusion_rank"] == 8
        second = notes.search("the spare key", limit=3, continue_=first.next, why=first.rows[0].id)
        assert second.why is not None
        assert (second.why["page"], second.why["returned"]) == (1, False)

    def test_what_does_not_fit_the_budget(self, notes: MemoryStore) -> None:
        free = notes.search("the spare key", limit=10)
        tight = notes.search("the spare key", limit=10, budget=40)
        (missing, *_) = {row.id for row in free.rows} - {row.id for row in tight.rows}
        answer = reported(notes, "the spare key", missing, limit=10, budget=40)
        assert answer["stage"] == "budget"
        assert not answer["returned"]


class TestPatterns:
    def test_words_that_the_pattern_needs(self, notes: MemoryStore) -> None:
        answer = reported(notes, "spare .*(keys|boiler)", "5", mode="literal")
        assert "the text 'spare ', which it lacks" in answer["reason"]
        assert "one of 'boiler', 'keys'" in answer["reason"]
        assert answer["words"] == {"held": [], "missing": ["spare ", "boiler", "keys"]}

    def test_a_pattern_that_matches_nothing_in_it(self, notes: MemoryStore) -> None:
        assert reported(notes, "spare key under", "1", mode="literal")["returned"]
        answer = reported(notes, "SPARE key under", "1", mode="literal")
        assert answer["stage"] == "open"
        assert "the pattern matches nothing in it" in answer["reason"]

    def test_filters_come_first(self, notes: MemoryStore) -> None:
        answer = reported(notes, "Harper", "5", mode="literal", topic="errands")
        assert answer["filters"] == ["topic:errands"]

    def test_only_the_first_256_are_tried(self, store: MemoryStore) -> None:
        store.add_many(MemoryDraft("invoice " + "x " * n, ref=str(n)) for n in range(260))
        answer = reported(store, "invoice x", "259", mode="literal")
        assert "the first 256 are opened" in answer["reason"]
