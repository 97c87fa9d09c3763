"""``sqlite-utils``: searching a vault as one searches a table, and from SQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from own_process import python
from sqlite_utils.cli import cli
from typing_commands import Vault

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
    found = rows(search("bread lease", "-c", "title", "-c", "type", "--type", "fact", "-n", "3"))
    assert found == [{"title": "Lease of the flat", "type": "fact"}]


def test_every_output_of_sqlite_utils_is_there(search: Any) -> None:
    words = ("lease", "--mode", "keyword", "-n", "1", "-c", "rank", "-c", "title")
    assert search(*words, "--nl").stdout == '{"rank": 1, "title": "Lease of the flat"}\n'
    assert json.loads(search(*words, "--arrays").stdout) == [[1, "Lease of the flat"]]
    assert search(*words, "--csv", "--no-headers").stdout == "1,Lease of the flat\n"
    assert search(*words, "--tsv").stdout == "rank\ttitle\n1\tLease of the flat\n"
    assert "| Lease of the flat |" in search(*words, "--fmt", "github").stdout
    unfolded = rows(search(*words, "-c", "topics", "--json-cols"))[0]
    assert unfolded["topics"] == ["home", "contracts"]
    head = search(*words[:3], "--table").stdout.splitlines()[0]
    assert tuple(head.split()) == TABLE_COLUMNS


def test_memories_like_one_need_no_query(search: Any) -> None:
    bread = rows(search("rye bread", "--mode", "keyword", "-c", "id"))[0]["id"]
    found = rows(search("--like", bread[:8], "-c", "title", "-n", "1"))
    assert found == [{"title": "Lease of the flat"}]  # both are about home


def test_what_is_missing_is_said_beside_the_rows(search: Any) -> None:
    result = search("lease")
    assert rows(result)
    assert ("degraded: " in result.stderr, "degraded" in result.stdout) == (True, False)
    assert not rows(search('-"keeps thirty" nightly snapshots', "--mode", "keyword"))


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


def test_the_key_may_come_from_the_environment(
    search: Any, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = search("lease", key=False)
    assert (without.exit_code, "--key-file PATH" in without.output) == (1, True)
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    assert rows(search("lease deposit", "--mode", "keyword", key=False))
    plain = tmp_path / "plain.db"
    CliRunner().invoke(cli, ["create-database", str(plain)])
    none = CliRunner().invoke(cli, ["hybrid-search", str(plain), "lease"])
    assert (none.exit_code, "plain.db" in none.output) == (1, True)


def test_the_functions_take_like_through_query(
    search: Any, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    bread = rows(search("rye bread", "--mode", "keyword", "-c", "id"))[0]["id"]
    monkeypatch.delitem(sys.modules, "datasette", raising=False)  # where they are not registered
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(vault.key_file))
    sql = "select json_extract(value, '$.title') as title from json_each(hybrid_search('', :o))"
    options = json.dumps({"like": bread, "limit": 1})
    result = CliRunner().invoke(cli, ["query", str(vault.path), sql, "-p", "o", options])
    assert rows(result) == [{"title": "Lease of the flat"}]


SEARCH = """
    select json_extract(value, '$.title') as title
    from json_each(hybrid_search('lease deposit', '{"mode": "keyword"}'))
"""


def query(database: Path, sql: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``sqlite-utils query DATABASE SQL`` in a process of its own, as users run it."""
    return python(
        "-m", "sqlite_utils", "query", str(database), sql, env={**os.environ, **environment}
    )


def test_the_vault_is_searched_from_sql(vault: Vault) -> None:
    result = query(vault.path, SEARCH, MEMORY_STORE_KEY_FILE=str(vault.key_file))
    assert result.returncode == 0, result.stderr
    assert {"title": "Lease of the flat"} in json.loads(result.stdout)


def test_text_is_returned_to_a_caller_who_holds_the_key(vault: Vault) -> None:
    memory = vault.json("list", "--type", "fact")[0]
    sql = f"select memory_text('{memory['id']}') as text"
    result = query(vault.path, sql, MEMORY_STORE_KEY_FILE=str(vault.key_file))
    assert json.loads(result.stdout) == [{"text": memory["text"]}]


def test_without_a_key_there_are_no_functions(vault: Vault) -> None:
    result = query(vault.path, SEARCH)
    assert result.returncode != 0
    assert "hybrid_search" in result.stderr


INSIDE_DATASETTE = """
import sqlite3, sys
{before}
import sqlite_utils
connection = sqlite3.connect(sys.argv[1])
sqlite_utils.Database(connection)
names = [name for (name,) in connection.execute("select name from pragma_function_list")]
print("hybrid_search" in names)
"""


def test_the_functions_stay_out_of_datasette(vault: Vault) -> None:
    shown = {
        before: python(
            "-c",
            INSIDE_DATASETTE.format(before=before),
            str(vault.path),
            check=True,
            env={**os.environ, "MEMORY_STORE_KEY_FILE": str(vault.key_file)},
        ).stdout.strip()
        for before in ("pass", "import datasette.app")
    }
    assert shown == {"pass": "True", "import datasette.app": "False"}


def test_a_plain_database_is_no_worse_for_the_plugin(tmp_path: Path, vault: Vault) -> None:
    result = query(
        tmp_path / "plain.db", "select 1 as one", MEMORY_STORE_KEY_FILE=str(vault.key_file)
    )
    assert json.loads(result.stdout) == [{"one": 1}]
