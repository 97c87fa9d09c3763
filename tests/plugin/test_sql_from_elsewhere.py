"""The SQL functions where another person's database calls them, or is asked for by name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from datasette.app import Datasette
from datasette.database import Database

from datasette_hybrid.serving import is_writable
from memory_store.sqlite import sqlite3

from .conftest import ALLOW, ONE, Filled, Serve

NEXT = hasattr(Datasette, "allowed")
TRAP = """
    create table t (id integer primary key, x text);
    create table leak (y text);
    create trigger tr after insert on t begin
        insert into leak select hybrid_search('tomatoes', '{"database": "notes"}');
        insert into leak select hybrid_explain('tomatoes', '{"database": "notes"}');
    end;
"""


async def test_a_trigger_elsewhere_copies_nothing(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.db"
    database = sqlite3.connect(trap)
    database.executescript(TRAP)
    database.close()
    options = filled.options(allow=ALLOW)
    write = {"sql": "insert into t (x) values ('a')", "write": True}
    settings = {"num_sql_threads": 0}  # so that a write runs in the request's own context
    queries = {"trap": {"queries": {"w": write}}}
    served = await serve(filled.path, trap, options=options, settings=settings, databases=queries)
    root = served.by("root")
    if NEXT:
        served.datasette.root_enabled = True
        row = {"row": {"x": "a"}}
        done = await served.datasette.client.post(
            "/trap/t/-/insert", json=row, cookies=root.cookies
        )
        assert done.status_code == 201
    else:
        assert (await root.submit("/trap/w", {})).status_code == 302
    public = await served.by(None).get("/trap/leak.json?_shape=array")
    assert [row["y"] for row in public.json()] == ["[]", "[]"]
    assert ONE in str(await root.sql("select hybrid_search('tomatoes') a"))


async def test_connections_that_write_are_distinguished_from_those_that_read(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path)
    shared = Database(served.datasette, memory_name="shared")
    for database in (served.datasette.get_database("notes"), shared):
        reading, writing = database.connect(), database.connect(write=True)
        assert not is_writable(reading)
        assert is_writable(writing)
        writing.execute("begin immediate")
        assert is_writable(database.connect(write=True))
        for connection in (reading, writing):
            connection.close()
    unchanged = sqlite3.connect(filled.path)
    assert unchanged.execute("pragma user_version").fetchone()[0] != 0
    unchanged.close()


async def test_no_one_learns_which_hidden_databases_hold_vaults(
    filled: Filled, serve: Serve
) -> None:
    hidden = filled.path.with_name("payroll.db")
    shutil.copy(filled.path, hidden)
    settings: dict[str, Any] = {"key-file": str(filled.key_file)}
    options = {"notes": {**settings, "allow": ALLOW}, "payroll": settings}
    served = await serve(filled.path, hidden, options=options)
    sql = "select hybrid_search('tomatoes', json_object('database', :d)) r, memory_text(:d) t"
    answers = [await served.by("bob").sql(sql, d=name) for name in ("payroll", "nowhere")]
    assert answers[0] == answers[1] == [{"r": "[]", "t": None}]
