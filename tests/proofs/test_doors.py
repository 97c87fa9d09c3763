"""A caller who is granted nothing on a vault takes nothing of it home, by no door of Datasette.

A real server over a vault beside public tables, started as people do: with the file as it is, and
with ``-i`` (Datasette offers such files for download), both with ``--crossdb``. Beside our plugin
there is another one, which runs SQL for all and sets an authorizer of its own. The same doors
stay open for what is public, and for those who are granted something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from doors import IS_NEXT, LEAK, MEMORIES, PUBLIC, STRANGERS, TOLD, House, house, sql, table

FIRST = "limit 1"
HEAD = "select id, head, created from memories"
SLOTS = "select id, salt, commitment, wrapped, parameters, created from vault_slots"
COUNT = f"select {TOLD} || count(*) from memories"
MACHINERY = ("vault_slots", "vault_settings", "vault_collection_keys", "vault_segments")
OPEN_TO_SEARCHERS = ("memories", "memory_topics", "collections", "memory_bodies", "memory_sources")


def asked(address: str, statement: str, database: str = "notes") -> str:
    """An endpoint of the plugin beside ours."""
    return f"/-/{address}?{urlencode({'db': database, 'sql': statement})}"


def where(condition: str, extension: str = ".json") -> str:
    """A condition on the page of a public table."""
    return table("birds", extension, urlencode({"_where": condition, "_shape": "objects"}))


ROWS = {
    **{name: table(name, f"/{{{name}}}") for name in ("memories", "memory_bodies", "collections")},
    "vault_slots": table("vault_slots", "/{vault_slots}"),
    "vault_settings": table("vault_settings", "/settings"),
}
BLOBS = {
    "memories": "head",
    "memory_bodies": "body",
    "vault_slots": "wrapped",
    "vault_settings": "sealed",
}
DOORS = {
    **{
        f"table {name}{extension}": table(name, extension)
        for name in (*MACHINERY, *OPEN_TO_SEARCHERS, "VAULT_Slots", "Memories", "sqlite_stat1")
        for extension in ("", ".json", ".csv")
    },
    "table, streamed": table("memories", ".csv", "_stream=1"),
    "table, its shape": table("vault_slots", ".json", "_shape=arrayfirst&_col=wrapped"),
    "table, in columns": table("memories", ".json", "_col=head&_sort=created&_size=max"),
    "table, with everything": table("memories", ".json", "_extra=count,suggested_facets,_html"),
    "table, counted": table("memories", "/-/count"),
    "table, a fragment": table("memories", "/-/fragment"),
    "table, completed": table("memories", "/-/autocomplete", "q=0"),
    "table, its rows' facets": table("memories", ".json", "_facet=type&_facet=collection"),
    "table, facets of dates": table("memories", ".json", "_facet_date=created"),
    "table, facets of arrays": table("memories", ".json", "_facet_array=collection"),
    "table, filtered": table("memories", ".json", "created__gt=2000"),
    "table, searched": table("memories", ".json", "_search=heron"),
    "table, by our search": table("memories", "", "_hybrid=heron"),
    **{
        f"a row of {name}{extension}": address + extension
        for name, address in ROWS.items()
        for extension in ("", ".json")
    },
    **{
        f"a blob of {name}": f"{ROWS[name]}.blob?_blob_column={column}"
        for name, column in BLOBS.items()
    },
    "a view of the vault": table("stolen_view", ".json"),
    "a view of the vault, as a page": table("stolen_view"),
    "a view of the vault, as CSV": table("stolen_view", ".csv"),
    **{f"SQL of keys{end}": sql(SLOTS, extension=end) for end in (".json", ".csv", "")},
    **{f"SQL of rows{end}": sql(HEAD, extension=end) for end in (".json", ".csv", "")},
    "SQL, a blob": sql(SLOTS, extension=".blob", _blob_column="wrapped"),
    "SQL, arrays": sql(SLOTS, _shape="arrays"),
    "SQL, hex": sql("select hex(wrapped), quote(salt), lower(hex(commitment)) from vault_slots"),
    "SQL, counts": sql(COUNT),
    "SQL, counts of a column": sql(f"select {TOLD} || count(id) from vault_slots"),
    "SQL, existence": sql(f"select {TOLD} where exists (select 1 from memories)"),
    "SQL, rows without columns": sql(f"select {TOLD} from memories"),
    "SQL, row ids": sql(f"select {TOLD} || rowid from memories"),
    "SQL, joined": sql("select m.id, b.name from birds b join memories m on m.id = b.memory or 1"),
    "SQL, by another name": sql('select * from main."Vault_Slots" as x'),
    "SQL, in a common table": sql(
        "with t as materialized (select * from memories) select * from t"
    ),
    "SQL, united": sql("select name from birds union all select head from memories"),
    "SQL, through a view": sql("select * from stolen_view"),
    "SQL, sorted by": sql(f"select {TOLD} from birds order by (select head from memories {FIRST})"),
    "SQL, topic hashes": sql("select memory, hex(topic) from memory_topics"),
    "SQL, grouped": sql(f"select {TOLD} || count(*), topic from memory_topics group by 2"),
    "SQL, statistics": sql(f"select {TOLD} || stat from sqlite_stat1 where tbl like 'memor%'"),
    "SQL, pages": sql(f"select {TOLD} || ncell from dbstat where name = 'memories'"),
    "SQL, raw pages": sql("select hex(data) from sqlite_dbpage"),
    "SQL, statements": sql(f"select {TOLD} || sql from sqlite_stmt"),
    "SQL, explained": sql("explain query plan select * from memories"),
    "SQL, JSON": sql("select json_group_array(hex(head)) from memories"),
    "SQL, changes": sql("select * from vault_changes"),
    "SQL, words of a public index": sql("select * from birds_fts where birds_fts match 'heron'"),
    "SQL, of a function": sql("select hybrid_search('heron')"),
    "SQL, of a table function": sql(f"select {TOLD} || id from hybrid_search('heron')"),
    "SQL, of a text": sql("select memory_text(memory) from birds"),
    "SQL, of a topic": sql(f"select {TOLD} || topic_hash('garden')"),
    "labels": table("birds", ".json", "_labels=on&_shape=objects"),
    "the row of a bird": table("birds", "/1"),
    "the row of a bird, with its keys": table("birds", "/1.json", "_extras=foreign_key_tables"),
    "facets of a key": table("birds", ".json", "_facet=memory"),
    "a stored query": table("stolen", ".json"),
    "a stored query, as a page": table("stolen"),
    "a stored query, as CSV": table("stolen", ".csv"),
    "a stored query, counting": table("counted", ".json"),
    "the other database": sql("select * from notes.vault_slots", "other"),
    "all databases": sql("select * from notes.vault_slots", "_memory"),
    "all databases, rows": sql("select * from [notes].memories", "_memory"),
    "all databases, counts": sql(f"select {TOLD} || count(*) from notes.memories", "_memory"),
    "all databases, joined": sql("select * from other.memories, notes.collections", "_memory"),
    "all databases, a view": sql("select * from notes.stolen_view", "_memory"),
    "all databases, as a page": sql("select * from notes.memories", "_memory", ""),
    "the file": "/notes.db",
    "the home page": "/",
    "the home page's data": "/.json",
    "the database": "/notes",
    "the database's data": "/notes.json",
    "the database, with what is hidden": "/notes?_show_hidden=1",
    "the list of databases": "/-/databases.json",
    "the jump menu": "/-/jump.json?q=memor",
    "the jump menu, all": "/-/jump.json",
    "tables": "/-/tables.json?q=vault",
    "the schema": "/notes/-/schema.json",
    "the schema of a table": "/notes/vault_slots/-/schema.json",
    "stored queries": "/-/queries.json",
    "what may be run": f"/notes/-/queries/analyze?{urlencode({'sql': SLOTS})}",
    "what may be written": "/notes/-/execute-write?"
    + urlencode({"sql": "insert into birds (name) select hex(wrapped) from vault_slots"}),
    "what keys may point to": "/notes/-/foreign-key-targets",
    "what keys might point to": "/notes/birds/-/foreign-key-suggestions",
    "a plugin's SQL": asked("executed", SLOTS),
    "a plugin's SQL, rows": asked("executed", HEAD),
    "a plugin's SQL, counts": asked("executed", COUNT),
    "a plugin's SQL, all databases": asked("executed", "select * from notes.memories", "_memory"),
    "a plugin's function": asked("by-function", SLOTS),
    "a plugin's function, rows": asked("by-function", HEAD),
    "a plugin's counts": "/-/counted?db=notes",
    "a plugin's writing": asked("by-writing", SLOTS),
    "a plugin's writing, counts": asked("by-writing", COUNT),
    "a plugin's own connection": asked("by-isolated", SLOTS),
    "a plugin's way to another file": asked("by-function", "attach ':memory:' as y", "other"),
}
"""Every way to the file that we know of, each with an attempt at what a vault keeps to itself."""


@pytest.fixture(scope="module", params=[False, True], ids=["as it is", "immutable"])
def server(
    request: Any, tmp_path_factory: pytest.TempPathFactory, tiny_model: Path
) -> Iterator[House]:
    """The vault is open: what a stranger gets is not a matter of locks."""
    folder = tmp_path_factory.mktemp("doors")
    with house(folder, tiny_model, immutable=request.param) as running:
        yield running


@pytest.mark.sampled(96)
@pytest.mark.parametrize("door", DOORS)
def test_a_stranger_takes_nothing_of_the_vault_home(server: House, door: str) -> None:
    for visitor, actor in STRANGERS.items():
        answer = server.ask(DOORS[door], actor)
        assert server.leaks(answer) == [], visitor
        assert answer.status < 500, (visitor, answer.text[:300])


@pytest.mark.sampled(96)
@pytest.mark.parametrize("door", DOORS)
def test_the_doors_were_open_to_everyone_who_may_administer_the_vault(
    server: House, door: str
) -> None:
    """The same addresses with the right: so that what strangers get was asked well."""
    answer = server.ask(DOORS[door], "root")
    if door in LEADING:
        assert answer.status == 200
        assert server.leaks(answer), answer.text[:500]


LEADING = (
    *("table vault_slots", "table vault_slots.json", "table, in columns"),
    *("SQL of keys.json", "SQL of rows.csv", "SQL, hex", "SQL, counts", "SQL, through a view"),
    *("SQL, existence", "SQL, rows without columns", "SQL, grouped", "SQL, statistics"),
    *("a stored query", "a stored query, counting", "a view of the vault", "all databases"),
    *("all databases, counts", "a plugin's SQL", "a plugin's function", "SQL, topic hashes"),
    *(f"a row of {name}.json" for name in ROWS),
    *("a row of memories", "a row of vault_slots"),
    *(f"a blob of {name}" for name in BLOBS),
)
"""Doors that lead somewhere, with the right to go there."""


MANY = "(select count(*) from memories) = {}"
SHARED = "(select max(n) from (select count(*) as n from memory_topics group by topic)) = {}"
GUESSES = {
    "a count": (MANY.format(MEMORIES), MANY.format(MEMORIES + 1)),
    "a key": tuple(f"(select hex(max(wrapped)) from vault_slots) {sign} '0'" for sign in "><"),
    "a slot": tuple(
        f"exists (select 1 from vault_slots where kind = '{kind}')" for kind in ("passphrase", "x")
    ),
    "a time": tuple(f"(select min(created) from memories) {sign} '2020'" for sign in "><"),
    "a topic of many": (SHARED.format(MEMORIES), SHARED.format(MEMORIES + 1)),
    "a row": ("memory in (select id from memories)", "memory in (select content from memories)"),
}
"""A condition that holds, and one that does not: the public rows that are shown say which."""
ASKING = {
    "the page": lambda condition: where(condition, ""),
    "its data": where,
    "its CSV": lambda condition: where(condition, ".csv"),
    "SQL": lambda condition: sql(f"select name from birds where {condition}"),
    "a plugin's SQL": lambda condition: asked(
        "executed", f"select name from birds where {condition}"
    ),
}


@pytest.mark.sampled(24)
@pytest.mark.parametrize("way", ASKING)
@pytest.mark.parametrize("guess", GUESSES)
def test_public_rows_confirm_to_a_stranger_no_guess_whether_it_is_right(
    server: House, guess: str, way: str
) -> None:
    right, wrong = map(ASKING[way], GUESSES[guess])
    assert PUBLIC in server.ask(right, "root").text
    assert PUBLIC not in server.ask(wrong, "root").text
    for who in STRANGERS.values():
        answers = [server.ask(path, who) for path in (right, wrong)]
        assert [PUBLIC in answer.text for answer in answers] == [False, False], who
        assert answers[0].status == answers[1].status >= 400


COUNTING = {
    "the home page": "/",
    "its data": "/.json",
    "the database": "/notes",
    "its data, too": "/notes.json",
    "with what is hidden": "/notes?_show_hidden=1",
    "a plugin's counts": "/-/counted?db=notes",
}
"""Pages that say how many rows tables have."""
TAGGED = re.compile(rf'\b{2 * MEMORIES} rows|"(?:count|memory_topics)": ?{2 * MEMORIES}\b')


@pytest.mark.parametrize("page", COUNTING)
def test_no_page_says_to_a_stranger_how_many_rows_a_vault_has(server: House, page: str) -> None:
    immutable = server.ask("/other.db").status == 200
    if not (IS_NEXT and immutable):  # there 1.0 counts at its start, for no one: root sees none
        assert TAGGED.search(server.ask(COUNTING[page], "root").text)
    for who in STRANGERS.values():
        shown = server.ask(COUNTING[page], who)
        assert shown.status == 200
        assert not TAGGED.search(shown.text), who


def test_the_file_is_downloaded_by_those_who_administer_the_vault(server: House) -> None:
    answer = server.ask("/notes.db", "root")
    immutable = server.ask("/other.db").status == 200  # a database without a vault, as ever
    assert answer.status == (200 if immutable else 403)
    assert answer.body.startswith(b"SQLite format 3") == immutable
    for who in (None, "eve", "sam", "rita"):
        assert server.ask("/notes.db", who).status == 403


@pytest.mark.parametrize("who", ["sam", "rita"])
@pytest.mark.parametrize("name", MACHINERY)
def test_who_may_search_or_read_sees_the_memories_and_not_the_machinery(
    server: House, name: str, who: str
) -> None:
    assert server.ask(table(name, ".json"), who).status == 403
    assert server.ask(sql(f"select * from {name}"), who).status == 403
    answer = server.ask(sql(f"select * from notes.{name}", "_memory"), who)
    assert answer.status == 403
    assert not server.leaks(answer)


@pytest.mark.parametrize("who", ["sam", "rita"])
def test_sealed_columns_are_empty_for_who_may_search_or_read(server: House, who: str) -> None:
    for name in OPEN_TO_SEARCHERS:
        rows = json.loads(server.ask(table(name, ".json", "_shape=array"), who).body)
        assert rows or name == "memory_sources"
        sealed = {"head", "body", "tag", "name", "origin", "draft", "file"}.intersection(*rows[:1])
        assert all(row[column] is None for row in rows for column in sealed)
    answer = server.ask(
        sql("select id, topic from memory_topics join memories on memory = id"), who
    )
    assert answer.status == 200
    assert b"base64" in answer.body  # topic hashes, for topic_hash()


GOES_ON = {
    "a table": (table("birds"), PUBLIC),
    "a table's data": (table("birds", ".json"), PUBLIC),
    "a table's CSV": (table("birds", ".csv"), PUBLIC),
    "a table's CSV, streamed": (table("birds", ".csv", "_stream=1"), PUBLIC),
    "a row": (table("birds", "/1"), PUBLIC),
    "a row's data": (table("birds", "/1.json"), PUBLIC),
    "facets": (table("birds", ".json", "_facet=name"), PUBLIC),
    "facets of a foreign key": (table("birds", "", "_facet=memory"), PUBLIC),
    "labels of a foreign key": (table("birds", ".json", "_labels=on"), PUBLIC),
    "labels of a foreign key to a bird": (table("heard", ".json", "_labels=on"), PUBLIC),
    "a condition": (where("name like 'king%'"), PUBLIC),
    "a condition with another table": (where("id in (select bird from heard)"), PUBLIC),
    "a filter": (table("birds", ".json", "name__startswith=king"), PUBLIC),
    "a search": (table("birds", ".json", f"_search={PUBLIC}"), PUBLIC),
    "a view": (table("seen", ".json"), PUBLIC),
    "SQL": (sql("select name from birds"), PUBLIC),
    "SQL as a page": (sql("select name from birds", extension=""), PUBLIC),
    "SQL as CSV": (sql("select name from birds", extension=".csv"), PUBLIC),
    "a stored query": (table("sightings", ".json"), PUBLIC),
    "all databases": (sql("select name from notes.birds", "_memory"), PUBLIC),
    "all databases, the other one": (sql("select name from other.memories", "_memory"), PUBLIC),
    "a table called memories elsewhere": (table("memories", database="other"), PUBLIC),
    "a table called collections elsewhere": (table("collections", ".json", "", "other"), PUBLIC),
    "SQL elsewhere": (sql("select * from memories, collections", "other"), PUBLIC),
    "a plugin's SQL": (asked("executed", "select name from birds"), PUBLIC),
    "a plugin's writing connection": (asked("by-writing", "select name from birds"), PUBLIC),
    "the counts of the database": ("/notes", "birds"),
    "the home page": ("/", "birds"),
    "the pragmas of its tables": (sql("select * from pragma_table_info('birds')"), "memory"),
}
"""What everybody may do as before, and what the answer holds then."""


@pytest.mark.sampled(24)
@pytest.mark.parametrize("door", GOES_ON)
def test_public_tables_and_other_databases_go_on_as_before(server: House, door: str) -> None:
    path, expected = GOES_ON[door]
    if "writing" in door and server.ask("/other.db").status == 200:
        pytest.skip("nothing is written in a file that is immutable")
    for visitor in (*STRANGERS.values(), "root"):
        answer = server.ask(path, visitor)
        assert answer.status == 200, (visitor, answer.text[:500])
        assert expected in answer.text, visitor


def test_public_tables_are_counted_as_before(server: House) -> None:
    server.ask("/notes", "root")  # who would have the counts of all tables kept for everybody
    counts = json.loads(server.ask("/-/counted?db=notes").body)
    assert "birds" in counts
    assert not [name for name in counts if name.startswith(("vault_", "memor"))]
    assert "memories" in json.loads(server.ask("/-/counted?db=notes", "root").body)
    assert json.loads(server.ask("/-/counted?db=notes").body) == counts


def test_searching_in_sql_goes_on_for_those_who_may(server: House) -> None:
    statement = "select id, title from hybrid_search('heron', 3)"
    for who, rows, titled in ((None, 0, False), ("eve", 0, False), ("sam", 3, False)):
        answer = server.ask(sql(statement, _shape="array"), who)
        found = json.loads(answer.body)
        assert answer.status == 200
        assert len(found) == rows
        assert all(bool(row["title"]) == titled for row in found)
    joined = "select m.type, s.title from hybrid_search('heron', 3) s join memories m using (id)"
    read = json.loads(server.ask(sql(joined, _shape="array"), "rita").body)
    assert len(read) == 3
    assert all(row["title"].startswith("T ") for row in read)


def test_another_plugins_authorizer_is_asked_as_well(server: House) -> None:
    for who in (None, "root"):
        for shy in (
            sql("select name from shy", "other"),
            sql("select name from other.shy", "_memory"),
        ):
            assert "a shy one" not in server.ask(shy, who).text
    assert server.ask(sql(SLOTS)).status == 403
    assert server.leaks(server.ask(sql(SLOTS), "root"))


def test_one_visitor_after_the_other_gets_their_own_answer_to_the_same_sql(server: House) -> None:
    """SQLite keeps prepared statements, and decided about them for the first actor who asked."""
    for _ in range(3):
        for who, status in (("root", 200), (None, 403), ("sam", 403), ("eve", 403)):
            for _ in range(4):  # on each connection of Datasette's threads
                answer = server.ask(sql(SLOTS), who)
                assert answer.status == status
                assert bool(server.leaks(answer)) == (who == "root")
                heads = server.ask(sql("select head from memories"), who)
                assert bool(server.leaks(heads)) == (who == "root")


WRITES = {
    "rows": "insert into birds (name) select hex(wrapped) from vault_slots",
    "a guess": f"update birds set name = {TOLD} where exists (select 1 from memories)",
    "a count": f"insert into birds (name) select {TOLD} || count(*) from memories",
    "a table": "create table mine as select * from vault_slots",
    "returned": "insert into birds (name) values ('x')"
    " returning (select hex(wrapped) from vault_slots)",
    "a view": "create view mine as select * from vault_slots",
    "statistics": f"insert into birds (name) select {TOLD} || stat from sqlite_stat1",
}


@pytest.mark.skipif(not IS_NEXT, reason="Datasette 0.65 writes no SQL of its users'")
@pytest.mark.parametrize("write", WRITES)
def test_who_may_write_public_tables_copies_nothing_of_the_vault_into_them(
    server: House, write: str
) -> None:
    answer = server.ask("/notes/-/execute-write", "wim", {"sql": WRITES[write]})
    assert answer.status in (400, 403), answer.text[:300]
    assert not server.leaks(answer)
    for path in (table("birds", ".json"), table("mine", ".json"), "/notes.json"):
        assert not server.leaks(server.ask(path))


@pytest.mark.skipif(IS_NEXT, reason="Datasette 1.0 reads its queries from elsewhere")
def test_a_query_that_writes_copies_nothing_of_the_vault(server: House) -> None:
    if server.ask("/other.db").status == 200:
        pytest.skip("nothing is written in a file that is immutable")
    server.ask(table("copied", ".json"), None, {})
    server.ask(table("copied", ".json"), "root", {})
    assert not server.leaks(server.ask(table("birds", ".json")))


@pytest.mark.sampled(0)
def test_a_locked_vault_is_as_shut_as_an_open_one(tmp_path: Path, tiny_model: Path) -> None:
    with house(tmp_path, tiny_model, immutable=False, locked=True) as server:
        for who in (None, "eve", "sam", "rita"):
            for door in ("table memories.json", "SQL of keys.json", "SQL of rows.json", "the file"):
                answer = server.ask(DOORS[door], who)
                assert answer.status == 403
                assert not server.leaks(answer)
        assert PUBLIC in server.ask(table("birds")).text
        assert LEAK not in server.ask(sql(COUNT), "rita").text
