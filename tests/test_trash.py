"""What is deleted or changed leaves a sealed way back, until it is erased."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.assistants.assistant import Assistant
from memory_store.assistants.tools import call
from memory_store.cli.backup import copy_vault
from memory_store.errors import (
    BadInputError,
    ConflictError,
    DeletedError,
    NotFoundError,
    TamperedError,
)
from memory_store.records import MemoryChange, MemoryDraft
from memory_store.scopes import EVERYTHING, Scope
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]


def sealed_rows(path: Path) -> list[bytes]:
    """The sealed values of the trash, as they stand in the file."""
    connection = connect(path)
    rows = connection.execute("select sealed, body from vault_trash").fetchall()
    connection.close()
    return [value for row in rows for value in row]


def in_the_files(path: Path, values: list[bytes]) -> list[bytes]:
    """Which of some values stand somewhere in the vault's files."""
    files = [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]
    return [value for value in values if any(value in data for data in files)]


def in_the_file(store: MemoryStore, statement: str) -> None:
    connection = connect(store.path)
    connection.execute(statement)
    connection.close()


def damage_the_first(store: MemoryStore, cell: str) -> None:
    """Change the last byte of a cell in the oldest row."""
    connection = connect(store.path)
    query = f"select {cell} from vault_trash where sequence = 1"
    (sealed,) = connection.execute(query).fetchone()
    damaged = (sealed[:-1] + bytes([sealed[-1] ^ 1]),)
    connection.execute(f"update vault_trash set {cell} = ? where sequence = 1", damaged)
    connection.close()


