"""Grams: what a text that holds another holds for certain."""

from __future__ import annotations

import re2
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.grams import fold, grams


def numbers(text: str) -> set[int]:
    return set(grams(text).tolist())


@given(st.text(), st.text(), st.text())
def test_a_text_holds_the_grams_of_every_part(before: str, part: str, after: str) -> None:
    assert numbers(part) <= numbers(before + part + after)


def test_three_characters_are_a_gram_and_two_are_none() -> None:
    assert numbers("ab") == set()
    assert len(numbers("abc")) == 1
    assert numbers("ABC") == numbers("abc")


def test_of_dense_scripts_one_and_two_characters_are_grams() -> None:
    assert len(numbers("東京都")) == 5
    assert numbers("京") < numbers("東京") < numbers("東京都")


def test_what_re2_takes_for_one_letter_is_folded_to_one() -> None:
    options = re2.Options()
    options.log_errors = False
    for code in range(0x80, 0x1E950):
        one = chr(code)
        cased = (one.lower(), one.upper(), one.title(), one.casefold(), one.swapcase())
        for other in {c for c in cased if len(c) == 1 and c != one}:
            if re2.compile(f"(?i){one}", options=options).fullmatch(other):
                assert fold(one) == fold(other), f"U+{code:04X}"
