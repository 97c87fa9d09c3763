"""``select * from hybrid_search(…)``: as a table of a vault, in Datasette and in sqlite-utils."""

from __future__ import annotations

import csv
import gc
import io
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from own_process import python

from memory_store.access import ALL_GRANTS, NO_GRANTS, Grants
from memory_store.errors import NotAVaultError
from memory_store.records import RESULT_COLUMNS, SearchResponse
from memory_store.scopes import EVERYTHING, Scope
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, fill

ONE = "00000000-0000-4000-8000-000000000001"
TOMATOES = "select * from hybrid_search('tomatoes', 1)"

pytestmark = pytest.mark.in_a_file  # a connection of the test's own


@pytest.fixture
def store(make_store: Callable[..., MemoryStore], model: object) -> MemoryStore:
    store = make_store()
    fill(store)
    return store


@pytest.fixture
def ask(store: MemoryStore) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Runs SQL on a connection to the vault, as an actor with the given grants."""
    grants = [ALL_GRANTS]

    def resolve(named: str | None) -> StoreAndGrants:
        if named not in (None, "notes"):
            raise NotAVaultError(f"{named} holds no vault")
        return StoreAndGrants(store, grants[0])

    connection = sqlite3.connect(store.path)
    connection.row_factory = sqlite3.Row
    register(connection, resolve)

    def run(sql: str, *parameters: Any, by: Grants = ALL_GRANTS) -> list[dict[str, Any]]:
        grants[0] = by
        return [dict(row) for row in connection.execute(sql, parameters)]

    yield run
    connection.close()


def test_the_table_holds_what_the_array_holds(ask: Any) -> None:
    (row,) = ask(TOMATOES)
    ((array,),) = (one.values() for one in ask("select hybrid_search('tomatoes', 1)"))
    (result,) = json.loads(array)
    assert tuple(row) == RESULT_COLUMNS
    assert json.loads(row["topics"]) == ["garden", "water"]
    assert {**row, "topics": ["garden", "water"]} == {name: result[name] for name in RESULT_COLUMNS}


@pytest.mark.parametrize("limit", [1, "1", '{"limit": 1}', '{"limit": "1", "database": "notes"}'])
def test_the_limit_may_be_a_number_its_digits_or_an_option(ask: Any, limit: Any) -> None:
    assert [row["id"] for row in ask("select id from hybrid_search('tomatoes', ?)", limit)] == [ONE]


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ("{", "a limit or a JSON object"),
        (99, "limit"),
        ('{"lmit": 3}', "lmit: no such search option"),
        ('{"database": "elsewhere"}', "elsewhere holds no vault"),
        ('{"collection": "elsewhere"}', "elsewhere"),
    ],
)
def test_a_refusal_is_an_error_in_the_stores_own_words(
    ask: Any, options: Any, culprit: str
) -> None:
    with pytest.raises(sqlite3.OperationalError, match=culprit) as refused:
        ask("select * from hybrid_search('tomatoes', ?)", options)
    (answer,) = ask("select hybrid_search('tomatoes', ?) as array", options)
    assert json.loads(answer["array"])[0]["error"] == str(refused.value)


@pytest.mark.parametrize("query", [None, "", " \n"])
def test_a_form_no_one_has_filled_in_has_no_rows(ask: Any, query: str | None) -> None:
    assert ask("select * from hybrid_search(?)", query) == []


def test_no_one_learns_what_is_wrong_without_the_grant(ask: Any) -> None:
    assert ask("select * from hybrid_search('tomatoes', 99)", by=NO_GRANTS) == []
    assert ask(TOMATOES, by=Grants(decrypt=EVERYTHING)) == []


def test_a_locked_vault_has_no_rows(ask: Any, store: MemoryStore) -> None:
    store.close()
    assert ask(TOMATOES) == []


def test_without_decrypt_the_text_is_null(ask: Any) -> None:
    (row,) = ask(TOMATOES, by=Grants(search=EVERYTHING))
    assert row["id"] == ONE
    assert row["score"] > 0
    assert row["type"] == "note"
    withheld = ("ref", "collection", "topics", "title", "preview", "complete")
    assert [row[name] for name in withheld] == [None] * 6


def test_text_is_null_row_by_row(ask: Any, store: MemoryStore) -> None:
    """An actor who may search everywhere and read in one collection."""
    ours = store.collections.create("ours")
    store.add("Tomatoes of ours.", collection="ours")
    grants = Grants(search=EVERYTHING, decrypt=Scope.of([ours.id]))
    rows = ask("select * from hybrid_search('tomatoes', 10)", by=grants)
    shown = {row["preview"] is not None: row for row in rows}
    assert set(shown) == {True, False}
    assert "of ours" in shown[True]["preview"]


def test_questions_in_a_table_of_ones_own(ask: Any) -> None:
    rows = ask(
        """
        with questions (text) as (values ('tomatoes'), ('postgres'), (null))
        select q.text, found.title, found.rank
        from questions as q left join hybrid_search(q.text, 1) as found on true
        """
    )
    assert [row["title"] for row in rows] == ["Watering the tomatoes", "The database", None]


def test_the_vaults_own_tables_join(ask: Any) -> None:
    rows = ask(
        """
        select memories.type, count(*) as found, min(rank) as best
        from memories join hybrid_search('tomatoes') as found on found.id = memories.id
        where found.rank <= ? group by memories.type order by best
        """,
        "1",
    )
    assert rows == [{"type": "note", "found": 1, "best": 1}]


def test_topics_are_an_array(ask: Any) -> None:
    rows = ask("select value from hybrid_search('tomatoes', 1), json_each(topics)")
    assert [row["value"] for row in rows] == ["garden", "water"]


@pytest.mark.parametrize("sql", [TOMATOES, "select hybrid_search('tomatoes', 1)"])
def test_garbage_that_holds_a_statement_waits_for_the_search(store: MemoryStore, sql: str) -> None:
    """Freed by the thread that searches, it would wait for the statement that waits for it."""
    thresholds = gc.get_threshold()

    def run(search: Callable[[], SearchResponse]) -> SearchResponse:
        gc.set_threshold(100_000)
        cursor = connection.execute("select id from memories")
        left = [cursor]
        left.append(left)
        next(cursor)
        del cursor, left
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(collecting, search).result(timeout=300)

    def collecting(search: Callable[[], SearchResponse]) -> SearchResponse:
        gc.set_threshold(1, 1, 1)
        assert len([[] for _ in range(100)]) == 100
        return search()

    connection = sqlite3.connect(store.path, check_same_thread=False)
    register(connection, lambda _: StoreAndGrants(store, ALL_GRANTS, None, run))
    try:
        assert len(connection.execute(sql).fetchall()) == 1
        assert gc.isenabled()
    finally:
        gc.set_threshold(*thresholds)
    connection.close()


async def test_datasette_shows_the_table_as_json_and_csv(served: Served) -> None:
    sql = "select id, title, rank from hybrid_search(:query, :limit) order by rank"
    rows = await served.by("bob").sql(sql, query="tomatoes", limit="1")
    assert rows == [{"id": ONE, "title": "Watering the tomatoes", "rank": 1}]
    response = await query(served.by("bob"), TOMATOES, "csv", _size="max")
    (row,) = csv.DictReader(io.StringIO(response.text))
    assert row["title"] == "Watering the tomatoes"
    assert (await query(served.by("bob"), TOMATOES, "", _size="1")).status_code == 200


async def query(served: Served, sql: str, extension: str, **parameters: str) -> Any:
    """A page of Datasette's own for a query; 0.65 redirects nowhere, 1.0 to ``/-/query``."""
    dot = f".{extension}" if extension else ""
    return await served.datasette.client.get(
        f"/{served.database}{dot}",
        params={"sql": sql, **parameters},
        cookies=served.cookies,
        follow_redirects=True,
    )


