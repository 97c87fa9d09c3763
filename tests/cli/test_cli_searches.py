"""What a search shows on the command line: pages, budgets, first words, the nearest in meaning."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from sqlite_utils.cli import cli
from typing_commands import Vault

from memory_store.notebook import response_table
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels


SEARCH = ("search", "lease Lisbon bread", "--mode", "keyword")


def test_continue_goes_on_where_the_answer_stopped(vault: Vault) -> None:
    whole = vault.json(*SEARCH)["rows"]
    assert len(whole) > 2
    token = vault.json(*SEARCH, "--limit", "1")["next"]
    second = vault.json(*SEARCH, "--limit", "1", "--continue", token)
    assert [(row["id"], row["rank"]) for row in second["rows"]] == [(whole[1]["id"], 2)]
    vault.run("add", "bread, a lease and Lisbon")
    assert "changed since the page before" in vault.run(*SEARCH, "--continue", token).output


def test_a_page_is_named_by_its_number(vault: Vault) -> None:
    """A token of some hundred characters stood below each page."""
    whole = vault.json(*SEARCH)["rows"]
    first = vault.run(*SEARCH, "--limit", "1").stdout
    assert "more: --page 2" in first
    assert "--continue" not in first
    second = vault.json(*SEARCH, "--limit", "1", "--page", "2")
    assert [(row["id"], row["rank"]) for row in second["rows"]] == [(whole[1]["id"], 2)]
    assert second["opened"] >= 2
    last = vault.run(*SEARCH, "--limit", "1", "--page", str(len(whole)))
    assert "more:" not in last.stdout
    beyond = vault.run(*SEARCH, "--limit", "1", "--page", str(len(whole) + 1))
    assert (beyond.exit_code, beyond.stdout) == (2, "")
    assert f"there are {len(whole)} pages" in beyond.stderr


def test_who_asks_with_a_token_gets_the_next_one(vault: Vault) -> None:
    token = vault.json(*SEARCH, "--limit", "1")["next"]
    second = vault.run(*SEARCH, "--limit", "1", "--continue", token).stdout
    assert re.search(r"more: --continue \S{20}", second)


def test_that_there_is_no_reranker_is_said_in_a_few_words(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("search", "lease in Lisbon", "--deep")
    shown = vault.run(*words).stdout
    assert shown.count("no reranker, see memory-store doctor") == 1
    assert "degraded: no reranker" not in shown
    assert any(line.startswith("no reranker") for line in vault.json(*words)["degraded"])
    assert "degraded: no reranker" in vault.run(*words, "--explain").stdout
    for form in ("--csv", "--nl", "--table"):
        assert "no reranker" not in vault.run(*words, form).output
        assert "degraded: no reranker" in vault.run(*words, form, "--explain").stderr
    monkeypatch.setenv("MEMORY_STORE_RERANKER", "nobody-has-this")
    assert "degraded: no reranker" in vault.run(*words).stdout


def test_a_budget_is_said_below_the_answer(vault: Vault) -> None:
    result = vault.run(*SEARCH, "--budget", "60")
    line = next(line for line in result.stdout.splitlines() if "of 60 tokens" in line)
    assert "(length / 4)" in line
    tiny = vault.run(*SEARCH, "--budget", "1")
    assert "too large" in tiny.stdout
    assert "Nothing found" not in tiny.stdout
    assert vault.json(*SEARCH, "--budget", "60")["budget"]["limit"] == 60


SAID = "No memory holds any of these words; these are the nearest in meaning."
NONSENSE = ("search", "xyzzy plugh frobnicate", "--no-rerank")


def test_rows_that_look_like_hits_are_called_the_nearest(embedded: Vault) -> None:
    shown = embedded.run(*NONSENSE).stdout
    assert shown.splitlines()[-1] == SAID
    assert "degraded" not in shown
    assert (embedded.json(*NONSENSE)["nearest"], embedded.json(*NONSENSE)["degraded"]) == (SAID, [])
    for form in ("--csv", "--table", "--nl"):
        listed = embedded.run(*NONSENSE, form)
        assert (SAID in listed.stdout, listed.stderr) == (False, f"{SAID}\n"), form
    key = ["--key-file", str(embedded.key_file)]
    in_sqlite = CliRunner().invoke(cli, ["hybrid-search", str(embedded.path), NONSENSE[1], *key])
    assert SAID in in_sqlite.stderr.splitlines()
    assert "nearest" not in embedded.run("search", "lease frobnicate").output
    assert "nearest" not in embedded.run(*NONSENSE, "--mode", "vector").output


def test_an_answer_out_of_such_notes_says_it_too(
    embedded: Vault, language_models: LanguageModels
) -> None:
    language_models.add("writer", "It ends in May [1].")
    reported = embedded.run("ask", "xyzzy plugh?", "--model", "writer").stdout
    assert SAID in reported.splitlines()


def test_a_notebook_shows_the_sentence(store: MemoryStore) -> None:
    store.add("The lease ends in May")
    table = response_table(store.search("xyzzy plugh", rerank=False))
    assert SAID in table
    assert "degraded" not in table


TEXT = "The boiler was serviced in October; the next visit is due in two years, says Mr Kowalski."
FIRST = "The boiler was serviced in October; the next visit…"


@pytest.fixture
def untitled(empty_vault: Any) -> Any:
    result = empty_vault.run("add", TEXT)
    assert result.exit_code == 0, result.output
    return empty_vault


def test_an_answer_cites_them(untitled: Any, language_models: Any) -> None:
    language_models.add("writer", "In two years [1].")
    assert f"[1] {FIRST}" in untitled.run("ask", "boiler", "--model", "writer").stdout


def test_the_first_words_stand_in_for_the_title_but_in_json(untitled: Any) -> None:
    for command in (("list",), ("search", "boiler")):
        for form in ((), ("--table",)):
            shown = untitled.run(*command, *form).stdout
            assert (FIRST in shown, "(untitled)" in shown) == (True, False)
    assert f",{FIRST}," in untitled.run("search", "boiler", "--csv").stdout
    memory = untitled.json("list")[0]
    assert untitled.run("get", memory["id"][:8]).stdout.splitlines()[0] == FIRST
    assert memory["title"] == untitled.json("search", "boiler")["rows"][0]["title"] == ""


@pytest.mark.parametrize(
    ("flag", "mode", "query"),
    [
        ("--literal", "literal", r"lease of the \w+"),
        ("--structural", "structural", "lease($X)"),
        ("--semantic", "hybrid", "lease in Lisbon"),
    ],
)
def test_a_mode_has_a_short_form(vault: Vault, flag: str, mode: str, query: str) -> None:
    short = vault.json("search", query, flag)
    whole = vault.json("search", query, "--mode", mode)
    assert short["mode"] == mode
    assert [row["id"] for row in short["rows"]] == [row["id"] for row in whole["rows"]]
    assert vault.json("search", query, flag, "--mode", mode)["mode"] == mode


def test_short_forms_that_contradict_are_named(vault: Vault) -> None:
    both = vault.run("search", "lease", "--structural", "--literal")
    assert (both.exit_code, both.stdout) == (2, "")
    assert "choose one of --literal and --structural" in both.stderr
    other = vault.run("search", "lease", "--semantic", "--mode", "keyword")
    assert (other.exit_code, other.stdout) == (2, "")
    assert "--semantic is short for --mode hybrid: leave out --mode keyword" in other.stderr


def test_a_short_form_comes_before_the_usual_mode_of_your_settings(
    vault: Vault, tmp_path: Path
) -> None:
    file = tmp_path / "private" / "config" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("search:\n  mode: keyword\n")
    assert vault.json("search", "lease")["mode"] == "keyword"
    assert vault.json("search", "lease", "--literal")["mode"] == "literal"


def test_sqlite_utils_takes_short_forms_too(vault: Vault) -> None:
    words = ["hybrid-search", str(vault.path), "--key-file", str(vault.key_file), "lease"]
    found = CliRunner().invoke(cli, [*words, "--literal", "-c", "title"])
    assert json.loads(found.stdout) == [{"title": "Lease of the flat"}]
    refused = CliRunner().invoke(cli, [*words, "--literal", "--structural"])
    assert refused.exit_code == 2
    assert "choose one of --literal and --structural" in refused.stderr
