"""A member of a shared collection, and a holder of the file, steer no other person's programs.

Mallory's key opens ``work``. She writes any row that it seals; a holder of the file puts any row
back that was there before. Neither decides which files the owner's import reads, which memory it
replaces or forgets, or where what he writes ends up.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile_members import SHARED, Hers, Two, made
from msgspec import structs

from memory_store.dates import format_time
from memory_store.errors import BadInputError, ConflictError, NotFoundError, TamperedError
from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault import trash
from memory_store.vault.keyring import OWNER
from memory_store.vault.manifest import read_manifest, write_manifest
from memory_store.vault.rows import Origin, body_place
from memory_store.vault.segments import unseal_part
from memory_store.vault.storage import Storage


@pytest.fixture
def two(
    make_store: Callable[..., MemoryStore],
    tmp_path: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Two:
    return made(make_store, tmp_path, tiny_model, monkeypatch)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that the owner would never import into a shared collection."""
    (tmp_path / "private").mkdir(exist_ok=True)
    (tmp_path / "private" / "secret.md").write_text("The combination is 4711.")
    return tmp_path / "private"


# -- the trash --------------------------------------------------------------------------------


def put_into_the_trash(hers: Hers, memory: str, added: tuple[str, ...] = ()) -> None:
    """A row that says that the owner, or an assistant of his, has just changed a memory."""
    connection, keys = hers
    storage, content, tag = Storage(connection), str(uuid.uuid4()), os.urandom(16)
    (own, *_) = storage.memories.rows(storage.memories.ids([keys.collection])).values()
    place = keys.place("memories", "head", own.id, own.version)
    head = {**json.loads(bytes(keys.unseal("head", place, own.head))), "content": content}
    kept = trash.Kept(
        memory=memory,
        version=0,
        time=format_time(datetime.now(UTC)),
        operation="updated",
        way="hand",
        group="0123456789abcdef",
        principal=OWNER,
        tag=b"",
        content=content,
        content_tag=tag,
        head=keys.seal(
            "head", keys.place("memories", "head", memory, 0), json.dumps(head).encode()
        ),
        added=added,
        by="helper",
    )
    body = keys.seal("body", body_place(keys, content, tag), b"Mallory's")
    storage.trash.insert([trash._sealed(keys, storage.trash.next_number(), kept, body)])


def undo(store: MemoryStore) -> object:
    return store.undo()


def undo_all(store: MemoryStore) -> object:
    return store.undo_all_of("helper")


def restore(store: MemoryStore) -> object:
    return store.trash.restore(group="0123456789abcdef")


@pytest.mark.parametrize("revoked", [False, True])
@pytest.mark.parametrize("planted", ["changed", "added"])
@pytest.mark.parametrize("way", [undo, undo_all, restore])
def test_no_row_that_a_member_puts_into_the_trash_takes_a_memory_of_another_collection(
    two: Two, way: Callable[[MemoryStore], object], planted: str, revoked: bool
) -> None:
    with two.owner() as store:
        (diary,) = store.list(collection="personal")
    with two.keys_of_mallory() as hers:
        new = str(uuid.uuid4())
        put_into_the_trash(hers, *((diary.id,) if planted == "changed" else (new, (diary.id,))))
    with two.owner() as store:
        if revoked:
            store.keys.revoke("Mallory")
        with suppress(NotFoundError, ConflictError):
            way(store)
        assert store.get(diary.id) == diary


def test_what_the_owner_moves_out_of_a_shared_collection_he_moves_back_by_an_edit(
    two: Two,
) -> None:
    with two.owner() as store:
        (pump,) = store.list(collection=SHARED)
        store.edit(pump.id, collection="personal")
        for way in (store.undo, lambda: store.trash.restore(pump.id)):
            with pytest.raises(ConflictError, match="move it there by an edit, or take this out"):
                way()
        assert store.trash.empty(pump.id) == 1
        with pytest.raises(NotFoundError, match="nothing to undo"):
            store.undo()
        assert store.edit(pump.id, collection=SHARED).text == pump.text


# -- sources ----------------------------------------------------------------------------------


