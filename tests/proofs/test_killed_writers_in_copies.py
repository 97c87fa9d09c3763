"""Copies are vaults like any other: a writer that is killed in one loses nothing, and it goes on.

However the copy was made, by this program or by another; and however it is written to: through a
log, as this program does, or with a journal, as SQLite does in a file without another setting.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from counts import counted
from frozen import JOURNAL, NEWEST, left_as
from plugin.conftest import ALLOW, Filled, Serve

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))

from killing import CANARY, Length, Scene, die

from memory_store.cli import main
from memory_store.cli.backup import copy_vault
from memory_store.records import MemoryDraft
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

DEATHS = 100  # for each kind of copy
NOTES, ENTRIES = 12, 6
TEXT = "Earlier memory number {}, on the sluice and its keeper."
Copy = Callable[[Scene, Path], None]


def backup(scene: Scene, target: Path) -> None:
    copy_vault(scene.path, target)


def restored(scene: Scene, target: Path) -> None:
    """A backup that was put back where another, newer vault was."""
    shutil.copyfile(scene.path, target)
    kept = target.with_name("kept.db")
    copy_vault(scene.path, kept)
    kept.replace(target)


def exported_and_imported(scene: Scene, target: Path) -> None:
    run("export", str(scene.path), str(target.parent / "export"), "--ndjson")
    store, _ = MemoryStore.create(target, key_file=scene.key_file, embedder=str(scene.model))
    store.close()
    run("import", str(target), str(target.parent / "export" / "memories.ndjson"))


def vacuumed_into(scene: Scene, target: Path) -> None:
    with closing(sqlite3.connect(scene.path)) as connection:
        connection.execute("vacuum into ?", (str(target),))


def backed_up_by_sqlite(scene: Scene, target: Path) -> None:
    with closing(sqlite3.connect(scene.path)) as connection, closing(sqlite3.connect(target)) as to:
        connection.backup(to)


def with_its_log(scene: Scene, target: Path) -> None:
    """The file and its log, copied while a program has it open; not the index of the log."""
    with closing(sqlite3.connect(scene.path)) as connection:
        connection.execute("pragma wal_autocheckpoint = 0")
        with closing(sqlite3.connect(scene.path)) as writer:
            writer.execute("pragma wal_autocheckpoint = 0")
            with writer:
                writer.execute("create table if not exists another (value)")
                writer.execute("insert into another values (1)")
            shutil.copyfile(scene.path, target)
            log = scene.path.with_name(f"{scene.path.name}-wal")
            assert log.stat().st_size > 0
            shutil.copyfile(log, target.with_name(f"{target.name}-wal"))


def in_another_mode(scene: Scene, target: Path) -> None:
    shutil.copyfile(scene.path, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")


def with_other_pages(scene: Scene, target: Path) -> None:
    in_another_mode(scene, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        connection.execute("pragma page_size = 1024")
        connection.execute("vacuum")


COPIES: tuple[Copy, ...] = (
    backup,
    restored,
    exported_and_imported,
    vacuumed_into,
    backed_up_by_sqlite,
    with_its_log,
    in_another_mode,
    with_other_pages,
)


@pytest.fixture
def scene(
    make_store: Callable[..., MemoryStore],
    key_file: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Scene:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    with make_store() as store:
        store.add_many([MemoryDraft(TEXT.format(number)) for number in range(NOTES)])
    return Scene(store.path, key_file, tiny_model)


def run(*command: str) -> str:
    """What a command prints. It has to succeed."""
    result = CliRunner().invoke(main, [*command])
    assert result.exit_code == 0, f"{command}: {result.output}"
    return result.stdout


def copied(scene: Scene, copy: Copy, folder: Path) -> Scene:
    folder.mkdir()
    copy(scene, folder / "copy.db")
    return Scene(folder / "copy.db", scene.key_file, scene.model)


def mode_of(path: Path) -> str:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return str(connection.execute("pragma journal_mode").fetchone()[0])


def check_in_use(path: Path, expected: set[str]) -> None:
    """Search, verify and add, as its owner would: what is to be there is there, and whole."""
    options = ("--json", "--mode", "keyword", "--limit", "32")
    found = json.loads(run("search", str(path), "sluice", *options))
    assert len(found["rows"]) >= NOTES
    assert json.loads(run("verify", str(path), "--json"))["failures"] == []
    listed = json.loads(run("list", str(path), "--json", "--limit", "1000"))
    assert expected <= {memory["text"] for memory in listed}
    run("add", str(path), "One more, added afterwards.")
    assert not path.with_name(f"{path.name}-journal").exists()
    assert mode_of(path) == "wal"


EARLIER = {TEXT.format(number) for number in range(NOTES)}


@pytest.mark.sampled(2)
@pytest.mark.once
@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy.__name__)
def test_a_writer_killed_in_a_copy_loses_nothing_that_was_committed(
    scene: Scene, copy: Copy, tmp_path: Path
) -> None:
    choose = random.Random(copy.__name__)
    rehearsal = copied(scene, copy, tmp_path / "rehearsal")
    work = {"count": ENTRIES, "canary": CANARY}
    length = Length(**json.loads(die("add_and_edit", rehearsal.arguments(**work)).said[-1]))
    for number in range(counted(DEATHS)):
        one = copied(scene, copy, tmp_path / f"death-{number}")
        kind = choose.choice(["commits", "statements"])
        moment = (kind, float(choose.randint(1, getattr(length, kind))))
        death = die("add_and_edit", one.arguments(**work), moment)
        added = [line.split()[1] for line in death.said if line.startswith("added")]
        with one.reopened() as store:
            for memory in added:
                assert CANARY in store.get(memory).text
        check_in_use(one.path, EARLIER)
        shutil.rmtree(one.path.parent)


@pytest.mark.sampled(2)
@pytest.mark.once
@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy.__name__)
def test_what_a_journal_left_half_written_is_undone_at_the_next_opening(
    scene: Scene, copy: Copy, tmp_path: Path
) -> None:
    one = copied(scene, copy, tmp_path / "one")
    left_as(one.path, one.key_file, JOURNAL)
    check_in_use(one.path, {NEWEST, *EARLIER})


async def test_a_server_undoes_it_too(filled: Filled, serve: Serve, tmp_path: Path) -> None:
    copy = tmp_path / "notes.db"
    copy_vault(filled.path, copy)
    left_as(copy, filled.key_file, JOURNAL)
    served = await serve(
        copy, options={"notes": {"key-file": str(filled.key_file), "allow": ALLOW}}
    )
    root = served.by("root")
    found = await root.get(".json?q=sluice&mode=keyword")
    assert [row["title"] for row in found.json()["rows"]], found.text
    assert (await root.get("/notes/memories.json")).status_code == 200
    headers = {"Authorization": "Bearer nothing"}
    added = await root.send("POST", f"{root.base}/memories.json", {"text": "more"}, headers=headers)
    assert added.status_code == 201, added.text


@pytest.mark.once
@pytest.mark.parametrize("copy", COPIES, ids=lambda copy: copy.__name__)
def test_a_copy_is_one_file_written_through_a_log_once_it_was_open(
    scene: Scene, copy: Copy, tmp_path: Path
) -> None:
    one = copied(scene, copy, tmp_path / "one")
    if copy in (backup, restored, exported_and_imported):
        assert mode_of(one.path) == "wal"
        for beside in ("-wal", "-shm"):
            one.path.with_name(one.path.name + beside).unlink(missing_ok=True)
    with one.reopened() as store:
        assert {memory.text for memory in store.list()} >= EARLIER
    assert mode_of(one.path) == "wal"


@pytest.mark.once
def test_a_copy_without_its_log_is_an_older_vault_and_says_so(scene: Scene, tmp_path: Path) -> None:
    older = tmp_path / "older.db"
    with MemoryStore.open(scene.path, key_file=scene.key_file) as store:
        store.add("In the log, and nowhere else.")
        assert scene.path.with_name(f"{scene.path.name}-wal").stat().st_size > 0
        shutil.copyfile(scene.path, older)
    with MemoryStore.open(older, key_file=scene.key_file) as store:
        assert store.older() is not None
        assert {memory.text for memory in store.list()} == EARLIER
        assert store.verify()["failures"] == []