@pytest.mark.parametrize("extension", ["", "json", "csv"])
async def test_a_mistake_is_shown_in_the_stores_words(
    served: Served, capsys: pytest.CaptureFixture[str], extension: str
) -> None:
    sql = "select * from hybrid_search('tomatoes', 99)"
    response = await query(served.by("bob"), sql, extension)
    usual = await query(served.by("bob"), "select * from nowhere", extension)
    assert response.status_code == usual.status_code  # CSV, and 1.0's page, are never errors
    assert "limit: must be" in response.text or "nowhere" not in usual.text
    assert "Traceback" not in capsys.readouterr().err
    assert (await query(served.by(None), sql, extension)).status_code == 200
    if extension == "json":
        assert response.status_code == 400
        assert response.json()["error"].startswith("limit: must be")


async def test_who_may_not_gets_no_rows_and_no_text(served: Served) -> None:
    assert await served.by(None).sql(TOMATOES) == []
    (row,) = await served.by("alice").sql(TOMATOES)
    assert (row["id"], row["title"], row["preview"]) == (ONE, None, None)
    (row,) = await served.by("bob").sql(TOMATOES)
    assert row["title"] == "Watering the tomatoes"


async def test_a_statement_that_takes_too_long_is_interrupted(filled: Filled, serve: Serve) -> None:
    settings = {"key-file": str(filled.key_file), "allow": ALLOW}
    limits = {"sql_time_limit_ms": 500}
    served = await serve(filled.path, options={"notes": settings}, settings=limits)
    endless = """
        with recursive n (i) as (select 1 union all select i + 1 from n)
        select count(*) from n, hybrid_search('tomatoes') as found where i < 0
    """
    response = await query(served.by("bob"), endless, "json")
    assert response.status_code == 400
    assert "interrupted" in response.text.lower() or "time limit" in response.text.lower()
    assert len(await served.by("bob").sql("select 1 from hybrid_search('tomatoes', 1)")) == 1


