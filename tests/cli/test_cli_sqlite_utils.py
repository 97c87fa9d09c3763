"""``sqlite-utils query notes.db`` with the functions of the vault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from typing_commands import Vault

SEARCH = """
    select json_extract(value, '$.title') as title
    from json_each(hybrid_search('lease deposit', '{"mode": "keyword"}'))
"""


def query(database: Path, sql: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``sqlite-utils query DATABASE SQL`` in a process of its own, as users run it."""
    return subprocess.run(
        [sys.executable, "-m", "sqlite_utils", "query", str(database), sql],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_vault_is_searched_from_sql(vault: Vault) -> None:
    result = query(vault.path, SEARCH, MEMORY_STORE_KEY_FILE=str(vault.key_file))
    assert result.returncode == 0, result.stderr
    assert {"title": "Lease of the flat"} in json.loads(result.stdout)


def test_text_is_returned_to_whoever_holds_the_key(vault: Vault) -> None:
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
        before: subprocess.run(
            [sys.executable, "-c", INSIDE_DATASETTE.format(before=before), str(vault.path)],
            capture_output=True,
            text=True,
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
