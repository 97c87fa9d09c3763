"""``config.yaml``: what is always wanted is said once, and comes last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from typing_commands import Vault

from memory_store.cli import main
from memory_store.cli.search import USUAL, VARIABLES
from memory_store.configuration import default_vault


@pytest.fixture
def config() -> Path:
    folder = Path(os.environ["MEMORY_STORE_CONFIG"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "config.yaml"


def run(*words: str) -> str:
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0, answer.output
    return str(answer.output)


def refusal(*words: str) -> str:
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 2, answer.output
    return str(answer.output)


def test_it_names_the_vault_its_key_file_and_the_usual_options(config: Path, vault: Vault) -> None:
    config.write_text(
        f"vault: {vault.path}\nkey-file: {vault.key_file}\nsearch: {{mode: keyword, limit: 1}}\n"
    )
    assert run("search", "lisbon", "--json").count('"id"') == 1
    assert '"mode": "keyword"' in run("search", "lisbon", "--json")
    assert run("search", "lisbon", "-n", "2", "--json").count('"id"') == 2


def test_a_variable_comes_first(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("vault: ~/one.db\n")
    assert default_vault() == Path.home() / "one.db"
    monkeypatch.setenv("MEMORY_STORE_DB", "/two.db")
    assert default_vault() == Path("/two.db")


def test_usual_options_have_a_variable_each_which_comes_first_and_a_flag_before_it(
    config: Path, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text("search: {mode: vector, limit: 2}\n")
    search = ("search", str(vault.path), "lisbon", "--key-file", str(vault.key_file), "--json")
    monkeypatch.setenv("MEMORY_STORE_SEARCH_MODE", "keyword")
    assert '"mode": "keyword"' in run(*search)
    assert run(*search).count('"id"') == 2
    monkeypatch.setenv("MEMORY_STORE_SEARCH_LIMIT", "1")
    assert run(*search).count('"id"') == 1
    assert '"mode": "hybrid"' in run(*search, "--mode", "hybrid")
    for name in USUAL:
        monkeypatch.setenv(VARIABLES[name], "loud")
        assert f"--{name}" in refusal(*search)
        monkeypatch.delenv(VARIABLES[name])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vaults: x.db", "'vaults' is no setting. Options of a search stand under search"),
        ("vault: [x.db]", "vault: expected a text"),
        ("- vault", "expected lines of NAME: VALUE"),
        ("defalut-vault: x.db", "Did you mean vault?"),
        (
            "mode: keyword",
            "under search, such as search: {mode: keyword}. There are vault, key-file",
        ),
        ("vault: 'x", "not YAML"),
        ("vault: x\nmodel: [a", "config.yaml, line 2: not YAML: expected ',' or ']'"),
        ("search: {colour: red}", "'colour' cannot be set here"),
        ("search: {mode: loud}", "'loud' is not one of"),
        ("vault: x" + " " * 70_000, "larger than 65,536 bytes"),
    ],
)
def test_what_cannot_be_understood_is_named(config: Path, text: str, said: str) -> None:
    config.write_text(text)
    assert said in refusal("search", "lisbon")


def test_a_change_is_seen_at_once(config: Path) -> None:
    config.write_text("vault: /one.db\n")
    assert default_vault() == Path("/one.db")
    config.write_text("vault: /another.db\n")
    assert default_vault() == Path("/another.db")
