"""Rows that were kept and put back later are refused, whatever was made in their place since.

A thief who can write the file has no key, and yet every row he kept opens: it was sealed by its
owner, for this id and version. When a memory is deleted and made again with its id, its versions
start again, and the row of the first one fits in the place of the second. Each test keeps the rows
of "apricot", has the owner make "zeppelin" in their place, and puts "apricot" back.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from counts import FULL
from own_process import python
from plugin.conftest import Filled, Serve, Served
from putting_back import ACCOUNT, INDEX, MEMORY, Rows, kept, put_back

from memory_store.actions.key_rotation import begin
from memory_store.cli.backup import copy_vault
from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.records import MemoryDraft
from memory_store.session import live_index, whole_vault
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]
FIRST, SECOND = "apricot", "zeppelin"
ID = "00000000-0000-4000-8000-0000000000aa"


@dataclass(frozen=True)
class Attack:
    """A vault in which a memory was made again, and the thief's rows of the first one."""

    store: MemoryStore
    key_file: Path
    memory: str
    rows: Rows

    @property
    def path(self) -> Path:
        return self.store.path

    def put_back(self, *tables: str) -> None:
        put_back(self.path, self.memory, self.rows, tables or MEMORY)

    def opened(self) -> MemoryStore:
        return MemoryStore.open(self.path, key_file=self.key_file)


