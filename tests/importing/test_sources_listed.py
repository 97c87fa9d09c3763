"""The sources of a vault: what was imported from where, listed and forgotten."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from reading_files import write

from memory_store.errors import BadInputError, NotFoundError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore


def test_every_imported_path_is_listed_with_its_options(store: MemoryStore, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", a="Alpha.", b="Beta.")
    work = write(tmp_path / "work", c="Gamma.")
    store.import_paths([notes])
    store.import_paths([work], collection="work", glob=["*.md"])
    first, second = store.sources()
    assert (first.path, first.collection, first.memories) == (str(notes), "personal", 2)
    assert (second.path, second.collection, second.memories) == (str(work), "work", 1)
    assert second.options["glob"] == ["*.md"]
    assert (first.left_out, second.left_out) == (None, None)


def test_a_path_goes_on_in_the_collection_it_was_imported_into(
    store: MemoryStore, tmp_path: Path
) -> None:
    work = write(tmp_path / "work", c="Gamma.")
    notes = write(tmp_path / "notes", a="Alpha.")
    store.import_paths([work], collection="work")
    write(work, d="Delta.")
    report = store.import_paths([work, notes])
    assert (report.imported, report.unchanged) == (2, 1)
    goes_on = "goes on in the collection work, where it was imported before"
    assert report.warnings == ((str(work), goes_on),)
    found = {one.title: one.collection for one in store.list()}
    assert found == {"c": "work", "d": "work", "a": "personal"}
    assert store.import_paths([work], collection="personal").imported == 2  # where that is named
    assert store.import_paths([work]).unchanged == 2
    assert {one.collection for one in store.sources() if one.path == str(work)} == {
        "work", "personal",
    }  # fmt: skip


def test_of_several_other_collections_one_must_be_named(store: MemoryStore, tmp_path: Path) -> None:
    work = write(tmp_path / "work", c="Gamma.")
    store.import_paths([work], collection="one")
    store.import_paths([work], collection="two")
    with pytest.raises(BadInputError, match=r"imported into several: one, two\. Name one: --coll"):
        store.import_paths([work])
    assert len(store.list()) == 2


def test_a_source_that_was_removed_is_read_no_more_and_its_memories_stay(
    store: MemoryStore, tmp_path: Path
) -> None:
    kept = write(tmp_path / "kept", a="Alpha.")
    removed = write(tmp_path / "removed", b="Beta.")
    store.import_paths([kept, removed])
    assert store.forget_source(str(removed)) == 1
    write(removed, c="Gamma.")
    assert store.import_paths().imported == 0
    assert [source.path for source in store.sources()] == [str(kept)]
    assert len(store.list()) == 2
    again = store.import_paths([removed])
    assert (again.imported, again.unchanged) == (1, 1)


def test_what_is_no_source_cannot_be_removed(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="memory-store sources lists them"):
        store.forget_source(str(tmp_path))
    with pytest.raises(BadInputError):
        store.import_paths()


def test_a_source_says_when_it_was_imported_and_what_failed(
    store: MemoryStore, tmp_path: Path
) -> None:
    good, bad = write(tmp_path / "good", a="Alpha."), write(tmp_path / "bad", b="Beta.")
    (bad / "broken.json").write_text("{no json")
    store.import_paths([good, bad], glob=["*"])
    first, second = store.sources()
    assert first.time is not None
    assert (first.failed, first.failures) == (0, ())
    assert second.failed == 1
    assert second.failures[0][0].endswith("broken.json:1")
    (bad / "broken.json").unlink()
    store.import_paths()
    (shown,) = store.sources("2")
    assert (shown.path, shown.failed) == (str(bad), 0)
    assert shown.left_out is None


def test_what_failed_is_told_of_its_own_source_however_that_was_named(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "notes", a="Alpha.")
    (folder / "broken.json").write_text('[{"text": "kept"}, {"text"')
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4")
    good = write(tmp_path / "good", b="Beta.")
    monkeypatch.chdir(tmp_path)
    report = store.import_paths(["notes", "notes/broken.json", "../" + tmp_path.name + "/good"])
    assert [name for name, _ in report.failures] == ["notes/broken.pdf", "notes/broken.json:1"]
    told = {one.path: [name for name, _ in one.failures] for one in store.sources()}
    assert told == {
        str(folder): ["notes/broken.pdf"],
        str(folder / "broken.json"): ["notes/broken.json:1"],
        str(good): [],
    }


def test_what_failed_is_sealed(store: MemoryStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "kept", a="Alpha.")
    (folder / "quokkabroken.json").write_text("{no json")
    store.import_paths([folder], glob=["*"])
    assert store.sources()[0].failed == 1
    files = [one.read_bytes() for one in store.path.parent.glob(f"{store.path.name}*")]
    assert not any(b"quokkabroken" in one for one in files)


def test_the_next_import_goes_by_options_that_were_edited(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = write(tmp_path / "kept", a="Alpha.")
    store.import_paths([folder])
    assert store.edit_source("1", exclude=["b*"], topics=["fresh"]) == 1
    write(folder, b="Beta.", c="Gamma.")
    assert store.import_paths().imported == 1
    assert [one.topics for one in store.list() if one.text == "Gamma."] == [("fresh",)]
    with pytest.raises(BadInputError):
        store.edit_source("1", mood="good")
    with pytest.raises(NotFoundError):
        store.edit_source("7", topics=[])


def test_a_path_is_imported_though_the_row_of_another_is_damaged(
    store: MemoryStore, tmp_path: Path
) -> None:
    first, second = (write(tmp_path / name, a=f"Of {name}.") for name in ("first", "second"))
    store.import_paths([first])
    store.import_paths([second])
    with closing(connect(store.path)) as connection:
        connection.execute("update vault_sources set head = zeroblob(40) where rowid = 1")
    write(second, b="And more.")
    assert store.import_paths([second]).imported == 1


def test_a_source_keeps_its_number_when_it_is_edited_or_imported_again(
    store: MemoryStore, tmp_path: Path
) -> None:
    named = [write(tmp_path / name, a=f"Of {name}.") for name in ("first", "second", "third")]
    for folder in named:
        store.import_paths([folder])
    store.edit_source("1", topics=["fresh"])
    store.import_paths([named[1]], topics=["other"])
    assert [one.path for one in store.sources()] == [str(folder) for folder in named]
    assert [one.options.get("topics") for one in store.sources()] == [["fresh"], ["other"], None]


def test_the_memories_of_a_source_are_its_own(store: MemoryStore, tmp_path: Path) -> None:
    one, other = write(tmp_path / "one", a="Alpha."), write(tmp_path / "other", b="Beta.")
    store.import_paths([one, other])
    store.add("By hand.")
    ids = store.memories_of_source(str(one))
    assert [store.get(id).text for id in ids] == ["Alpha."]


def test_the_memories_of_a_source_that_could_be_read_in_part_are_its_own_too(
    store: MemoryStore, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"id": "a", "text": "Alpha."}\nno JSON\n')
    assert store.import_paths([rows]).failed == 1
    (source,) = store.sources()
    assert source.memories == len(store.memories_of_source(str(rows))) == 1
    rows.write_text('{"id": "b", "text": "Beta."}\n')
    assert store.import_paths([rows], prune=True).pruned == 1
