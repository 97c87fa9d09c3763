"""What a regular expression needs is never more than what a matching text holds."""

from __future__ import annotations

import pytest
import re2
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.search.query.regular_expressions import Needs, likely_words, needs
from memory_store.text.words import words


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("postgres", {"postgres"}),
        ("connect_timeout", {"connect", "timeout"}),
        (r"timeout=\d+", {"timeout"}),
        (r"\bspare key\b", {"spare", "key"}),
        (r"^spare\s+key$", {"spare", "key"}),
        (r"a.b cd", {"cd"}),
        (r"spare[ -]key", {"spare", "key"}),
        (r"spare[a-z]key", set()),
        ("colou?r", set()),
        ("colou?r red", {"red"}),
        ("key-?word", set()),
        ("key -?word", {"key"}),
        ("go+d red", {"red"}),
        ("(?i)Rent due", {"Rent", "due"}),
        ("(?:spare) (?P<what>key)", {"spare", "key"}),
        ("(spare)?key", set()),
        ("my (spare) key", {"my", "spare", "key"}),
        ("(oak ){2}", set()),
        ("oak(?i)ash", {"oakash"}),
        ("a*(?i) red", {"red"}),
        ("oak (?i)?ash", set()),
        (r"oak\Q\E? red", {"red"}),
        (r"\bspare\b.*\bkey\b", {"spare", "key"}),
        (r"\Qa.b\E", {"a", "b"}),
        (r"\x41bc def", {"def"}),
        (r"\w+ing", set()),
        ("", set()),
    ],
)
def test_the_words_that_a_match_most_often_holds(pattern: str, wanted: set[str]) -> None:
    assert set(likely_words(pattern)) == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("postgres", set()),
        ("connect_timeout", set()),
        (r"(timeout=\d+)", set()),
        (r"\(timeout=\d+", {"timeout"}),
        (r"\bspare key\b", set()),
        (r"^spare\s+key$", {"spare", "key"}),
        ("one spare key", {"spare"}),
        ("[é]spare key", set()),
        ("[!-~]spare key", set()),
        (r"[!-]spare ", {"spare"}),
    ],
)
def test_words_that_may_go_on_at_the_ends_are_not_needed(pattern: str, wanted: set[str]) -> None:
    found = needs(pattern)
    assert set(found.words) == wanted
    assert found.choices == ()


def test_an_alternation_needs_one_of_its_branches() -> None:
    found = needs(" red (oak|ash) tree ")
    assert found.words == {"red", "tree"}
    assert found.choices == ((Needs(frozenset({"oak"})), Needs(frozenset({"ash"}))),)
    assert found.all_words() == ["red", "tree", "oak", "ash"]


@pytest.mark.parametrize(
    "pattern", [r" oak |\w+", " (oak|) ", "x(a|b)y", " (oak|ash)? ", " (oak){0,3} "]
)
def test_a_branch_that_needs_nothing_frees_the_others(pattern: str) -> None:
    assert needs(pattern).nothing


def test_deep_nesting_is_refused_before_it_can_overflow() -> None:
    with pytest.raises(BadInputError, match="nested"):
        needs("(" * 400 + "a" + ")" * 400)


_SAMPLES = {
    "oak": ["oak"], "ash": ["ash"], "a": ["a"], " ": [" "], "-": ["-"], ".": ["x", " ", "é"],
    r"\d": ["7"], r"\w": ["a", "_"], r"\W": [" ", "é"], r"\s": [" ", "\n"], "[a-z]": ["b"],
    "[ -]": [" ", "-"], "(oak|ash)": ["oak", "ash"], "(?:red )": ["red "], "(a|b)": ["a", "b"],
    "^": [""], "$": [""], "é": ["é"], "'": ["'"], "_": ["_"], r"\.": ["."], "日本": ["日本"],
    "(?i)": [""], "7": ["7"],
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
    return all(word.casefold() in present for word in needed.words) and all(
        any(_held(branch, text) for branch in branches) for branches in needed.choices
    )


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
