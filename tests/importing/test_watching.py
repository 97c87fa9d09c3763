"""Folders that are followed: what changes in them is in the vault soon, once, and no more."""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reading_files import write

from memory_store.actions.export import export_markdown
from memory_store.errors import BadInputError
from memory_store.importing import watcher
from memory_store.records import ImportReport
from memory_store.store import MemoryStore

SOON = 2.0  # seconds: what is promised
PATIENCE = 20.0  # for a machine that is busy with other tests


class Watched:
    """A vault that follows folders in a thread."""

    def __init__(self, store: MemoryStore, *paths: Path, **options: Any) -> None:
        self.store, self.reports = store, list[ImportReport]()
        self._stop = threading.Event()
        follow = store.watch(paths, embed=False, stopped=self._stop.is_set, **options)
        self._thread = threading.Thread(target=self._follow, args=(follow,))
        self._thread.start()
        self.until(lambda: self.reports)

    def _follow(self, reports: Iterator[ImportReport]) -> None:
        for report in reports:
            self.reports.append(report)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def until(self, holds: Callable[[], Any]) -> float:
        """Wait until it holds: the seconds that it took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < PATIENCE, f"not yet: {self.texts()}"
            assert self._thread.is_alive()
            time.sleep(0.02)
        return time.monotonic() - began

    def texts(self) -> list[str]:
        return sorted(one.text for one in self.store.every())


@pytest.fixture
def follow(store: MemoryStore) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def start(*paths: Path, **options: Any) -> Watched:
        for path in paths:
            written_long_ago(path)
        made.append(Watched(store, *paths, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_saved_note_is_found_soon(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", lease="The lease.")
    watched = follow(notes)
    assert watched.texts() == ["The lease."]
    write(notes, rent="The rent is due.")
    seconds = [watched.until(lambda: store.search("rent due", mode="keyword").rows)]
    write(notes, rent="The rent is paid.")
    seconds.append(watched.until(lambda: "The rent is paid." in watched.texts()))
    assert min(seconds) < SOON  # of two: other tests may have had the processor in one
    assert len(store.list()) == 2


def test_a_file_is_read_when_its_writer_is_done(
    store: MemoryStore,
    follow: Callable[..., Watched],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Takes some seconds: on a busy machine a writer pauses for longer than the usual moment."""
    monkeypatch.setattr(watcher, "SETTLED", 3.0)
    notes = write(tmp_path / "notes", lease="The lease.")
    watched = follow(notes)
    with (notes / "long.md").open("w") as stream:
        for number in range(15):
            stream.write(f"Line {number}.\n")
            stream.flush()
            time.sleep(0.1)
            assert watched.texts() == ["The lease."]
    watched.until(lambda: len(watched.texts()) == 2)
    assert "Line 14." in watched.texts()[0]


