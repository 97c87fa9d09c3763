"""One spelling for every text and topic."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.canonical import canonical_text, folded, normalise_topic

awkward = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\r\n\t \x00\ufeff\ud83d\ude00\u0301\u0307eEßſ#_-"),
    )
)


@given(awkward)
def test_canonical_text_is_a_fixed_point_and_can_be_written_as_utf_8(text: str) -> None:
    once = canonical_text(text)

    assert canonical_text(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once.encode().decode() == once
    assert not {"\r", "\x00"} & set(once)
    assert all(line == line.rstrip(" \t") for line in once.split("\n"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree"),
        ("\ufeff# Title", "# Title"),
        ("Cafe\u0301", "Café"),
        ("blanks  \t\nat the end ", "blanks\nat the end"),
        ("  indented\n\n    code", "  indented\n\n    code"),
        ("nul\x00l", "null"),
        ("half \ud83d", "half \ufffd"),
        ("left apart \ud83d\ude00", "left apart 😀"),
        ("\n \n", ""),
    ],
)
def test_canonical_text_settles_what_editors_disagree_on(text: str, expected: str) -> None:
    assert canonical_text(text) == expected


def test_a_megabyte_of_blanks_is_trimmed_in_linear_time() -> None:
    # A pattern such as [ \t]+$ would need hours for this.
    assert canonical_text("x" + " " * 1_000_000 + "y\n" + "\t" * 1_000_000).endswith("y")


@given(awkward)
def test_folding_and_topic_names_are_fixed_points(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert normalise_topic(normalise_topic(text)) == normalise_topic(text)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("#Home Office", "home-office"),
        ("home_office ", "home-office"),
        ("Home -- Office", "home-office"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Ｐｙｔｈｏｎ", "python"),
        ("work/Garden", "work/garden"),
        ("C#", "c#"),
        ("Über\u00admut", "übermut"),
        ("東京", "東京"),
        ("##", ""),
        (" _ ", ""),
    ],
)
def test_a_topic_is_the_same_however_it_is_typed(topic: str, expected: str) -> None:
    assert normalise_topic(topic) == expected
