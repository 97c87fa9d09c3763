"""Commands of Datasette's own that answer nobody: they see a vault's file as SQLite does."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

import pytest
from own_process import ended

from datasette_hybrid.serving import wrapper
from memory_store.sqlite import sqlite3

from .conftest import Filled, plain_datasette

COUNTED = ("memories", "memory_topics", "vault_settings", "vault_slots")


def test_inspect_counts_the_rows_of_a_vault(filled: Filled) -> None:
    command = [sys.executable, "-m", "datasette", "inspect", str(filled.path)]
    done = ended(*command, check=True, timeout=120)
    tables = json.loads(done.stdout)["notes"]["tables"]
    with closing(sqlite3.connect(filled.path)) as file:
        there = {
            name: {"count": file.execute(f"select count(*) from {name}").fetchone()[0]}
            for name in COUNTED
        }
    assert {name: tables[name] for name in COUNTED} == there
    assert "ERROR" not in done.stderr


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers nothing."""


@pytest.mark.parametrize("begun", ["started", "asked"])
async def test_what_was_read_before_anybody_could_ask_is_closed_afterwards(
    filled: Filled, begun: str
) -> None:
    datasette = plain_datasette((filled.path,), {})
    connection = datasette.get_database("notes").connect()
    sql = "select count(*) from vault_settings"
    with closing(connection):
        assert connection.execute(sql).fetchone()[0]
        if begun == "started":
            await datasette.invoke_startup()
        else:
            await wrapper(datasette)(nothing)({"type": "lifespan"}, None, None)
        with pytest.raises(sqlite3.OperationalError, match="vault_settings belongs to a vault"):
            connection.execute(sql).fetchone()
