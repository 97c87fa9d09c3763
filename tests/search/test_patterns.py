"""What a regular expression needs is never more than what a matching text holds."""

from __future__ import annotations

import pytest
import re2
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.search.query.regular_expressions import Needs, needs, whole_words
from memory_store.text.grams import fold
from memory_store.text.words import words


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("postgres", {"postgres"}),
        (r"timeout=\d+", {"timeout="}),
        (r"\bspare key\b", {"spare key"}),
        (r"^spare\s+key$", {"spare", "key"}),
        (r"a.b cd", {"b cd"}),
        (r"spare\b.*\bkey", {"spare", "key"}),
        ("[Ss]par[a-z]key", {"spar", "key"}),
        ("go+d red", {"od red"}),
        ("(?i)Rent due", {"rent due"}),
        ("(?:spare) (?P<what>key)", {"spare key"}),
        ("my (spare|SPARE) key", {"my spare key"}),
        (r"(spare\d*)key", {"spare", "key"}),
        ("(oak ){2}", {"oak oak "}),
        ("(oak ){2,}tree", {"oak oak ", "oak tree"}),
        ("oak(?i)ash", {"oakash"}),
        ("a*(?i) red", {" red"}),
        ("oak (?i)?ash", set()),
        (r"oak\Q\E? red", set()),
        (r"\Qa.b\E+", {"a.b"}),
        (r"\x41bc\x{20}def", {"abc def"}),
        (r"[[:alpha:]]abc\pLdef\z", {"abc", "def"}),
        ("a{,1}bcd", {"a{,1}bcd"}),
        (r"\w+ing", {"ing"}),
        ("it", set()),
        ("京", {"京"}),
        ("", set()),
    ],
)
def test_the_texts_that_a_pattern_needs(pattern: str, wanted: set[str]) -> None:
    assert needs(pattern) == Needs(texts=frozenset(wanted))


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("colou?r", {"color", "colour"}),
        ("time(out|r)", {"timeout", "timer"}),
        ("spare[ -]key", {"spare key", "spare-key"}),
        ("(spare )?key", {"spare key", "key"}),
        (r"oak\w|ash", {"oak", "ash"}),
    ],
)
def test_a_pattern_of_a_few_spellings_needs_one_of_them(pattern: str, wanted: set[str]) -> None:
    (branches,) = needs(pattern).choices
    assert {text for one in branches for text in one.texts} == wanted
    assert set(needs(pattern).named()) == wanted


@pytest.mark.parametrize("pattern", [r"oak|\w+", "(oak|)", "(oak|ash)?", "(oak){0,3}", "[a-z]{5}"])
def test_a_branch_that_needs_nothing_frees_the_others(pattern: str) -> None:
    assert needs(pattern).nothing


def test_a_word_between_signs_is_whole() -> None:
    assert whole_words(" lock.acquire(x") == ["lock", "acquire"]
    assert whole_words("lock.acquire") == []
    assert whole_words("'s spare'") == ["spare"] * 0
    assert whole_words("\u0301abc def ghi") == ["def"]


def test_deep_nesting_is_refused_before_it_can_overflow() -> None:
    with pytest.raises(BadInputError, match="nested"):
        needs("(" * 400 + "a" + ")" * 400)


_SAMPLES = {
    "oak": ["oak"], "ash": ["ash"], "a": ["a"], " ": [" "], "-": ["-"], ".": ["x", " ", "é"],
    r"\d": ["7"], r"\w": ["a", "_"], r"\W": [" ", "é"], r"\s": [" ", "\n"], "[a-z]": ["b"],
    "[ -]": [" ", "-"], "(oak|ash)": ["oak", "ash"], "(?:red )": ["red "], "(a|b)": ["a", "b"],
    "^": [""], "$": [""], "é": ["é"], "'": ["'"], "_": ["_"], r"\.": ["."], "日本": ["日本"],
    "(?i)": [""], "7": ["7"], "(?i:k)": ["k", "K", "\u212a"], "{,2}": ["{,2}"],
    "[[:alpha:]_]": ["b", "_"],
    r"\Qa.\E": ["a."], r"\pL": ["ß"], r"\x{41}": ["A"], "(?P<n>as)": ["as"], "[ab&&~]": ["&"],
    r"\b": [""],
}  # fmt: skip
_AROUND = st.sampled_from(["", " ", "oak", "é", "7 ", "日", "'", "-"])


@st.composite
def _pattern_and_text(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern, and a text made to match it more often than not."""
    pattern, text = "", ""
    for atom in draw(st.lists(st.sampled_from(sorted(_SAMPLES)), min_size=1, max_size=6)):
        quantifier, least, most = draw(
            st.sampled_from(
                [("", 1, 1)] * 4
                + [("?", 0, 1), ("*", 0, 2), ("+", 1, 2), ("{2}", 2, 2), ("{0,2}", 0, 2)]
            )
        )
        pattern += atom + quantifier
        for _ in range(draw(st.integers(least, most))):
            text += draw(st.sampled_from(_SAMPLES[atom]))
    return pattern, draw(_AROUND) + text + draw(_AROUND)


def _held(needed: Needs, text: str) -> bool:
    present = {word.text.casefold() for word in words(text)}
    return all(
        held in fold(text) and present.issuperset(word.casefold() for word in whole_words(held))
        for held in needed.texts
    ) and all(any(_held(branch, text) for branch in branches) for branches in needed.choices)


@given(_pattern_and_text())
def test_no_match_is_lost(pattern_and_text: tuple[str, str]) -> None:
    pattern, text = pattern_and_text
    options = re2.Options()
    options.log_errors = False
    try:
        match = re2.compile(pattern, options=options).search(text)
    except re2.error:
        match = None
    assume(match is not None)
    assert _held(needs(pattern), text)
