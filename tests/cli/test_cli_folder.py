"""``search --in FOLDER``: what was never imported is searched in memory, and nothing stays."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from own_process import python
from typing_commands import Vault, run

from memory_store.cli import folder as folders
from memory_store.store import MemoryStore

CODE = "class SessionStore:\n    def sign_cookie(self, payload):\n        return seal(payload)\n"


@pytest.fixture
def mixed(notes: Path) -> Path:
    """The five notes, and a file of source code beside them."""
    (notes / "shop.py").write_text(CODE)
    return notes


def found(folder: Path, *words: str) -> Any:
    result = run("search", "--in", str(folder), *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_notes_and_code_are_found_without_a_vault_or_a_key(mixed: Path) -> None:
    notes = found(mixed, "when does the lease end")
    assert (notes["rows"][0]["ref"], notes["rows"][0]["title"]) == ("lease.md", "Lease of the flat")
    (code, *_) = found(mixed, "sign_cookie")["rows"]
    assert (code["ref"], code["line"], code["type"]) == ("shop.py", 1, "code")
    (match,) = found(mixed, r"sign_\w+", "--literal", "--all")["rows"]
    assert (match["ref"], match["matches"][0]["text"]) == ("shop.py", "sign_cookie")
    (node,) = found(mixed, "seal($X)", "--structural", "--language", "python")["rows"]
    assert node["ref"] == "shop.py"


def test_results_are_known_by_their_files(mixed: Path) -> None:
    words = ("search", "--in", str(mixed), "rye bread", "-n", "1")
    assert "bread.md" in run(*words).stdout
    head, _, row, *_ = run(*words, "--table").stdout.splitlines()
    assert (head.split()[-1], row.split()[-1]) == ("ref", "bread.md")
    assert run(*words, "--csv").stdout.count("bread.md") == 1


def test_pages_go_on_by_number(mixed: Path) -> None:
    words = ("lease Lisbon bread", "--mode", "keyword")
    whole = [row["ref"] for row in found(mixed, *words)["rows"]]
    first = found(mixed, *words, "-n", "1")
    assert first["next"] is None, "a token would be good for nothing"
    assert "more: --page 2" in run("search", "--in", str(mixed), *words, "-n", "1").stdout
    second = found(mixed, *words, "-n", "1", "--page", "2")
    assert [row["ref"] for row in (*first["rows"], *second["rows"])] == whole[:2]


def test_meaning_is_searched_when_it_is_asked_for(
    mixed: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    by_words = found(mixed, "sourdough")
    assert by_words["degraded"][0] == folders.BY_WORDS
    assert by_words["rows"][0]["vector_rank"] is None
    by_meaning = found(mixed, "sourdough", "--semantic")
    assert folders.BY_WORDS not in by_meaning["degraded"]
    assert by_meaning["rows"][0]["vector_rank"] is not None


def test_nothing_of_it_is_left_on_any_disk(mixed: Path, tmp_path: Path) -> None:
    """In a process of its own, with folders of its own for all that it could write."""
    places = {name: tmp_path / "own" / name for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for place in places.values():
        place.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if "MEMORY_STORE" not in name}
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = ["search", "--in", str(mixed), "sourdough lease", "--json"]
    done = python(
        "-m",
        "memory_store",
        *words,
        env={**kept, **{name: str(place) for name, place in places.items()}},
        cwd=places["HOME"],
        check=True,
    )
    assert len(json.loads(done.stdout)["rows"]) > 1
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    grammars = {path for path in after if path.suffix in (".so", ".dylib", ".dll")}
    assert {path: after[path] for path in after.keys() - grammars} == before
    assert not any(b"sourdough" in after[path] for path in grammars)


def refused(*words: str) -> str:
    result: Result = run("search", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_what_needs_a_vault_is_refused_by_name(mixed: Path, vault: Vault) -> None:
    here = ("--in", str(mixed), "lease")
    assert "--key-file: --in needs no key" in refused(*here, "--key-file", str(vault.key_file))
    assert "--passphrase: --in needs no key" in refused(*here, "--passphrase")
    assert "use --page" in refused(*here, "--continue", "x")
    assert "leave out --in or -i" in refused(*here, "-i")
    assert f"leave out {vault.path}" in refused(str(vault.path), *here)


def test_a_folder_that_cannot_be_searched_is_named(
    mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nowhere' does not exist" in refused("--in", str(tmp_path / "nowhere"), "lease")
    assert "is a file" in refused("--in", str(mixed / "lease.md"), "lease")
    (tmp_path / "empty").mkdir()
    assert "nothing in it can be searched" in refused("--in", str(tmp_path / "empty"), "lease")
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    too_large = refused("--in", str(mixed), "lease")
    assert "(3 files, 200 MB). Import it once: memory-store import" in too_large


def test_a_store_in_memory_is_used_by_several_threads_at_once() -> None:
    def writes(number: int) -> None:
        for turn in range(6):
            store.add(f"thread {number}, turn {turn}")

    def reads(_: int) -> None:
        for _ in range(6):
            store.list(limit=3)
            store.search("thread", mode="keyword")

    with MemoryStore.in_memory() as store, ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(work, number) for number, work in enumerate([writes, reads] * 2)]
        for job in jobs:
            job.result()
        assert len(store.list()) == 12
        for memory in store.every():  # who is inside may write
            store.edit(memory.id, title="Read and written")


def test_a_store_in_memory_takes_every_write() -> None:
    with MemoryStore.in_memory() as store:
        first = store.add("The lease ends in May", topics=["home"])
        store.edit(first.id, text="The lease ends in June")
        other = store.add("Rye bread")
        store.delete(other.id)
        assert [row.preview for row in store.search("lease").rows] == ["The lease ends in June"]
        assert not store.verify()["failures"]