@pytest.fixture(autouse=True)
def usual_model(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model for a test that opens a vault."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))


def made_again_by_id(store: MemoryStore, folder: Path) -> Iterator[str]:
    store.add(f"The {FIRST} tree.", title="Garden", topics=["fruit"], id=ID)
    yield ID
    store.delete(ID)
    store.add(f"The {SECOND} hangar.", title="Garden", topics=["travel"], id=ID)


def made_again_by_import(store: MemoryStore, folder: Path) -> Iterator[str]:
    file = folder / "notes.ndjson"
    for number, word in enumerate((FIRST, SECOND)):
        record = {"id": ID, "ref": "garden/1", "text": f"The {word} tree.", "topics": [word]}
        file.write_text(json.dumps(record) + "\n")
        assert store.import_paths([file]).imported == 1
        if not number:
            yield ID
            store.delete(ID)


def made_again_by_publishing(store: MemoryStore, folder: Path) -> Iterator[str]:
    if "team" not in {one.name for one in store.collections.list()}:
        store.collections.create("team")
    original = store.add(f"The {FIRST} tree.", title="Garden")
    copy = store.publish(original.id, "team")
    yield copy.id
    store.delete(copy.id)
    store.edit(original.id, text=f"The {SECOND} hangar.")
    assert store.publish(original.id, "team").id == copy.id


def made_again_at_version_two(store: MemoryStore, folder: Path) -> Iterator[str]:
    store.add("The first tree.", title="Garden", id=ID)
    store.edit(ID, text=f"The {FIRST} tree.")
    yield ID
    store.delete(ID)
    store.add("The first hangar.", title="Garden", id=ID)
    store.edit(ID, text=f"The {SECOND} hangar.")


def made_again_with_its_text(store: MemoryStore, folder: Path) -> Iterator[str]:
    """Only the title is another: the row names the same body."""
    text = "In the garden stands what the title says."
    store.add(text, title=f"An {FIRST} tree", id=ID)
    store.add(text, title="Keeps the body")
    yield ID
    store.delete(ID)
    store.add(text, title=f"A {SECOND} hangar", id=ID)


WAYS = {
    "by id": made_again_by_id,
    "by import": made_again_by_import,
    "by publishing": made_again_by_publishing,
    "at version two": made_again_at_version_two,
    "with the same text": made_again_with_its_text,
}


def attack(store: MemoryStore, key_file: Path, folder: Path, way: str = "by id") -> Attack:
    """The vault after the owner made the memory again: nothing is put back yet."""
    store.add("Bystander of the garden.")
    steps = WAYS[way](store, folder)
    memory = next(steps)
    rows = kept(store.path, memory)
    for _ in steps:
        raise AssertionError("each way has one step to be watched")
    assert SECOND in str(store.get(memory))
    assert store.verify()["failures"] == []
    return Attack(store, key_file, memory, rows)


def doors(store: MemoryStore, memory: str, folder: Path) -> dict[str, Callable[[], Any]]:
    """Every call that says what a memory says, or writes on top of it."""
    return {
        "get": lambda: store.get(memory),
        "heads": lambda: store.heads([memory]),
        "search": lambda: store.search("garden", mode="keyword").rows,
        "literal": lambda: store.search("tree", mode="literal").rows,
        "list": lambda: store.list(),
        "export": lambda: list(store.every()),
        "topics": lambda: store.topics(),
        "references": lambda: store.references(),
        "edit": lambda: store.edit(memory, title="Mine"),
        "done": lambda: store.edit(memory, add_topics=["more"]),
        "reindex": lambda: store.reindex(),
    }


def assert_refused_everywhere(store: MemoryStore, attack: Attack, folder: Path) -> None:
    """No door says "apricot", those that open the memory name it, and so does verify."""
    refused = []
    for door, call in doors(store, attack.memory, folder).items():
        try:
            said = str(call())
        except TamperedError as error:
            said = str(error)
            refused.append(door)
        assert FIRST not in said, door
    assert {"get", "heads", "list", "export", "edit"} <= set(refused)
    failures = store.verify()["failures"]
    assert any(attack.memory in one for one in failures), failures
    with pytest.raises(TamperedError, match=attack.memory):
        store.get(attack.memory)


@pytest.mark.parametrize("profile", ["default", "strict"])
@pytest.mark.parametrize("way", WAYS)
def test_a_row_of_before_is_refused_in_the_place_of_the_one_made_again(
    make_store: Make, key_file: Path, tmp_path: Path, way: str, profile: str
) -> None:
    found = attack(make_store(profile=profile), key_file, tmp_path, way)
    found.put_back()
    assert_refused_everywhere(found.store, found, tmp_path)  # while the vault is open
    with found.opened() as again:
        assert_refused_everywhere(again, found, tmp_path)


def test_the_other_memories_can_be_read_beside_it_and_deleting_it_mends_the_vault(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    bystander = next(one.id for one in store.list() if one.id != found.memory)
    found.put_back()
    assert "Bystander" in store.get(bystander).text
    store.delete(found.memory)
    assert store.verify()["failures"] == []
    assert [one.id for one in store.list()] == [bystander]


@pytest.mark.parametrize("tables", [INDEX, (*INDEX, "vault_changes"), ("vault_segments",)])
def test_old_index_rows_put_back_with_it_do_not_add_up_to_the_account(
    store: MemoryStore, key_file: Path, tmp_path: Path, tables: tuple[str, ...]
) -> None:
    found = attack(store, key_file, tmp_path)
    store.lock()
    found.put_back(*MEMORY, *tables)
    with found.opened() as again:
        for call in (lambda: again.get(found.memory), lambda: again.search("garden"), again.list):
            with pytest.raises(TamperedError):
                call()
        assert again.verify()["failures"]


@pytest.mark.parametrize("table", INDEX)
def test_an_old_index_alone_is_refused(
    store: MemoryStore, key_file: Path, tmp_path: Path, table: str
) -> None:
    found = attack(store, key_file, tmp_path, "at version two")
    store.lock()
    found.put_back(table)
    with found.opened() as again:
        with pytest.raises(TamperedError):
            again.search("garden")
        assert again.verify()["failures"]


def test_an_old_account_put_back_with_everything_is_refused_while_the_vault_is_open(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    found.put_back(*MEMORY, *INDEX, *ACCOUNT)
    with pytest.raises(TamperedError, match="older"):
        found.store.search("garden")
    with pytest.raises(TamperedError, match="older"):
        found.store.get(found.memory)


def test_an_old_account_put_back_with_everything_is_said_at_the_next_opening(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    store.lock()
    found.put_back(*MEMORY, *INDEX, *ACCOUNT)
    with found.opened() as again:
        assert "older" in (again.older() or "")


def test_an_older_file_is_named_though_who_saw_the_newer_one_never_locked_it(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may be killed, or lose its power, after months."""
    monkeypatch.setattr(whole_vault, "SEEN_AGAIN", 0.0)
    store.add("Written before.")
    copy_vault(store.path, tmp_path / "older.db")
    store.add("Written after.")
    assert len(store.list()) == 2
    for log in store.path.parent.glob("notes.db-*"):
        log.unlink()
    (tmp_path / "older.db").replace(store.path)
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert "older" in (again.older() or "")


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted elsewhere", "not made yet"])
def test_a_file_without_a_collection_is_older_unless_another_machine_deleted_that(
    store: MemoryStore,
    key_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deleted: bool,
) -> None:
    copy_vault(store.path, tmp_path / "without.db")
    store.collections.create("attic")
    store.lock()
    if deleted:
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("MEMORY_STORE_STATE", str(tmp_path / "another machine"))
            with MemoryStore.open(store.path, key_file=key_file) as another:
                another.collections.delete("attic")
    else:
        (tmp_path / "without.db").replace(store.path)
    with MemoryStore.open(store.path, key_file=key_file) as again:
        assert (again.older() is None) is deleted


def test_old_topics_are_shown_by_verification_and_change_no_search(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    found.put_back("memory_topics")
    assert [row.id for row in store.search("", topic="travel").rows] == [found.memory]
    assert store.search("", topic="fruit").rows == ()
    assert any("topic hashes" in one for one in store.verify()["failures"])


def test_a_body_of_before_opens_for_no_other_row(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    connection = connect(found.path)
    (now,) = connection.execute(
        "select content from memories where id = ?", (found.memory,)
    ).fetchone()
    _, _, tag, body = found.rows["memory_bodies"][0]
    connection.execute("update memory_bodies set tag = ?, body = ? where id = ?", (tag, body, now))
    connection.close()
    with pytest.raises(TamperedError, match="changed, cut or moved"):
        store.get(found.memory)


def test_a_row_added_by_hand_is_found_by_no_one(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    memory = store.add(f"The {FIRST} tree.").id
    store.add("Bystander.")
    rows = kept(store.path, memory)
    store.delete(memory)
    put_back(store.path, memory, rows)
    found = Attack(store, key_file, memory, rows)
    with found.opened() as again:
        for one in (store, again):
            with pytest.raises(TamperedError):
                one.get(memory)
            with pytest.raises(TamperedError):
                one.search("tree", mode="keyword")
            with pytest.raises(TamperedError):
                list(one.every())
            with pytest.raises(TamperedError):
                one.edit(memory, title="Mine")
            assert any(memory in failure for failure in one.verify()["failures"])
    store.delete(memory)
    assert store.verify()["failures"] == []


def test_a_row_taken_away_is_missed_by_a_caller_who_finds_it(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_index, "COUNTED_AT_UNLOCK", 0)
    gone, _ = store.add("The garden gate."), store.add("Bystander.")
    put_back(store.path, gone.id, {"memories": []}, ["memories"])
    for call in (lambda: store.search("gate", mode="keyword"), store.list):
        with pytest.raises(TamperedError, match=gone.id):
            call()
    assert any(gone.id in one for one in store.verify()["failures"])


def test_a_row_put_into_no_collection_is_missed_by_a_caller_who_finds_it(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large vault, whose rows are counted, with another one in its place; and between a look
    at the index and what a search opens."""
    monkeypatch.setattr(live_index, "COUNTED_AT_UNLOCK", 0)
    gone, left = store.add("The garden gate."), store.add("Bystander.")
    looked, columns = store.search_context(), "type, created, updated, version, content, head"
    with closing(connect(store.path)) as thief:
        own = thief.execute("select collection from memories where id = ?", (gone.id,)).fetchone()
        thief.execute("update memories set collection = 'none' where id = ?", (gone.id,))
        thief.execute(
            f"insert into memories (id, collection, {columns}) select ?, ?, {columns} "
            "from memories where id = ?",
            (ID, *own, left.id),
        )
    ordinal = looked.snapshot.ordinal_of(gone.id)
    assert ordinal is not None
    for call in (
        lambda: looked.open_memories([ordinal]),
        lambda: store.search("gate", mode="keyword"),
        store.list,
    ):
        with pytest.raises(TamperedError, match=gone.id):
            call()
    failures = store.verify()["failures"]
    assert any(gone.id in one for one in failures)
    assert any(ID in one for one in failures)


@pytest.mark.parametrize("moment", ["before", "after", "during"])
def test_replacing_the_keys_makes_no_row_of_before_right(
    store: MemoryStore,
    key_file: Path,
    tmp_path: Path,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if moment == "before":
        store.keys.rotate()
    found = attack(store, key_file, tmp_path)
    found.put_back()
    if moment == "during":
        begin_a_change_of_keys(store)
    if moment != "before":
        store.keys.rotate()
    assert_refused_everywhere(store, found, tmp_path)
    assert SECOND not in str(found.rows)


def begin_a_change_of_keys(store: MemoryStore) -> None:
    """As a process leaves it that is killed right after it began."""
    for collection in store._opened.vault.settings.collections:
        begin(store._opened.vault, collection)


def test_a_large_vault_refuses_it_as_a_small_one(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the constant rows are counted at unlock, and compared when they are opened."""
    if FULL:
        many = (MemoryDraft(f"Filler {n}.") for n in range(live_index.COUNTED_AT_UNLOCK + 1))
        store.add_many(many, embed=False)
    else:
        monkeypatch.setattr(live_index, "COUNTED_AT_UNLOCK", 1)
    found = attack(store, key_file, tmp_path)
    store.lock()
    found.put_back()
    with found.opened() as again:
        again.search("bystander", mode="keyword")
        with pytest.raises(TamperedError, match=found.memory):
            again.get(found.memory)
        with pytest.raises(TamperedError, match=found.memory):
            again.search("garden", mode="keyword")
    found.put_back(*INDEX)
    with found.opened() as again, pytest.raises(TamperedError):
        again.search("bystander", mode="keyword")


def test_who_shares_the_collection_refuses_it_too(
    store: MemoryStore, key_file: Path, tmp_path: Path, tiny_model: Path
) -> None:
    hers = tmp_path / "keys" / "alice.key"
    store.collections.create("team")
    data, _, _ = MemoryStore.introduce(store.path, "Alice", key_file=hers)
    store.keys.share("team", data)
    with MemoryStore.open(store.path, key_file=hers, embedder=str(tiny_model)) as alice:
        found = attack(store, hers, tmp_path, "by publishing")
        found.put_back()
        for one in (alice, found.opened()):
            with pytest.raises(TamperedError, match=found.memory):
                one.get(found.memory)
            with pytest.raises(TamperedError):
                one.list()
            assert any(found.memory in failure for failure in one.verify()["failures"])
            one.close()


@pytest.mark.once
def test_the_command_line_refuses_it(
    store: MemoryStore, key_file: Path, tmp_path: Path, tiny_model: Path
) -> None:
    found = attack(store, key_file, tmp_path)
    found.put_back()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return python(
            "-m",
            "memory_store",
            words[0],
            str(found.path),
            *words[1:],
            env={**os.environ, "MEMORY_STORE_KEY_FILE": str(key_file)},
        )

    for command in (
        ["get", found.memory],
        ["search", "garden", "--mode", "keyword"],
        ["list"],
        ["export", "-", "--ndjson"],
        ["edit", found.memory, "--title", "Mine"],
        ["topics"],
    ):
        done = run(*command)
        assert done.returncode == 1, (command, done.stdout, done.stderr)
        assert FIRST not in done.stdout + done.stderr
        assert "memory-store verify" in done.stderr
    verified = run("verify")
    assert verified.returncode == 1
    assert found.memory in verified.stderr


READING = {
    "the memory's page": "/notes/-/hybrid/memories/{id}",
    "its data": "/notes/-/hybrid/memories/{id}.json",
    "the search page": "?q=garden&mode=keyword",
    "its data, too": ".json?q=garden&mode=keyword",
}
TEXTS = {
    **READING,
    "SQL": "/notes.json?sql=select+memory_text('{id}')",
    "the table of texts": "/notes/memory_bodies",
}
TITLES = {
    **READING,
    "SQL": "/notes.json?sql=select+title+from+hybrid_search('garden')",
    "the table": "/notes/memories",
    "the row": "/notes/memories/{id}",
    "a search in the table": "/notes/memories?_hybrid=garden",
}
"""Pages of Datasette that show what was made again by its text, and by its title."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("open_before", [True, False])
@pytest.mark.parametrize(("way", "pages"), [("by id", TEXTS), ("with the same text", TITLES)])
async def test_datasette_shows_it_on_no_surface(
    filled: Filled,
    model: Path,
    tmp_path: Path,
    serve: Serve,
    open_before: bool,
    way: str,
    pages: dict[str, str],
) -> None:
    settings = {"key-file": str(filled.key_file), "allow": {"hybrid-decrypt": {"id": "root"}}}
    settings["allow"] |= {"hybrid-search": {"id": "root"}}
    options = {"notes": settings}
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        found = attack(store, filled.key_file, tmp_path, way)
    served = (await serve(filled.path, options=options)).by("root")
    for page, answer in (await answered(served, found, pages)).items():
        assert SECOND in answer, f"{page} shows what is there"
    found.put_back()
    if not open_before:
        served = (await serve(filled.path, options=options)).by("root")
    for page, answer in (await answered(served, found, pages)).items():
        assert FIRST not in answer, page


async def answered(served: Served, found: Attack, pages: dict[str, str]) -> dict[str, str]:
    """What each of the pages shows."""
    answers = {}
    for page, address in pages.items():
        path = address.replace("{id}", found.memory)
        whole = path if path.startswith("/") else served.full(path)
        answer = await served.datasette.client.get(
            whole, cookies=served.cookies, follow_redirects=True
        )
        answers[page] = answer.text
    return answers


def test_nothing_legitimate_is_refused(
    store: MemoryStore, key_file: Path, tmp_path: Path, tiny_model: Path
) -> None:
    """Made again, edited by two, deleted, brought back from an export, replaced keys, a backup."""
    found = attack(store, key_file, tmp_path)
    with found.opened() as other:
        for number in range(3):
            other.edit(found.memory, title=f"Theirs {number}")
            store.edit(found.memory, add_topics=[f"ours {number}"])
            assert other.get(found.memory) == store.get(found.memory)
    said = store.get(found.memory)
    backup = tmp_path / "backups" / "copy.db"
    backup.parent.mkdir()
    copy_vault(store.path, backup)
    store.delete(found.memory)
    store.keys.rotate()
    store.add(said.text, title=said.title, id=found.memory)
    assert store.verify(full=True)["failures"] == []
    with MemoryStore.open(backup, key_file=key_file, embedder=str(tiny_model)) as copy:
        assert copy.get(found.memory) == said
        assert copy.verify(full=True)["failures"] == []


def test_errors_say_what_to_do_next(store: MemoryStore, key_file: Path, tmp_path: Path) -> None:
    found = attack(store, key_file, tmp_path)
    found.put_back()
    with pytest.raises(MemoryStoreError, match="memory-store verify") as refused:
        store.get(found.memory)
    assert found.memory in str(refused.value)
