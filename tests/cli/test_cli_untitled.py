"""Memories without a title, in the terminal: their first words, and in JSON what is stored."""

from __future__ import annotations

from typing import Any

import pytest

TEXT = "The boiler was serviced in October; the next visit is due in two years, says Mr Kowalski."
FIRST = "The boiler was serviced in October; the next visit…"


@pytest.fixture
def untitled(empty_vault: Any) -> Any:
    result = empty_vault.run("add", TEXT)
    assert result.exit_code == 0, result.output
    return empty_vault


@pytest.mark.parametrize(
    "words", [("list",), ("list", "--table"), ("search", "boiler"), ("search", "boiler", "--table")]
)
def test_the_first_words_stand_in_for_the_title(untitled: Any, words: tuple[str, ...]) -> None:
    result = untitled.run(*words)
    assert FIRST in result.stdout
    assert "(untitled)" not in result.stdout


def test_so_they_do_where_one_memory_is_shown(untitled: Any) -> None:
    memory = untitled.json("list")[0]
    assert untitled.run("get", memory["id"][:8]).stdout.splitlines()[0] == FIRST


def test_an_answer_cites_them(untitled: Any, language_models: Any) -> None:
    language_models.add("writer", "In two years [1].")
    assert f"[1] {FIRST}" in untitled.run("ask", "boiler", "--model", "writer").stdout


def test_in_a_table_of_the_results_as_well(untitled: Any) -> None:
    assert f",{FIRST}," in untitled.run("search", "boiler", "--csv").stdout


def test_json_keeps_the_title_that_is_stored(untitled: Any) -> None:
    assert untitled.json("list")[0]["title"] == ""
    assert untitled.json("search", "boiler")["rows"][0]["title"] == ""
