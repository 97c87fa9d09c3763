"""Originals: the files that memories were read from, sealed byte for byte, for as long as they are
named."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.cli.backup import copy_vault
from memory_store.errors import NotFoundError
from memory_store.records import Memory
from memory_store.store import MemoryStore
from memory_store.vault.storage.memories import BodyRow

Make = Callable[..., MemoryStore]
CANARY = b"%PDF-canary-of-the-original"
LARGE = CANARY + os.urandom(300_000)  # three parts, in hexadecimal


@pytest.fixture
def store(make_store: Make) -> MemoryStore:
    return make_store()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A note, which begins with a mark that is no part of its text."""
    folder = tmp_path / "bring"
    folder.mkdir()
    path = folder / "lease.txt"
    path.write_bytes(b"\xef\xbb\xbfIt ends in May.\n")
    return path


@pytest.fixture
def large(page: Path) -> Path:
    """A page of 600 KB, of which little is text."""
    path = page.with_suffix(".html")
    path.write_bytes(
        b"<title>Lease</title><p>It ends in May.</p><!--" + LARGE.hex().encode() + b"-->"
    )
    return path


def kept(store: MemoryStore, path: Path, **options: object) -> Memory:
    """The one memory that a file becomes, with its original."""
    store.import_paths(path, keep_originals=True, embed=False, **options)
    return store.get(path.name)


def parts(store: MemoryStore) -> list[str]:
    """The ids of the parts of originals in the vault."""
    reader = store._opened.vault.reader()
    held = store._opened.vault.keyring.readable()
    return list(reader.memories.originals([one.id for one in store.every()], held))


def sizes(store: MemoryStore) -> int:
    return int(store.stats()["original_bytes"] or 0)


def test_an_import_keeps_no_original_unless_it_is_asked_to(store: MemoryStore, page: Path) -> None:
    store.import_paths(page, embed=False)
    memory = store.get("lease.txt")
    assert memory.original is None
    with pytest.raises(NotFoundError, match="--keep-originals"):
        store.original(memory.id)
    assert sizes(store) == 0


def test_an_original_is_kept_byte_for_byte_and_counted(store: MemoryStore, large: Path) -> None:
    page, memory = large, kept(store, large)
    assert memory.original is not None
    assert memory.as_dict()["original"] == {
        "name": "lease.html",
        "bytes": page.stat().st_size,
        "sha256": memory.original.sha256,
    }
    assert store.original(memory.id) == page.read_bytes()
    assert sizes(store) > page.stat().st_size
    assert store.stats()["contents"] == 1
    assert store.verify()["failures"] == []


def test_asked_for_later_it_is_added_and_the_next_import_finds_nothing_new(
    store: MemoryStore, page: Path
) -> None:
    store.import_paths(page, embed=False)
    before = store.get("lease.txt")
    assert kept(store, page).id == before.id
    assert store.original(before.id) == page.read_bytes()
    assert store.import_paths(embed=False).unchanged == 1  # with the options of its last import
    assert store.original(before.id) == page.read_bytes()


def test_a_path_that_is_named_again_without_the_word_goes_on_to_keep_them(
    store: MemoryStore, page: Path, tmp_path: Path
) -> None:
    folder = page.parent
    store.import_paths(folder, keep_originals=True, embed=False)
    other = tmp_path / "other"
    other.mkdir()
    other.joinpath("rent.txt").write_text("It is 900.")
    report = store.import_paths([other, folder], embed=False)
    assert (report.imported, report.unchanged) == (1, 1)
    assert store.original(store.get("lease.txt").id) == page.read_bytes()
    page.write_text("It ends in June.")
    assert store.import_paths(folder, embed=False).replaced == 1
    assert store.original(store.get("lease.txt").id) == b"It ends in June."
    assert store.get("rent.txt").original is None


def test_a_source_that_is_to_keep_none_any_more_loses_them_with_its_next_import(
    store: MemoryStore, page: Path
) -> None:
    memory = kept(store, page)
    store.edit_source(str(page), keep_originals=False)
    store.import_paths(embed=False)
    assert store.get(memory.id).original is None
    store.trash.empty()
    assert sizes(store) == 0


