"""Who changed a part of a source file last, as Git says it at the import."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.code.blame import changes_in, last_change
from memory_store.store import MemoryStore

Put = Callable[[str, "str | bytes"], Path]

FIRST = "def zanzibar():\n" + "    step = 1\n" * 150 + "    return 0\n"
SECOND = "def quixotic():\n" + "    step = 2\n" * 150 + "    return 0\n"


def commit(author: str, day: str) -> None:
    who = f"user.name={author}", "user.email=someone@example.org"
    at = {"GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
    git = ["git", "-C", "repo", *(word for one in who for word in ("-c", one))]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True, env={"PATH": "/usr/bin:/bin", **at})


@pytest.fixture
def repo(put: Put) -> Path:
    """A work tree of one file, whose second part came later, by another person."""
    subprocess.run(["git", "init", "-q", "repo"], check=True)
    put("repo/box.py", FIRST)
    commit("Ada Flamingo", "2021-03-04")
    put("repo/box.py", f"{FIRST}\n\n{SECOND}")
    commit("Grace Wigwam", "2023-05-06")
    return Path("repo")


def test_a_result_says_who_changed_that_part_last_and_when(store: MemoryStore, repo: Path) -> None:
    store.import_paths([repo], embed=False, blame=True)
    said = {
        query: (row.last_author, row.last_changed)
        for query in ("zanzibar", "quixotic")
        for row in store.search(query, mode="keyword").rows
    }
    assert said["zanzibar"] == ("Ada Flamingo", "2021-03-04")
    assert said["quixotic"] == ("Grace Wigwam", "2023-05-06")
    context = store.code.context()
    assert dict(context.authors) == {"Ada Flamingo": 1, "Grace Wigwam": 1}
    assert dict(context.last_changed) == {"box.py": "2023-05-06"}
    written = b"".join(one.read_bytes() for one in store.path.parent.glob("*.db*"))
    for secret in (b"flamingo", b"wigwam"):
        assert secret not in written.lower()


def test_without_being_asked_an_import_has_no_authors(store: MemoryStore, repo: Path) -> None:
    store.import_paths([repo], embed=False)
    (row,) = store.search("zanzibar", mode="keyword").rows
    assert (row.last_author, row.last_changed) == (None, None)
    again = store.import_paths([repo], embed=False, blame=True)
    assert (again.replaced, again.warnings) == (1, ())
    assert store.import_paths([], embed=False).unchanged == 1  # asked as the last time
    (row,) = store.search("zanzibar", mode="keyword").rows
    assert row.last_author == "Ada Flamingo"


def test_what_is_not_committed_is_imported_and_said_to_have_no_author(
    store: MemoryStore, repo: Path, put: Put
) -> None:
    put("repo/new.py", "def umbrella():\n    return 1\n")
    put("repo/box.py", f"{FIRST}\n\n{SECOND}".replace("step = 2", "step = 3"))
    report = store.import_paths([repo], embed=False, blame=True)
    assert report.imported == 2
    ((name, reason),) = report.warnings
    assert "new.py" in name
    assert "no author" in reason
    (row,) = store.search("umbrella", mode="keyword").rows
    assert row.last_author is None
    (row,) = store.search("quixotic", mode="keyword").rows
    assert row.last_author in ("Grace Wigwam", "Ada Flamingo")  # of the lines that are committed


def test_where_git_is_not_there_the_files_come_without_authors(
    store: MemoryStore, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    report = store.import_paths([repo], embed=False, blame=True)
    assert report.imported == 1
    assert sum("no git here" in line for line in report.degraded) == 1


def test_a_program_that_the_repository_names_is_not_run(
    store: MemoryStore, repo: Path, put: Put, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    put("repo/.gitattributes", "*.py diff=evil filter=evil\n")
    for name in ("diff.evil.textconv", "filter.evil.clean", "core.fsmonitor"):
        subprocess.run(["git", "-C", "repo", "config", name, f"touch {ran}; cat"], check=True)
    assert store.import_paths([repo], embed=False, blame=True).imported == 1
    assert not ran.exists()
    (row,) = store.search("quixotic", mode="keyword").rows
    assert row.last_author == "Grace Wigwam"


@pytest.mark.parametrize("written", ["x", 7, [1], [{"line": "a"}], {"line": 1}])
def test_metadata_of_that_name_that_says_something_else_says_nothing(written: object) -> None:
    assert not changes_in({"blame": written})
    assert last_change({"blame": written}, 1, 9) is None
