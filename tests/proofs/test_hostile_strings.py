# ruff: noqa: PT017  (to answer is as good as to refuse)
"""Thousands of strings that break programs, at every door but the web's: Python, SQL, commands.

Each is searched for, stored and shown again, or refused by the name of its parameter; nothing else
is raised, nothing hangs, and the process lives on. The web's doors: test_hostile_requests.py.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from counts import FULL, counted
from naughty import as_bytes, strings

from memory_store import llm_plugin, unlocking
from memory_store.access import ALL_GRANTS
from memory_store.assistants.tools import FAULT
from memory_store.cli import main
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.records import MODES, OPTION_NAMES
from memory_store.sql.functions import StoreAndGrants, register
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.text.plain_json import write_json

STRINGS = counted(10_000)
SECONDS = 5  # of processor time for one string
TEXTS = ("collection", "type", "topic", "since", "until", "narrow", "recipe", "like", "why")
IN_QUERIES = ("q", "mode", "topic", "type", "collection", "since", "until", "all")
"""By prefixes; ``all`` is what a pattern needs that no index narrows."""
ORDERLY = {0, 1, 2, 3}  # exit codes: done, nothing there, refused, no key


@contextmanager
def bounded(text: str) -> Iterator[None]:
    """Fails when what is done with ``text`` takes too much of the processor."""
    begun = time.process_time()
    yield
    spent = time.process_time() - begun
    assert spent < SECONDS, f"{spent:.1f} s for {text[:200]!r}"


@pytest.fixture
def notes(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """A vault with something to find."""
    store = make_store()
    store.add("The tomatoes want water", title="Tomatoes", topics=("garden",), ref="tomatoes")
    store.add("We chose Postgres", title="The database", topics=("work",), type="decision")
    return store


def some(every: int) -> list[str]:
    """All strings with PROOFS=full, else a share: where each of them has to open a vault."""
    return strings(STRINGS)[:: 1 if FULL else every]


def refused_by_name(call: Callable[[], Any], *names: str) -> Any:
    """What ``call`` returns; ``None`` where it refuses, naming one of its parameters."""
    try:
        return call()
    except BadInputError as error:
        assert error.parameter in names, (error.parameter, names)
        str(error).encode("utf-8", "backslashreplace")
    except MemoryStoreError as error:
        assert str(error)
    return None


def test_there_are_as_many_strings_as_are_counted() -> None:
    assert len(set(strings(10_000))) == 10_000
    assert strings(10_000)[:100] == strings(100)


def test_python_searches_or_refuses(notes: MemoryStore) -> None:
    ways = itertools.cycle(itertools.product(MODES, TEXTS))
    for text, (mode, name) in zip(strings(STRINGS), ways, strict=False):
        with bounded(text):
            answers = (
                refused_by_name(lambda: notes.search(text, mode=mode), *IN_QUERIES),  # noqa: B023
                refused_by_name(lambda: notes.search("tomatoes", **{name: text}), name, "q"),  # noqa: B023
            )
        for answer in answers:
            if answer is not None:
                write_json(answer.as_dict()).encode()


def test_python_stores_or_refuses(notes: MemoryStore) -> None:
    fields = ("text", "title", "type", "topics", "created", "id", "parent", "collection")
    kept = {}
    for number, text in enumerate(strings(STRINGS)):
        name = fields[number % len(fields)]
        draft: dict[str, Any] = {"text": "words", "ref": text, "metadata": {text: text}}
        draft[name] = (text,) if name == "topics" else text
        with bounded(text):
            memory = refused_by_name(
                lambda: notes.add(**draft),  # noqa: B023
                *(name, "topic", "metadata", "ref"),
            )
        if memory is not None:
            kept[memory.id] = memory
    assert len(kept) > STRINGS // 4
    for memory in kept.values():
        assert notes.get(memory.id) == memory
        write_json(memory.as_dict()).encode()
    assert notes.verify()["failures"] == []


def test_python_imports_no_path_that_is_none(notes: MemoryStore, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for text in some(8):
        with bounded(text):
            report = notes.import_paths([f"{empty}/{text}x", f"{text}\0"], dry_run=True)
        assert report.imported == 0
        assert len(report.failures) + len(report.skips) >= 1, text
    assert len(notes.list(limit=9)) == 2


SQL = (
    "select hybrid_search(?)",
    "select hybrid_search('tomatoes', ?)",
    "select hybrid_search('tomatoes', json_object('{option}', ?))",
    "select hybrid_explain(?, 3)",
    "select memory_text(?)",
    "select topic_hash(?)",
    "select topic_hash('garden', ?)",
    "select group_concat(title) from hybrid_search(?)",
    "select count(*) from hybrid_search('tomatoes', ?)",
    "select hybrid_search(cast(? as text))",
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # SQLite reports
def test_sql_answers_or_says_what_is_wrong(notes: MemoryStore) -> None:
    connection = sqlite3.connect(notes.path)
    register(connection, lambda named: StoreAndGrants(notes, ALL_GRANTS))
    ways = itertools.cycle(itertools.product(OPTION_NAMES, SQL))
    answered = 0
    for text, (option, sql) in zip(strings(STRINGS), ways, strict=False):
        value: Any = as_bytes(text) if "cast" in sql else text.encode("utf-8", "replace").decode()
        with bounded(text):
            try:
                ((cell,),) = connection.execute(sql.format(option=option), (value,)).fetchall()
            except sqlite3.Error as error:
                assert str(error)
                assert "Traceback" not in str(error)
            else:
                answered += 1
                if "hybrid_search" in sql and sql.startswith("select hybrid") and cell is not None:
                    json.loads(cell)
    assert answered > STRINGS // 3
    assert connection.execute("select count(*) from hybrid_search('tomatoes')").fetchone()[0]
    connection.close()


WORDS: Sequence[Sequence[str]] = (
    *(("search", "{db}", "{text}"), ("search", "{db}", "{text}", "--json", "--explain")),
    *(("search", "{db}", "water", "--topic", "{text}"), ("add", "{db}", "{text}")),
    *(("search", "{db}", "water", "--since", "{text}"), ("add", "{db}", "a", "--title={text}")),
    *(("search", "{db}", "water", "--continue={text}"), ("add", "{db}", "a", "--topic={text}")),
    *(("search", "{db}", "water", "--min-score={text}"), ("add", "{db}", "a", "--type={text}")),
    *(("search", "{db}", "--like={text}"), ("add", "{db}", "a", "--meta={text}")),
    *(("search", "{db}", "water", "--limit={text}"), ("search", "{db}", "a", "--narrow={text}")),
    *(("get", "{db}", "{text}"), ("delete", "{db}", "--yes", "{text}"), ("done", "{db}", "{text}")),
    *(("edit", "{db}", "{text}", "--title=a"), ("list", "{db}", "--topic={text}", "--csv")),
    *(("collections", "{db}", "create", "{text}"), ("collections", "{db}", "members", "{text}")),
    *(("topics", "{db}", "--collection={text}"), ("publish", "{db}", "{text}", "{text}")),
    *(("import", "{db}", "{text}", "--dry-run"), ("import", "{db}", ".", "--glob={text}")),
    *(("search", "{text}", "water"), ("search", "{db}", "water", "--why={text}", "--table")),
    *(("search", "{db}", "water", "--recipe={text}"), ("search", "{db}", "--meta={text}", "a")),
    *(("search", "{db}", "water", "--reranker={text}"), ("{text}", "{db}")),
    *(("import", "{db}", "-"), ("add", "{db}", "-"), ("eval", "{db}", "--queries=-", "--qrels=-")),
)  # fmt: skip


def orderly(command: click.Command, words: Sequence[str], stdin: bytes = b"") -> None:
    """Run a command; fails unless it ends as it should, saying why where it refuses."""
    result = CliRunner().invoke(command, words, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{words!r:.500}") from result.exception
    assert result.exit_code in ORDERLY, (words, result.output)
    assert "Traceback" not in result.output
    if result.exit_code == 2:
        assert result.stderr.strip(), words


@pytest.fixture
def at_home(
    notes: MemoryStore, key_file: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The vault's path, with its key in the environment, in a folder without anything else."""
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    empty = notes.path.parent.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    return notes.path


