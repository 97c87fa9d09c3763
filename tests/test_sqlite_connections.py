"""Connections keep their promises, and sqlite-vec reaches only those that asked for it."""

from __future__ import annotations

import sqlite3 as standard
import subprocess
import sys
import threading

import pytest

from memory_store import sqlite
from memory_store.sqlite import ExtensionUnavailable, connect, connect_with_vec, load_vec, sqlite3


def vec_connection():
    try:
        return connect_with_vec()
    except ExtensionUnavailable as error:
        pytest.skip(f"sqlite-vec cannot be loaded: {error}")


def has_vec(connection) -> bool:
    try:
        connection.execute("select vec_version()")
    except (sqlite3.OperationalError, standard.OperationalError):
        return False
    return True


def test_a_connection_checks_references_distrusts_schemas_and_erases_what_is_deleted(tmp_path):
    for connection in (connect(tmp_path / "notes.db"), connect(":memory:")):
        values = [
            connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("foreign_keys", "trusted_schema", "secure_delete")
        ]
        assert values == [1, 0, 1]
        assert connection.execute("pragma busy_timeout").fetchone()[0] >= 5_000
        connection.close()


def test_deleted_text_leaves_no_trace_in_the_file(tmp_path):
    path = tmp_path / "notes.db"
    connection = connect(path)
    connection.execute("create table notes (text)")
    connection.execute("insert into notes values ('a canary in a cell')")
    assert b"canary" in path.read_bytes()
    connection.execute("delete from notes")
    connection.close()
    assert b"canary" not in path.read_bytes()


def test_a_hostile_schema_cannot_call_functions(tmp_path):
    path = tmp_path / "hostile.db"
    hostile = standard.connect(path)
    hostile.execute("create table notes (text)")
    hostile.execute("insert into notes values ('x')")
    hostile.execute("create view trap as select spy(text) from notes")
    hostile.commit()
    hostile.close()
    calls = []
    connection = connect(path)
    connection.create_function("spy", 1, calls.append)
    with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
        connection.execute("select * from trap").fetchall()
    connection.close()
    assert calls == []


def test_a_read_only_connection_creates_and_changes_nothing(tmp_path):
    path = tmp_path / "notes.db"
    with pytest.raises(sqlite3.OperationalError):
        connect(path, read_only=True)
    assert not path.exists()
    connect(path).execute("create table notes (text)")
    connection = connect(path, read_only=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("insert into notes values ('x')")
    connection.close()


@pytest.mark.parametrize(
    "name", ["a b.db", "what?.db", "100%41.db", "#1.db", "grün.db", "x&mode=ro"]
)
def test_odd_characters_in_a_path_are_part_of_the_name(tmp_path, name):
    connection = connect(tmp_path / name)
    connection.execute("create table notes (text)")
    connection.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_module_is_the_one_datasette_chooses():
    code = "from datasette.utils.sqlite import sqlite3 as theirs; from memory_store.sqlite import "
    check = subprocess.run(
        [sys.executable, "-c", code + "sqlite3; assert theirs is sqlite3"], check=False
    )
    assert check.returncode == 0


def test_sqlite_vec_answers_on_the_connection_that_asked():
    connection, how = vec_connection()
    assert how in ("load_extension", "auto_extension")
    assert has_vec(connection)
    connection.execute("create virtual table v using vec0(embedding float[2])")
    connection.execute("insert into v (rowid, embedding) values (1, '[1, 0]'), (2, '[0, 1]')")
    sql = "select rowid from v where embedding match '[0.1, 1]' and k = 1"
    assert connection.execute(sql).fetchall() == [(2,)]
    connection.close()


def test_sqlite_vec_reaches_no_other_connection():
    earlier = standard.connect(":memory:")
    connection, _ = vec_connection()
    later = standard.connect(":memory:")
    assert has_vec(connection)
    assert not has_vec(earlier)
    assert not has_vec(later)
    for each in (earlier, connection, later):
        each.close()


def test_many_threads_may_load_sqlite_vec_at_once():
    vec_connection()[0].close()
    answers: list[bool] = []

    def load() -> None:
        for _ in range(20):
            connection, _ = connect_with_vec()
            answers.append(has_vec(connection))
            connection.close()

    threads = [threading.Thread(target=load) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 120
    assert not has_vec(standard.connect(":memory:"))


def test_loading_into_an_open_connection_works_or_says_why_not():
    connection = connect(":memory:")
    if hasattr(connection, "enable_load_extension"):
        assert load_vec(connection) == "load_extension"
        assert has_vec(connection)
    else:
        with pytest.raises(ExtensionUnavailable, match="without extension loading"):
            load_vec(connection)
    connection.close()


def test_a_missing_sqlite_vec_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(ExtensionUnavailable, match="not installed"):
        connect_with_vec()


def test_another_copy_of_sqlite_is_never_touched(monkeypatch):
    """Handing one library's connection to another crashes; a version that differs gives it away."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        pytest.skip("this Python loads extensions itself and never goes through ctypes")
    monkeypatch.setattr(sqlite.sqlite3, "sqlite_version", "3.0.0")
    with pytest.raises(ExtensionUnavailable, match="another SQLite"):
        connect_with_vec()
