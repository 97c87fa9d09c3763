"""A file that holds, by Git's own word, what was imported is not opened; all others are."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest
from own_process import ended

from memory_store.importing.source_file import SourceFile
from memory_store.importing.walker import walk
from memory_store.store import MemoryStore

Put = Callable[[str, "str | bytes"], Path]
PERSON = ("-c", "user.name=Ada Quill", "-c", "user.email=ada@example.org")


def git(*words: str) -> str:
    done = ended("git", "-C", "repo", *PERSON, *words, check=True)
    return done.stdout


def commit() -> None:
    git("add", "-A")
    git("commit", "-qm", "one", "--allow-empty")


def known_by_git(folder: str = "repo") -> set[str]:
    """The files that an import would ask its ledger about."""
    asked: set[str] = set()

    def ask(root: Path, blobs: Mapping[str, bytes]) -> Mapping[str, bytes]:
        asked.update(blobs)
        return {}

    list(walk(folder, as_before=ask))
    return asked


def on_disk() -> dict[str, str]:
    """What the plain walk finds: each file and its text."""
    files = [one for one in walk("repo") if isinstance(one, SourceFile)]
    texts = {one.ref: f"{one.path.read_text().rstrip()}\n" for one in files}
    return {ref: text for ref, text in texts.items() if text.strip()}


def imported(store: MemoryStore) -> dict[str, str]:
    """What the vault holds after another import."""
    store.import_paths(["repo"], embed=False, prune=True)
    held = [store.get(one.id) for one in store.list(limit=100)]
    return {str(one.ref): f"{one.text}\n" for one in held}


@pytest.fixture
def repo(put: Put) -> None:
    for name in "abcdef":
        put(f"repo/deep/{name}.py", f"def {name}():\n    return '{name}'\n")
    put("repo/notes.md", "# Notes\n\nOf this place.\n")
    git("init", "-q", "-b", "main")
    git("config", "core.autocrlf", "false")
    commit()


def changes(put: Put) -> dict[str, Callable[[], object]]:
    """What happens to files, by the words for it."""

    def edit(name: str, text: str) -> None:
        put(f"repo/{name}", text)

    def unseen() -> None:
        """Of one size and time stamp as before: its number of changes alone shows it."""
        path = Path("repo/deep/a.py")
        status = path.stat()
        edit("deep/a.py", "def a():\n    return 'A'\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def hidden(flag: str, name: str) -> None:
        git("update-index", flag, name)
        edit(name, f"# {flag} {random.random()}\n")

    def filtered() -> None:
        git("config", "filter.short.clean", "head -n 1")
        edit(".gitattributes", "*.md filter=short\n")
        commit()
        edit("notes.md", f"# Notes\n\n{random.random()}\n")
        git("add", "-A")

    def ends_of_lines() -> None:
        git("config", "core.autocrlf", "true")
        path = Path("repo/deep/b.py")
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    def other_branch() -> None:
        git("checkout", "-q", "-b", "other")
        edit("deep/c.py", "def c():\n    return 3\n")
        git("mv", "deep/d.py", "moved.py")
        commit()

    return {
        "nothing": lambda: None,
        "an edit": lambda: edit("deep/a.py", "def a():\n    return 1\n"),
        "the edit is committed": commit,
        "an edit that no size and no time shows": unseen,
        "it is put back": lambda: git("checkout", "-q", "--", "deep/a.py"),
        "another branch": other_branch,
        "the branch before": lambda: git("checkout", "-q", "main"),
        "a file marked assume-unchanged": lambda: hidden("--assume-unchanged", "deep/e.py"),
        "a file marked skip-worktree": lambda: hidden("--skip-worktree", "deep/f.py"),
        "they change once more": lambda: edit("deep/e.py", "x = 5\n"),
        "other ends of lines": ends_of_lines,
        "a filter that hides a change": filtered,
        "a new file that is only announced": lambda: (
            edit("new.py", "x = 1\n"),
            git("add", "-N", "new.py"),
        ),
        "it changes": lambda: edit("new.py", "x = 2\n"),
        "a file is ignored from now on": lambda: edit(".gitignore", "b.py\n"),
        "a file is gone": lambda: Path("repo/new.py").unlink(),
        "a link in the place of a file": lambda: (
            Path("repo/deep/c.py").unlink(),
            Path("repo/deep/c.py").symlink_to("d.py"),
        ),
        "no Git any more": lambda: Path("repo/.git/index").write_bytes(b"DIRC broken"),
    }


def test_an_import_that_asks_git_holds_what_is_on_the_disk(
    put: Put, store: MemoryStore, repo: None
) -> None:
    for words, change in changes(put).items():
        change()
        held, there = imported(store), on_disk()
        assert {ref: held.get(ref) for ref in there} == there, words
        assert all(Path("repo", ref).exists() for ref in held), words


def test_what_git_knows_is_not_opened_and_what_it_cannot_know_is(put: Put, repo: None) -> None:
    every = {f"deep/{name}.py" for name in "abcdef"} | {"notes.md"}
    assert known_by_git() == every
    put("repo/deep/a.py", "x = 1\n")
    put("repo/deep/untracked.py", "x = 1\n")
    git("update-index", "--assume-unchanged", "deep/b.py")
    git("update-index", "--skip-worktree", "deep/c.py")
    put("repo/.git/info/attributes", "d.py filter=unknown\ne.py ident\n")
    assert known_by_git() == {"deep/f.py", "notes.md"}
    git("config", "core.worktree", str(Path("repo/deep").resolve()))
    assert known_by_git() == set()


def test_files_as_before_are_counted_and_belong_to_their_source(
    put: Put, store: MemoryStore, repo: None
) -> None:
    store.import_paths(["repo/deep"], embed=False)
    assert store.import_paths(["repo"], embed=False).imported == 7
    report = store.import_paths(["repo"], embed=False)
    assert (report.imported, report.unchanged, report.replaced) == (0, 7, 0)
    report = store.import_paths(["repo"], embed=False, topics=["shop"])
    assert (report.unchanged, report.replaced) == (0, 7)  # what is asked of them has changed
    put("repo/.gitignore", "deep/\n")
    report = store.import_paths(["repo"], embed=False, topics=["shop"], prune=True)
    assert (report.unchanged, report.pruned) == (1, 0)


def test_no_filter_of_a_repository_is_run(put: Put, store: MemoryStore, repo: None) -> None:
    put("repo/.gitattributes", "*.py filter=evil\n")
    git("config", "filter.evil.clean", "touch ../ran; cat")
    git("config", "filter.evil.required", "true")
    Path("repo/deep/a.py").touch()
    store.import_paths(["repo"], embed=False)
    assert not Path("ran").exists()
    assert known_by_git() == {"notes.md"}


def test_an_empty_file_is_left_out_and_never_opened(
    put: Put, store: MemoryStore, repo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deep/__init__.py", "empty.md", "empty.txt"):
        put(f"repo/{name}", "")
    commit()
    opened: list[str] = []
    really = SourceFile.open

    def noted(file: SourceFile) -> BinaryIO:
        opened.append(file.ref)
        return really(file)

    monkeypatch.setattr(SourceFile, "open", noted)
    for expected in (7, 0):
        report = store.import_paths(["repo"], embed=False)
        assert (report.imported, report.skipped) == (expected, 3)
    assert not {one for one in opened if "empty" in one or "__init__" in one}
    put("repo/empty.md", "No longer so.\n")
    assert store.import_paths(["repo"], embed=False).imported == 1
    put("repo/empty.md", "")
    report = store.import_paths(["repo"], embed=False, prune=True)
    assert (report.skipped, report.pruned) == (3, 0)
