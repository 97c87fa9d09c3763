"""Whole words and phrases, in any case and inflection, never parts of words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.search.query.word_matcher import WordMatcher, densest, literal_pattern
from memory_store.text.tokens import term
from memory_store.text.words import words

LETTERS = {
    "de": "aeouäöüßsgrmnt",
    "da": "aeoæøåkljd",
    "fr": "aeéèœçlqu’'",
    "pl": "aełlódkń",
    "tr": "ıiİIşgt",
    "is": "þðthaeo",
    "ru": "еёийа",
    "en": "aïeﬁfiNn\u00ad",
    "ja": "東京都猫ab",
    "hi": "कखाि् ",
}
SPELLINGS = {
    "de": [
        ["größer", "grösser", "groesser", "grosser", "GRÖSSER", "Größe"],
        ["Straße", "Strasse", "STRASSE", "Straßen"],
        ["weiß", "weiss"],
        ["Fluß", "Fluss"],
        ["müssen", "muessen", "Müssen"],
    ],
    "da": [["skjøld", "skjold"]],
    "pl": [["łódka", "lodka"]],
    "is": [["þing", "thing"]],
    "en": [["naïve", "naive"], ["ﬁne", "fine"], ["na\u00adive", "naive"]],
}


def separated(language: str) -> st.SearchStrategy[str]:
    """A text of words made of a language's letters, with much between them."""
    word = st.text(LETTERS[language], max_size=5)
    between = st.sampled_from((" ", "-", "_", ", ", "'", " “", "\n"))
    pieces = st.lists(st.tuples(word, between), max_size=8)
    return pieces.map(lambda found: "".join(a + b for a, b in found))


def marked(text: str, words: list[str], phrases: list[str] | None = None, language: str = "en"):  # type: ignore[no-untyped-def]
    matcher = WordMatcher(words, phrases or [], language)
    return [text[start:end] for start, end in matcher.spans(text)]


def test_whole_words_are_marked_in_any_case() -> None:
    assert marked("How to show HOW somehow", ["how"]) == ["How", "HOW"]


def test_other_forms_of_a_word_are_marked_too() -> None:
    assert marked("Running runs, the runner", ["run"]) == ["Running", "runs"]
    assert marked("Die Häuser am Haus", ["Haus"], language="de") == ["Häuser", "Haus"]


def test_a_phrase_is_marked_as_a_whole() -> None:
    text = "the spare  key, spare parts"
    assert marked(text, [], ["spare key"]) == ["spare  key"]


def test_marks_do_not_overlap() -> None:
    spans = WordMatcher(["spare", "key"], ["spare key"], "en").spans("a spare key here")
    assert spans == [(2, 11)]


def test_typographic_apostrophes_match_straight_ones() -> None:
    assert marked("Mina’s boots", ["Mina's"]) == ["Mina’s"]


def test_unspaced_scripts_need_no_boundaries() -> None:
    assert marked("東京都の天気", ["東京"], language="ja") == ["東京"]


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (("Harper called",), 1.0),
        (("Harpers Ferry",), 0.0),
        (("", "harper"), 1.0),
    ],
)
def test_the_literal_share_wants_whole_words(texts: tuple[str, ...], share: float) -> None:
    assert WordMatcher(["harper"], [], "en").literal_share(*texts) == share


def test_one_of_two_words_is_half() -> None:
    assert WordMatcher(["harper", "postgres"], [], "en").literal_share("Harper") == 0.5


@pytest.mark.parametrize("text", ["spare key", "Spare-Key", "a spare\nkey."])
def test_a_literal_phrase_may_be_broken_by_what_is_no_word(text: str) -> None:
    assert literal_pattern("spare key").search(text)


@pytest.mark.parametrize("text", ["spare keys", "spared key", "spare old key", "key spare"])
def test_a_literal_phrase_is_not_found_in_other_words(text: str) -> None:
    assert not literal_pattern("spare key").search(text)


def test_the_densest_stretch_holds_most_different_words() -> None:
    text = "lease " * 20 + "x " * 500 + "the lease ends in May " + "y " * 500
    asked = WordMatcher(["lease", "ends", "May"], [], "en")
    assert densest(asked.hits(text), 100) == text.index("lease ends")
    assert densest(WordMatcher(["boat"], [], "en").hits(text), 100) is None


@given(st.data(), st.sampled_from(sorted(LETTERS)))
def test_what_is_found_by_a_term_is_marked_and_nothing_else(data: Any, language: str) -> None:
    text = data.draw(separated(language))
    looked_for = [word.text for word in words(text)][:2]
    meant = {term(word, language) for word in looked_for}
    expected = [word for word in words(text) if term(word.text, language) in meant]
    spans = WordMatcher(looked_for, [], language).spans(text)
    assert places(spans) == places((word.start, word.end) for word in expected)


def places(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


@pytest.mark.parametrize(
    ("language", "spellings"), [(one, group) for one in SPELLINGS for group in SPELLINGS[one]]
)
def test_every_spelling_marks_the_others(language: str, spellings: list[str]) -> None:
    text = ", ".join(spellings)
    for spelling in spellings:
        assert marked(text, [spelling], language=language) == spellings, spelling


@given(st.text(alphabet="ab_Option 1é\n", max_size=60))
def test_no_more_is_met_in_code_than_what_is_known_to_be_the_most(text: str) -> None:
    matcher = WordMatcher(["getOption", "b1", "a"], ["a option"], "code")
    assert sum(map(len, matcher.met(text))) <= matcher.most(text)
