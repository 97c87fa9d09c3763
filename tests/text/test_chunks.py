"""Passages and windows: what they cover, where they cut, how much they share."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_store.text.chunks import SPECIAL_TOKENS, Offsets, Span, passages, windows

SENTENCE = "The gardener watered the beans before the sun came up. "
blocks = st.sampled_from(
    [
        "# Heading\n\n",
        "## Part\n\n",
        SENTENCE,
        SENTENCE * 4 + "\n\n",
        "- a point\n- another\n",
        "```python\nfor x in y:\n    print(x)\n```\n\n",
        "> quoted\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "東京都の水は美味しい。",
        "x" * 70,
        "👩‍👩‍👧 é \n",
        "---\n",
        "   \n",
    ]
)
markdown = st.lists(blocks, max_size=60).map("".join)
anything = markdown | st.text(max_size=600)


def covered(spans: list[Span]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


@given(anything, st.integers(5, 60), st.sampled_from([0.0, 0.15, 0.5]))
def test_passages_cover_the_text_in_order_within_their_size(
    text: str, target: int, overlap: float
) -> None:
    spans = passages(text, target_tokens=target, overlap=overlap)

    assert covered(spans) == set(range(len(text)))
    assert all(0 < end - start <= 4 * target for start, end in spans)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(spans))
    assert all(a.end - b.start <= 4 * target * overlap for a, b in pairwise(spans))
    assert spans == passages(text, target_tokens=target, overlap=overlap)


def test_no_text_gives_no_passage_and_a_short_one_gives_one() -> None:
    assert passages("") == []
    assert passages("short") == [Span(0, 5)]


@pytest.mark.parametrize("overlap", [-0.1, 0.6, 1.0])
def test_an_overlap_that_never_ends_is_refused(overlap: float) -> None:
    with pytest.raises(ValueError, match="overlap"):
        passages("text", overlap=overlap)


def test_a_passage_repeats_the_last_sentences_of_the_one_before() -> None:
    text = SENTENCE * 330
    spans = passages(text)

    assert len(spans) > 4
    for before, after in pairwise(spans):
        assert text[after.start :].startswith("The gardener")
        assert 0.10 < (before.end - after.start) / (4 * 800) <= 0.15


def test_passages_begin_at_headings_where_sections_fit() -> None:
    text = "".join(f"## Section {i}\n\n{SENTENCE * 40}\n\n" for i in range(12))
    spans = passages(text, overlap=0)

    assert len(spans) > 4
    assert all(text[start:].startswith("## Section") for start, _ in spans)


def test_a_code_fence_that_fits_stays_whole() -> None:
    fence = "```python\n# not a heading\n\n" + "print('hello, garden')\n\n" * 90 + "```"
    text = "\n\n".join([SENTENCE * 30, fence, SENTENCE * 30, fence, SENTENCE * 10])
    spans = passages(text)

    fences = [match.span() for match in re.finditer(re.escape(fence), text)]
    assert len(fences) == 2
    assert len(spans) > 2
    for first, last in fences:
        assert any(start <= first and last <= end for start, end in spans)
        assert not any(first < start < last for start, _ in spans)


def test_a_crumb_at_the_end_joins_its_neighbour() -> None:
    text = (SENTENCE * 50).strip() + "\n\nLast."
    assert passages(text, target_tokens=len(text) // 4 + 1) == [Span(0, len(text))]
    spans = passages(text * 3, target_tokens=300)
    assert all(end - start > 200 for start, end in spans)


def pieces(text: str) -> list[tuple[int, int]]:
    """A tokenizer in the manner of WordPiece: words cut into pieces of up to four characters."""
    return [
        (start, min(start + 4, word.end()))
        for word in re.finditer(r"[A-Za-z]+|[^\sA-Za-z]", text)
        for start in range(word.start(), word.end(), 4)
    ]


def fickle_pieces(text: str) -> list[tuple[int, int]]:
    """Pieces whose first is one letter long, so that half a word has more than half of them."""
    return [
        (start, end)
        for word in re.finditer(r"\S+", text)
        for cuts in [[word.start(), *range(word.start() + 1, word.end(), 4), word.end()]]
        for start, end in pairwise(cuts)
    ]


def with_specials(text: str) -> list[tuple[int, int]]:
    return [(0, 0), *pieces(text), (0, 0)]


@given(
    anything,
    st.integers(8, 40),
    st.integers(0, 5),
    st.sampled_from([pieces, with_specials, fickle_pieces]),
)
@example("x" * 500, 9, 5, pieces)
@example("x" * 500, 9, 5, fickle_pieces)
@example("x" * 101, 12, 0, fickle_pieces)
def test_windows_cover_every_token_and_fit_the_model(
    text: str, most: int, title: int, offsets: Offsets
) -> None:
    spans = windows(text, offsets, max_tokens=most, title_tokens=title)
    budget = max(most - title - SPECIAL_TOKENS, 1)
    sizes = [len([1 for a, b in offsets(text[start:end]) if b > a]) for start, end in spans]

    assert covered(spans) == (set(range(len(text))) if text.strip() else set())
    assert all(0 < size <= max(budget, 2) for size in sizes)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(spans))


def test_a_passage_that_fits_is_one_window() -> None:
    assert windows(SENTENCE, pieces, max_tokens=64, title_tokens=8) == [Span(0, len(SENTENCE))]
    assert windows(" \n", pieces, max_tokens=64, title_tokens=8) == []


def test_windows_end_with_sentences_share_a_little_and_are_of_similar_size() -> None:
    text = (SENTENCE * 60).strip()
    spans = windows(text, pieces, max_tokens=256, title_tokens=12)
    sizes = [len(pieces(text[start:end])) for start, end in spans]

    assert len(spans) >= 4
    assert all(text[start:end].strip().endswith(".") for start, end in spans)
    assert all(text[start:].startswith("The") for start, _ in spans)
    assert all(0 < before.end - after.start <= 60 for before, after in pairwise(spans))
    assert min(sizes) > 0.7 * max(sizes)


def test_the_last_sentence_is_in_a_window_of_its_neighbourhood() -> None:
    text = SENTENCE * 56 + "The spare key hangs behind the clock."
    last = windows(text, pieces, max_tokens=256, title_tokens=0)[-1]

    assert text[last.start : last.end].endswith("behind the clock.")
    assert text[last.start : last.end].count("gardener") > 5


@pytest.mark.parametrize(
    "line", ["漢字" * 50_000, "x" * 150_000, "word " * 60_000 + "\nEnd.\n" * 9]
)
def test_a_line_of_any_length_is_cut_in_time_that_grows_with_it(line: str) -> None:
    """As a picture in base64, or Chinese without line breaks."""
    whole = f"# Before\n\n{line}\n\n# After\n"
    spans = passages(whole)
    assert covered(spans) == set(range(len(whole)))
    assert all(0 < end - start <= 3_200 for start, end in spans)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(spans))
