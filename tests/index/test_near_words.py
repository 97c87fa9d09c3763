"""No word within the edits of a slip is overlooked by its letters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack
from rapidfuzz.distance import OSA

from memory_store.index.lexicon import LEXICON, Lexicon, Spelled
from tests.index.made_up_entries import snapshot_of, varied_entries

WORDS = st.text(st.sampled_from("abßé中z7'"), min_size=1, max_size=9)


def lexicon_of(words: list[str]) -> Lexicon:
    record = msgpack.encode(Spelled(words))
    segment = snapshot_of(varied_entries(0, 1)).parts[0].segment
    return LEXICON.collect([record], segment)


@given(st.lists(WORDS, min_size=1, max_size=12, unique=True), WORDS, st.sampled_from([1, 2]))
def test_every_word_within_the_edits_remains(words: list[str], typed: str, edits: int) -> None:
    lexicon = lexicon_of(words)
    remain = {lexicon.words[one].decode() for one in lexicon.may_be_near(typed.encode(), edits)}
    assert {one for one in words if OSA.distance(one, typed) <= edits} <= remain


def test_words_of_other_letters_are_left_out() -> None:
    lexicon = lexicon_of(["boiler", "broiler", "hammer", "weir"])
    assert lexicon.may_be_near(b"boler", 1).tolist() == [0, 1]
