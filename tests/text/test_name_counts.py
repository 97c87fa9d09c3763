"""Names counted for many files at once: the same terms as of each file by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text import name_counts
from memory_store.text.identifiers import code_terms, code_words
from memory_store.text.name_counts import NameCounter, NameCounts
from memory_store.text.spelling import is_spelled

FILES = st.lists(st.tuples(st.text("aBX_1 é東ſ"), st.text("abHTp_ 2Ä.箱s")), max_size=4)


def numbers(data: bytes) -> list[int]:
    return np.frombuffer(data, np.uint32).tolist()


def counted(found: NameCounts, times: bytes) -> dict[str, int]:
    said = dict(zip(found.terms, numbers(times), strict=True))
    return {term: count for term, count in said.items() if count}


@given(FILES)
def test_each_file_has_its_own_terms_and_parts(files: list[tuple[str, str]]) -> None:
    counter = NameCounter()
    for title, text in files:
        found = counter.count(title, text)
        assert counted(found, found.titles) == Counter(code_terms(title))
        assert counted(found, found.bodies) == Counter(code_terms(text))
        assert len(set(found.terms)) == len(found.terms)
        words = [found.terms[place] for place in numbers(found.parts)]
        assert words[: found.title_parts] == code_words(title)
        assert words[found.title_parts :] == code_words(text)
        assert {*found.terms[: found.spelled]} == {*filter(is_spelled, found.terms)}


def test_a_counter_that_remembers_enough_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_counts, "REMEMBERED", 2)
    counter = NameCounter()
    texts = ("getUser getGroup", "putUser putGroup setUser", "getUser")
    assert [
        counted(found, found.bodies) for text in texts for found in [counter.count("", text)]
    ] == [Counter(code_terms(text)) for text in texts]
