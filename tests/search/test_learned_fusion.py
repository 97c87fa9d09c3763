"""Learned fusion: the default order, its probabilities, and what it leaves to ranks."""

from memory_store.search.fusion.evidence import FEATURES
from memory_store.search.fusion.learned import USUAL, numbers_for


def test_the_numbers_name_features_that_there_are() -> None:
    numbers = numbers_for(USUAL)
    assert set(numbers.weights) <= set(FEATURES)
    assert numbers.slope > 0


def test_a_model_without_numbers_of_its_own_uses_the_usual_ones() -> None:
    assert numbers_for("some/other-model") == numbers_for(USUAL)
    assert numbers_for(f"sentence-transformers/{USUAL}") == numbers_for(USUAL)