def test_a_file_of_the_same_words_and_other_bytes_takes_its_place(
    store: MemoryStore, page: Path
) -> None:
    memory = kept(store, page)
    page.write_bytes(page.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    assert kept(store, page).id == memory.id
    assert store.original(memory.id) == page.read_bytes()


def test_an_edit_keeps_it_and_a_move_takes_it_along(store: MemoryStore, page: Path) -> None:
    memory = kept(store, page)
    store.edit(memory.id, title="The lease")
    store.edit(memory.id, collection="work")
    assert store.original(memory.id) == page.read_bytes()
    assert store.verify()["failures"] == []
    store.undo()
    assert store.get(memory.id).collection == "personal"
    assert store.original(memory.id) == page.read_bytes()


def test_a_copy_that_is_published_leaves_it_behind(store: MemoryStore, page: Path) -> None:
    memory = kept(store, page)
    store.collections.create("work")
    assert store.publish(memory.id, "work").original is None


def test_it_goes_with_the_last_row_that_names_it(store: MemoryStore, page: Path) -> None:
    memory = kept(store, page)
    store.delete(memory.id)
    assert sizes(store) > 0  # it is in the trash
    store.undo()
    assert store.original(memory.id) == page.read_bytes()
    page.write_bytes(b"It ends in June.")
    kept(store, page)
    assert len(parts(store)) == 2  # the earlier one is in the trash, too
    store.trash.empty()
    assert len(parts(store)) == 1
    assert store.original(memory.id) == page.read_bytes()
    store.delete(memory.id, now=True)
    assert sizes(store) == 0


def test_a_new_key_seals_it_again(store: MemoryStore, page: Path) -> None:
    memory = kept(store, page)
    store.keys.rotate()
    assert store.original(memory.id) == page.read_bytes()
    assert store.verify()["failures"] == []


def test_copies_of_the_vault_have_it(store: MemoryStore, page: Path, key_file: Path) -> None:
    memory = kept(store, page)
    target = page.parent / "copy.db"
    copy_vault(store.path, target)
    with MemoryStore.open(target, key_file=key_file) as copy:
        assert copy.original(memory.id) == page.read_bytes()


def test_a_part_that_was_exchanged_or_taken_away_is_noticed(
    store: MemoryStore, large: Path
) -> None:
    memory = kept(store, large)
    writer = store._opened.vault.whole_vault()
    _first, second, *_ = parts(store)
    with writer.writing() as storage, storage.transaction(writer.keyring):
        storage.memories.remove_bodies([second])
    (failure,) = store.verify()["failures"]
    assert memory.id in failure
    assert second in failure


def test_ids_that_are_made_up_break_no_deletion(store: MemoryStore, page: Path) -> None:
    memory, vault = kept(store, page), store._opened.vault.whole_vault()
    (part,) = parts(store)
    with vault.writing() as storage, storage.transaction(vault.keyring):
        _, body = storage.memories.bodies([part])[part]
        for number, end in enumerate((".", ".x", f".{'y.' * 9}")):
            made = BodyRow(f"{memory.id}{end}", memory.collection, bytes([number] * 16), body)
            storage.memories.insert((), [made])
    store.delete(memory.id, now=True)
    assert sizes(store) == 0


def test_a_mailbox_has_none_and_the_report_says_so(store: MemoryStore, tmp_path: Path) -> None:
    path = tmp_path / "mail.mbox"
    path.write_bytes(b"From a@b Thu Jan  1 00:00:00 2024\nSubject: Key\n\nUnder the mat.\n")
    report = store.import_paths(path, keep_originals=True, embed=False)
    assert report.imported == 1
    assert any("many records" in said for said in report.degraded)
    assert sizes(store) == 0


def test_what_is_in_an_archive_has_originals_of_its_own(
    store: MemoryStore, tmp_path: Path, page: Path
) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(page, "papers/lease.txt")
        archive.writestr("papers/note.md", "# Note\n\nThe spare key.\n")
    store.import_paths(path, keep_originals=True, embed=False)
    assert store.original("lease.txt") == page.read_bytes()
    assert store.original("note.md") == b"# Note\n\nThe spare key.\n"


def test_the_command_writes_it_to_a_file_that_is_not_there_yet(
    store: MemoryStore, page: Path, key_file: Path, tmp_path: Path
) -> None:
    vault, key = str(store.path), ["--key-file", str(key_file)]
    store.lock()
    out = tmp_path / "out.txt"
    done = run("import", vault, str(page), "--keep-originals", "--no-embed", *key)
    assert done.exit_code == 0, done.output
    for expected in (0, 2):
        done = run("get", vault, "lease.txt", "--original", str(out), *key)
        assert done.exit_code == expected, done.output
    assert "nothing is overwritten" in done.output
    assert out.read_bytes() == page.read_bytes()
    assert out.stat().st_mode & 0o777 == 0o600
    done = run("get", vault, "lease.txt", "--original", "-", *key)
    assert done.stdout_bytes == page.read_bytes()


def test_no_byte_of_it_stands_in_the_file_in_clear(store: MemoryStore, page: Path) -> None:
    page.write_bytes(b"Words: " + CANARY)
    memory = kept(store, page)
    store.edit(memory.id, title="Renamed")
    for file in store.path.parent.iterdir():
        data = file.read_bytes()
        assert CANARY not in data
        assert b"lease.txt" not in data
