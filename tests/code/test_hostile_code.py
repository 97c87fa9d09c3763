"""Source text that is made to harm takes a second of a processor, and no server stands still."""

from __future__ import annotations

import time

import pytest

from memory_store.code.grammars import has_grammar
from memory_store.code.patterns import StructuralPattern
from memory_store.code.symbols import BY_GRAMMAR, symbols_of

HOSTILE = "[" * 60_000  # ten seconds, were it parsed to its end: the square of its length


@pytest.mark.parametrize(("language", "sign"), [("lua", "["), ("scala", "["), ("dart", "`")])
def test_it_is_outlined_by_its_lines_and_is_not_parsed_again(language: str, sign: str) -> None:
    """A second for each, which is what it may take."""
    if not has_grammar(language):
        pytest.skip("the extra code is not installed")
    began = time.process_time()
    found = symbols_of(f"{sign * 60_000}\nlocal harbour = 1\n", language)
    assert time.process_time() - began < 4
    assert found.made_by == BY_GRAMMAR, "no grammar that comes later says more"
    assert found.chunk_ends[-1] == 60_019


def test_a_pattern_is_looked_for_in_other_texts_alone() -> None:
    pytest.importorskip("ast_grep_py", reason="the extra code is not installed")
    pattern = StructuralPattern("print($A)")
    began = time.process_time()
    assert pattern.matches(f"print(1)\n{HOSTILE}", "lua", 10) == []
    assert time.process_time() - began < 4
    assert len(pattern.matches("print(1)\n" * 1_000, "lua", 2_000)) == 1_000