def days_later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """Let the clock of the trash be some days ahead."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr("memory_store.vault.trash.datetime", Ahead)


def test_a_deleted_memory_comes_back_as_it_was_with_a_later_version(store: MemoryStore) -> None:
    memory = store.add("The lease ends in June.", title="Lease", topics=["home"], metadata={"a": 1})
    store.edit(memory.id, text="The lease ends in July.")
    store.delete(memory.id)
    assert store.search("lease", mode="keyword").rows == ()
    assert [(one.title, one.change, one.version) for one in store.trash.list()] == [
        ("Lease", "deleted", 2),
        ("Lease", "edited", 1),
    ]
    (back,) = store.trash.restore(memory.id[:8])
    assert (back.text, back.version, back.topics) == ("The lease ends in July.", 3, ("home",))
    assert (back.metadata, back.created) == ({"a": 1}, memory.created)
    assert [row.id for row in store.search("July", mode="keyword").rows] == [memory.id]
    assert [one.version for one in store.trash.list()] == [1]
    assert store.verify(full=True)["failures"] == []


def test_a_title_names_what_is_restored_unless_two_have_it(store: MemoryStore) -> None:
    lease, one, other = (
        store.add(f"Text {title}.", title=title) for title in ("Lease", "Key", "key")
    )
    for memory in (lease, one, other):
        store.delete(memory.id)
    assert [memory.id for memory in store.trash.restore("lease")] == [lease.id]
    with pytest.raises(NotFoundError, match=f"(?s)may be several.*{one.id[:8]}"):
        store.trash.restore("Key")
    with pytest.raises(NotFoundError, match="no memory 'Boat' in the trash"):
        store.trash.restore("Boat")
    with pytest.raises(NotFoundError, match="no memory 'Key' in the trash"):
        store.trash.empty("Key")  # what cannot be taken back is named by its id
    assert len(store.trash.list()) == 2


def test_an_earlier_version_is_restored_and_the_present_one_takes_its_place(
    store: MemoryStore,
) -> None:
    memory = store.add("First draft.")
    store.edit(memory.id, text="Second draft.")
    store.edit(memory.id, text="Third draft.")
    store.trash.restore(memory.id, version=1)
    assert store.get(memory.id).text == "First draft."
    assert [(one.version, one.by) for one in store.trash.list(memory.id)] == [
        (3, "trash"),
        (2, "hand"),
    ]
    with pytest.raises(NotFoundError, match="no version 1 in the trash; there is: 2, 3"):
        store.trash.restore(memory.id, version=1)


def test_undo_takes_back_one_change_after_another_and_says_which(store: MemoryStore) -> None:
    task, note = store.add("Buy milk", type="task"), store.add("The otter swims.")
    store.done(task.id)
    store.reopen(task.id)
    store.edit(note.id, text="The otter sleeps.")
    store.edit_many([MemoryChange(one.id, add_topics=("two",)) for one in (task, note)])
    store.delete_many([task.id, note.id])
    undone = [store.undo() for _ in range(5)]
    assert [one.change for one in undone] == ["delete", "edit", "edit", "reopen", "done"]
    assert [len(one.memories) for one in undone] == [2, 2, 1, 1, 1]
    assert (store.get(task.id).type, store.get(note.id).text) == ("task", "The otter swims.")
    assert store.get(note.id).topics == ()
    with pytest.raises(NotFoundError, match="nothing to undo"):
        store.undo()
    assert store.verify()["failures"] == []


def test_undo_leaves_and_names_what_was_changed_again_by_another(
    store: MemoryStore, tmp_path: Path
) -> None:
    file = tmp_path / "otter.md"
    file.write_text("The otter swims.")
    store.import_paths([file], embed=False)
    note, other = store.get("otter.md"), store.add("The heron waits.")
    changes = [MemoryChange(one.id, add_topics=("river",)) for one in (note, other)]
    store.edit_many(changes, group="0123456789abcdef")
    file.write_text("The otter sleeps.")
    store.import_paths([file], embed=False)
    undone = store.undo()
    assert (undone.left, [one.id for one in undone.memories]) == ((note.id,), [other.id])
    assert store.get(note.id).text == "The otter sleeps."
    again = store.undo()
    assert (again.left, again.memories) == ((note.id,), ())
    with pytest.raises(ConflictError, match="changed again afterwards"):
        store.trash.restore(group="0123456789abcdef")
    back = store.trash.restore(note.id, version=1)[0]
    assert (back.text, back.topics) == ("The otter swims.", ())
    assert store.verify()["failures"] == []


def test_to_undo_a_supersession_takes_the_new_memory_away(store: MemoryStore) -> None:
    old = store.add("The rent is 900.")
    new = store.supersede(old.id, "The rent is 950.")
    assert store.undo().removed == (new.id,)
    assert store.get(old.id).valid_to is None
    with pytest.raises(NotFoundError):
        store.get(new.id)
    assert [one.id for one in store.trash.list() if one.change == "deleted"] == [new.id]


@pytest.mark.in_a_file
def test_of_what_is_erased_at_once_nothing_stays_and_no_earlier_version(store: MemoryStore) -> None:
    memory, other = store.add("A secret otter."), store.add("Another otter.")
    store.edit(memory.id, text="A very secret otter.")
    store.edit(other.id, text="Another, louder otter.")
    values = sealed_rows(store.path)
    connection = connect(store.path)
    values += connection.execute("select body from memory_bodies").fetchall()[0]
    connection.close()
    store.delete(memory.id, now=True)
    assert [one.id for one in store.trash.list()] == [other.id]
    assert len(in_the_files(store.path, values)) == 2  # those of the other one


@pytest.mark.in_a_file
def test_what_was_emptied_leaves_no_byte(store: MemoryStore) -> None:
    first, second = store.add("A secret otter."), store.add("A secret badger.")
    store.delete_many([first.id, second.id])
    values = sealed_rows(store.path)
    assert len(in_the_files(store.path, values)) == 4
    assert store.trash.empty(first.id) == 1
    assert len(in_the_files(store.path, values)) == 2
    assert store.trash.empty() == 1
    assert in_the_files(store.path, values) == []
    assert store.trash.list() == []
    with pytest.raises(NotFoundError, match="in the trash"):
        store.trash.restore(first.id)


@pytest.mark.in_a_file
def test_after_thirty_days_opening_the_vault_erases_it(
    store: MemoryStore, key_file: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.delete(store.add("A secret otter.").id)
    values = sealed_rows(store.path)
    days_later(monkeypatch, 29)
    with MemoryStore.open(store.path, key_file=key_file) as other:
        later = other.add("A younger otter.")
        other.delete(later.id)
        assert len(other.trash.list()) == 2
    days_later(monkeypatch, 31)
    with MemoryStore.open(store.path, key_file=key_file) as other:
        assert [one.id for one in other.trash.list()] == [later.id]
    assert in_the_files(store.path, values) == []


def test_the_days_are_a_setting_and_none_keeps_nothing(store: MemoryStore) -> None:
    store.delete(store.add("Kept.").id)
    assert (store.settings().trash, store.stats()["trash"]) == (30, 1)
    assert store.stats()["trash_bytes"] > 0
    assert store.set_trash(7) == 0
    assert store.set_trash(0) == 1
    memory = store.add("Not kept.")
    store.edit(memory.id, text="Not kept either.")
    store.delete(memory.id)
    assert (store.settings().trash, store.trash.list(), store.stats()["trash"]) == (0, [], 0)
    with pytest.raises(BadInputError, match="0 to 3,650"):
        store.set_trash(-1)


def test_an_import_keeps_what_it_replaces_once_and_is_not_blocked_by_it(
    store: MemoryStore, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("otter", "badger"):
        (notes / f"{name}.md").write_text(f"The {name} sleeps.")
    store.import_paths([notes])
    by_text = {memory.text: memory.id for memory in store.list()}
    store.delete(by_text["The badger sleeps."])
    (notes / "otter.md").write_text("The otter swims.")
    (notes / "badger.md").write_text("The badger sleeps. \n")
    report = store.import_paths([notes])
    assert (report.replaced, report.imported) == (1, 1)
    assert [(one.by, one.change) for one in store.trash.list()] == [
        ("import", "edited"),
        ("hand", "deleted"),
    ]
    assert store.undo().change == "delete"  # not what the import did
    assert len(store.list()) == 3  # the badger twice: the one from the file, and the one put back
    assert store.import_paths([notes]).unchanged == 2
    (notes / "otter.md").unlink()
    store.import_paths([notes], prune=True)
    (pruned,) = [one for one in store.trash.list() if one.change == "deleted"]
    assert store.trash.restore(group=pruned.group)[0].text == "The otter swims."
    assert store.verify()["failures"] == []


@pytest.mark.in_a_file
def test_keys_are_replaced_under_it(store: MemoryStore) -> None:
    memory = store.add("The lease ends in June.", collection="work")
    store.edit(memory.id, text="The lease ends in July.")
    store.delete(memory.id)
    before = sealed_rows(store.path)
    store.keys.rotate()
    assert {value[2:6] for value in sealed_rows(store.path)} == {(1).to_bytes(4, "big")}
    assert in_the_files(store.path, before) == []
    assert store.verify()["failures"] == []
    assert store.trash.restore(memory.id, version=1)[0].text == "The lease ends in June."


def test_what_goes_while_a_key_is_replaced_can_be_opened_afterwards(store: MemoryStore) -> None:
    from memory_store.actions.key_rotation import begin

    memory = store.add("The lease ends in June.", collection="work")
    begin(store._opened.vault.whole_vault(), store.collections.find("work"))
    store.delete(memory.id)  # its head and body are sealed in the epoch that is being left
    store.keys.rotate()
    assert store.keys.unfinished() == []
    assert store.trash.restore(memory.id)[0].text == "The lease ends in June."


@pytest.mark.in_a_file
def test_with_a_collection_goes_what_the_trash_has_of_it(store: MemoryStore) -> None:
    store.delete(store.add("An affair.", collection="affairs").id)
    store.delete(store.add("A lease.").id)
    values = sealed_rows(store.path)
    store.collections.delete("affairs")
    assert [one.title for one in store.trash.list()] == ["A lease."]
    assert len(in_the_files(store.path, values)) == 2


def test_a_view_has_the_trash_of_its_collections_alone(store: MemoryStore) -> None:
    diary, work = store.add("Dear diary.", collection="diary"), store.add("Ledger.", collection="w")
    store.delete_many([diary.id, work.id])
    ids = {name: number for number, name in store.collections.names().items()}
    view = store.limited_to(Scope.of([ids["w"]]))
    assert [one.id for one in view.trash.list()] == [work.id]
    with pytest.raises(NotFoundError):
        view.trash.restore(diary.id)
    assert view.trash.empty() == 1
    assert [one.id for one in store.trash.list()] == [diary.id]
    blind = store.limited_to(Scope.of([ids["diary"]]), readable=Scope.of([]))
    assert blind.trash.list() == []
    with pytest.raises(NotFoundError):
        blind.undo()


def test_who_takes_the_id_of_a_deleted_memory_keeps_nobody_from_restoring_it(
    store: MemoryStore, tmp_path: Path
) -> None:
    """Ids stand in clear. What was kept of its file stays, too, when the other one is deleted."""
    diary, team = (store.collections.create(name).id for name in ("diary", "team"))
    (tmp_path / "mine.md").write_text("# Mine\n\nA letter.")
    report = store.import_paths(str(tmp_path / "mine.md"), collection="diary", keep_originals=True)
    (id_,) = report.ids
    alice, mallory = (store.limited_to(Scope.of([one])) for one in (diary, team))
    alice.delete(id_)
    for _ in "12":
        mallory.add("Mallory's", id=id_, collection="team")
        mallory.delete(id_)
    mallory.add("Mallory's", id=id_, collection="team")
    (restored,) = alice.trash.restore(id_)
    assert (restored.title, restored.collection) == ("Mine", "diary")
    assert alice.original(restored.id) == b"# Mine\n\nA letter."
    assert alice.trash.list() == []
    assert mallory.get(id_).text == "Mallory's"
    assert store.verify(full=True)["failures"] == []


def test_one_who_may_not_read_deletes_into_the_trash_and_opens_nothing(store: MemoryStore) -> None:
    memory = store.add("The lease ends in June.", collection="work")
    work = Scope.of([store.collections.find("work")])
    before = store.decrypted
    store.limited_to(work, readable=Scope.of([])).delete(memory.id)
    assert store.decrypted == before
    assert store.trash.restore(memory.id)[0].text == "The lease ends in June."


def test_a_member_restores_what_went_from_what_is_shared_and_undoes_her_own(
    store: MemoryStore, tmp_path: Path, tiny_model: Path
) -> None:
    shared = store.add("Ledger of the pump.", collection="work")
    hidden = store.add("Pump dream.", collection="diary")
    own = store.add("Ledger of the valve.", collection="work")
    data, _, _ = MemoryStore.introduce(store.path, "Alice", key_file=tmp_path / "alice.key")
    store.keys.share("work", data)
    store.delete_many([shared.id, hidden.id])
    with MemoryStore.open(
        store.path, key_file=tmp_path / "alice.key", embedder=str(tiny_model)
    ) as alice:
        assert [one.id for one in alice.trash.list()] == [shared.id]
        with pytest.raises(NotFoundError, match="of this key"):
            alice.undo()
        alice.delete(own.id)
        assert alice.undo().memories[0].id == own.id
        assert alice.trash.restore(shared.id)[0].text == "Ledger of the pump."
        alice.delete(own.id)
    assert store.undo().memories[0].id == hidden.id
    store.set_trash(0)
    with MemoryStore.open(store.path, key_file=tmp_path / "alice.key") as alice:
        alice.delete(shared.id)  # the owner's choice holds for her, too
        assert alice.trash.list() == []
    assert store.trash.list() == []


@pytest.mark.in_a_file
def test_a_strict_vault_says_in_clear_how_many_and_of_which_collection(make_store: Make) -> None:
    store = make_store(profile="strict")
    memory = store.add("The lease ends in June.")
    store.delete(memory.id)
    connection = connect(store.path)
    (row,) = connection.execute("select sequence, collection from vault_trash").fetchall()
    connection.close()
    assert row == (1, store.collections.find("personal"))
    assert store.undo().memories[0].text == "The lease ends in June."
    assert store.verify()["failures"] == []


@pytest.mark.in_a_file
def test_a_changed_row_is_refused_and_named(store: MemoryStore) -> None:
    first, second = store.add("One."), store.add("Two.")
    store.delete(first.id)
    store.delete(second.id)
    connection = connect(store.path)
    connection.execute("update vault_trash set body = (select max(body) from vault_trash)")
    connection.execute(
        "update vault_trash set sealed = (select sealed from vault_trash where sequence = 2)"
        " where sequence = 1"
    )
    connection.close()
    failures = store.verify()["failures"]
    assert any(one.startswith("vault_trash 1:") for one in failures)
    with pytest.raises(TamperedError, match=r"vault_trash\.sealed of 1"):
        store.trash.list()


@pytest.mark.in_a_file
@pytest.mark.parametrize("cell", ["sealed", "body"])
def test_a_damaged_row_can_be_emptied_and_keeps_no_key_from_being_replaced_then(
    store: MemoryStore, cell: str
) -> None:
    for text in ("One.", "Another.", "A third."):
        store.delete(store.add(text).id)
    damage_the_first(store, cell)
    with pytest.raises(TamperedError, match=f"vault_trash.{cell} of 1"):
        store.keys.rotate()
    assert store.trash.empty() == 3
    store.keys.rotate()
    assert store.keys.unfinished() == []
    assert store.verify()["failures"] == []


def entries_in_the_index(store: MemoryStore) -> int:
    """How many the segments hold, dead ones too."""
    connection = connect(store.path)
    (found,) = connection.execute("select sum(documents) from vault_segments").fetchone()
    connection.close()
    return found or 0


@pytest.mark.in_a_file
@pytest.mark.parametrize("way", ["one", "all", "off", "now", "days"])
def test_what_is_erased_leaves_no_entry_in_the_index(
    store: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    gone = store.add_many([MemoryDraft(f"The heron says {n}.") for n in range(3)])
    kept = store.add("The herring stays.")
    store.delete_many([one.id for one in gone[1:]])
    assert entries_in_the_index(store) == 4  # to write the segment anew would take long
    assert [row.id for row in store.search("heron says", mode="keyword").rows] == [gone[0].id]
    assert [(one.word, one.memories) for one in store.words("her")] == [
        ("heron", 1),
        ("herring", 1),
    ]
    if way == "one":
        assert store.trash.empty(gone[1].id) == 1
        assert entries_in_the_index(store) == 2, "the other one's is dead, and was in the segment"
    elif way == "all":
        store.trash.empty()
    elif way == "off":
        store.set_trash(0)
    elif way == "now":
        store.delete(gone[0].id, now=True)
        store.trash.empty()
    else:
        days_later(monkeypatch, 32)
        MemoryStore.open(store.path, key_file=key_file).close()
    living = {one.id for one in store.list()}
    assert living == {kept.id} if way == "now" else {kept.id, gone[0].id}
    assert entries_in_the_index(store) == len(living)
    assert store.verify(full=True)["failures"] == []


@pytest.mark.in_a_file
def test_a_row_of_a_number_that_no_vault_writes_keeps_nobody_from_deleting(
    store: MemoryStore,
) -> None:
    store.delete(store.add("One.").id)
    in_the_file(store, f"update vault_trash set sequence = {2**63 - 1}")
    store.delete(store.add("Another.").id)
    (failure,) = store.verify()["failures"]
    assert str(2**63 - 1) in failure


@pytest.mark.in_a_file
def test_a_row_of_a_collection_that_is_not_there_is_named_by_verify(store: MemoryStore) -> None:
    store.delete(store.add("One.").id)
    in_the_file(store, "update vault_trash set collection = 'elsewhere'")
    (failure,) = store.verify()["failures"]
    assert "vault_trash 1" in failure
    assert "a collection that the vault does not have" in failure


@pytest.mark.in_a_file
def test_a_damaged_row_keeps_nothing_behind_it_for_longer_than_its_days(
    store: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("One.", "Another."):
        store.delete(store.add(text).id)
    damage_the_first(store, "sealed")
    first, _, *behind = sealed_rows(store.path)
    days_later(monkeypatch, 31)
    with MemoryStore.open(store.path, key_file=key_file):
        assert in_the_files(store.path, [first, *behind]) == [first]


@pytest.mark.in_a_file
def test_backups_keep_it_and_a_file_without_its_table_has_none(
    store: MemoryStore, tmp_path: Path, key_file: Path
) -> None:
    memory = store.add("The lease ends in June.")
    store.delete(memory.id)
    copy_vault(store.path, tmp_path / "copy.db")
    with MemoryStore.open(tmp_path / "copy.db", key_file=key_file) as copy:
        assert copy.undo().memories[0].id == memory.id
    connection = connect(store.path)
    connection.execute("drop table vault_trash")
    connection.close()
    store.lock()
    with MemoryStore.open(store.path, key_file=key_file) as older:
        assert older.trash.list() == []
        assert (older.stats()["trash"], older.trash.empty()) == (0, 0)
        older.delete(older.add("Again.").id)
        assert len(older.trash.list()) == 1


def test_who_is_second_to_put_back_or_finds_it_written_meanwhile_loses_nothing(
    store: MemoryStore,
) -> None:
    memory = store.add("First.")
    store.delete(memory.id)
    store.add("Another with its id.", id=memory.id)
    (back,) = store.trash.restore(memory.id)
    assert (back.text, back.version) == ("First.", 2)
    assert [one.title for one in store.trash.list()] == ["Another with its id."]
    with pytest.raises(NotFoundError):
        store.trash.restore("0" * 8)


KILLED = """
import os, signal, sys
from memory_store.session import writer
from memory_store.store import MemoryStore
from memory_store.vault.storage import Storage

