"""Rows of JSON, NDJSON, CSV, TSV and SQLite; one broken row costs one row."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from reading_files import Outcome, read

Put = Callable[[str, "str | bytes"], Path]
Rows = Callable[[str, "str | bytes"], Outcome]
ID = "0b0d5b76-6c43-4f3e-9c39-0a4a6a3c8a11"


def database(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


def test_a_json_array_gives_one_memory_per_object(put: Put) -> None:
    rows = [
        {"id": 7, "text": "one", "title": "One", "tags": ["a b", "c"], "created": 1714555800},
        {"_id": "x", "body": "two", "kind": {"deep": [1, None]}, "type": "task"},
        {"note": "three"},
    ]
    put("rows.json", json.dumps(rows))
    first, second, third = read("rows.json").drafts
    assert (first.ref, first.title, first.topics) == ("7", "One", ("a b", "c"))
    assert (first.created, first.metadata) == ("2024-05-01T09:30:00Z", {})
    assert (second.ref, second.text, second.type) == ("x", "two", "task")
    assert second.metadata == {"kind": {"deep": [1, None]}}
    assert (third.ref, third.text) == ("row-3", "three")


@pytest.mark.parametrize("key", ["rows", "memories"])
def test_an_object_around_the_rows_is_seen_through(rows: Rows, key: str) -> None:
    outcome = rows("rows.json", json.dumps({"ok": True, key: [{"id": "1", "text": "one"}, 5]}))
    assert outcome.refs == ["1"]
    assert outcome.failures == {"rows.json:1": "row 2 is not an object"}


def test_one_object_is_one_memory(rows: Rows) -> None:
    assert rows("row.json", '\n{"id": "1",\n"text": "one"}\n').only.ref == "1"


def test_the_text_may_be_in_any_column_that_is_named(put: Put) -> None:
    put("rows.json", '[{"id": "1", "Story": "once"}]')
    assert read("rows.json", text_column="story").only.text == "once"
    reason = read("rows.json").failures["rows.json:1"]
    assert "'id', 'Story'" in reason
    assert "name the column that holds the text" in reason


def test_a_broken_row_of_an_array_costs_only_itself(rows: Rows) -> None:
    outcome = rows(
        "rows.json",
        '[\n{"id": "1", "text": "one"},\n{"id": "2", "text": tow},\n[1, [2]],\n"three",\n'
        '{"text": {"not": "text"}},\n{"text": true},\n{"text": ""},\n{"text": null},\n'
        '{"id": "3", "text": "x", "created": "soon"},\n{"id": "4", "text": NaN},\n'
        '{"id": "5", "text": "five, [brackets} and \\"quotes\\""}\n]\n',
    )
    assert outcome.refs == ["1", "5"]
    assert set(outcome.skips) == {"rows.json:8", "rows.json:9"}
    assert {name: reason[:30] for name, reason in outcome.failures.items()} == {
        "rows.json:3": "not JSON: Expecting value (col"[:30],
        "rows.json:4": "row 3 is not an object",
        "rows.json:5": "row 4 is not an object",
        "rows.json:6": "'text' must hold text, not an object"[:30],
        "rows.json:7": "'text' must hold text, not true or false"[:30],
        "rows.json:10": "created: 'soon' is not a date; write"[:30],
        "rows.json:11": "not JSON: NaN is not a JSON va",
    }


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        ('[{"text": "a"},\n{"text": "b"', "rows.json:2", "ends too early"),
        ('[{"text": "a"},\n{"text": "b]', "rows.json:2", "a string is not closed"),
        ('[{"text": "a"}\n{"text": "b"}]', "rows.json:2", "a comma or ] must follow row 1"),
        ('[{"text": "a"}]\nmore', "rows.json:2", "text after the JSON array"),
        ('[{"text": "a"},]', "rows.json:1", "Expecting value"),
        ('{"rows": []}\n{}', "rows.json:2", "text after the JSON object"),
        ("\n\nwords", "rows.json:3", "neither a JSON array nor an object"),
        ("7", "rows.json:1", "neither a JSON array nor an object"),
        (b"id,story\n1,x\n", "rows.csv:1", "it has 'id', 'story'"),
        (b"id,text,id\n1,x,y\n", "rows.csv:1", "the column 'id' is there twice"),
        (b'id,text\n1,ok\n2,"open\n3,x\n', "rows.csv:3", "the rows from here on were not read"),
        (b'id,text\n1,ok\n2,"a"b\n', "rows.csv:3", "the rows from here on were not read"),
        (b"id,text\n1,ok\n2,caf\xe9\n3,x\n", "rows.csv:3", "byte 0xe9 at offset 18"),
        ("id,text\n1,x\n".encode("utf-16"), "rows.csv:1", "UTF-16; save it as UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_on_says_where(
    rows: Rows, content: str | bytes, place: str, reason: str
) -> None:
    outcome = rows(place.partition(":")[0], content)
    assert len(outcome.drafts) <= 1
    assert list(outcome.failures) == [place]
    assert reason in outcome.failures[place]


def test_no_rows_are_no_failure(put: Put) -> None:
    put("rows.json", "[\n]\n")
    put("rows.csv", "id,text\n")
    put("rows.ndjson", "\n\n")
    outcome = read("rows.json", "rows.csv", "rows.ndjson")
    assert (outcome.drafts, outcome.failures) == ([], {})


def test_one_broken_line_of_ndjson_costs_only_itself(rows: Rows) -> None:
    content = (
        b'\xef\xbb\xbf{"id": "1", "text": "one"}\r\n\r\n{"id": "2", "text": "tw\n'
        b'{"id": "3", "text": "caf\xe9"}\n[4]\n{"id": "5", "text": "five\xe2\x80\xa8still five"}'
    )
    outcome = rows("rows.jsonl", content)
    assert outcome.refs == ["1", "5"]
    assert outcome.drafts[1].text == "five\u2028still five"
    assert {name: reason.split(":")[0] for name, reason in outcome.failures.items()} == {
        "rows.jsonl:3": "not JSON",
        "rows.jsonl:4": "not UTF-8",
        "rows.jsonl:5": "row 5 is not an object",
    }
    assert outcome.failures["rows.jsonl:4"].endswith(
        f"byte 0xe9 at offset {content.index(bytes([0xE9, 0x22]))}"
    )


def test_csv_columns_are_fields_and_metadata(rows: Rows) -> None:
    first, second = rows(
        "rows.csv",
        "\ufeffid,Title,Body,tags,mood,metadata\r\n"
        '1,One,"a long\nstory, ""quoted""","sea, long walks",calm,"{""rating"": 4}"\r\n'
        "\r\n2,,second,,,\r\n",
    ).drafts
    assert (first.ref, first.title, first.text) == ("1", "One", 'a long\nstory, "quoted"')
    assert first.topics == ("sea", "long walks")
    assert first.metadata == {"mood": "calm", "rating": 4}
    assert (second.ref, second.title, second.metadata) == ("2", None, {})


