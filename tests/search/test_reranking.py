"""Reranking through whole searches: late interaction, time limits, and none at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

import pytest
from expanded import refs
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tiny_reranker import build as build_tiny_reranker

from memory_store.errors import ModelMismatchError, ModelUnavailableError
from memory_store.models.embedder import Embedder
from memory_store.models.reranker import load_reranker
from memory_store.records import MemoryDraft, SearchRequest, SearchResponse
from memory_store.search import pipeline
from memory_store.search.candidates import Candidate
from memory_store.search.reranking.late_interaction import DEPTH, blended_shares, word_weights
from memory_store.store import MemoryStore

LATE = {"reranker": "maxsim"}


def read_of(response: SearchResponse) -> tuple[int, int]:
    """What a budget's line in ``degraded`` says: read in time, of how many."""
    (line,) = [line for line in response.degraded if "budget_ms" in line]
    found = re.search(r"reranked (\d+) of (\d+) candidates in time", line)
    if found:
        return int(found[1]), int(found[2])
    found = re.search(r"no time to rerank any of (\d+) candidates", line)
    assert found, line
    return 0, int(found[1])


@pytest.fixture
def barrels(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """Sixty notes that all speak of rain barrels, each of another one."""
    store = make_store("barrels.db")
    store.add_many(
        MemoryDraft(f"Rain barrel number {n} by the {'garden ' * (n % 5)}gate", ref=str(n))
        for n in range(60)
    )
    return store


class TestLateInteraction:
    def test_it_reads_the_first_few_and_gives_no_bands(self, barrels: MemoryStore) -> None:
        response = barrels.search("garden rain barrel", **LATE)
        assert response.counts == f"Reranked {DEPTH} of {response.total}, returned 10"
        assert response.opened == DEPTH
        assert {row.band for row in response.rows} == {None}
        assert all(row.rerank_score is not None for row in response.rows)
        assert all(row.score <= 0.70 for row in response.rows)
        assert response.degraded == ()

    def test_only_the_first_few_change_places(self, barrels: MemoryStore) -> None:
        fused = barrels.search("garden rain barrel", rerank=False, limit=32)
        late = barrels.search("garden rain barrel", limit=32, **LATE)
        assert set(refs(fused)[:DEPTH]) == set(refs(late)[:DEPTH])
        assert refs(fused)[DEPTH:] == refs(late)[DEPTH:]
        scores = [row.score for row in late.rows]
        assert scores == sorted(scores, reverse=True)

    def test_fusion_s_own_score_stays_what_it_was(self, barrels: MemoryStore) -> None:
        fused = barrels.search("garden rain barrel", rerank=False)
        late = barrels.search("garden rain barrel", **LATE)
        known = {row.id: row.fusion_score for row in fused.rows}
        shared = [row for row in late.rows if row.id in known]
        assert shared
        assert all(row.fusion_score == known[row.id] for row in shared)

    def test_pages_go_on_where_the_one_before_ended(self, barrels: MemoryStore) -> None:
        whole = refs(barrels.search("garden rain barrel", limit=32, **LATE))
        pages: list[str | None] = []
        token = None
        while len(pages) < 32:
            page = barrels.search("garden rain barrel", limit=8, continue_=token, **LATE)
            pages += refs(page)
            token = page.next
        assert pages == whole

    def test_conditions_are_met_before_it_reads(self, barrels: MemoryStore) -> None:
        response = barrels.search('"garden gate" rain barrel', **LATE)
        assert response.rows
        assert all("garden gate" in row.preview for row in response.rows)

    def test_words_weigh_by_how_rare_they_are_in_this_vault(self, barrels: MemoryStore) -> None:
        context = barrels.search_context()
        text = "rain garden zeppelin"
        weights = {text[s:e]: weight for (s, e), weight in word_weights(text, context)}
        assert weights["zeppelin"] > weights["garden"] > weights["rain"] > 0

    def test_long_texts_in_sequence_keep_fusion_s_order_and_it_is_said(
        self, make_store: Callable[..., MemoryStore]
    ) -> None:
        store = make_store("book.db")
        matters = (
            *("gardens", "boats", "kitchens", "engines", "violins", "glaciers", "bridges"),
            *("owls", "carpets", "volcanoes", "chess", "lighthouses", "meadows", "printing"),
            *("saffron", "tunnels", "whales", "orchards", "clocks", "deserts"),
        )
        store.add_many(
            MemoryDraft(
                f"{('Opening', 'Middle', 'Closing')[n % 3]} chapter on {matters[n // 3]}. "
                + f"Page after page it tells of {matters[n // 3]} and how to keep them. " * 6,
                ref=str(n),
                created=f"2024-05-01T10:{n:02}:00Z",
            )
            for n in range(60)
        )
        late = store.search("chapter on boats and engines", **LATE)
        plain = store.search("chapter on boats and engines", rerank=False)
        assert refs(late) == refs(plain)
        assert [line for line in late.degraded if line.startswith("maxsim:")]
        assert late.counts.startswith("Reranked 0 of")

    def test_the_environment_may_ask_for_it(
        self, barrels: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_RERANKER", "maxsim")
        assert barrels.search("garden rain barrel").counts.startswith(f"Reranked {DEPTH} of")
        none = barrels.search("garden rain barrel", rerank=False)
        assert none.counts.startswith("Reranked 0 of")

    def test_sealed_search_and_single_legs_leave_it_out(self, barrels: MemoryStore) -> None:
        for options in ({"sealed": True}, {"mode": "keyword"}, {"mode": "vector"}):
            response = barrels.search("garden rain barrel", limit=4, **LATE, **options)
            assert response.opened == 4
            assert response.counts.startswith("Reranked 0 of")

    @pytest.mark.parametrize(
        "error",
        [
            ModelUnavailableError("No model here.", "pip install a-model"),
            ModelMismatchError("Other.", "memory-store reindex"),
        ],
    )
    def test_without_the_embedding_model_fusion_s_order_stands_and_it_is_said(
        self, barrels: MemoryStore, error: Exception
    ) -> None:
        def absent(collection: str | None = None) -> Embedder:
            raise error

        context = replace(barrels.search_context(), embedder=absent)
        response = pipeline.run(context, SearchRequest("garden rain barrel", **LATE))
        plain = pipeline.run(context, SearchRequest("garden rain barrel", rerank=False))
        assert refs(response) == refs(plain)
        assert any(line.startswith("no reranker") for line in response.degraded)

    def test_a_time_limit_that_is_over_leaves_fusion_s_order(self, barrels: MemoryStore) -> None:
        plain = barrels.search("garden rain barrel", rerank=False)
        late = barrels.search("garden rain barrel", budget_ms=1, **LATE)
        assert refs(late) == refs(plain)
        assert read_of(late) == (0, DEPTH)
        assert late.opened == 10


@given(
    shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=16),
    scores=st.lists(st.floats(-1, 1), min_size=16, max_size=16),
    late=st.floats(0, 1),
)
def test_a_blend_stays_within_the_span_of_fusion(
    shares: list[float], scores: list[float], late: float
) -> None:
    pool = [Candidate(n, str(n), "note", share, n + 1) for n, share in enumerate(shares)]
    found = blended_shares(pool, scores.__getitem__, late)
    assert set(found) == set(range(len(shares)))
    assert all(min(shares) - 1e-9 <= share <= max(shares) + 1e-9 for share in found.values())
    unmoved = blended_shares(pool, scores.__getitem__, 0.0)
    assert [unmoved[n] for n in range(len(shares))] == pytest.approx(shares)


class TestTimeLimits:
    @pytest.fixture
    def long_notes(self, make_store: Callable[..., MemoryStore]) -> MemoryStore:
        """Notes as long as the model reads, so that reading them takes its time."""
        store = make_store("long.db")
        filler = "of the many words that a barrel of rain may bring to mind " * 30
        store.add_many(
            (MemoryDraft(f"Rain barrel {n} {filler}", ref=str(n)) for n in range(64)), embed=False
        )
        return store

    def test_what_is_said_to_be_read_was_read_and_stands_in_front(
        self, long_notes: MemoryStore, reranker: str
    ) -> None:
        started = monotonic()
        long_notes.search("rain barrel", limit=32)
        whole = (monotonic() - started) * 1_000
        for share in (0.3, 0.5, 0.7):
            budget = max(1, round(whole * share))
            response = long_notes.search("rain barrel", limit=32, budget_ms=budget)
            if not any("budget_ms" in line for line in response.degraded):
                continue  # a search may be quicker than the one that was timed
            read, candidates = read_of(response)
            assert candidates == 64
            assert response.counts.startswith(f"Reranked {read} of")
            scored = [row.rerank_score is not None for row in response.rows]
            assert scored == [True] * min(read, 32) + [False] * (32 - min(read, 32))

    def test_a_limit_that_is_over_before_reading_opens_the_page_alone(
        self, long_notes: MemoryStore, reranker: str
    ) -> None:
        plain = long_notes.search("rain barrel", rerank=False)
        response = long_notes.search("rain barrel", budget_ms=1)
        assert refs(response) == refs(plain)
        assert [row.score for row in response.rows] == [row.score for row in plain.rows]
        assert response.opened == 10
        assert read_of(response) == (0, 64)
        assert {row.band for row in response.rows} == {row.band for row in plain.rows}

    def test_what_it_had_no_time_for_is_not_dropped_as_unfit(
        self, notes: MemoryStore, reranker: str
    ) -> None:
        model = load_reranker(reranker)

        class ThreeInTime:
            """The model, on a machine where three candidates fit into any time limit."""

            name, calibration, fingerprint = model.name, model.calibration, model.fingerprint

            def score(
                self, query: str, passages: Sequence[str], *, deadline: float | None = None
            ) -> list[float | None]:
                return [*model.score(query, passages[:3]), *[None] * len(passages[3:])]

        context = replace(notes.search_context(), reranker=lambda name: ThreeInTime())
        response = pipeline.run(context, SearchRequest("zqzq jxjx", limit=12, budget_ms=60_000))
        assert read_of(response) == (3, 12)
        assert len(response.rows) == 9  # the three that were read do not fit
        assert {row.rerank_score for row in response.rows} == {None}

    def test_the_clock_starts_with_the_search(self, long_notes: MemoryStore, reranker: str) -> None:
        context = long_notes.search_context()
        options = SearchRequest("rain barrel", budget_ms=60_000)
        now = pipeline.run(context, options)
        assert not any("budget_ms" in line for line in now.degraded)
        before = pipeline.run(context, options, started=monotonic() - 61)
        assert read_of(before) == (0, 64)

    def test_time_enough_changes_nothing(self, long_notes: MemoryStore, reranker: str) -> None:
        unlimited = long_notes.search("rain barrel")
        limited = long_notes.search("rain barrel", budget_ms=600_000)
        assert refs(limited) == refs(unlimited)
        assert [row.score for row in limited.rows] == [row.score for row in unlimited.rows]
        assert limited.counts == unlimited.counts


class Listening:
    """A model that writes down what it is given to read."""

    def __init__(self, reranker: str, seen: list[str]) -> None:
        self._model, self._seen = load_reranker(reranker), seen
        self.name, self.fingerprint = self._model.name, self._model.fingerprint
        self.calibration = self._model.calibration

    def score(
        self, query: str, passages: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        self._seen.extend(passages)
        return self._model.score(query, passages, deadline=deadline)


class TestWhatIsRead:
    def test_of_a_long_note_the_stretch_with_the_words_is_read(
        self, make_store: Callable[..., MemoryStore], reranker: str
    ) -> None:
        seen: list[str] = []
        filler = "Nothing of it was written down at the time. " * 60
        store = make_store("read.db")
        reported = "The zeppelin landed in the quagmire."
        store.add_many(
            MemoryDraft(f"{filler}{reported} {filler}Entry {n}.", title=f"Log {n}")
            for n in range(6)
        )
        context = replace(store.search_context(), reranker=lambda name: Listening(reranker, seen))
        pipeline.run(context, SearchRequest("zeppelin quagmire"))
        assert len(seen) == 6
        assert all(reported in passage for passage in seen)
        assert all(len(passage) <= len("Log 0\n") + 800 for passage in seen)

    @pytest.mark.parametrize(
        ("sentence", "longest"), [("A garden. ", 1_600), ("Зимний сад. ", 400)]
    )
    def test_whole_memories_are_read_in_pieces_that_a_model_does_not_cut(
        self, make_store: Callable[..., MemoryStore], reranker: str, sentence: str, longest: int
    ) -> None:
        """512 tokens are 512 letters where a model reads each letter by itself."""
        seen: list[str] = []
        store = make_store("read.db")
        store.add(f"zeppelin {sentence * 300}The end", title="")
        context = replace(store.search_context(), reranker=lambda name: Listening(reranker, seen))
        pipeline.run(context, SearchRequest("zeppelin", recipe="gno"))
        assert seen[0].startswith("zeppelin")
        assert seen[-1].endswith("The end")
        assert longest / 2 < max(map(len, seen)) <= longest


class TestBlending:
    @pytest.fixture
    def uncalibrated(self, tmp_path: Path) -> str:
        return str(build_tiny_reranker(tmp_path / "home-made"))

    def test_a_recipe_may_replace_fusion_or_blend_with_it(
        self, barrels: MemoryStore, uncalibrated: str
    ) -> None:
        replaced = barrels.search("garden gate", reranker=uncalibrated, recipe="default")
        steps = barrels.search("garden gate", reranker=uncalibrated, recipe="gno", no_expand=True)
        assert replaced.rows[0].rerank_score == 1.0
        assert steps.counts.startswith("Reranked 20 of")
