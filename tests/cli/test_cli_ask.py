"""``memory-store ask`` on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from language_models import LanguageModels

QUESTION = "when does the lease of the flat in Lisbon end"


@pytest.fixture
def writer(language_models: LanguageModels) -> Any:
    return language_models.add("writer", "On 31 May [1], they say [7].\x1b]0;owned\x07")


def test_an_answer_is_printed_with_the_memories_it_cites(vault: Any, writer: Any) -> None:
    result = vault.run("ask", QUESTION, "--model", "writer", "--limit", "2")
    assert result.exit_code == 0, result.output
    first = json.loads(vault.run("search", QUESTION, "--json").stdout)["rows"][0]
    lines = result.stdout.splitlines()
    assert lines[0] == "On 31 May [1], they say.]0;owned"
    assert lines[2].startswith(f"[1] {first['title']}")
    assert first["id"][:8] in lines[2]
    assert first["ref"] in lines[2]
    assert "1 citation of sources it was not given was left out" in result.stdout
    assert "writer was sent 2 of them" in result.stdout
    assert "\x1b" not in result.stdout


def test_as_json_every_memory_that_was_sent_is_named(vault: Any, writer: Any) -> None:
    result = vault.run("ask", QUESTION, "--model", "writer", "--json")
    reported = json.loads(result.stdout)
    assert reported["ok"] is True
    assert reported["question"] == QUESTION
    assert reported["answer"].startswith("On 31 May [1], they say.")
    assert reported["model"] == "writer"
    assert [source["cited"] for source in reported["sources"]][:2] == [True, False]
    assert set(reported["sources"][0]) == {"number", "id", "ref", "title", "created", "cited"}
    assert reported["removed_citations"] == 1


def test_the_default_model_of_llm_is_named_in_the_output(
    vault: Any, writer: Any, language_models: LanguageModels
) -> None:
    language_models.folder.mkdir(exist_ok=True)
    (language_models.folder / "default_model.txt").write_text("writer")
    assert "writer was sent" in vault.run("ask", QUESTION).stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_model_the_results_are_shown_and_what_mends_it(
    vault: Any, language_models: LanguageModels, as_json: bool
) -> None:
    options = ["--json"] if as_json else []
    result = vault.run("ask", QUESTION, "--model", "nobody", *options)
    assert result.exit_code == 1
    mends = "Error: llm knows no language model 'nobody'. Try: llm models\n"
    assert result.stderr.startswith(mends)
    assert result.output.startswith(mends), "said before the search"
    if as_json:
        reported = json.loads(result.stdout)
        assert (reported["ok"], reported["answer"]) == (False, None)
        assert reported["rows"]
    else:
        assert "memories opened" in result.stdout


def test_nothing_found_is_said_without_a_model(
    empty_vault: Any, language_models: LanguageModels
) -> None:
    result = empty_vault.run("ask", QUESTION, "--model", "nobody")
    assert result.exit_code == 1
    assert "Nothing found." in result.stdout
    reported = json.loads(empty_vault.run("ask", QUESTION, "--model", "nobody", "--json").stdout)
    assert (reported["answer"], reported["rows"]) == (None, [])


def test_filters_and_limits_are_those_of_a_search(vault: Any, writer: Any) -> None:
    for options, code in ((["--limit", "99"], 2), (["--type", "mood"], 2), (["--budget", "1"], 2)):
        result = vault.run("ask", QUESTION, "--model", "writer", *options)
        assert result.exit_code == code, result.output
        assert options[0] in result.stderr
    assert writer.given == []


def test_a_question_may_come_from_standard_input(vault: Any, writer: Any) -> None:
    result = vault.run("ask", "-", "--model", "writer", input=QUESTION)
    assert result.exit_code == 0, result.output
    assert writer.given[0][1].endswith(f"Question: {QUESTION}")


def test_what_is_wrong_with_a_question_is_said_of_the_question(vault: Any) -> None:
    for words in ("", "--", "\x00"):
        result = vault.run("ask", "--", words)
        assert result.exit_code == 2
        assert "Error: QUESTION: the question " in result.stderr


def test_a_search_is_expanded_by_the_model_named(
    vault: Any, language_models: LanguageModels
) -> None:
    arguments = ("search", "my vehicle", "--expander", "good", "--explain", "--json")
    expanded, plain = (
        next(stage for stage in json.loads(result.stdout)["explain"] if stage["stage"] == "expand")
        for result in (vault.run(*arguments), vault.run(*arguments, "--no-expand"))
    )
    assert expanded["variants"][0] == "lex: automobile garage"
    assert plain["skipped"] == "switched off"
    assert len(language_models.given("good")) == 1
    assert "automobile garage" in " ".join(vault.run(*arguments[:-1]).stdout.split())


def test_doctor_says_where_queries_are_sent(
    vault: Any, language_models: LanguageModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "MEMORY_STORE_EXPANDER names no language model" in vault.run("doctor").stdout
    monkeypatch.setenv("MEMORY_STORE_EXPANDER", "good")
    assert "queries are sent to good" in vault.run("doctor").stdout
    assert language_models.given("good") == []