def test_a_look_that_takes_long_reads_what_has_settled_meanwhile(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", a="The lease.")
    written_long_ago(notes)
    write(notes, z="The rent.")

    def slow(name: str, done: int, total: int | None) -> None:
        time.sleep(watcher.SETTLED if name == "a.md" else 0)

    found: list[int] = []
    for report in store.watch(notes, embed=False, progress=slow, stopped=lambda: bool(found)):
        found.append(report.imported)
    assert found == [2]


def test_what_an_editor_does_to_save_makes_and_loses_no_memory(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", lease="The lease.")
    watched = follow(notes, prune=True)
    (before,) = store.list()
    (notes / ".lease.md.swp").write_text("swap")
    (notes / "4913").write_text("")
    (notes / "~$lease.docx").write_text("open")
    (notes / "lease.md").rename(notes / "lease.md~")  # vim: the old one aside, then a new file
    time.sleep(0.5)
    (notes / "lease.md").write_text("The lease, renewed.")
    (notes / "lease.md~").unlink()
    watched.until(lambda: watched.texts() == ["The lease, renewed."])
    (notes / "lease.tmp").write_text("The lease, once more.")
    (notes / "lease.tmp").replace(notes / "lease.md")
    watched.until(lambda: watched.texts() == ["The lease, once more."])
    (after,) = store.list()
    assert after.id == before.id
    assert not any(report.pruned or report.failed for report in watched.reports)


def test_a_renamed_note_of_an_export_keeps_its_memory(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    write(tmp_path / "first", lease="The lease.", rent="The rent.")
    store.import_paths([tmp_path / "first"])
    export_markdown(store.every(), tmp_path / "notes")
    shutil.rmtree(tmp_path / "first")
    for one in store.list():
        store.delete(one.id, now=True)
    watched = follow(tmp_path / "notes")
    before = {one.text: one.id for one in store.every()}
    (renamed, removed) = (tmp_path / "notes" / "personal").iterdir()
    renamed.rename(renamed.with_name("renamed.md"))
    time.sleep(watcher.SETTLED + watcher.GONE)
    removed.unlink()
    watched.until(lambda: any(report.pruned for report in watched.reports))
    (kept,) = store.every()
    assert before[kept.text] == kept.id


def test_renamed_folders_keep_their_memories_and_deleted_files_go_to_the_trash_or_are_named(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", kept="Kept.")
    write(notes / "old", a="Note a.", b="Note b.")
    watched = follow(notes, prune=False)
    before = {one.text: one.id for one in store.every()}
    (notes / "old").rename(notes / "new")
    watched.until(lambda: sum(len(report.moved) for report in watched.reports) == 2)
    assert {one.text: one.id for one in store.every()} == before
    (notes / "new" / "a.md").unlink()
    watched.until(lambda: watched.reports[-1].vanished)
    assert watched.reports[-1].vanished == (str(notes / "new" / "a.md"),)
    assert len(store.list()) == 3
    watched.close()
    pruned = follow(notes)
    assert pruned.texts() == ["Kept.", "Note b."]
    (notes / "new" / "b.md").unlink()
    pruned.until(lambda: pruned.texts() == ["Kept."])
    assert [one.change for one in store.trash.list()].count("deleted") == 2


def test_a_drive_that_goes_away_takes_nothing_along_and_is_followed_when_it_is_back(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    """Twice, each time said: long before the next look that needs no event (60 s)."""
    notes = write(tmp_path / "notes", lease="The lease.")
    watched = follow(notes, prune=True)
    for number in range(2):
        notes.rename(tmp_path / "unplugged")
        watched.until(lambda: watched.reports[-1].failures)
        ((name, why),) = watched.reports[-1].failures
        assert name == str(notes)
        assert (
            why == "not there now; its memories are kept, and it is followed again when it is back"
        )
        assert len(watched.texts()) == 1 + number
        (tmp_path / "unplugged").rename(notes)
        write(notes, **{f"rent {number}": f"The rent {number}."})
        watched.until(lambda number=number: f"The rent {number}." in watched.texts())


def test_a_file_that_was_deleted_while_a_folder_could_not_be_listed_goes_to_the_trash_after_that(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", lease="The lease.", rent="The rent.")
    closed = write(notes / "closed", rye="Rye.")
    watched = follow(notes, prune=True, rescan=1.0)
    try:
        closed.chmod(0)
        if os.access(closed, os.R_OK):
            pytest.skip("this user may list anything")
        (notes / "rent.md").unlink()
        refused = "so nothing of"
        watched.until(lambda: any(refused in str(one.failures) for one in watched.reports))
        assert len(watched.texts()) == 3
    finally:
        closed.chmod(0o700)
    watched.until(lambda: watched.texts() == ["Rye.", "The lease."])


def test_a_folder_that_takes_the_place_of_another_is_followed(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    notes = write(tmp_path / "notes", lease="The lease.")
    other = write(tmp_path / "other", lease="The lease.")
    watched = follow(notes)
    notes.rename(tmp_path / "aside")
    other.rename(notes)
    time.sleep(1.0)  # that it looks at what has come, before the change that it must hear of
    write(notes, rent="The rent.")
    watched.until(lambda: watched.texts() == ["The lease.", "The rent."])


def test_without_a_path_every_known_source_is_followed_and_a_single_file_too(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path
) -> None:
    with pytest.raises(BadInputError, match="nothing to watch"):
        store.watch()
    file = write(tmp_path / "elsewhere", one="One.") / "one.md"
    store.import_paths([write(tmp_path / "notes", lease="The lease.")], topics=["home"])
    store.import_paths([file], embed=False)
    watched = follow()
    write(tmp_path / "notes", rent="The rent.")
    file.write_text("One, and more.")
    watched.until(lambda: watched.texts() == ["One, and more.", "The lease.", "The rent."])
    (rent,) = [one for one in store.every() if one.text == "The rent."]
    assert rent.topics == ("home",)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "events", [pytest.param(1_000), pytest.param(10_000, marks=pytest.mark.soak)]
)
def test_a_storm_of_events_ends_in_what_the_folder_is(
    store: MemoryStore, follow: Callable[..., Watched], tmp_path: Path, events: int
) -> None:
    """Takes some seconds: a thousand files written, replaced, renamed and removed."""
    notes = write(tmp_path / "notes", kept="Kept.")
    watched = follow(notes, prune=True)
    storm(notes, events, random.Random(7))
    watched.until(lambda: watched.texts() == there(notes))
    assert len({one.ref for one in store.every()}) == len(there(notes))
    assert [one for report in watched.reports for one in report.failures] == []
    assert store.import_paths([notes], prune=True, embed=False).summary().startswith("imported 0, ")
    assert watched.texts() == there(notes)


def written_long_ago(folder: Path) -> None:
    """So that the first look reads them."""
    for path in folder.rglob("*"):
        os.utime(path, (1.7e9, 1.7e9))


def there(notes: Path) -> list[str]:
    return sorted(path.read_text() for path in notes.rglob("*.md"))


def storm(notes: Path, events: int, chance: random.Random) -> None:
    """Many changes without a rest, each text once."""
    for number in range(events):
        files = sorted(notes.rglob("*.md"))
        one = chance.choice(files)
        target = notes / f"folder {number % 7}" / f"note {number}.md"
        target.parent.mkdir(exist_ok=True)
        match chance.randrange(6):
            case 0 if len(files) > 9:
                one.unlink()
            case 1:
                one.rename(target)
            case 2:
                aside = one.with_suffix(".tmp")
                aside.write_text(f"Replaced {number}.")
                aside.replace(one)
            case 3 if len(files) > 30:
                shutil.rmtree(chance.choice([p for p in notes.iterdir() if p.is_dir()]))
            case _:
                target.write_text(f"Written {number}.")
        if not any(notes.rglob("*.md")):
            (notes / "kept.md").write_text("Kept.")
