"""Late interaction on the tiny embedding model: token vectors, word weights, time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from memory_store.models.embedder import Embedder
from memory_store.models.maxsim import asks_for_maxsim, maxsim, maxsim_scores, token_weights
from memory_store.models.token_vectors import TokenVectors

QUERY = "the automobile key"
WEIGHTS = [((0, 3), 0.1), ((4, 14), 3.0), ((15, 18), 2.0)]
PASSAGES = [
    "Seed potatoes go into egg boxes.",
    "The vehicle key hangs by the door.",
    "A key for the cellar.",
]


def test_every_token_of_a_text_has_a_unit_vector_and_its_place(embedder: Embedder) -> None:
    one, two = embedder.token_vectors(["spare key", "a much longer text about boilers"])
    assert one.vectors.shape == (len(one.offsets), embedder.dimensions)
    assert np.linalg.norm(one.vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert [*one.offsets] == embedder.token_offsets("spare key")
    assert len(two.offsets) == embedder.count_tokens("a much longer text about boilers")


def test_a_token_s_vector_does_not_depend_on_the_company(embedder: Embedder) -> None:
    alone = embedder.token_vectors(["spare key"])[0].vectors
    padded = embedder.token_vectors(["spare key", "word " * 40])[0].vectors
    assert padded == pytest.approx(alone, abs=1e-5)


def test_a_text_beyond_the_window_is_cut_and_an_empty_one_has_none(embedder: Embedder) -> None:
    long, nothing = embedder.token_vectors(["key " * 500, ""])
    assert len(long.offsets) == embedder.max_tokens - 2  # less the two special tokens
    assert nothing.vectors.shape == (0, embedder.dimensions)
    assert embedder.token_vectors([]) == []


def test_what_holds_the_words_or_their_kin_scores_higher(embedder: Embedder) -> None:
    potatoes, vehicle, cellar = maxsim_scores(embedder, QUERY, PASSAGES, WEIGHTS)
    assert vehicle > cellar > potatoes  # type: ignore[operator]


def test_a_word_of_no_weight_changes_nothing(embedder: Embedder) -> None:
    only_key = [((15, 18), 2.0)]
    scores = maxsim_scores(embedder, QUERY, ["key", "automobile key"], only_key)
    assert scores[0] == pytest.approx(1.0, abs=0.05)
    assert maxsim_scores(embedder, QUERY, PASSAGES, []) == [0.0, 0.0, 0.0]


def test_a_score_is_the_weighted_mean_of_the_best_cosines() -> None:
    query = TokenVectors(np.eye(3, dtype=np.float32)[:2], ((0, 1), (2, 3)))
    passage = TokenVectors(
        np.array([[0.6, 0.8, 0.0], [0.0, 0.6, 0.8]], dtype=np.float32), ((0, 1), (2, 3))
    )
    weights = [((0, 1), 3.0), ((2, 3), 1.0)]
    assert maxsim(query, passage, weights) == pytest.approx((3 * 0.6 + 1 * 0.8) / 4)


def test_the_pieces_of_a_word_weigh_what_it_weighs() -> None:
    pieces = [(0, 2), (2, 5), (5, 6), (7, 9)]
    weights = [((0, 5), 2.0), ((4, 5), 0.5), ((7, 9), 1.0)]
    assert token_weights(pieces, weights).tolist() == [2.0, 2.0, 0.0, 1.0]


def test_equal_passages_none_at_all_and_no_time_are_no_trouble(embedder: Embedder) -> None:
    scores = maxsim_scores(embedder, QUERY, PASSAGES * 20, WEIGHTS)
    assert scores == scores[:3] * 20
    assert maxsim_scores(embedder, QUERY, [], WEIGHTS) == []
    assert all(type(score) is float for score in scores)
    over = time.monotonic() - 1
    assert maxsim_scores(embedder, QUERY, PASSAGES, WEIGHTS, deadline=over) == [None] * 3


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "🌲" * 2000, "漢字" * 2000, " \n\t ", ""])
def test_odd_text_is_scored_like_any_other(embedder: Embedder, odd: str) -> None:
    for query, passages in ((odd, PASSAGES), (QUERY, [odd])):
        scores = maxsim_scores(embedder, query, passages, [((0, 2), 1.0)])
        assert all(score is not None and -1 <= score <= 1.001 for score in scores)


def test_it_is_asked_for_by_name_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asks_for_maxsim("maxsim")
    assert not asks_for_maxsim(None)
    monkeypatch.setenv("MEMORY_STORE_RERANKER", "maxsim")
    assert asks_for_maxsim(None)
    assert not asks_for_maxsim("ms-marco-TinyBERT-L-2-v2")
