"""import, export and backup: what goes in and comes back, counted and named."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest
from typing_commands import Vault, run

from memory_store.cli import progress


def test_import_counts_and_a_second_import_changes_nothing(empty_vault: Vault, notes: Path) -> None:
    first = empty_vault.run("import", str(notes), "--no-embed")
    assert "imported 5, unchanged 0, replaced 0, skipped 0, failed 0" in first.stdout
    again = empty_vault.run("import", str(notes), "--no-embed")
    assert "imported 0, unchanged 5, replaced 0, skipped 0, failed 0" in again.stdout
    assert first.exit_code == again.exit_code == 0


def test_import_without_a_path_reads_every_known_source_again(vault: Vault, notes: Path) -> None:
    (notes / "bread.md").write_text("# Rye bread\n\nNow with caraway.\n", encoding="utf-8")
    result = vault.run("import", "--no-embed")
    assert "imported 0, unchanged 4, replaced 1" in result.stdout, result.output


def test_a_long_import_writes_a_line_of_figures_now_and_then_where_no_one_watches(
    empty_vault: Vault, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = empty_vault.run("import", str(notes), "--no-embed", "--dry-run")
    assert short.stderr == ""
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.0)
    lines = empty_vault.run("import", str(notes), "--no-embed").stderr.splitlines()
    assert lines[0] == "0 of 5"
    assert lines[-1].startswith("5 of 5")
    assert not any(file.name in line for file in notes.rglob("*.*") for line in lines)


def test_import_reads_standard_input(empty_vault: Vault) -> None:
    result = empty_vault.run("import", "-", "--no-embed", input="Überall Äpfel\n".encode())
    assert result.exit_code == 0, result.output
    assert empty_vault.json("search", "Äpfel", "--mode", "keyword")["rows"]


def test_an_import_that_fails_for_one_file_keeps_the_others(
    empty_vault: Vault, notes: Path
) -> None:
    broken = notes / "broken.json"
    broken.write_text('{"text": ', encoding="utf-8")
    result = empty_vault.run("import", str(notes), str(broken), "--no-embed")
    assert result.exit_code == 1
    assert "broken.json" in result.stderr
    assert "imported 5" in result.stdout
    assert "failed 1" in result.stdout


def test_what_another_commit_lacks_is_in_the_trash_and_it_is_said_how_many(
    empty_vault: Vault, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()

    def git(*words: str) -> None:
        person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", "-C", str(tree), *person, *words], check=True)

    for name in ("kept.py", "old.py"):
        (tree / name).write_text(f"# {name}\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    empty_vault.run("import", str(tree), "--no-embed")
    git("rm", "-q", "old.py")
    git("commit", "-qm", "two")
    assert "gone from its source" in empty_vault.run("import", "--keep", "--dry-run").stderr
    assert "in the trash" not in empty_vault.run("import", "--dry-run").stderr
    result = empty_vault.run("import", "--no-embed")
    assert f"forgotten: {tree / 'old.py'}" in result.stderr
    assert "in the trash: 1 file that the commit of their work tree lacks" in result.stderr
    assert "old.py" in empty_vault.run("trash").stdout


def test_what_an_import_forgets_is_named(vault: Vault, notes: Path) -> None:
    rows = notes / "rows.ndjson"
    rows.write_text("".join(f'{{"id": {n}, "text": "Row {n}."}}\n' for n in range(20)))
    assert vault.run("import", str(rows), "--no-embed").exit_code == 0
    for name in ("bread.md", "travel/lisbon.md"):
        (notes / name).unlink()
    words = ("import", str(notes), str(rows), "--no-embed", "--prune")
    trial = vault.run(*words, "--dry-run")
    gone = [str(notes / name) for name in ("bread.md", "travel/lisbon.md")]
    assert trial.stderr.splitlines() == [f"would be forgotten: {path}" for path in gone]
    rows.write_text('{"id": 0, "text": "Row 0."}\n')
    reported = vault.run(*words, "--dry-run").stderr.splitlines()
    assert len(reported) == 11
    assert reported[-1] == "would be forgotten: and 11 more (--verbose)"
    assert len(vault.run(*words, "--dry-run", "--verbose").stderr.splitlines()) == 21
    report = vault.json(*words)
    assert report["pruned"] == len(report["forgotten"]) == 21
    assert {*gone, f"{rows}: 19"} <= set(report["forgotten"])
    assert vault.json("stats")["memories"] == 4


def test_a_dry_run_changes_nothing(empty_vault: Vault, notes: Path) -> None:
    result = empty_vault.run("import", str(notes), "--no-embed", "--dry-run")
    assert result.stdout.startswith("dry run: imported 5")
    assert empty_vault.json("list") == []


def test_a_dry_run_counts_what_it_found_by_kind_and_says_why_the_rest_is_skipped(
    empty_vault: Vault, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.txt", "d.png", "e.png"):
        (folder / name).write_text(f"# Note {name}\n")
    chat = {"id": "1", "title": "Soil", "mapping": {}, "current_node": None}
    said = {"author": {"role": "user"}, "content": {"parts": ["Which soil?"]}}
    chat["mapping"] = {"n": {"message": said, "parent": None, "children": []}}
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([chat]))
    words = ("import", str(folder), str(export), "--dry-run")
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "ada@example.org", "The lease"
    mail.set_content("It is attached.")
    mail.add_attachment("It ends in May.", filename="lease.txt")
    (letters := tmp_path / "letter.eml").write_bytes(bytes(mail))
    sent = empty_vault.json("import", str(letters), "--dry-run")
    assert sent["kinds"] == {"mail": 1, "attachment": 1}
    assert "\nby kind: Markdown 2, text 1, ChatGPT 1\n" in empty_vault.run(*words).stdout
    report = empty_vault.json(*words)
    assert report["kinds"] == {"Markdown": 2, "text": 1, "ChatGPT": 1}
    assert report["skipped_for"] == {"no reader for .png": 2}
    assert empty_vault.json("import", str(folder))["kinds"] == {"Markdown": 2, "text": 1}
    assert empty_vault.json(*words)["kinds"] == {"ChatGPT": 1}


def test_links_that_lead_to_one_another_are_named(vault: Vault, tmp_path: Path) -> None:
    loop, new = tmp_path / "loop.db", tmp_path / "new.db"
    loop.symlink_to(loop.name)
    for said in (
        vault.run("import", str(loop), "--no-embed"),
        vault.run("sources", "show", str(loop)),
        run("init", str(loop), "--key-file", str(tmp_path / "keys" / "new.key")),
        run("init", str(new), "--key-file", str(loop)),
    ):
        assert said.exit_code in (1, 2), said.output
        assert str(loop) in said.stderr


def test_what_is_skipped_until_it_is_named_is_named(empty_vault: Vault, notes: Path) -> None:
    (notes / "people.csv").write_text("name,note\nBen,nuts\n", encoding="utf-8")
    (notes / "photo.jpg").write_bytes(b"\xff\xd8")
    said = empty_vault.run("import", str(notes), "--no-embed").stderr.splitlines()
    assert "skipped: 1 file: no reader for .jpg" in said
    assert any(
        line.startswith(f"skipped: {notes / 'people.csv'}: .csv holds many records")
        for line in said
    )


def test_a_backup_opens_with_the_same_key(vault: Vault, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "copy.db"
    copy.parent.mkdir()
    assert run("backup", str(vault.path), str(copy)).exit_code == 0
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    again = Vault(copy, vault.key_file, vault.recovery_code)
    assert {m["id"] for m in again.json("list")} == {m["id"] for m in vault.json("list")}
    assert [p.name for p in copy.parent.iterdir() if p.suffix == ".db"] == ["copy.db"]


def test_a_backup_into_a_folder_has_the_name_of_the_vault(vault: Vault, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    result = run("backup", str(vault.path), str(folder))
    copy = folder / vault.path.name
    assert (result.exit_code, result.stdout.split(": ")[0]) == (0, str(copy)), result.stderr
    assert [*folder.iterdir()] == [copy]  # and no files of a log


def test_a_backup_is_not_written_to_standard_output(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("backup", str(vault.path), "-")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name one" in result.stderr
    assert not Path("-").exists()


def test_what_may_not_be_read_is_named_and_all_else_is_imported(
    empty_vault: Vault, notes: Path, tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    (locked / "note.md").write_text("Not to be read")
    secret = tmp_path / "secret.md"
    secret.write_text("Not to be read either")
    try:
        secret.chmod(0)
        locked.chmod(0)
        if os.access(locked, os.R_OK):
            pytest.skip("this user may read anything")
        names = [str(secret), str(locked), f"{locked}/note.md", f"{locked}/notes.zip"]
        result = empty_vault.run("import", *names, str(notes), "--no-embed", "--verbose")
    finally:
        locked.chmod(0o700)
    assert result.exit_code == 1
    assert "imported 5, unchanged 0, replaced 0, skipped 0, failed 4" in result.stdout
    for name in names:
        assert re.search(rf"^failed: {name}/?: permission denied$", result.stderr, re.M)


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_import_that_finds_no_more_room_says_what_is_kept(vault: Vault, tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(f"Dyke {number}. " * 2_000)
    with no_file_grows_beyond(vault.path.stat().st_size):
        result = vault.run("import", str(tmp_path), "--no-embed")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {vault.path.name}: ")
    assert result.stderr.endswith(". What was imported so far is kept: run it again to go on\n")
    assert vault.run("import", str(tmp_path), "--no-embed").exit_code == 0


def test_a_temporary_folder_without_room_is_named(vault: Vault, tmp_path: Path) -> None:
    """Starts a process, which unpacks the model that tells languages."""
    (tmp_path / "dyke.txt").write_text("The dyke is grazed by sheep.")
    words = ["import", str(vault.path), str(tmp_path / "dyke.txt"), "--no-embed"]
    with no_file_grows_beyond(vault.path.stat().st_size):
        result = subprocess.run(
            [sys.executable, "-m", "memory_store", *words, "--key-file", str(vault.key_file)],
            stderr=subprocess.PIPE,
            text=True,
        )
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: {tempfile.gettempdir()}, where the model that tells")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder here that takes no file")
def test_a_folder_that_takes_no_backup_is_named(vault: Vault) -> None:
    result = run("backup", str(vault.path), "/proc/notes.db")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: /proc/notes.db: ")


def test_a_backup_never_overwrites(vault: Vault, tmp_path: Path) -> None:
    taken = tmp_path / "taken.db"
    taken.write_text("precious")
    result = run("backup", str(vault.path), str(taken))
    assert result.exit_code == 2
    assert taken.read_text() == "precious"


def test_an_export_imported_again_gives_the_same_memories(
    vault: Vault, make_vault: Callable[[str], Vault], tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    assert vault.run("export", str(folder)).exit_code == 0
    other = make_vault("other.db")
    assert other.run("import", str(folder), "--no-embed").exit_code == 0
    kept = ("id", "title", "text", "topics", "type", "created")

    def reported(from_vault: Vault) -> list[tuple[object, ...]]:
        return sorted(tuple(map(str, (m[k] for k in kept))) for m in from_vault.json("list"))

    assert reported(other) == reported(vault)


def test_an_export_whose_terminal_is_closed_leaves_no_plain_text(
    empty_vault: Vault, tmp_path: Path
) -> None:
    """Takes some seconds: an export that can be stopped in the middle needs many memories."""
    many, folder = tmp_path / "many.ndjson", tmp_path / "out"
    many.write_text("".join(json.dumps({"text": f"Note {n}."}) + "\n" for n in range(3000)))
    assert empty_vault.run("import", str(many), "--no-embed").exit_code == 0
    folder.mkdir()
    command = [sys.executable, "-m", "memory_store", "export", str(empty_vault.path)]
    command += [str(folder / "plain"), "--key-file", str(empty_vault.key_file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        while not list(folder.glob("plain-unfinished-*/*/*")) and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGTERM)
        _, reported = running.communicate(timeout=300)
    assert (running.returncode, reported) == (130, "Stopped.\n")
    assert list(folder.iterdir()) == []


def test_links_to_two_notes_of_one_title_say_which(vault: Vault, tmp_path: Path) -> None:
    folder = tmp_path / "twins"
    (folder / "sub").mkdir(parents=True)
    (folder / "Twin.md").write_text("One.")
    (folder / "sub" / "Twin.md").write_text("Two.")
    (folder / "All.md").write_text("[[Twin]] and [[sub/Twin]]")
    assert vault.run("import", str(folder), "--no-embed").exit_code == 0
    shown = vault.run("links", "All.md").output
    assert "Twin (Twin)" in shown
    assert "Twin (sub/Twin)" in shown


def test_an_edit_in_the_vault_that_a_changed_file_replaces_is_named_and_can_be_brought_back(
    vault: Vault, notes: Path
) -> None:
    assert vault.run("edit", "bread.md", "--text", "Bake it darker.").exit_code == 0
    again = vault.run("import", str(notes), "--no-embed")
    assert (again.stderr.count("warning"), again.stdout.count("unchanged 5")) == (0, 1)
    (notes / "bread.md").write_text("# Rye bread\n\nFeed it twice.")
    (notes / "backup.txt").write_text("Restic runs at three.")
    replaced = vault.run("import", str(notes), "--no-embed")
    (warning,) = [line for line in replaced.stderr.splitlines() if line.startswith("warning")]
    assert "bread.md: it was changed in the vault: what the file says was taken, " in warning
    assert str(vault.path) not in warning, "a server shows it to members, too"
    restore = ("trash", "restore", str(vault.path), warning.rpartition(" ")[2])
    assert run(*restore, "--key-file", str(vault.key_file)).exit_code == 0
    assert vault.json("get", "bread.md")["text"] == "Bake it darker."
    otherwise = vault.run("import", str(notes), "--no-embed", "--topic", "food")
    assert otherwise.stderr.count("changed in the vault: what the file says was taken") == 1


@pytest.mark.in_a_file
def test_an_export_names_what_is_damaged_and_writes_the_rest_where_you_ask_for_that(
    vault: Vault, tmp_path: Path
) -> None:
    ids = {one["id"] for one in vault.json("list")}
    with closing(sqlite3.connect(vault.path)) as connection, connection:
        (damaged,) = connection.execute("select min(id) from memories").fetchone()
        body = "(select content from memories where id = ?)"
        connection.execute(
            f"update memory_bodies set body = zeroblob(length(body)) where id = {body}", [damaged]
        )
    refused = vault.run("export", str(tmp_path / "all"))
    assert refused.exit_code == 1
    assert "give --skip-damaged, too" in refused.stderr
    assert not (tmp_path / "all").exists()
    written = vault.run("export", str(tmp_path / "rest"), "--ndjson", "--skip-damaged")
    assert written.exit_code == 1
    assert f"left out {damaged}: " in written.stderr
    lines = (tmp_path / "rest" / "memories.ndjson").read_text("utf-8").splitlines()
    assert {json.loads(line)["id"] for line in lines} == ids - {damaged}


def test_an_export_can_be_piped(vault: Vault) -> None:
    result = vault.run("export", "-", "--ndjson")
    assert result.exit_code == 0, result.output
    exported = {json.loads(line)["id"] for line in result.stdout.splitlines()}
    assert exported == {m["id"] for m in vault.json("list")}


def test_an_export_fills_new_folders_only(vault: Vault, notes: Path) -> None:
    before = sorted(notes.rglob("*"))
    result = vault.run("export", str(notes))
    assert result.exit_code == 1
    assert str(notes) in result.stderr
    assert sorted(notes.rglob("*")) == before


def test_sources_lists_what_was_imported_from_where_and_forgets_it(
    empty_vault: Vault, notes: Path
) -> None:
    assert "nothing was imported yet" in empty_vault.run("sources").stdout
    empty_vault.run("import", str(notes), "--no-embed")
    assert f"{notes}: 5 memories in personal" in empty_vault.run("sources").stdout
    (listed,) = empty_vault.json("sources")
    assert (listed["path"], listed["memories"]) == (str(notes), 5)
    assert (
        f"{notes}\n  5 memories in personal\n  last"
        in empty_vault.run("sources", "show", "1").stdout
    )
    assert empty_vault.run("sources", "edit", "1", "--exclude", "none*").exit_code == 0
    empty_vault.run("import", "--no-embed")
    assert listed["collection"] in empty_vault.run("sources", "show", "1").stdout
    assert "collection:" not in empty_vault.run("sources", "show", "1").stdout  # an id would follow
    removed = empty_vault.run("sources", "remove", str(notes))
    assert removed.exit_code == 0
    assert f"{notes} is no source any more. Its memories stay." in removed.stderr
    assert empty_vault.run("import").exit_code != 0
    assert empty_vault.run("sources", "remove", str(notes)).exit_code != 0


def test_of_a_source_that_is_gone_it_is_said_how_to_read_it_no_more(
    vault: Vault, notes: Path
) -> None:
    notes.rename(notes.with_name("elsewhere"))
    said = vault.run("import", "--no-embed")
    words = f"memory-store sources {vault.path} remove {notes}"
    assert (said.exit_code, words in said.stderr) == (1, True), said.stderr
    assert "to read it no more" not in vault.run("import", str(notes), "--no-embed").stderr
    assert vault.run("sources", "remove", str(notes)).exit_code == 0


def test_a_folder_without_anything_to_read_is_said_to_be_so(
    empty_vault: Vault, notes: Path, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    for words in ((str(tmp_path / "bare"),), (str(notes), "--glob", "*.xyz")):
        said = empty_vault.run("import", *words)
        assert (said.exit_code, "nothing to import" in said.stderr) == (0, True)
    assert "nothing to import" not in empty_vault.run("import", str(notes), "--no-embed").stderr


def test_the_trash_shows_the_version_of_a_long_title(vault: Vault, tmp_path: Path) -> None:
    title = "The long title of a memory that was changed by an import " * 3
    file = tmp_path / "long.md"
    for text in ("One.", "Two."):
        file.write_text(f"# {title}\n\n{text}")
        vault.run("import", str(file), "--no-embed")
    (line,) = vault.run("trash", env={"COLUMNS": "80"}).stdout.splitlines()
    assert line.endswith("…  (version 1)")
    assert len(line) <= 80


def test_a_source_is_shown_edited_and_removed_with_its_memories(vault: Vault) -> None:
    assert re.match(r"1  /.*: \d+ memories in personal, \d{4}-", vault.run("sources").stdout)
    shown = vault.run("sources", "show", "1")
    assert "last imported" in shown.stdout, shown.output
    edited = vault.run("sources", "edit", "1", "--exclude", "drafts/*")
    assert "  exclude: drafts/*" in edited.stdout, edited.output
    assert vault.run("sources", "show", "2").exit_code == 1
    assert vault.run("sources", "edit", "1").exit_code == 2
    assert vault.run("sources", "--exclude", "x").exit_code == 2
    gone = vault.run("sources", "remove", "1", "--with-memories", "--yes")
    assert "nothing was imported yet" in gone.stdout
    assert "in the trash for 30 days" in gone.stderr
    assert vault.json("list") == []
    assert vault.run("undo").exit_code == 0
    assert vault.json("list")
