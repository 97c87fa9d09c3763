"""Two versions of a memory side by side, and topics on one line: nothing of either is lost."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from datasette_hybrid.memories import comparison, memory_form

TOPICS = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
    .map(lambda topic: " ".join(topic.split()))
    .filter(bool),
    max_size=5,
)
LINES = st.lists(st.text("ab c<&", max_size=8), max_size=12).map("\n".join)


@given(TOPICS)
def test_topics_survive_the_line_they_are_typed_in(topics: list[str]) -> None:
    assert memory_form.split(memory_form.joined(topics)) == topics


@given(LINES, LINES)
def test_a_difference_shows_every_word_of_both_texts(theirs: str, mine: str) -> None:
    pairs = comparison.side_by_side(theirs, mine)
    shown = [(pair.theirs, pair.mine) for pair in pairs if not pair.skipped]
    left, right = (
        (
            [unescape(re.sub("</?mark>", "", one)) for one in side if one is not None]
            for side in zip(*shown, strict=True)
        )
        if shown
        else ([], [])
    )
    skipped = sum(pair.skipped for pair in pairs)
    assert len(left) + skipped == len(theirs.split("\n"))
    assert len(right) + skipped == len(mine.split("\n"))
    assert set(left) <= set(theirs.split("\n"))
    assert set(right) <= set(mine.split("\n"))


@given(LINES, LINES)
def test_both_in_one_loses_no_line(theirs: str, mine: str) -> None:
    lines = comparison.both(theirs, mine).split("\n")
    for text in (theirs, mine):
        left = iter(lines)
        assert all(line in left for line in text.split("\n"))
