"""``sqlite-utils hybrid-search``: searching a vault as one searches a table."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlite_utils.cli import cli
from typing_commands import Vault

from memory_store import sqlite_utils_plugin
from memory_store.records import RESULT_COLUMNS
from memory_store.sqlite_utils_command import TABLE_COLUMNS


@pytest.fixture
def search(vault: Vault) -> Any:
    """``sqlite-utils hybrid-search notes.db --key-file … WORDS``."""

    def run(*words: str, key: bool = True) -> Result:
        named = ["--key-file", str(vault.key_file)] if key else []
        return CliRunner().invoke(cli, ["hybrid-search", str(vault.path), *named, *words])

    return run


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_the_answer_is_json_with_the_columns_of_sql(search: Any) -> None:
    first = rows(search("lease deposit", "--mode", "keyword"))[0]
    assert (first["rank"], first["title"]) == (1, "Lease of the flat")
    assert tuple(first) == RESULT_COLUMNS
    assert first["topics"] == '["home","contracts"]'


def test_json_columns_come_unfolded_where_asked_for(search: Any) -> None:
    first = rows(search("lease deposit", "--mode", "keyword", "--json-cols"))[0]
    assert first["topics"] == ["home", "contracts"]


def test_columns_and_filters_are_chosen_as_in_sqlite_utils_search(search: Any) -> None:
    found = rows(search("bread lease", "-c", "title", "-c", "type", "--type", "fact", "-n", "3"))
    assert found == [{"title": "Lease of the flat", "type": "fact"}]


def test_every_output_of_sqlite_utils_is_there(search: Any) -> None:
    words = ("lease", "--mode", "keyword", "-n", "1", "-c", "rank", "-c", "title")
    assert search(*words, "--nl").stdout == '{"rank": 1, "title": "Lease of the flat"}\n'
    assert json.loads(search(*words, "--arrays").stdout) == [[1, "Lease of the flat"]]
    assert search(*words, "--csv", "--no-headers").stdout == "1,Lease of the flat\n"
    assert search(*words, "--tsv").stdout == "rank\ttitle\n1\tLease of the flat\n"
    assert "| Lease of the flat |" in search(*words, "--fmt", "github").stdout


def test_a_table_has_the_columns_that_fit_a_terminal(search: Any) -> None:
    head = search("lease", "--mode", "keyword", "--table").stdout.splitlines()[0]
    assert tuple(head.split()) == TABLE_COLUMNS
    whole = csv.DictReader(io.StringIO(search("lease", "--mode", "keyword", "--csv").stdout))
    assert tuple(whole.fieldnames or ()) == RESULT_COLUMNS


def test_memories_like_one_need_no_query(search: Any) -> None:
    bread = rows(search("rye bread", "--mode", "keyword", "-c", "id"))[0]["id"]
    found = rows(search("--like", bread[:8], "-c", "title", "-n", "1"))
    assert found == [{"title": "Lease of the flat"}]  # both are about home


def test_a_query_may_begin_with_a_minus(search: Any) -> None:
    found = rows(search('-"keeps thirty" nightly snapshots', "--mode", "keyword"))
    assert not found


def test_what_is_missing_is_said_beside_the_rows(search: Any) -> None:
    result = search("lease")
    assert rows(result)
    assert "degraded: " in result.stderr
    assert "degraded" not in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lease", "-c", "colour"), "no column 'colour'"),
        (("lease", "-n", "1000"), "limit"),
        (("",), "the query is empty"),
        (("lease", "--meta", "colour"), "expected KEY=VALUE"),
    ],
)
def test_a_mistake_is_one_line(search: Any, words: tuple[str, ...], said: str) -> None:
    result = search(*words)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert said in result.output


def test_without_a_key_it_says_where_one_may_come_from(search: Any) -> None:
    result = search("lease", key=False)
    assert result.exit_code == 1
    assert "--key-file PATH" in result.output


def test_the_key_may_come_from_the_environment(
    search: Any, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    assert rows(search("lease deposit", "--mode", "keyword", key=False))


def test_a_database_without_a_vault_is_named(tmp_path: Any) -> None:
    plain = tmp_path / "plain.db"
    CliRunner().invoke(cli, ["create-database", str(plain)])
    result = CliRunner().invoke(cli, ["hybrid-search", str(plain), "lease"])
    assert result.exit_code == 1
    assert "plain.db" in result.output


def test_the_functions_take_like_through_query(
    search: Any, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    bread = rows(search("rye bread", "--mode", "keyword", "-c", "id"))[0]["id"]
    monkeypatch.delitem(sys.modules, "datasette", raising=False)  # where they are not registered
    monkeypatch.setattr(sqlite_utils_plugin, "_opened", {})
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    sql = "select json_extract(value, '$.title') as title from json_each(hybrid_search('', :o))"
    options = json.dumps({"like": bread, "limit": 1})
    result = CliRunner().invoke(cli, ["query", str(vault.path), sql, "-p", "o", options])
    assert rows(result) == [{"title": "Lease of the flat"}]


def test_first_words_stand_in_for_a_missing_title(search: Any, vault: Vault) -> None:
    result = vault.run("add", "Descale the kettle in spring.")
    assert result.exit_code == 0, result.output
    assert (
        rows(search("kettle", "--mode", "keyword"))[0]["title"] == "Descale the kettle in spring."
    )
