"""Learned fusion: the default order, its probabilities, and what it leaves to ranks."""

from memory_store.search.fusion.evidence import FEATURES
from memory_store.search.fusion.learned import USUAL, weights_for


def test_the_numbers_name_features_that_there_are() -> None:
    numbers = weights_for(USUAL)
    assert set(numbers.weights) <= set(FEATURES)
    assert numbers.slope > 0


def test_a_model_without_numbers_of_its_own_uses_the_usual_ones() -> None:
    assert weights_for("some/other-model") == weights_for(USUAL)
    assert weights_for(f"sentence-transformers/{USUAL}") == weights_for(USUAL)
