"""The words of a text whose terms are wanted are found where they stand, in whatever script."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spellchecker import SpellChecker

from memory_store.text.tokens import SAME_BEGINNING, TermFinder, term
from memory_store.text.words import words

SPELLED = st.text(st.sampled_from("abeßøſÄ '’-.\n_東京01AB"), max_size=40)


@example("ß Œ", {"ß", "Œ"}, "de")
@given(SPELLED, st.sets(SPELLED, max_size=3), st.sampled_from(["en", "de", "fr", "nl", "ja", ""]))
def test_each_of_them_and_no_other_in_order(text: str, asked: set[str], language: str) -> None:
    wanted = {term(word.text, language) for one in asked for word in words(one)}
    every = [(word.start, word.end, term(word.text, language)) for word in words(text)]
    found = TermFinder(language, wanted).places(text)
    assert found == [one for one in every if one[2] in wanted]


@pytest.mark.parametrize("language", sorted(SAME_BEGINNING))
def test_every_word_of_a_dictionary_by_how_its_term_begins(language: str) -> None:
    known = SpellChecker(language=language).word_frequency.words()
    spelled = {word.text for one in known for word in words(one)}
    begun = defaultdict(list)
    for one in spelled:
        begun[term(one, language)[:2], one.isascii()].append(one)
    assert len(spelled) > 10_000
    for alike in begun.values():
        text, finder = " ".join(alike), TermFinder(language, {term(one, language) for one in alike})
        assert [text[start:end] for start, end, _ in finder.places(text)] == alike