def test_a_row_without_a_title_is_called_by_its_name(rows: Rows) -> None:
    named = rows("people.csv", "Name,note\nBen,allergic to nuts\nAda,# Tea\n,nobody\n").drafts
    assert [one.title or "" for one in named] == ["Ben", "", ""]
    assert named[0].metadata == {"Name": "Ben"}
    (titled,) = rows("a.csv", "title,name,note\nNuts,Ben,allergic\n").drafts
    assert titled.title == "Nuts"


def test_semicolons_and_tabs_separate_too(put: Put) -> None:
    put("rows.csv", "id;text\n1;a, b\n")
    put("rows.tsv", 'id\ttext\n1\ta, "b"\n')
    assert [d.text for d in read("rows.csv", "rows.tsv").drafts] == ["a, b", 'a, "b"']


def test_ragged_rows_fail_one_by_one(rows: Rows) -> None:
    outcome = rows("rows.csv", 'id,text\n1,one\n2\n3,"thr\nee",x\n4,four\n5,\n')
    assert outcome.refs == ["1", "4"]
    assert outcome.failures == {
        "rows.csv:3": "the header has 2 cells, this row 1",
        "rows.csv:4": "the header has 2 cells, this row 3",
    }
    assert outcome.skips == {"rows.csv:7": "empty"}


def test_a_long_note_fits_a_cell(rows: Rows) -> None:
    assert len(rows("rows.csv", "id,text\n1," + "word " * 60_000 + "\n").only.text) == 300_000


def test_a_table_of_a_database_is_read_by_primary_key(here: Path) -> None:
    path = database(
        here / "my notes #1?.db",
        "create table notes(slug text primary key, body text, mood text, n real, pic blob)",
        "insert into notes values ('a', 'one', 'calm', 1.5, x'00ff'), ('b', 'two', null, 9e999, 0)",
        "create table other(x)",
        "create view look as select * from notes",
    )
    first, second = read(path.name, table="notes").drafts
    assert (first.ref, first.text, first.metadata) == ("a", "one", {"mood": "calm", "n": 1.5})
    assert (second.ref, second.metadata) == ("b", {"n": "inf", "pic": 0})
    assert first.source == f"{path.resolve()}#notes"
    before = path.read_bytes()
    assert read(path.name, table="notes", text_column="mood").drafts[0].text == "calm"
    assert path.read_bytes() == before
    assert [entry.name for entry in here.iterdir()] == [path.name]


def test_the_only_table_needs_no_name_and_rows_without_key_their_number(here: Path) -> None:
    database(
        here / "a.db",
        'create table "odd "" name"(rowid text, note text)',
        """insert into "odd "" name" values ('mine', 'one'), ('mine', 'two')""",
    )
    outcome = read("a.db")
    assert outcome.refs == ["1", "2"]
    assert outcome.drafts[0].metadata == {"rowid": "mine"}


