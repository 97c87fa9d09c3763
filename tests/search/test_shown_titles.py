"""What stands where a memory has no title: the first words of its text."""

from hypothesis import given
from hypothesis import strategies as st

from memory_store.titles import TITLE_CHARACTERS, shown_title


def test_a_title_is_shown_as_it_was_stored():
    assert shown_title("Lease", "Something else") == "Lease"


def test_without_a_title_the_first_words_of_the_text_stand_in():
    text = "The lease of the flat ends in March, unless we write to them before Christmas."
    assert shown_title("", text) == "The lease of the flat ends in March, unless we…"


def test_a_short_text_is_shown_whole_and_a_short_first_line_promises_more():
    assert shown_title(" ", "Water the plants\n") == "Water the plants"
    assert shown_title("", "Shopping:\n\n- oats") == "Shopping…"


def test_markdown_before_the_first_words_is_left_out():
    assert shown_title("", "---\n\n## Plants\nWater them") == "Plants…"
    assert shown_title("", "- [ ] call the landlord") == "call the landlord"


def test_an_excerpt_from_the_middle_says_so():
    assert shown_title("", "ends in March", start=120) == "…ends in March"


def test_nothing_to_show_gives_nothing():
    assert shown_title("", "") == shown_title("", "\n---\n***") == ""


@given(st.text(), st.integers(0, 2))
def test_what_stands_in_is_one_short_line(text, start):
    shown = shown_title("", text, start)
    assert len(shown) <= TITLE_CHARACTERS + 2
    assert len(shown.splitlines()) <= 1