def test_a_path_that_a_member_imported_is_not_read_by_the_owners_import(
    two: Two, private: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.md").write_text("A note of the owner's.")
    assert two.run("import", tmp_path / "notes").exit_code == 0
    secret = (private / "secret.md").read_text()
    (private / "secret.md").write_text("A folder of that name on her machine.")
    with two.on_another_machine(tmp_path / "hers"):
        assert two.run("import", private, "--collection", SHARED, key=two.hers).exit_code == 0
    (private / "secret.md").write_text(secret)  # from here on it is the owner's machine
    report = two.run("import")
    assert report.exit_code == 0, report.output
    assert str(private) not in report.output
    assert not any("4711" in text for text in two.texts(SHARED))


def test_on_one_machine_the_owners_paths_are_not_hers_nor_hers_the_owners(
    two: Two, private: Path
) -> None:
    assert two.run("import", private, "--collection", SHARED, key=two.hers).exit_code == 0
    refused = two.run("import")
    assert (refused.exit_code, "nothing was imported yet" in refused.output) == (2, True)
    assert two.run("import", key=two.hers).exit_code == 0  # her own she reads again


@pytest.mark.parametrize("form", ["of today", "of format 2"])
def test_a_source_that_a_member_plants_is_not_read(two: Two, private: Path, form: str) -> None:
    reported = {"path": str(private), "options": {"collection": SHARED}}
    if form == "of today":
        reported |= {"machine": "x", "version": 1}
    with two.keys_of_mallory() as (connection, keys):
        for purpose in ("head", "path"):
            source = f"0000000{purpose == 'head':d}-0000-4000-8000-000000000000"
            place = keys.place("vault_sources", "head", source)
            sealed = keys.seal(purpose, place, json.dumps(reported).encode())
            tag = keys.source.tag(purpose.encode())
            connection.execute(
                "insert into vault_sources (id, collection, tag, head) values (?, ?, ?, ?)",
                (source, keys.collection, tag, sealed),
            )
    report = two.run("import")
    assert report.exit_code != 0
    assert not any("4711" in text for text in two.texts(SHARED))
    assert "source 0000000" in two.run("verify").output


def test_an_older_row_of_a_source_does_not_bring_its_older_options_back(
    two: Two, private: Path
) -> None:
    (private / "public.md").write_text("The pump is blue.")
    (private / "secret.md").rename(private / "secret.txt")
    assert two.run("import", private, "--collection", SHARED).exit_code == 0
    with two.owner() as store:
        secret = next(one for one in store.list(collection=SHARED) if "4711" in one.text)
        store.delete(secret.id)
    older = two.rows("vault_sources")
    narrower = ("import", private, "--collection", SHARED, "--exclude", "*.txt")
    assert two.run(*narrower).exit_code == 0
    two.put_back("vault_sources", older)
    report = two.run("import")
    assert "is not read again until you name it" in report.output
    assert not any("4711" in text for text in two.texts(SHARED))
    assert two.run(*narrower).exit_code == 0  # named again, it is the newest again
    assert two.run("import").exit_code == 0
    assert not any("4711" in text for text in two.texts(SHARED))


def test_an_import_that_was_stopped_is_not_taken_up_with_fewer_exclusions(
    two: Two, private: Path
) -> None:
    (private / "public.md").write_text("The pump is blue.")

    def stop(name: str, done: int, total: int | None) -> None:
        if done == total:
            raise KeyboardInterrupt

    with two.owner() as store, pytest.raises(KeyboardInterrupt):
        store.import_paths(
            [private], collection=SHARED, exclude=["secret.md"], progress=stop, embed=False
        )
    two.run("import")
    assert not any("4711" in text for text in two.texts(SHARED))


def test_a_path_of_another_machine_is_named_and_left(
    two: Two, private: Path, tmp_path: Path
) -> None:
    assert two.run("import", private).exit_code == 0
    (private / "secret.md").write_text("Another folder of that name.")
    with two.on_another_machine(tmp_path / "laptop"):
        report = two.run("import")
        assert report.exit_code == 2
        assert f"{private} was imported on another machine" in report.output
        (tmp_path / "laptop-notes").mkdir()
        (tmp_path / "laptop-notes" / "new.md").write_text("New.")
        assert two.run("import", tmp_path / "laptop-notes").exit_code == 0
        report = two.run("import")
        assert report.exit_code == 0
        assert f"{private} was imported on another machine" in report.output
    assert "The combination is 4711." in two.texts("personal")


def test_a_source_that_was_moved_to_another_collection_is_refused(two: Two, private: Path) -> None:
    assert two.run("import", private).exit_code == 0
    two.with_the_file("update vault_sources set collection = :work", work=two.id_of(SHARED))
    assert two.run("import").exit_code == 1
    assert not any("4711" in text for text in two.texts(SHARED))
    assert "vault_sources" in two.run("verify").output


# -- what a record became ---------------------------------------------------------------------


def _plant(two: Two, memory: str, folder: Path, name: str) -> None:
    """Mallory says that a file of that folder, imported into ``work``, became some memory."""
    with two.keys_of_mallory() as (connection, keys):
        tagged = keys.source.tag
        reported = Origin(
            tagged(b"record", str(folder).encode(), name.encode()),
            None,
            tagged(b"file", str(folder).encode(), name.encode()),
        )
        for table, column, value in (
            ("memory_sources", "origin", reported.origin),
            ("memory_sources", "memory", memory),
        ):
            connection.execute(f"delete from {table} where {column} = ?", (value,))
        connection.execute(
            "insert into memory_sources (memory, origin, draft, file) values (?, ?, ?, ?)",
            (memory, *reported.stored(keys, memory)),
        )


@pytest.mark.parametrize("known_before", [False, True])
def test_the_owners_import_into_work_replaces_no_memory_of_another_collection(
    two: Two, tmp_path: Path, known_before: bool
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "pump.md").write_text("The pump is blue.")
    if known_before:
        assert two.run("import", notes, "--collection", SHARED).exit_code == 0
    with two.owner() as store:
        (diary,) = store.list(collection="personal")
    _plant(two, diary.id, notes, "pump.md")
    assert "origins" in two.run("verify").output
    (notes / "pump.md").write_text("The pump is green.")
    assert two.run("import", notes, "--collection", SHARED).exit_code == 0
    assert two.texts("personal") == ["Dear diary."]
    assert "The pump is green." in two.texts(SHARED)
    (notes / "pump.md").write_text("The pump is red.")
    assert two.run("import", notes, "--collection", SHARED).exit_code == 0
    assert "The pump is green." not in two.texts(SHARED)  # known again by then


def test_pruning_work_forgets_no_memory_of_another_collection(two: Two, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("pump.md", "valve.md"):
        (notes / name).write_text(f"About the {name}.")
    assert two.run("import", notes, "--collection", SHARED).exit_code == 0
    with two.owner() as store:
        (diary,) = store.list(collection="personal")
    _plant(two, diary.id, notes, "valve.md")
    (notes / "valve.md").unlink()
    assert two.run("import", notes, "--collection", SHARED, "--prune").exit_code == 0
    assert two.texts("personal") == ["Dear diary."]


def test_rows_that_the_files_holder_swaps_let_no_import_replace_another_note(
    two: Two, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("a.md", "b.md"):
        (notes / name).write_text(f"Note {name}.")
    assert two.run("import", notes).exit_code == 0
    first, second = (row["memory"] for row in two.rows("memory_sources"))
    swap = "update memory_sources set memory = :to where memory = :this"
    two.with_the_file(swap, this=first, to="-")
    two.with_the_file(swap, this=second, to=first)
    two.with_the_file(swap, this="-", to=second)
    (notes / "a.md").write_text("Note a.md, changed.")
    (notes / "b.md").unlink()
    assert two.run("import", notes, "--prune").exit_code == 0
    assert set(two.texts("personal")) >= {"Dear diary.", "Note a.md, changed.", "Note a.md."}


@pytest.mark.parametrize("what", ["the tags of the paths", "the path of the files"])
def test_rows_that_the_files_holder_swaps_let_no_import_forget_what_came_from_another_path(
    two: Two, tmp_path: Path, what: str
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("Note a.md.")
    (tmp_path / "b.csv").write_text("title,text\nRow,Row of b.csv.\n")
    for name in ("notes", "b.csv"):
        assert two.run("import", tmp_path / name).exit_code == 0
    first, second = (row["id"] for row in two.rows("vault_sources"))
    if what == "the path of the files":
        swap = "update vault_source_files set source = :to where source = :this"
        two.with_the_file(swap, this=second, to=first)
    else:
        one, other = (row["tag"] for row in two.rows("vault_sources"))
        swap = "update vault_sources set tag = :to where id = :this"
        for this, to in ((first, b"-"), (second, one), (first, other)):
            two.with_the_file(swap, this=this, to=to)
        assert "vault_sources.tag" in two.run("verify").output
    assert two.run("import", tmp_path / "notes", "--prune").exit_code == 0
    assert set(two.texts("personal")) >= {"Note a.md.", "Row of b.csv."}


def test_a_note_that_says_its_collection_is_known_changed_and_forgotten_as_ever(
    two: Two, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "kept.md").write_text("Kept.")
    routed = notes / "routed.md"
    routed.write_text("---\ncollection: work\n---\nRouted.")
    assert two.run("import", notes).exit_code == 0
    routed.write_text("---\ncollection: work\n---\nRouted again.")
    assert "replaced 1" in two.run("import").output
    with two.owner() as store:
        (one,) = [one for one in store.list(collection=SHARED) if "Routed" in one.text]
        store.edit(one.id, add_topics=["edited"])
    routed.write_text("---\ncollection: work\n---\nRouted thrice.")
    assert "replaced 1" in two.run("import").output
    routed.unlink()
    assert "pruned 1" in two.run("import", "--prune").output
    assert two.run("verify").exit_code == 0


# -- names ------------------------------------------------------------------------------------


def test_who_is_revoked_brings_no_earlier_state_back_into_a_program_that_is_open(two: Two) -> None:
    """It opens what the former key sealed for a while, for what it was reading. The account, which
    says which memories there are, was sealed anew with the first moment of the new key."""
    tables = ("memories", "memory_bodies", "vault_segments", "vault_segment_parts", "vault_changes")
    with two.mallory() as hers, two.owner() as store, closing(Storage.open(two.path)) as storage:
        work = two.id_of(SHARED)
        keys = hers._opened.vault.keyring.of(work)
        gone = hers.add("Of Mallory's.", collection=SHARED)
        earlier = {table: two.rows(table) for table in tables}
        account = read_manifest(storage, keys)
        store.delete(gone.id)
        store.keys.revoke("Mallory")
        assert len(store.list(collection=SHARED)) == 1
        with storage.transaction():
            for table, rows in earlier.items():
                storage.engine.execute(f"delete from {table}")
                for row in rows:
                    storage.engine.insert(f"into {table} ({', '.join(row)})", [[*row.values()]])
            counter = storage.accounts.counters()[work]
            write_manifest(storage, keys, structs.replace(account, counter=counter + 1))
        for look in (store.list, lambda: store.search("Mallory", mode="keyword").rows):
            with pytest.raises(TamperedError, match="an older account was put back"):
                look()


def test_who_is_revoked_writes_no_text_into_a_program_that_is_open(two: Two) -> None:
    """The head, whose tag the index knows, names the text; only its key says who wrote it."""
    with two.mallory() as hers, two.owner() as store, closing(connect(two.path)) as connection:
        keys = hers._opened.vault.keyring.of(two.id_of(SHARED))
        (memory,) = store.list(collection=SHARED)
        store.keys.revoke("Mallory")
        (body,) = (one for one in two.rows("memory_bodies") if one["collection"] == keys.collection)
        place = body_place(keys, body["id"], body["tag"])
        forged = keys.seal("body", place, b"The pump is never serviced.")
        changes = (forged, body["id"])
        connection.execute("update memory_bodies set body = ? where id = ?", changes)
        looks = (
            lambda: store.get(memory.id),
            lambda: store.list(collection=SHARED),
            lambda: store.search("pump", mode="keyword").rows,
            lambda: store.keys.rotate(SHARED),
        )
        for look in looks:
            with pytest.raises(TamperedError, match="sealed under a key that was replaced"):
                look()
        assert any("replaced" in one for one in store.verify()["failures"])


@pytest.mark.parametrize("part", ["main", "pairs"])
def test_who_is_revoked_writes_no_words_into_the_index_of_a_program_that_is_open(
    two: Two, part: str
) -> None:
    """Neither as a part of the index that is read now, nor as one that is read when it is asked
    for, as pairs of words are for phrases."""
    with two.mallory() as hers, two.owner() as store, closing(connect(two.path)) as connection:
        keys = hers._opened.vault.keyring.of(two.id_of(SHARED))
        segments = Storage(connection).segments
        (row,) = (one for one in segments.rows() if one.collection == keys.collection)
        sealed = dict(segments.parts([row.id]))[row.id]
        opened = {one: unseal_part(keys, row, one, blob) for one, blob in sealed.items()}
        assert store.search("pump", mode="keyword").rows
        store.keys.revoke("Mallory")
        if part == "main":  # under another id it is read again
            another = structs.replace(row, id=str(uuid.uuid4()))
            changes = {"new": another.id, "old": row.id}
            connection.execute("update vault_segments set id = :new where id = :old", changes)
            row = another
        place = keys.place(
            "vault_segments", part, f"{row.id}|{row.model}|{row.documents}", row.sequence
        )
        forged = {part: keys.seal("segment", place, opened[part])}
        segments.replace(row.id, keys.epoch, forged)
        with pytest.raises(TamperedError, match="sealed under a key that was replaced"):
            store.search('"the pump"', mode="keyword")


def test_a_member_renames_nothing(two: Two) -> None:
    refused = two.run("collections", "rename", SHARED, "diary", key=two.hers)
    assert refused.exit_code == 2
    assert "only the owner of the vault names its collections" in refused.output
    with two.mallory() as store, pytest.raises(BadInputError, match="only the owner"):
        store.collections.rename(SHARED, "diary")


@pytest.mark.parametrize("name", ["diary", "personal"])
def test_a_name_that_a_member_seals_steers_no_words_of_the_owner(two: Two, name: str) -> None:
    assert two.run("collections", "create", "diary").exit_code == 0
    work = two.id_of(SHARED)
    with two.keys_of_mallory() as (connection, keys):
        sealed = keys.seal("name", keys.place("collections", "name", work), name.encode())
        connection.execute("delete from collections where id = ?", (work,))
        connection.execute(
            "insert into collections (rowid, id, name, created) values (-5, ?, ?, '1999')",
            (work, sealed),
        )
    assert two.run("add", "For the diary.", "--collection", name).exit_code == 0
    assert two.run("add", "For nobody else.").exit_code == 0
    assert two.texts(SHARED) == ["The pump is serviced in May."]
    with two.mallory() as store:
        assert [one.name for one in store.collections.list()] == [SHARED]


def test_a_name_of_two_collections_is_refused_with_their_ids_on_every_way_in(
    two: Two, tmp_path: Path
) -> None:
    from memory_store.scopes import Scope

    with two.owner() as store:
        personal = store.list()[0].collection
        hidden = store.limited_to(Scope.of([personal]), creating=True)
        hidden.collections.create(SHARED)  # it sees no other of that name
        ids = [one for one, name in store.collections.names().items() if name == SHARED]
        (diary,) = store.list(collection="personal")
    assert len(ids) == 2
    note = tmp_path / "note.md"
    note.write_text("---\ncollection: work\n---\nWhere to?")
    rows = tmp_path / "rows.ndjson"
    rows.write_text(json.dumps({"id": "n1", "text": "Where to?", "collection": SHARED}) + "\n")
    for arguments in (
        ("add", "Where to?", "--collection", SHARED),
        ("search", "pump", "--collection", SHARED),
        ("list", "--collection", SHARED),
        ("import", note),
        ("import", rows),
        ("import", tmp_path, "--collection", SHARED),
        ("edit", diary.id, "--collection", SHARED),
        ("publish", diary.id, SHARED),
        ("collections", "rename", SHARED, "other"),
        ("collections", "set", SHARED, "--analyser", "en"),
        ("reindex", "--collection", SHARED),
        ("keys share", SHARED, "--with", "Mallory"),
        ("keys rotate", SHARED),
    ):
        refused = two.run(*arguments)
        assert refused.exit_code != 0, (arguments, refused.output)
        assert all(one in refused.output for one in ids), (arguments, refused.output)
    assert two.texts(ids[0]) == ["The pump is serviced in May."]
    assert two.texts(ids[1]) == []
    assert two.run("collections", "rename", ids[1], "workshop").exit_code == 0
    assert two.run("add", "By its name again.", "--collection", SHARED).exit_code == 0


def test_a_memory_of_work_that_names_another_as_its_parent_changes_nothing_of_that(
    two: Two,
) -> None:
    with two.owner() as store:
        (diary,) = store.list(collection="personal")
    with two.mallory() as store:
        hers = store.add("Replaced by this.", parent=diary.id)
        assert store.get(hers.id).parent == diary.id
    with two.owner() as store:
        assert store.get(diary.id) == diary
        assert diary.id in {row.id for row in store.search("diary").rows}
        store.delete(hers.id)
        assert store.get(diary.id) == diary


def test_a_row_of_work_that_takes_the_id_of_another_collections_memory_is_refused(
    two: Two,
) -> None:
    with two.owner() as store:
        (diary,) = store.list(collection="personal")
    work = two.id_of(SHARED)
    with closing(connect(two.path)) as connection, Storage(connection).transaction():
        connection.execute(
            "update memories set collection = ? where id = ?",
            (work, diary.id),
        )
    shown = two.run("get", diary.id)
    assert shown.exit_code == 1
    assert "Dear diary" not in two.run("list", key=two.hers).output
    assert two.run("verify").exit_code == 1
