"""The test kit: this package and an independent reader give the same answer to every vector."""

from __future__ import annotations

import ast
import json
import lzma
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import independent_answers
import make_kit
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from independent_reader import open_vault
from independent_sealing import Refused
from our_answers import ANSWERS, answered, memories, opened_vault, outcome_of, refusals, vault_file

from memory_store.errors import MemoryStoreError
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING, NOTHING
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

FILES = (*ANSWERS, "vault")
VECTORS = {name: json.loads((make_kit.HERE / f"{name}.json").read_text("utf-8")) for name in FILES}
ALL = [(name, vector) for name in FILES for vector in VECTORS[name]["vectors"]]


@pytest.mark.parametrize("name", ANSWERS)
def test_this_package_answers_as_the_kit_says(name: str) -> None:
    for vector in VECTORS[name]["vectors"]:
        outcome, result = answered(ANSWERS[name], vector)
        if outcome is not None:
            assert outcome == vector["outcome"], vector["id"]
        else:
            assert result == {key: vector.get(key) for key in result}, vector["id"]


def test_this_package_reads_the_kit_s_vault_and_refuses_every_change_to_it(
    tmp_path: Path, private_folders: Path
) -> None:
    (tmp_path / "keys").mkdir()
    for vector in VECTORS["vault"]["vectors"]:
        path = vault_file(tmp_path / f"{vector['id']}.db", vector["change"])
        try:
            with opened_vault(path, tmp_path / "keys" / "kit.key", **vector["given"]) as store:
                said = refusals(store)
                held = None if said else memories(store)
        except MemoryStoreError as error:
            said, held = {outcome_of(error)}, None
        assert held == vector.get("memories"), vector["id"]
        assert held or vector["outcome"] in said, (vector["id"], said)


@pytest.mark.parametrize("name", FILES)
def test_an_independent_reader_answers_as_the_kit_says(name: str) -> None:
    for vector in VECTORS[name]["vectors"]:
        assert independent_answers.disagreement(name, vector) is None, vector["id"]


@pytest.mark.parametrize("name", make_kit.FILES)
def test_the_kit_can_be_made_again_byte_for_byte(name: str) -> None:
    assert make_kit.text_of(name) == (make_kit.HERE / f"{name}.json").read_text("utf-8")


def test_the_kit_holds_what_is_promised() -> None:
    """At least 160 vectors, seven kinds of outcome, and no fault twice."""
    assert len(ALL) >= 160
    assert len({vector["id"] for _, vector in ALL}) == len(ALL)
    outcomes = Counter(vector["outcome"] for _, vector in ALL)
    assert len(outcomes) >= 7
    faults = [
        (name, vector["what"])
        for name, vector in ALL
        if name != "derivations" and vector["outcome"] != "opens"
    ]
    assert len(faults) == len(set(faults))


