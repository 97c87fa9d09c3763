"""Nothing that was put in stands in any file, in any usual encoding.

The scan reads every byte of every file that the store may have written: the database with its
write-ahead log and shared memory, backups, the cache, configuration, state and temporary folders,
what a language model's library keeps. It runs while the vault is open, after it is locked, and
over deliberately leaky copies, which it must find.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from canaries import KINDS, canary, leaks, spellings

from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels

Words = dict[str, str]


@pytest.fixture(params=["default", "strict"])
def store(
    request: pytest.FixtureRequest,
    make_store: Callable[..., MemoryStore],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> MemoryStore:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return make_store(profile=request.param)


@pytest.fixture
def filled(store: MemoryStore, tmp_path: Path, language_models: LanguageModels) -> Words:
    """Canaries in every place where a user writes something, imported, edited and searched."""
    kinds = (*KINDS, "query", "edited", "deleted", "name", "wording", "member", "meta key")
    words = {kind: canary(kind.replace(" ", "")) for kind in kinds}
    notes = tmp_path / "source" / words["path"]
    notes.mkdir(parents=True)
    (notes / f"{words['name']}.md").write_text(
        f"---\ntitle: {words['title']}\ntags: [{words['topic']}]\nbox: {words['metadata']}\n"
        f"{words['meta key']}: 1\n---\n"
        f"Some text about {words['text']} and #{words['hashtag']}.\n" + "Filler. " * 50
    )
    store.import_paths([notes])
    for n in range(12):  # enough small segments that some are merged
        store.add(f"{words['text']} again, {n}", collection=words["collection"])
    store.add("By reference", source=f"/{words['source']}", ref=words["source"])
    edited = store.add(f"First {words['edited']}")
    store.edit(edited.id, text=f"Then {words['text']}")
    store.delete(store.add(f"Soon {words['deleted']}").id)
    store.change_members(words["collection"], {words["member"]: "owner"})
    for mode in ("hybrid", "keyword", "vector"):
        store.search(f"{words['text']} {words['query']}", mode=mode, explain=True)
    store.search(f'"some text" topic:{words["topic"]}', sealed=True)
    store.search(words["text"], mode="literal")
    language_models.add("writer", f"lex: {words['wording']}\nvec: more of {words['wording']}\n")
    for _ in range(2):  # asked, and found again
        expanded = store.search(f"some {words['query']}", expander="writer", explain=True)
        assert words["wording"] in str(expanded.explain)
    store.ask(f"{words['query']} {words['text']}", model="writer", expander="writer")
    store.reindex()
    return words


def command(*arguments: str, key_file: Path) -> subprocess.CompletedProcess[str]:
    """A command of the terminal, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "memory_store", *arguments, "--key-file", str(key_file)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_no_canary_stands_in_any_file_open_or_locked(
    store: MemoryStore, filled: Words, tmp_path: Path, key_file: Path
) -> None:
    assert store.search(filled["text"], mode="keyword").rows, "the canaries are really inside"
    copied = subprocess.run(
        [
            sys.executable,
            "-m",
            "memory_store",
            "backup",
            str(store.path),
            str(tmp_path / "copy.db"),
        ],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert copied.returncode == 0, copied.stderr
    for _ in range(2):
        assert leaks(tmp_path, filled, beside=[tmp_path / "source"]) == set()
        store.lock()
    assert (tmp_path / "copy.db").stat().st_size > 50_000


def test_the_terminal_tells_errors_without_what_was_asked_or_kept(
    store: MemoryStore, filled: Words, tmp_path: Path, key_file: Path
) -> None:
    store.lock()
    with sqlite3.connect(store.path) as thief:
        thief.execute("update memory_bodies set body = randomblob(length(body))")
        thief.execute("update memories set head = randomblob(length(head)) where rowid % 2")
    thief.close()
    path, query = str(store.path), f"{filled['query']} {filled['text']}"
    failures = 0
    for arguments in (
        ("search", path, query),
        ("search", path, query, "--mode", "literal"),
        ("search", path, query, "--limit", "0"),
        ("list", path),
        ("verify", path),
        ("get", path, filled["source"]),
    ):
        done = command(*arguments, key_file=key_file)
        asked = {kind: word for kind, word in filled.items() if word not in arguments}
        failures += done.returncode != 0
        said = f"{done.stdout if done.returncode else ''}{done.stderr}".encode()
        assert "Traceback" not in done.stderr, arguments
        assert not any(word.encode() in said for word in asked.values()), arguments
    assert failures >= 4


def test_the_scan_finds_a_leak_in_every_encoding(
    store: MemoryStore, filled: Words, tmp_path: Path
) -> None:
    store.lock()
    for kind, word in filled.items():
        for name, spelled in spellings(word).items():
            leaky = tmp_path / "leaky"
            leaky.mkdir(exist_ok=True)
            (leaky / "leaky.db").write_bytes(b"x" * 1_000 + spelled + b"y" * 1_000)
            assert leaks(leaky, filled) == {(kind, "leaky.db")}, (kind, name)
    assert len(spellings(word)) >= 20


def test_the_scan_finds_a_column_that_was_not_sealed(store: MemoryStore, filled: Words) -> None:
    store.lock()
    with sqlite3.connect(store.path) as leaky:
        leaky.execute("create table leaks (content blob)")
        for word in filled.values():
            leaky.execute("insert into leaks values (?)", (word,))
    leaky.close()
    assert {kind for kind, _ in leaks(store.path.parent, filled)} == set(filled)