def test_the_command_answers_or_refuses(at_home: Path) -> None:
    ways = itertools.cycle(WORDS)
    for text, way in zip(some(4), ways, strict=False):
        typed = os.fsdecode(as_bytes(text).replace(b"\0", b""))  # as a shell hands it over
        if way[0] == "import" and os.path.isdir(typed):
            continue  # // is the whole machine, which is imported as it was asked for
        words = [word.format(db=at_home, text="{text}").replace("{text}", typed) for word in way]
        with bounded(text):
            orderly(main, words, as_bytes(text))


def test_raw_bytes_in_a_process_of_its_own(at_home: Path) -> None:
    """As a shell hands them over: bytes that are no text, in the arguments and in the input."""
    start = [sys.executable, "-c", "from memory_store.cli import main; main()"]
    usual = [*start, "search", os.fsencode(at_home), "tomatoes", "--mode", "keyword"]
    assert b"water" in subprocess.run(usual, capture_output=True, timeout=300).stdout
    for text in strings(2_000)[:: 2_000 // counted(50)]:
        raw = as_bytes(text).replace(b"\0", b"")[:100_000]
        ended = subprocess.run(
            [*start, "search", os.fsencode(at_home), b"--", raw],
            input=as_bytes(text),
            capture_output=True,
            timeout=300,
        )
        assert ended.returncode in ORDERLY, (text, ended.stderr)
        assert b"Traceback" not in ended.stderr, (text, ended.stderr)
        assert b"memories opened" in ended.stdout or ended.returncode, (text, ended.stderr)


def test_sqlite_utils_answers_or_refuses(at_home: Path) -> None:
    from sqlite_utils.cli import cli

    options = ("--topic", "--since", "--like", "--meta", "-c", "--limit", "--recipe", "--fmt")
    ways = itertools.cycle((None, *options))
    for text, option in zip(some(8), ways, strict=False):
        words = ["--", text] if option is None else [option, text, "water"]
        with bounded(text):
            orderly(cli, ["hybrid-search", str(at_home), *words])


def test_fragments_of_llm_are_found_or_refused(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_DB", str(at_home))
    tools = {one.name: one.implementation for one in llm_plugin.Memory(str(at_home)).tools()}
    try:
        for text in some(4):
            with bounded(text):
                try:
                    fragments = llm_plugin.memory_loader(text)
                except ValueError as error:
                    assert not isinstance(error, UnicodeError), text
                    assert str(error)
                else:
                    assert fragments
                for name, given in (("search", {"query": text}), ("read", {"ids": [text]})):
                    answer = json.loads(tools[f"memory_{name}"](**given))
                    assert answer.get("error") != FAULT
    finally:
        unlocking.lock_all()