def test_the_independent_reader_uses_nothing_of_this_package() -> None:
    for file in make_kit.HERE.glob("independent_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.startswith("memory_store") for name in names), file.name


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
DRAFTS = st.lists(
    st.builds(
        MemoryDraft,
        TEXTS.filter(lambda text: bool(text.replace("\x00", "").replace("\ufeff", "").strip())),
        title=TEXTS.map(lambda text: " ".join(text.split())[:100]),
        topics=st.lists(TEXTS.map(lambda text: text[:30]), max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drafts=DRAFTS, rotate=st.booleans(), unread=st.booleans())
def test_the_independent_reader_reads_what_this_package_wrote(
    store: MemoryStore, key_file: Path, drafts: list[MemoryDraft], rotate: bool, unread: bool
) -> None:
    reported = NOTHING if unread else EVERYTHING
    store.limited_to(EVERYTHING, disclosed=reported, writer="one").add_many(drafts, embed=False)
    if rotate:
        store.keys.rotate("personal")
    # by the store's own SQLite: two libraries on one file undo each other's locks
    with closing(connect(store.path, read_only=True)) as connection:
        vault = open_vault(connection, "key-file", key_file.read_text())
        names, notes = vault.collections(), vault.notes()
    read = {(note.id, names[note.collection], note.title, note.topics, note.text) for note in notes}
    assert read == {
        (memory.id, memory.collection, memory.title, memory.topics, memory.text)
        for memory in store.list(limit=10_000)
    }


@dataclass(frozen=True)
class Shared:
    """A vault that shares a collection: the owner's open store, and the other's key."""

    owner: MemoryStore
    key: Path

    def read(self) -> set[tuple[str, str, str]]:
        """What the independent reader finds with the other's key: collection, topics, text."""
        # by the store's own SQLite: two libraries on one file undo each other's locks
        with closing(connect(self.owner.path, read_only=True)) as connection:
            vault = open_vault(connection, "key-file", self.key.read_text())
            names, notes = vault.collections(), vault.notes()
        assert set(names.values()) == {note.collection and names[note.collection] for note in notes}
        return {(names[one.collection], *one.topics, one.text) for one in notes}

    def change(self, statement: str) -> None:
        with closing(connect(self.owner.path)) as connection:
            connection.execute(statement)


@pytest.fixture
def shared(store: MemoryStore, tmp_path: Path) -> Shared:
    for collection in ("work", "club", "diary"):
        store.add(f"A text of the {collection}.", topics=[collection], collection=collection)
    key = tmp_path / "keys" / "alice.key"
    introduction, _, _ = MemoryStore.introduce(store.path, "Alice", key_file=key)
    store.keys.share("work", introduction)
    store.keys.share("club", "Alice")
    return Shared(store, key)


WORK, CLUB = ("work", "work", "A text of the work."), ("club", "club", "A text of the club.")


def test_the_independent_reader_reads_what_is_shared_with_another_key_and_nothing_else(
    shared: Shared,
) -> None:
    assert shared.read() == {WORK, CLUB}
    for _ in range(2):  # the second time from epoch to epoch
        shared.owner.keys.rotate()
        assert shared.read() == {WORK, CLUB}


def test_the_independent_reader_reads_on_while_keys_are_replaced(shared: Shared) -> None:
    found = []
    shared.owner.keys.rotate("work", progress=lambda *_: found.append(shared.read()))
    assert len(found) > 4
    assert all(one == {WORK, CLUB} for one in found)


def test_the_independent_reader_reads_on_wherever_topics_are_kept(shared: Shared) -> None:
    for where in ("memory", "table"):
        found = []
        shared.owner.set_topics(where, progress=lambda *_: found.append(shared.read()))  # noqa: B023
        assert [*found, shared.read()] == [{WORK, CLUB}] * (len(found) + 1)
        assert found


def test_the_independent_reader_refuses_what_is_shared_no_more(shared: Shared) -> None:
    with closing(connect(shared.owner.path)) as connection:
        kept = connection.execute("select * from vault_collection_keys where principal").fetchall()
    shared.owner.keys.revoke("Alice", "work")
    assert shared.read() == {CLUB}
    with closing(connect(shared.owner.path)) as connection:  # her old grants are put back
        marks = "insert or ignore into vault_collection_keys values (?, ?, ?, ?)"
        connection.executemany(marks, kept)
    with pytest.raises(Refused):
        shared.read()
    shared.change("delete from vault_collection_keys where principal and epoch = 0 and collection "
                  "in (select collection from vault_collection_keys where epoch = 1)")  # fmt: skip
    shared.owner.keys.revoke("Alice")
    with pytest.raises(Refused, match="wrong secret"):
        shared.read()


@pytest.mark.parametrize(
    ("outcome", "change"),
    [
        ("another identity", "delete from vault_identities where principal = 0"),
        (
            "another identity",
            "update vault_identities set public = (select public from vault_identities where "
            "principal) where principal = 0",
        ),
        (
            "not authentic",
            "update vault_collection_keys set wrapped = (select wrapped from vault_collection_keys "
            "other where other.principal and other.collection != "
            "vault_collection_keys.collection) where principal",
        ),
        ("unknown format", "update vault_collection_keys set wrapped = zeroblob(2000)"),
        ("missing row", "delete from vault_shares"),
        (
            "not authentic",
            "update vault_shares set sealed = (select sealed from vault_shares other where "
            "other.collection != vault_shares.collection)",
        ),
        ("wrong secret", "delete from vault_slots where principal"),
    ],
)
def test_another_key_refuses_what_a_person_changed(
    shared: Shared, outcome: str, change: str
) -> None:
    shared.change(change)
    with pytest.raises(Refused) as refused:
        shared.read()
    assert refused.value.outcome == outcome


FORMATS = Path(__file__).parents[1] / "formats"
RELEASED = sorted(FORMATS.glob("format-*.db.xz"))


@pytest.mark.parametrize("packed", RELEASED, ids=lambda path: path.name)
def test_the_independent_reader_reads_every_format_released(packed: Path, tmp_path: Path) -> None:
    name, _, profile = packed.name.removesuffix(".db.xz").rpartition("-")
    known = json.loads((FORMATS / f"{name}.json").read_text("utf-8"))[profile]["memories"]
    path = tmp_path / "kept.db"
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        notes = open_vault(connection, "key-file", (FORMATS / "formats.key").read_text()).notes()
    read = {(note.id, note.title, note.topics, note.text) for note in notes}
    assert read == {(one["id"], one["title"], tuple(one["topics"]), one["text"]) for one in known}
