"""The words of a text whose terms are wanted are found where they stand, in whatever script."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from memory_store.text.tokens import TermFinder, term
from memory_store.text.words import words

SPELLED = st.text(st.sampled_from("abeßøſÄ '’-.\n_東京01AB"), max_size=40)


@example("ß Œ", {"ß", "Œ"}, "de")
@given(SPELLED, st.sets(SPELLED, max_size=3), st.sampled_from(["en", "de", "fr", "nl", "ja", ""]))
def test_each_of_them_and_no_other_in_order(text: str, asked: set[str], language: str) -> None:
    wanted = {term(word.text, language) for one in asked for word in words(one)}
    every = [(word.start, word.end, term(word.text, language)) for word in words(text)]
    found = TermFinder(language, wanted).places(text)
    assert found == [one for one in every if one[2] in wanted]
