"""Leafing through an answer on the command line, and keeping it within a budget."""

from __future__ import annotations

import re

from typing_commands import Vault

SEARCH = ("search", "lease Lisbon bread", "--mode", "keyword")


def test_continue_goes_on_where_the_answer_stopped(vault: Vault) -> None:
    whole = vault.json(*SEARCH)["rows"]
    assert len(whole) > 2
    first = vault.run(*SEARCH, "--limit", "1")
    token = re.search(r"--continue (\S+)", first.stdout)
    assert token is not None
    vault.run("add", "bread, a lease and Lisbon")
    second = vault.json(*SEARCH, "--limit", "1", "--continue", token[1])
    assert [row["id"] for row in second["rows"]] == [whole[1]["id"]]
    assert second["rows"][0]["rank"] == 2


def test_a_budget_is_told_below_the_answer(vault: Vault) -> None:
    result = vault.run(*SEARCH, "--budget", "60")
    line = next(line for line in result.stdout.splitlines() if "of 60 tokens" in line)
    assert "(length / 4)" in line
    tiny = vault.run(*SEARCH, "--budget", "1")
    assert "too large" in tiny.stdout
    assert "Nothing found" not in tiny.stdout
    assert vault.json(*SEARCH, "--budget", "60")["budget"]["limit"] == 60