def test_a_primary_key_of_two_columns_names_rows_by_both(here: Path) -> None:
    database(
        here / "a.db",
        "create table notes(a, b, text, primary key (b, a)) without rowid",
        "insert into notes values (1, 'x', 'one')",
    )
    assert read("a.db").only.ref == "x,1"


def test_a_table_that_is_not_there_lists_those_that_are(here: Path) -> None:
    database(
        here / "a.db",
        "create table notes(text)",
        "create table days(text)",
        "create view look as select * from notes",
        "create virtual table found using fts5(text)",
    )
    there = "the file has: days, notes"
    assert read("a.db").failures == {"a.db": f"name the table to import; {there}"}
    for name in ("look", "found", "found_data", "sqlite_master", "notes; drop table notes", 'n"'):
        assert read("a.db", table=name).failures == {"a.db": f"no table {name!r}; {there}"}


def test_a_table_without_the_text_column_lists_its_columns(here: Path) -> None:
    database(here / "a.db", "create table t(a, b)", "insert into t values (1, 2)")
    assert "it has 'a', 'b'" in read("a.db").failures["a.db"]
    assert "it has 'a', 'b'" in read("a.db", text_column="zzz").failures["a.db"]
    assert read("a.db", text_column="B").only.text == "2"


def test_rows_of_a_database_that_hold_no_text_fail_one_by_one(here: Path) -> None:
    database(
        here / "a.db",
        "create table t(id integer primary key, text)",
        "insert into t values (1, x'00ff'), (2, cast(x'636166e9' as text)), (3, null), (4, 'four')",
    )
    outcome = read("a.db")
    assert outcome.refs == ["4"]
    assert outcome.skips == {"a.db:3": "empty"}
    assert outcome.failures == {
        "a.db:1": "the column 'text' holds binary data",
        "a.db:2": "the column 'text' is not valid UTF-8",
    }


def test_a_damaged_database_is_a_failure(here: Path, put: Put) -> None:
    path = database(
        here / "a.db",
        "create table t(text)",
        "insert into t values (printf('%050000d', 7))",
    )
    path.write_bytes(path.read_bytes()[:5_000] + b"\xff" * 4_000)
    put("b.db", "no database")
    put("c.db", "")
    outcome = read("a.db", "b.db", "c.db")
    assert outcome.drafts == []
    assert outcome.failures["a.db"].startswith("SQLite: ")
    assert outcome.failures["b.db"] == "not a SQLite database"
    assert outcome.skips == {"c.db": "empty"}


def test_a_database_is_known_by_its_first_bytes_whatever_its_name(here: Path) -> None:
    database(here / "notes.backup", "create table t(text)", "insert into t values ('one')")
    assert read("notes.backup").only.text == "one"


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("# Walk\n\n[a link](x) #sea\n", ["# Walk\n\n[a link](x) #sea"]),
        ("[[wiki]] words", ["[[wiki]] words"]),
        ("{{template}} words", ["{{template}} words"]),
        ('{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n', ["one", "two"]),
        ('\n[{"text": "one"},\n {"text": "two"}]', ["one", "two"]),
        ('{\n"text": "one"\n}', ["one"]),
        ('{"rows": [{"text": "one"}]}\n', ["one"]),
        ("---\ntitle: x\n---\nwords", ["words"]),
    ],
)
def test_standard_input_is_json_where_it_looks_so_or_else_a_note(
    typed: str, texts: list[str]
) -> None:
    outcome = read("-", stdin=io.StringIO(typed))
    assert [draft.text for draft in outcome.drafts] == texts
    assert not outcome.failures


def test_a_note_from_standard_input_is_named_by_its_text() -> None:
    first, again, other = (
        read("-", stdin=io.StringIO(text)).only for text in ("# Walk\none", "# Walk\none", "two")
    )
    assert first.ref == again.ref != other.ref
    assert (first.title, other.title) == ("Walk", None)
    assert first.created is None


def test_broken_standard_input_is_named_so() -> None:
    typed = io.TextIOWrapper(io.BytesIO(b"caf\xe9"), encoding="utf-8")
    assert (
        read("-", stdin=typed)
        .warnings["standard input"]
        .startswith("not UTF-8: byte 0xe9 at offset 3; read as Latin-1")
    )
    assert read("-", stdin=io.StringIO(" \n")).skips == {"standard input": "empty"}
    assert read("-", stdin=io.StringIO("a\0b")).skips == {"standard input": "binary"}
    assert list(read("-", stdin=io.StringIO("---\na: b: c\n---\n")).warnings) == [
        "standard input:2"
    ]


def test_an_id_that_is_a_uuid_is_the_memorys_and_its_name(put: Put) -> None:
    put("rows.ndjson", json.dumps({"id": ID.upper(), "text": "one"}))
    draft = read("rows.ndjson").only
    assert (draft.id, draft.ref) == (ID, ID.upper())
