"""The words of a text whose terms are wanted are found where they stand, in whatever script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spellchecker import SpellChecker

from memory_store.text.canonical import folded
from memory_store.text.tokens import SAME_INITIAL, TermFinder, term
from memory_store.text.words import words

SPELLED = st.text(st.sampled_from("abeßø '’-.\n東京01AB"), max_size=40)


@given(SPELLED, st.sets(SPELLED, max_size=3), st.sampled_from(["en", "de", "fr", "nl", "ja", ""]))
def test_each_of_them_and_no_other_in_order(text: str, asked: set[str], language: str) -> None:
    wanted = {term(word.text, language) for one in asked for word in words(one)}
    every = [(word.start, word.end, term(word.text, language)) for word in words(text)]
    found = TermFinder(language, wanted).places(text)
    assert found == [one for one in every if one[2] in wanted]


@pytest.mark.parametrize("language", sorted(SAME_INITIAL))
def test_a_word_in_ascii_begins_as_its_term_does(language: str) -> None:
    known = [one for one in SpellChecker(language=language).word_frequency.words() if one.isascii()]
    assert len(known) > 10_000
    spelled = [word.text for one in known for word in words(one)]
    assert {one for one in spelled if term(one, language)[0] != folded(one)[0]} == set()
