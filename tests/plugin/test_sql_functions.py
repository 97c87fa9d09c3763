"""The SQL functions, on a plain connection and in Datasette."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from memory_store.access import ALL_GRANTS, KEY_HOLDER, Grants
from memory_store.actions.code_names import Repository
from memory_store.errors import NotAVaultError
from memory_store.index.outlines import OUTLINES
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

from .conftest import Filled, Served, fill

ONE = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def ask(
    make_store: Callable[..., MemoryStore], model: object
) -> Callable[..., list[tuple[Any, ...]]]:
    """Runs SQL on a connection to a filled vault, as an actor with the given grants."""
    store = make_store()
    fill(store)

    def run(sql: str, *parameters: Any, grants: Grants = ALL_GRANTS) -> list[tuple[Any, ...]]:
        def resolve(named: str | None) -> StoreAndGrants:
            if named not in (None, "notes"):
                raise NotAVaultError(f"{named} holds no vault")
            return StoreAndGrants(store, grants)

        connection = sqlite3.connect(store.path)
        try:
            register(connection, resolve)
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()

    return run


@pytest.mark.in_a_file
def test_results_join_with_the_vaults_own_tables(ask: Any) -> None:
    rows = ask(
        """
        select m.type, found.value ->> 'title'
        from json_each(hybrid_search('tomatoes', 1)) as found
        join memories as m on m.id = found.value ->> 'id'
        """
    )
    assert rows == [("note", "Watering the tomatoes")]


@pytest.mark.in_a_file
@pytest.mark.parametrize("limit", [1, "1", '{"limit": 1}', '{"limit": "1", "database": "notes"}'])
def test_the_limit_may_be_a_number_its_digits_or_an_option(ask: Any, limit: Any) -> None:
    ((answer,),) = ask("select hybrid_search('tomatoes', ?)", limit)
    assert [row["id"] for row in json.loads(answer)] == [ONE]


@pytest.mark.in_a_file
@pytest.mark.parametrize(
    ("second", "culprit"),
    [
        ("{", "options"),
        ("[1]", "options"),
        (b"x", "options"),
        (99, "limit"),
        ('{"lmit": 3}', "lmit"),
        ('{"database": "elsewhere"}', "elsewhere"),
        ('{"database": 3}', "database"),
    ],
)
def test_a_refusal_says_what_is_wrong(ask: Any, second: Any, culprit: str) -> None:
    ((answer,),) = ask("select hybrid_search('tomatoes', ?)", second)
    (refusal,) = json.loads(answer)
    assert refusal["ok"] is False
    assert culprit in refusal["error"]


@pytest.mark.in_a_file
def test_null_asks_nothing(ask: Any) -> None:
    assert ask("select hybrid_search(null), memory_text(null), topic_hash(null)") == [
        (None, None, None)
    ]


@pytest.mark.in_a_file
def test_topic_hash_finds_the_memories_of_a_topic_without_opening_one(ask: Any) -> None:
    rows = ask("select memory from memory_topics where lower(hex(topic)) = topic_hash('#Garden')")
    assert rows == [(ONE,)]


@pytest.mark.in_a_file
def test_memory_text_is_the_whole_text_or_null(ask: Any) -> None:
    ((text, missing),) = ask("select memory_text(?), memory_text('nothing-like-it')", ONE)
    assert "every second day" in text
    assert missing is None


@pytest.mark.in_a_file
def test_reading_alone_does_not_search_and_searching_alone_does_not_read(ask: Any) -> None:
    sql = "select hybrid_search('tomatoes', 1), memory_text(?), topic_hash('garden') is null"
    ((found, text, hidden),) = ask(sql, ONE, grants=Grants(search=EVERYTHING))
    assert json.loads(found)[0]["id"] == ONE
    assert json.loads(found)[0]["title"] is None
    assert (text, hidden) == (None, 0)
    ((found, text, hidden),) = ask(sql, ONE, grants=Grants(decrypt=EVERYTHING))
    assert (found, hidden) == ("[]", 1)
    assert "every second day" in text


@pytest.mark.in_a_file
def test_rrf_is_the_sum_of_weighted_reciprocal_ranks(ask: Any) -> None:
    rows = ask(
        """
        select name, rrf(rank), rrf(rank, 10), rrf(rank, 60, weight)
        from (select 'a' as name, 1 as rank, 2.0 as weight union all select 'a', null, 1.0
              union all select 'a', 3, 1.0 union all select 'b', null, 1.0)
        group by name order by name
        """
    )
    assert rows[0] == (
        "a",
        pytest.approx(1 / 61 + 1 / 63),
        pytest.approx(1 / 11 + 1 / 13),
        pytest.approx(2 / 61 + 1 / 63),
    )
    assert rows[1] == ("b", None, None, None)


async def test_gnos_worked_example(served: Served) -> None:
    """0.0323 for first and third place, 0.0164 for one first place (GNO's documentation)."""
    rows = await served.sql(
        "select round(rrf(r), 4) both from (select 1 as r union all select 3) "
        "union all select round(rrf(1), 4)"
    )
    assert [row["both"] for row in rows] == [0.0323, 0.0164]


@pytest.mark.in_a_file
async def test_a_search_in_sql_leaves_the_page_a_page(served: Served, filled: Filled) -> None:
    """Whatever is asked, the table page answers 200, where there may be one at all."""
    with sqlite3.connect(filled.path) as connection:
        connection.execute("create table marks as select id from memories")
    where = "id in (select value ->> 'id' from json_each(hybrid_search('tomatoes', 1)))"
    for actor, rows in (("bob", 1), (None, 0)):
        for table in ("memories", "marks"):
            response = await served.by(actor).get(
                f"/notes/{table}.json", params={"_where": where, "_shape": "array"}
            )
            if (actor, table) == (None, "memories"):
                assert response.status_code == 403
                continue
            assert response.status_code == 200
            assert len(response.json()) == rows


@pytest.mark.in_a_file
def test_only_who_holds_the_key_chooses_the_model_a_query_is_sent_to(
    ask: Any, language_models: Any
) -> None:
    sql = """select hybrid_explain('my vehicle', '{"expander": "good"}')"""
    ((refused,),) = ask(sql)
    assert json.loads(refused)[0]["status"] == 403
    ((answer,),) = ask(sql, grants=KEY_HOLDER)
    reported = next(stage for stage in json.loads(answer) if stage["stage"] == "expand")
    assert reported["model"] == "good"
    assert len(language_models.given("good")) == 1


@pytest.mark.in_a_file
def test_tables_of_source_code_read_and_make_only_what_is_asked_for(
    make_store: Callable[..., MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted: the outlines that are decoded, and the rows that are made."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        own = getattr(owner, name)

        def counted(*arguments: Any) -> Any:
            counts[name] += 1
            return own(*arguments)

        monkeypatch.setattr(owner, name, counted)

    count(OUTLINES, "record")
    count(Repository, "symbol")
    store = make_store()
    text = "class Box{n}:\n    def lid(self):\n        return Box{near}()\n"
    for collection in ("left", "right"):
        store.add_many(
            [
                MemoryDraft(
                    text.format(n=n, near=n // 20),
                    type="code",
                    collection=collection,
                    ref=f"b{n}.py",
                )
                for n in range(40)
            ],
            embed=False,
        )

    def ask(sql: str) -> tuple[int, int, int]:
        """How many rows there are, and both counts."""
        counts.clear()
        connection = sqlite3.connect(store.path)
        register(connection, lambda named: StoreAndGrants(store, KEY_HOLDER))
        try:
            return len(connection.execute(sql).fetchall()), counts["record"], counts["symbol"]
        finally:
            connection.close()

    assert ask("select * from code_symbols where name = 'Box7'") == (2, 2, 2)
    assert ask("select * from code_symbols('Box7') where collection = 'left'") == (1, 2, 1)
    assert ask("select * from code_references where name = 'Box1'") == (40, 42, 0)
    assert ask("select * from code_symbols limit 3") == (3, 80, 3)
    assert ask("select name from code_symbols limit 5 offset 100") == (5, 0, 105)
    assert ask("select * from code_symbols where file = 'b7.py' and collection = 'left'")[1:] == (
        (0, 2)
    )
    assert ask("select * from code_symbols where kind = 'class' and language = 'none'")[2] == 0
    assert ask('select * from code_symbols order by "references" desc limit 2') == (2, 0, 160)
    assert ask("select * from code_references where file = 'b7.py'") == (2, 0, 0)
    rows = "select b.name, r.line from code_symbols b join code_references r on r.name = b.name"
    assert ask(f"{rows} where b.file = 'b0.py' and b.collection = 'left'") == (40, 0, 2)


@pytest.mark.in_a_file
def test_symbols_of_source_code_and_their_uses_are_tables_and_json_for_those_who_may_read(
    make_store: Callable[..., MemoryStore],
) -> None:
    store = make_store()
    text = "class Box:\n    pass\n\n\ndef made():\n    return Box()\n"
    store.add_many([MemoryDraft(text, type="code", ref="boxes.py")], embed=False)

    def ask(sql: str, grants: Grants = ALL_GRANTS) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(store.path)
        register(connection, lambda named: StoreAndGrants(store, grants))
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    defined = 'select file, name, line, "references" from code_symbols() order by line desc'
    assert ask(defined) == [("boxes.py", "made", 5, 0), ("boxes.py", "Box", 1, 1)]
    used = """
        select used.line, box.kind, used.name from code_symbols('Box') as box
        join code_references(box.name) as used on used.id = box.id where used.line > 5
    """
    assert ask(used) == [(6, "class", "Box")]
    assert ask("select line from code_references where name = 'Box'") == [(6,)]
    for function in ("code_symbols", "code_references"):
        ((array,),) = ask(f"select {function}()")
        names = ", ".join(f'"{name}"' for name in json.loads(array)[0])
        rows = [tuple(row.values()) for row in json.loads(array)]
        assert ask(f"select * from {function}()") == ask(f"select {names} from {function}") == rows
        assert ask(f"select * from {function}('nowhere')") == []
        assert ask(f"select {function}('nowhere')") == [("[]",)]
        both = f"select (select count(*) from {function}()), {function}()"
        assert ask(both, Grants(search=EVERYTHING)) == ask(both, Grants()) == [(0, None)]
    store.lock()
    assert ask("select (select count(*) from code_symbols()), code_symbols()") == [(0, None)]
