"""The answer to a search: what is shown of each result, and what is said about all of them."""

from __future__ import annotations

from memory_store.store import MemoryStore


class TestAnswers:
    def test_short_notes_are_complete_and_their_words_marked(self, notes: MemoryStore) -> None:
        row = notes.search("pots of blue", mode="keyword").rows[0]
        (passage,) = row.passages
        assert row.complete
        assert row.preview == passage.text
        assert [passage.text[start:end] for start, end in passage.highlights] == ["blue", "pot"]

    def test_a_long_note_shows_the_part_that_answers(self, notes: MemoryStore) -> None:
        filler = "Nothing to see in this part of the text at all. " * 60
        text = filler + "The combination of the safe is kept by Aunt Frieda. " + filler
        notes.add(text, ref="long")
        row = notes.search("combination safe", mode="keyword").rows[0]
        (passage,) = row.passages
        assert row.ref == "long"
        assert not row.complete
        assert "combination of the safe" in row.preview
        assert text[passage.start : passage.end] == row.preview
        assert len(row.preview) < 400

    def test_topics_and_types_are_counted_over_the_rows(self, notes: MemoryStore) -> None:
        response = notes.search("the spare key", limit=5)
        assert sum(response.topics.values()) == 5
        assert response.types == {"note": 5}

    def test_no_result_is_an_answer(self, notes: MemoryStore) -> None:
        response = notes.search("zeppelin", mode="keyword")
        assert response.rows == ()
        assert response.counts == "Reranked 0 of 0, returned 0"
        assert response.next is None

    def test_an_empty_vault_answers(self, store: MemoryStore) -> None:
        response = store.search("anything", rerank=False)
        assert (response.rows, response.total, response.degraded) == ((), 0, ())

    def test_explain_says_each_stage_in_order(self, notes: MemoryStore, reranker: str) -> None:
        response = notes.search("spare key", explain=True)
        assert [report.stage for report in response.explain] == [
            "analyse",
            "expand",
            "fetch",
            "fuse",
            "open",
            "rerank",
            "adjust",
            "preview",
        ]
        stages = {report.stage: report.details for report in response.explain}
        assert stages["analyse"]["keywords"] == ["spare", "key"]
        assert "words held" in stages["fuse"]["weights"]
        assert stages["adjust"]["results"][0]["id"] == response.rows[0].id
        assert notes.search("spare key").explain == ()
