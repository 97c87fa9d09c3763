"""Names in code, whole and in parts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.canonical import canonical_text, folded
from memory_store.text.identifiers import (
    code_terms,
    code_words,
    file_name,
    identifiers,
    name_parts,
    path_terms,
)
from memory_store.text.tokens import is_stop_word, term, terms
from memory_store.text.words import words

any_text = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("abzABZ019__.:- éÉß 東京 नि \n"),
    )
)
parts = st.from_regex(r"[a-z]{2,8}[0-9]{0,2}", fullmatch=True).filter(lambda p: not p.endswith("s"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("getHTTPResponse", "gethttpresponse get http response"),
        ("get_user_by_id", "get_user_by_id get user by id"),
        ("HTTPServer2Config", "httpserver2config http server2 config"),
        ("sha256Sum", "sha256sum sha256 sum"),
        ("utf8", "utf8"),
        ("parseURLs", "parseurls parse urls"),
        ("UserIDs", "userids user ids"),
        ("MAX_RETRY_COUNT", "max_retry_count max retry count"),
        ("__init__", "__init__ init"),
        ("_private", "_private private"),
        ("XMLHttpRequest", "xmlhttprequest xml http request"),
        ("iPhone", "iphone i phone"),
        ("Foo::bar", "foo bar"),
        ("data-user-id", "data user id"),
        ("self.cache[0]", "self cache 0"),
        ("test_getUser", "test_getuser test getuser get user"),
        ("größteZahl", "grösstezahl grösste zahl"),
        ("_ __ ...", ""),
        ("naïve", "naïve"),
    ],
)
def test_a_name_counts_whole_and_by_its_parts(code: str, expected: str) -> None:
    assert code_terms(code) == expected.split()


def test_code_is_not_stemmed_and_loses_no_word() -> None:
    assert terms("initialize the initial", "code") == ["initialize", "the", "initial"]
    assert not is_stop_word("for", "code")
    assert term("getUser", "code") == "getuser"


@given(any_text.map(canonical_text))
def test_every_word_of_a_query_is_a_term_of_the_same_text(text: str) -> None:
    found = set(code_terms(text))
    assert {term(word.text, "code") for word in words(text)} <= found


def test_scripts_without_spaces_keep_their_pairs() -> None:
    assert code_terms("# 東京 naming") == ["東", "東京", "京", "naming"]


@pytest.mark.parametrize(
    ("source", "ref", "expected"),
    [
        ("/home/ann/shop", "web/views/user_list.py", "user_list user list " * 2 + "shop web views"),
        (None, "main.go", "main main"),
        ("C:\\work\\api", "src\\http.rs", "http http work api src"),
        ("/a/b/c/d", "e.c", "e e b c d"),
        ("/notes", None, ""),
    ],
)
def test_a_files_place_adds_its_stem_twice_and_three_folders(
    source: str | None, ref: str | None, expected: str
) -> None:
    assert path_terms(source, ref) == expected.split()


@given(st.lists(parts, min_size=2, max_size=5))
def test_one_name_in_every_spelling_has_the_same_parts(words: list[str]) -> None:
    camel = "".join(word.title() for word in words)
    snake = "_".join(words)
    assert name_parts(snake) == tuple(words)
    assert name_parts(snake.upper()) == tuple(words)
    assert name_parts(camel) == tuple(words)
    assert name_parts(camel[0].lower() + camel[1:]) == tuple(words)
    assert code_terms(camel) == [camel.lower(), *words]


@given(any_text.map(canonical_text))
def test_names_stand_where_they_say(text: str) -> None:
    found = identifiers(text)
    assert all(name.text == text[name.start : name.end] for name in found)
    assert [name.start for name in found] == sorted(name.start for name in found)


@given(any_text.map(canonical_text))
def test_terms_are_folded_not_empty_and_hold_every_part(text: str) -> None:
    found = code_terms(text)
    assert all(one and one == folded(one) for one in found)
    assert set(code_words(text)) <= set(found)


@given(st.text(st.sampled_from("abcXYZ019_"), min_size=1))
def test_parts_leave_no_letter_out_and_add_none(name: str) -> None:
    assert "".join(name_parts(name)) == name.replace("_", "").lower()


@given(any_text, any_text)
def test_terms_of_a_line_are_those_of_its_halves(first: str, second: str) -> None:
    assert code_terms(f"{first} {second}") == code_terms(first) + code_terms(second)


def test_a_line_of_underscores_holds_no_name_and_keeps_no_one_waiting() -> None:
    began = time.process_time()
    assert code_terms("_" * 300_000) == []
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("ref", "named"),
    [
        ("garden/2024-05-molluscs.md", "2024-05-molluscs.md"),
        ("manuals\\boiler.pdf#3", "boiler.pdf"),
        ("9b93d587-2477-48ba-b110-694a6462cce8", ""),
        ("row-12", ""),
        ("https://example.org/page.html", ""),
        (None, ""),
    ],
)
def test_a_record_may_be_named_after_a_file(ref: str | None, named: str) -> None:
    assert file_name(ref) == named
