"""Words with their places, and the terms keyword search counts."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.language import LANGUAGES, STOP_WORDS
from memory_store.text.tokens import ANALYSER_VERSION, forget_words, is_stop_word, term, terms
from memory_store.text.words import UNSPACED, marks_inside, query_words, simple_pattern, words

prose = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("ab é ß İ ' ’ _ - 東 京 か ゙ नि ์ ท\u00ad\u200d\u0301 한 글 \n"),
    )
)


def spelled(text: str) -> list[str]:
    return [word.text for word in words(text)]


@given(prose)
def test_every_word_is_the_text_at_its_place(text: str) -> None:
    found = words(text)

    assert all(text[word.start : word.end] == word.text for word in found)
    assert all(word.text for word in found)
    starts = [word.start for word in found]
    assert starts == sorted(starts)


@given(prose)
def test_no_letter_or_digit_is_lost(text: str) -> None:
    covered = {place for word in words(text) for place in range(word.start, word.end)}

    assert {i for i, character in enumerate(text) if character.isalnum()} <= covered


@given(prose, st.sampled_from([*LANGUAGES, "", "xx"]))
def test_there_is_one_term_for_each_word_in_order(text: str, language: str) -> None:
    assert terms(text, language) == [term(word.text, language) for word in words(text)]
    assert all(terms(text, language))


@given(prose)
def test_query_words_are_words_of_the_text_and_lose_none_outright(text: str) -> None:
    all_words, kept = words(text), query_words(text)
    covered = {place for word in kept for place in range(word.start, word.end)}

    assert set(kept) <= set(all_words)
    assert {place for word in all_words for place in range(word.start, word.end)} == covered


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't panic", ["Don't", "panic"]),
        ("don’t ‘quote’ 'me'", ["don’t", "quote", "me"]),
        ("snake_case and _emphasis_", ["snake", "case", "and", "emphasis"]),
        ("notes.db v1.2 e-mail", ["notes", "db", "v1", "2", "e", "mail"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("Donau\u00addampfschiff", ["Donau\u00addampfschiff"]),
        ("東京都", ["東", "東京", "京", "京都", "都"]),
        ("水", ["水"]),
        ("Python3で書く", ["Python3", "で", "で書", "書", "書く", "く"]),
        ("カ・キ", ["カ", "キ"]),
        ("", []),
        ("— … 🙂 \n", []),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert spelled(text) == expected


def test_a_query_in_an_unspaced_script_asks_for_pairs() -> None:
    assert [word.text for word in query_words("東京都 水 Tokyo")] == ["東京", "京都", "水", "Tokyo"]
    assert {word.text for word in query_words("京都の水")} <= set(spelled("昨日、京都の水を飲んだ"))


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "Running", "runs"),
        ("en", "naïveté", "naivete"),
        ("en", "dog’s", "dogs"),
        ("de", "Häuser", "Haus"),
        ("de", "Straßen", "STRASSE"),
        ("de", "Müller", "Mueller"),
        ("fr", "l’élève", "élèves"),
        ("fr", "qu'hommes", "homme"),
        ("ca", "l'home", "home"),
        ("es", "canción", "canciones"),
        ("it", "dell'arte", "arte"),
        ("tr", "İstanbul", "istanbul"),
        ("ru", "ёлка", "елки"),
        ("da", "Ørsted", "orsted"),
        ("vi", "phở", "pho"),
        ("he", "שָׁלוֹם", "שלום"),
        ("ja", "ｶﾞ", "ガ"),
        ("", "Ａ", "a"),
        ("en", "Donau\u00addampf", "donaudampf"),
    ],
)
def test_two_spellings_share_a_term(language: str, one: str, other: str) -> None:
    assert term(one, language) == term(other, language)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [("uk", "мои", "мой"), ("ja", "か", "が"), ("bn", "কী", "কা"), ("en", "universe", "diversity")],
)
def test_what_differs_in_meaning_keeps_its_own_term(language: str, one: str, other: str) -> None:
    assert term(one, language) != term(other, language)


@given(st.text("東京都の水 abc", max_size=20), st.data())
def test_a_phrase_cut_from_a_text_has_only_pairs_of_that_text(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    phrase = text[start : data.draw(st.integers(start, len(text)))]
    inner = [p for p in pairwise(terms(phrase, "")) if all(not part.isascii() for part in p)]

    assert set(inner) <= set(pairwise(terms(text, "")))


@pytest.mark.parametrize(
    ("language", "stopped", "kept"),
    [
        ("en", "The don’t", "computer system"),
        ("de", "WIE für", "who"),
        ("fr", "qu'est", "maison"),
        ("ja", "の", "水"),
        ("xx", "", "the"),
        ("", "", "the"),
    ],
)
def test_function_words_are_stop_words_and_content_is_not(
    language: str, stopped: str, kept: str
) -> None:
    assert all(is_stop_word(word, language) for word in stopped.split())
    assert not any(is_stop_word(word, language) for word in kept.split())


@pytest.mark.parametrize("language", STOP_WORDS)
def test_every_listed_stop_word_is_one_word_and_recognised(language: str) -> None:
    listed = STOP_WORDS[language]

    assert len(listed) > 25
    assert all(is_stop_word(word.title(), language) or language == "tr" for word in listed)
    if language not in ("ja", "zh"):
        assert all(len(words(word)) == 1 for word in listed)


def test_many_threads_agree_with_one_on_a_cold_cache() -> None:
    text = " ".join(f"running{i} libraries{i % 7} studies" for i in range(500))
    expected = terms(text, "en")
    forget_words()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: terms(text, "en"), range(16)))

    assert found == [expected] * 16


def test_the_version_names_our_rules_and_the_stemmers_release() -> None:
    import Stemmer

    major, minor = Stemmer.version().split(".")[:2]
    assert str(ANALYSER_VERSION).endswith(f"{int(major):03}{int(minor):03}")
    assert ANALYSER_VERSION > 1_000_000


@given(st.text(st.sampled_from("aZß9_'’ʼé\u00ad-„“ .…€ыёΣςİ\u0301ＡΑ東ﬁ€™×ª"), max_size=12))
def test_words_of_easy_scripts_are_those_of_the_whole_pattern(text: str) -> None:
    """A quick way for texts without marks and unspaced scripts, which cuts as the slow one does."""
    pattern = simple_pattern(text)
    whole = words(f"{text} 東")[:-1]  # one character for which there is no quick way
    assert words(text) == whole
    if pattern is not None:
        found = [(word[0], *word.span()) for word in pattern.finditer(text)]
        assert found == [*map(tuple, whole)]


def test_the_quick_way_is_for_no_mark_joiner_or_unspaced_script() -> None:
    slow = re.compile(f"[{UNSPACED}{marks_inside()}＇]")
    for code in range(sys.maxunicode + 1):
        if simple_pattern(chr(code)) is not None:
            assert not slow.match(chr(code)), hex(code)
