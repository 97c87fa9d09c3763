"""The query language: what is typed becomes words, conditions and filters."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.records import MAX_QUERY_CHARACTERS, SearchRequest, search_request
from memory_store.search.query.language import Variant, parse, resolve_mode


def test_words_are_kept_in_order_and_as_spelled() -> None:
    parsed = parse(search_request("Where is the Spare key"))
    assert parsed.words == ("Where", "is", "the", "Spare", "key")
    assert parsed.text == "Where is the Spare key"
    assert not parsed.has_filters


@pytest.mark.parametrize(
    "query", ['rent "spare key" due', "rent “spare key” due", "rent „spare key“ due"]
)
def test_a_quoted_phrase_is_a_condition_and_its_words_still_count(query: str) -> None:
    parsed = parse(search_request(query))
    assert [phrase.words for phrase in parsed.required] == [("spare", "key")]
    assert parsed.words == ("rent", "spare", "key", "due")


def test_a_minus_excludes_a_word_or_a_phrase_and_keeps_them_out_of_what_is_embedded() -> None:
    parsed = parse(search_request('garden -moles -"slug pellets" -well-rotted'))
    assert [phrase.words for phrase in parsed.excluded] == [
        ("moles",),
        ("slug", "pellets"),
        ("well", "rotted"),
    ]
    assert parsed.text == "garden"


@pytest.mark.parametrize("query", ["well-rotted", "a - b", "--flag", "-- x"])
def test_a_hyphen_that_does_not_lead_a_word_excludes_nothing(query: str) -> None:
    parsed = parse(search_request(query))
    assert parsed.excluded == ()
    assert parsed.words


def test_a_lone_quote_is_an_ordinary_character() -> None:
    parsed = parse(search_request('a 5" pipe and "half'))
    assert parsed.required == ()
    assert parsed.words == ("a", "5", "pipe", "and", "half")


def test_prefixes_are_filters_not_words() -> None:
    parsed = parse(
        search_request('boiler topic:heating topic:"home office" type:task in:house since:7d')
    )
    assert parsed.words == ("boiler",)
    assert parsed.topics == ("heating", "home office")
    assert parsed.types == ("task",)
    assert parsed.collections == ("house",)
    assert parsed.since == "7d"


def test_a_prefix_without_a_value_and_an_unknown_prefix_are_words() -> None:
    parsed = parse(search_request("topic: https://example.org/x"))
    assert parsed.topics == ()
    assert parsed.words == ("topic", "https", "example", "org", "x")


def test_options_filter_where_the_query_says_nothing() -> None:
    filters = {"topic": ("boat",), "type": ("task",), "since": "2024-01-01"}
    parsed = parse(search_request("sails topic:winter", **filters))
    assert parsed.topics == ("winter",)
    assert parsed.types == ("task",)
    assert parsed.since == "2024-01-01"


def test_filters_alone_are_a_query() -> None:
    assert parse(search_request("topic:boat")).has_filters


def test_typed_lines_become_variants() -> None:
    parsed = parse(
        search_request("lex: lease end\nvec: when must we move out\nhyde: The lease ends\nlease")
    )
    assert parsed.variants == (
        Variant("lex", "lease end"),
        Variant("vec", "when must we move out"),
        Variant("hyde", "The lease ends"),
    )
    assert parsed.words == ("lease",)


def test_typed_lines_alone_are_read_by_the_reranker_too() -> None:
    assert parse(search_request("lex: lease end\nintent: moving house")).reading == "lease end"


@pytest.mark.parametrize("query", ["", "   ", "\x00", "\n\n", "!!!", '""', "-moles", '-"a b"'])
def test_a_query_without_anything_to_look_for_is_refused_by_name(query: str) -> None:
    with pytest.raises(BadInputError) as refusal:
        parse(search_request(query))
    assert refusal.value.parameter == "q"


def test_a_minus_before_a_prefix_is_refused() -> None:
    with pytest.raises(BadInputError, match="topic: cannot be excluded"):
        parse(search_request("boat -topic:winter"))


def test_a_megabyte_is_refused_at_once() -> None:
    start = time.process_time()
    for text in ("x" * 1_000_000, '"' * 1_000_000, "-" * 1_000_000, "topic:" * 200_000):
        with pytest.raises(BadInputError, match=r"^q: ") as refusal:
            parse(search_request(text))
        assert refusal.value.parameter == "q"
    assert time.process_time() - start < 1


def test_the_longest_query_is_searched_and_one_character_more_is_not() -> None:
    assert parse(search_request("a" * MAX_QUERY_CHARACTERS)).words
    with pytest.raises(BadInputError):
        parse(search_request("a" * (MAX_QUERY_CHARACTERS + 1)))


_PIECES = st.sampled_from(
    [
        '"',
        "-",
        "topic:",
        "in:",
        "since:",
        "lex:",
        "\n",
        " ",
        "word",
        "«",
        "”",
        "\ud800",
        "\x00",
        "日本",
    ]
)


def _outcome(query: str) -> str:
    try:
        parsed = parse(search_request(query))
    except BadInputError as refusal:
        return f"refused {refusal.parameter}"
    return "parsed" if parsed.words or parsed.variants or parsed.has_filters else "empty"


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join)))
def test_any_string_is_parsed_or_refused(query: str) -> None:
    assert _outcome(query) in ("parsed", "refused q")


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=12))
def test_plain_words_survive_parsing_unchanged(words: list[str]) -> None:
    parsed = parse(search_request(" ".join(words)))
    assert parsed.words == tuple(words)


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("when does the lease end?", "hybrid"),
        ("lease", "hybrid"),
        ("lease?", "hybrid"),
        ("lease.", "hybrid"),
        ("What is this... really?!", "hybrid"),
        ("well-rotted", "hybrid"),
        ('"one phrase"', "hybrid"),
        ("topic:boat", "hybrid"),
        ("/lea[sf]e end/", "literal"),
        ("connect_timeout", "literal"),
        ("std::vector", "literal"),
        ("getUserById", "literal"),
        ("colou?r", "literal"),
        ("README.md", "literal"),
        ("APO-1423", "hybrid"),
        ("USA", "hybrid"),
        ("foo.*bar", "literal"),
        ("fn $NAME() { $$$ }", "structural"),
    ],
)
def test_auto_reads_the_shape_of_a_query(query: str, mode: str) -> None:
    assert resolve_mode(SearchRequest(query, mode="auto")) == mode
    assert resolve_mode(SearchRequest(query, mode="keyword")) == "keyword"


def test_an_unknown_mode_is_refused_by_name() -> None:
    with pytest.raises(BadInputError) as refusal:
        search_request("x", mode="fuzzy")
    assert refusal.value.parameter == "mode"


@pytest.mark.parametrize("query", ["-cellar", '-"side door" -cellar'])
def test_what_only_leaves_out_is_told_what_it_lacks(query: str) -> None:
    with pytest.raises(BadInputError, match="says only what to leave out"):
        parse(search_request(query))
    assert parse(search_request(f"{query} type:note")).excluded