async def test_the_configuration_may_leave_the_table_out(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW, table_function="off"))
    response = await query(served.by("bob"), TOMATOES, "json")
    assert response.status_code == 400
    assert "no such table: hybrid_search" in response.text
    assert len(await served.by("bob").sql("select hybrid_search('tomatoes', 1)")) == 1


def test_sqlite_utils_selects_from_it(filled: Filled) -> None:
    done = python(
        "-m", "sqlite_utils", "query", str(filled.path), TOMATOES, env=environment(filled)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["title"] == "Watering the tomatoes"


def test_the_process_ends_well_with_everything_open(filled: Filled) -> None:
    """The vault, connections, a running statement and its rows, at the end of the interpreter."""
    script = f"""
import sqlite_utils, sys
open_ones = []
for number in range(5):
    database = sqlite_utils.Database({str(filled.path)!r})
    cursor = database.execute("select id, title from hybrid_search('tomatoes')")
    assert next(cursor)[1]
    open_ones.append(cursor)
"""
    done = python("-X", "dev", "-W", "ignore", "-c", script, env=environment(filled))
    assert (done.returncode, done.stderr) == (0, "")


def environment(filled: Filled) -> dict[str, str]:
    """The variables of a shell in which the vault's key is named."""
    return {**os.environ, "MEMORY_STORE_KEY_FILE": str(filled.key_file)}


def test_first_words_stand_in_for_a_missing_title(store: MemoryStore, ask: Any) -> None:
    store.add("Descale the kettle. With citric acid, in spring.", collection="personal")
    sql = "select title from hybrid_search('kettle', 1)"
    assert ask(sql) == [{"title": "Descale the kettle. With citric acid, in spring."}]
    (scalar,) = ask("select hybrid_search('kettle', 1) ->> '$[0].title' as title")
    assert scalar["title"].startswith("Descale the kettle.")
    unread = Grants(search=EVERYTHING)
    assert [row["title"] for row in ask(sql, by=unread)] == [None]
