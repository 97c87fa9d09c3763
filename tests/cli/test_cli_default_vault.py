"""DB may be left out, a query needs no quotes, and a command may be begun."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memory_store import LockedError, MemoryStore, NotAVaultError
from memory_store.cli import main

Run = Callable[..., Any]


@pytest.fixture
def run(key_file: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command by the key of the environment; an empty default vault is there."""
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    made = CliRunner().invoke(main, ["init", "--key-file", str(key_file)])
    assert made.exit_code == 0, made.output
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def texts(answer: Any) -> str:
    assert answer.exit_code == 0, answer.output
    return str(answer.output)


def test_the_default_vault_lies_in_the_data_folder(run: Run, private_folders: Path) -> None:
    assert (private_folders / "data" / "memories.db").is_file()
    assert "ducks" not in texts(run("list"))
    run("add", "feed the ducks", "--topic", "garden")
    assert "feed the ducks" in texts(run("list"))


@pytest.mark.parametrize("words", [("search", "ducks"), ("models",), ("doctor",), ("list",)])
def test_looking_makes_no_folder(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("config", "data")]
    for folder in folders:
        monkeypatch.setenv(f"MEMORY_STORE_{folder.name.upper()}", str(folder / "own"))
    CliRunner().invoke(main, [*words])
    assert not [folder for folder in folders if folder.exists()]


def test_python_opens_the_same_vault_without_an_argument(run: Run) -> None:
    run("add", "feed the ducks")
    with MemoryStore.open() as store:
        assert [one.text for one in store.list()] == ["feed the ducks"]


def test_python_gets_the_refusals_of_the_command_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    with pytest.raises(LockedError, match="MEMORY_STORE_KEY_FILE"):
        MemoryStore.open()
    monkeypatch.setenv("MEMORY_STORE_DB", str(tmp_path / "none.db"))
    with pytest.raises(NotAVaultError):
        MemoryStore.open()


def test_a_command_that_mends_leaves_the_default_vault_out(
    run: Run, tmp_path: Path, private_folders: Path
) -> None:
    (tmp_path / "note.md").write_text("Feed the ducks.")
    texts(run("import", tmp_path / "note.md", "--no-embed"))
    said = texts(run("search", "ducks"))
    assert "memory-store reindex" in said
    assert str(private_folders) not in said


def test_a_search_without_words_says_what_to_type(run: Run) -> None:
    answer = run("search")
    assert answer.exit_code == 2
    assert "Say what you look for, for example: memory-store search spare key" in answer.output


def test_words_need_no_quotes(run: Run) -> None:
    run("add", "feed", "the", "ducks", "--type", "task")
    assert "feed the ducks" in texts(run("search", "feed", "-n", "1", "ducks", "--no-rerank"))
    assert "feed the ducks" in texts(run("s", "--mode", "keyword", "ducks"))


def test_a_variable_names_another_vault(
    run: Run, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "work.db"
    texts(run("init", other, "--key-file", key_file))
    texts(run("add", other, "quarterly figures"))
    assert "quarterly" not in texts(run("list"))
    monkeypatch.setenv("MEMORY_STORE_DB", str(other))
    assert "quarterly" in texts(run("list"))


def test_a_vault_is_known_by_what_it_is_and_not_by_its_name(
    run: Run, key_file: Path, tmp_path: Path
) -> None:
    unusual = tmp_path / "vault"
    texts(run("init", unusual, "--key-file", key_file))
    texts(run("add", unusual, "rowing boat"))
    assert "rowing boat" in texts(run("search", unusual, "boat", "--no-rerank"))
    assert "rowing boat" not in texts(run("list"))


def test_db_stands_before_what_is_done_or_behind_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, key_file = str(tmp_path / "other.db"), str(tmp_path / "keys" / "other.key")
    run("init", other, "--key-file", key_file)
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", key_file)
    (tmp_path / "notes").mkdir()
    run("import", other, str(tmp_path / "notes"), "--no-embed")
    run("collections", "create", other, "work")
    for words in ((other, "show", "1"), ("show", other, "1")):
        assert f"{tmp_path / 'notes'}" in run("sources", *words).output
    assert "work" in run("collections", other).output


def test_files_that_are_no_vault_are_words_or_sources(run: Run, tmp_path: Path) -> None:
    note, blog = tmp_path / "note.md", tmp_path / "blog.db"
    note.write_text("# Winter\n\nThe pipes froze.\n")
    with sqlite3.connect(blog) as database:
        database.execute("create table posts (id integer primary key, body text)")
        database.execute("insert into posts values (1, 'An essay on lighthouses')")
    database.close()
    assert "imported 1" in texts(run("import", note))
    assert "imported 1" in texts(run("import", blog, "--table", "posts", "--text-column", "body"))
    assert "pipes froze" in texts(run("search", "Winter", "--no-rerank"))
    texts(run("search", note))


def test_a_command_that_takes_no_more_takes_one_argument_for_db(run: Run, tmp_path: Path) -> None:
    answer = run("stats", tmp_path / "absent")
    assert answer.exit_code == 1
    assert "no such file" in answer.output
    assert f"memory-store init {tmp_path / 'absent'}" in answer.output


def test_a_missing_file_named_as_a_vault_is_not_taken_for_words(run: Run, tmp_path: Path) -> None:
    for command in ("search", "add", "import"):
        answer = run(command, tmp_path / "absent.db", "words")
        assert answer.exit_code == 1
        assert "absent.db: no such file" in answer.output


def test_without_a_vault_the_command_that_makes_one_is_named(private_folders: Path) -> None:
    answer = CliRunner().invoke(main, ["search", "ducks"])
    assert answer.exit_code == 1
    assert answer.output.rstrip().endswith("memory-store init")


def test_an_argument_that_is_needed_is_not_taken_for_db(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    texts(run("backup", copy))
    assert texts(run("stats", copy))
    named = run("backup", copy)  # a vault: what is missing is where to copy it
    assert named.exit_code == 2
    assert "TARGET" in named.output


def test_help_and_mistakes_are_answered_without_a_vault(private_folders: Path) -> None:
    for command in (["search", "--help"], ["keys", "add", "--help"]):
        assert "[DB]" in texts(CliRunner().invoke(main, command))
    wrong = CliRunner().invoke(main, ["search", "ducks", "--limti", "3"])
    assert wrong.exit_code == 2
    assert "--limti" in wrong.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("edti", "edit"),
        ("e", "exists, edit, export or eval"),
        ("re", "related, reopen, review or reindex"),
    ],
)
def test_a_command_that_is_not_there_names_what_may_be_meant(given: str, said: str) -> None:
    answer = CliRunner().invoke(main, [given])
    assert answer.exit_code == 2
    assert f"Did you mean {said}?" in answer.output


def test_a_beginning_that_only_one_command_has_is_enough(run: Run) -> None:
    texts(run("add", "ducks"))
    assert "ducks" in texts(run("lis"))
