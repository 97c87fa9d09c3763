"""Leafing through an answer on the command line, and keeping it within a budget."""

from __future__ import annotations

import re

import pytest
from typing_commands import Vault

SEARCH = ("search", "lease Lisbon bread", "--mode", "keyword")


def test_continue_goes_on_where_the_answer_stopped(vault: Vault) -> None:
    whole = vault.json(*SEARCH)["rows"]
    assert len(whole) > 2
    token = vault.json(*SEARCH, "--limit", "1")["next"]
    vault.run("add", "bread, a lease and Lisbon")
    second = vault.json(*SEARCH, "--limit", "1", "--continue", token)
    assert [row["id"] for row in second["rows"]] == [whole[1]["id"]]
    assert second["rows"][0]["rank"] == 2


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


def test_who_asks_with_a_token_is_told_the_next_one(vault: Vault) -> None:
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
    monkeypatch.setenv("MEMORY_STORE_RERANKER", "nobody-has-this")
    assert "degraded: no reranker" in vault.run(*words).stdout


def test_a_budget_is_told_below_the_answer(vault: Vault) -> None:
    result = vault.run(*SEARCH, "--budget", "60")
    line = next(line for line in result.stdout.splitlines() if "of 60 tokens" in line)
    assert "(length / 4)" in line
    tiny = vault.run(*SEARCH, "--budget", "1")
    assert "too large" in tiny.stdout
    assert "Nothing found" not in tiny.stdout
    assert vault.json(*SEARCH, "--budget", "60")["budget"]["limit"] == 60
