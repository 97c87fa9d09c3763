"""That nobody wrote the words asked for is said below the results, as a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from sqlite_utils.cli import cli
from typing_commands import Vault

from memory_store.notebook import response_table
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels

SAID = "No memory holds any of these words; these are the nearest in meaning."
NONSENSE = ("search", "xyzzy plugh frobnicate", "--no-rerank")


@pytest.fixture
def embedded(vault: Vault, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """The vault of five notes with their vectors."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    assert vault.run("reindex").exit_code == 0
    return vault


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
    told = embedded.run("ask", "xyzzy plugh?", "--model", "writer").stdout
    assert SAID in told.splitlines()


def test_a_notebook_shows_the_sentence(store: MemoryStore) -> None:
    store.add("The lease ends in May")
    table = response_table(store.search("xyzzy plugh", rerank=False))
    assert SAID in table
    assert "degraded" not in table
