"""Which files an import takes, and that it never leaves the folder it was given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from reading_files import read

from memory_store.errors import BadInputError
from memory_store.importing.readers import read_file
from memory_store.importing.source_file import LIMITS, Failure, SourceFile
from memory_store.importing.walker import walk

Put = Callable[[str, "str | bytes"], Path]


def test_a_folder_gives_its_markdown_and_text_files_in_a_stable_order(put: Put) -> None:
    for name in ("b.md", "a.MD", "sub/deep/c.markdown", "sub/d.txt", "sub/e.json", "f.png", "g.py"):
        put(f"notes/{name}", "words")
    outcome = read("notes")
    assert outcome.refs == ["a.MD", "b.md", "sub/d.txt", "sub/deep/c.markdown"]
    rows = ".json holds many records: name it, or match it by a pattern, to import it"
    assert outcome.skips == {
        "notes/sub/e.json": rows,
        "notes/f.png": "no reader for .png",
        "notes/g.py": ".py is source code: taken from a Git work tree, or with --all-files",
    }
    assert not outcome.failures


def test_hidden_folders_and_node_modules_are_never_entered(put: Put) -> None:
    put("notes/a.md", "words")
    for folder in (".git", ".obsidian", ".trash", "node_modules", "sub/.hidden", "sub/__pycache__"):
        put(f"notes/{folder}/b.md", "words")
    put("notes/._a.md", "words")
    assert read("notes").refs == ["a.md"]


def test_other_kinds_are_taken_when_named_or_globbed(put: Put) -> None:
    put("notes/rows.ndjson", '{"id": "1", "text": "one"}\n')
    put("notes/main.py", "print('words')")
    put("notes/a.md", "words")
    assert read("notes").refs == ["a.md"]
    assert read("notes/main.py").only.text == "print('words')"
    assert read("notes", glob=["*.py", "*.ndjson"]).refs == ["main.py", "1"]


@pytest.mark.parametrize(
    ("pattern", "refs"),
    [
        ("*.md", ["a.md", "x/b.md", "x/y/c.md"]),
        ("x/*.md", ["x/b.md"]),
        ("x/**", ["x/b.md", "x/y/c.md", "x/z.txt"]),
        ("**/c.md", ["x/y/c.md"]),
        ("**/*.md", ["a.md", "x/b.md", "x/y/c.md"]),
        ("/a.*", ["a.md"]),
        ("[ab].md", ["a.md", "x/b.md"]),
        ("[!ab].md", ["x/y/c.md"]),
        ("?.txt", ["x/z.txt"]),
        ("nothing", []),
        ("a[", []),
    ],
)
def test_globs_choose_by_name_or_by_path(put: Put, pattern: str, refs: list[str]) -> None:
    for name in ("a.md", "x/b.md", "x/y/c.md", "x/z.txt"):
        put(f"notes/{name}", "words")
    assert sorted(str(ref) for ref in read("notes", glob=[pattern]).refs) == refs


def test_a_malformed_glob_is_the_callers_mistake(put: Put) -> None:
    put("a.md", "words")
    with pytest.raises(BadInputError, match=r"'\[z-a\]' is not a glob"):
        read(".", glob=["[z-a]"])


def test_excluded_files_and_folders_are_skipped_and_said(put: Put) -> None:
    for name in ("a.md", "drafts/b.md", "x/c.draft.md"):
        put(f"notes/{name}", "words")
    outcome = read("notes", exclude=["drafts/", "*.draft.md"])
    assert outcome.refs == ["a.md"]
    assert outcome.skips == {"notes/drafts/": "excluded", "notes/x/c.draft.md": "excluded"}
    assert read("notes/a.md", exclude=["a.*"]).skips == {"notes/a.md": "excluded"}


def test_a_link_out_of_the_folder_is_skipped_and_said(put: Put, here: Path) -> None:
    secret = put("secret/key.md", "the secret")
    put("notes/a.md", "words")
    (here / "notes/folder").symlink_to(secret.parent)
    (here / "notes/file.md").symlink_to(secret)
    (here / "notes/nothing.md").symlink_to(here / "gone")
    outcome = read("notes")
    assert [draft.text for draft in outcome.drafts] == ["words"]
    assert set(outcome.skips) == {"notes/folder", "notes/file.md", "notes/nothing.md"}
    assert "out of the folder" in outcome.skips["notes/file.md"]
    assert read("notes/file.md").only.text == "the secret"  # named by the user, it is wanted


def test_links_within_the_folder_neither_loop_nor_double(put: Put, here: Path) -> None:
    put("notes/sub/a.md", "words")
    (here / "notes/sub/up").symlink_to(here / "notes")
    (here / "notes/b.md").symlink_to("sub/a.md")
    (here / "notes/self.md").symlink_to("self.md")
    assert read("notes").refs == ["sub/a.md"]


def test_a_link_put_in_a_files_place_after_the_walk_is_not_followed(put: Put, here: Path) -> None:
    secret, note = put("secret.md", "the secret"), put("notes/a.md", "words")
    (file,) = walk("notes")
    assert isinstance(file, SourceFile)
    note.unlink()
    note.symlink_to(secret)
    (item,) = read_file(file)
    assert isinstance(item, Failure)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_neither_blocks_nor_is_read(put: Put, here: Path) -> None:
    put("notes/a.md", "words")
    os.mkfifo(here / "notes/pipe.md")
    outcome = read("notes", "/dev/null", "notes/pipe.md")
    assert outcome.refs == ["a.md"]
    assert outcome.skips == {"notes/pipe.md": "not a regular file"}
    assert set(outcome.failures) == {"/dev/null", "notes/pipe.md"}


def test_what_is_not_there_is_a_failure_and_the_rest_is_read(put: Put) -> None:
    put("a.md", "words")
    outcome = read("gone.md", "a.md", "bad\0name")
    assert outcome.refs == ["a.md"]
    assert outcome.failures["gone.md"] == "no such file or folder"
    assert len(outcome.failures) == 2


def test_a_file_reached_twice_is_read_once(put: Put, here: Path) -> None:
    put("notes/sub/a.md", "words")
    assert read("notes", "notes/sub", "notes/sub/a.md", here).refs == ["sub/a.md"]


def test_the_source_root_of_rows_is_their_own_file(put: Put, here: Path) -> None:
    put("notes/a.md", "words")
    put("notes/a.json", "[]")
    roots = {f.ref: f.root for f in walk("notes", ["*"]) if isinstance(f, SourceFile)}
    folder = (here / "notes").resolve()
    assert roots == {"a.md": folder, "a.json": folder / "a.json"}


def test_a_file_over_the_limit_is_a_failure_that_names_the_limit(put: Put) -> None:
    path = put("huge.md", "")
    os.truncate(path, LIMITS.bytes + 1)  # sparse: costs no disk
    assert read("huge.md").failures == {"huge.md": "larger than 50 MB"}


def test_folders_nested_beyond_reason_are_a_failure(here: Path, put: Put) -> None:
    put("deep/a.md", "words")
    put("deep/" + "d/" * 70 + "b.md", "words")
    outcome = read("deep")
    assert outcome.refs == ["a.md"]
    assert list(outcome.failures.values()) == ["deeper than 64 folders"]


def test_a_name_with_control_characters_cannot_write_to_the_terminal(put: Put) -> None:
    put("notes/\x1b[2J\n.md", "")
    assert read("notes").skips == {"notes/\\x1b[2J\\n.md": "empty"}


@pytest.mark.skipif(os.name == "nt", reason="Windows file names are Unicode")
def test_a_name_that_is_not_utf8_is_a_failure(here: Path) -> None:
    path = os.fsencode(here) + b"/caf\xe9.md"
    with open(path, "w") as stream:
        stream.write("words")
    assert read(".").failures == {r"caf\xe9.md": "the file's name is not valid UTF-8"}