store = MemoryStore.open(sys.argv[1], key_file=sys.argv[2])
moment = sys.argv[4]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "kept":  # in the trash, and the memory not yet gone: the transaction is open
    sys.setprofile(lambda frame, event, _: die() if event == "call"
                   and frame.f_code.co_name == "remove" else None)
else:  # committed, the log not yet emptied
    sys.setprofile(lambda frame, event, _: die() if event == "call"
                   and frame.f_code.co_name == "erase_traces" else None)
store.delete(sys.argv[3])
"""


@pytest.mark.parametrize("moment", ["kept", "committed"])
def test_one_who_is_killed_while_deleting_loses_nothing(
    store: MemoryStore, key_file: Path, moment: str
) -> None:  # starts a process: a second
    memory = store.add("The lease ends in June.")
    script = [sys.executable, "-c", KILLED, str(store.path), str(key_file), memory.id, moment]
    ended = subprocess.run(script, env=dict(os.environ), capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    there, kept = store.list(), store.trash.list()
    assert (len(there), len(kept)) == ((1, 0) if moment == "kept" else (0, 1))
    if kept:
        store.undo()
    assert store.get(memory.id).text == "The lease ends in June."
    assert store.verify()["failures"] == []


def test_a_deleted_memory_is_said_to_be_in_the_trash_while_it_is(store: MemoryStore) -> None:
    memory = store.add("The lease ends in June.", title="Lease")
    for work in (store.get, store.delete, store.links):
        store.delete(memory.id)
        for given in (memory.id, memory.id[:8], "Lease"):
            with pytest.raises(DeletedError, match=f"memory {memory.id} was deleted on 20") as told:
                work(given)
            assert told.value.memory_id == memory.id
        with pytest.raises(NotFoundError, match="no memory 'Lease'"):
            store.get("Lease", refs=False)
        store.trash.restore(memory.id)
    store.collections.create("work")
    store.delete(memory.id)
    (other,) = (one.id for one in store.collections.list() if one.name == "work")
    with pytest.raises(NotFoundError, match="no memory"):
        store.limited_to(Scope.of([other])).get(memory.id)
    store.trash.empty()
    with pytest.raises(NotFoundError, match="no memory"):
        store.get(memory.id)


def test_commands_and_assistants_say_how_a_deleted_memory_is_put_back(
    store: MemoryStore, key_file: Path
) -> None:
    memory = store.add("The lease ends in June.", title="Lease")
    store.delete(memory.id)
    restore = f"memory-store trash restore {shlex.quote(str(store.path))} {memory.id}"
    options = [str(store.path), "Lease", "--key-file", str(key_file)]
    result = run("get", *options)
    assert (result.exit_code, result.output.endswith(f". To put it back: {restore}\n")) == (1, True)
    assistant = Assistant(store.limited_to(EVERYTHING), "read", "helper")
    with pytest.raises(NotFoundError, match=f"put it back: memory-store trash restore {memory.id}"):
        call(assistant, "memory_read", {"ids": [memory.id]})
