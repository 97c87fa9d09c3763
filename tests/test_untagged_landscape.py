"""The landscape of a vault without topics: by folder and meaning, with telling words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.index.kinds import KINDS
from memory_store.index.places import PLACES
from memory_store.scopes import Scope
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore

NOTES = {
    "garden": "The tomato and the quince want water, plant number {}",
    "secret-boathouse": "The keel and the anchor want paint, coat number {}",
}


@pytest.fixture
def filed(make_store: Callable[..., MemoryStore], tmp_path: Path) -> MemoryStore:
    """Four notes in each of two folders, and none with a topic."""
    store = make_store()
    for folder, text in NOTES.items():
        (tmp_path / "notes" / folder).mkdir(parents=True)
        for number in range(4):
            (tmp_path / "notes" / folder / f"{number}.md").write_text(text.format(number))
    store.import_paths(tmp_path / "notes")
    return store


def test_folders_are_regions_with_their_telling_words(filed: MemoryStore) -> None:
    found = filed.landscape()
    assert {(one.kind, one.name, one.memories) for one in found.regions} == {
        ("folder", name, 4) for name in NOTES
    }
    words = {one.name: set(one.words) for one in found.regions}
    assert {"tomato", "quince"} <= words["garden"]
    assert {"keel", "anchor"} <= words["secret-boathouse"]
    assert "want" not in words["garden"] | words["secret-boathouse"]
    assert filed.landscape() == found


def test_without_folders_telling_words_name_a_region(store: MemoryStore) -> None:
    for number in range(6):
        store.add(f"quince jelly quince jelly sugar, jar number {number}")
        store.add(f"pilot anchor pilot anchor harbour, mooring number {number}")
    named = [one.name for one in store.landscape().regions if one.kind == "meaning"]
    assert named
    assert all(set(name.split(", ")) & {"quince", "jelly", "pilot", "anchor"} for name in named)


def test_the_command_says_words_where_there_are_no_topics(
    filed: MemoryStore, key_file: Path
) -> None:
    shown = run("landscape", str(filed.path), "--key-file", str(key_file))
    assert "4  garden  " in shown.output
    assert "quince" in shown.output


def test_words_stand_beside_topics(store: MemoryStore, key_file: Path) -> None:
    for number in range(3):
        store.add(f"The quince ripens, row {number}", topics=["garden", "food"])
        store.add(f"The keel is cracked, plank {number}", topics=["boat", "repairs"])
    shown = run("landscape", str(store.path), "--key-file", str(key_file))
    assert re.search(r"#garden\n.* · .*quince", shown.output)
    assert re.search(r"#repairs\n.* · .*keel", shown.output)


def test_a_view_of_other_collections_learns_no_folder_and_no_word(filed: MemoryStore) -> None:
    other = filed.collections.create("other")
    seen = filed.limited_to(Scope.of([other.id])).landscape()
    assert (seen.memories, seen.regions, seen.without) == (0, (), 0)


def test_no_folder_stands_in_the_file(filed: MemoryStore) -> None:
    assert filed.landscape().regions
    files = [one for one in filed.path.parent.iterdir() if one.name.startswith("notes.db")]
    written = b"".join(one.read_bytes() for one in files).lower()
    assert len(written) > 10_000
    for secret in (b"secret-boathouse", b"quince", b"garden"):
        assert secret not in written


def test_a_vault_of_before_places_goes_by_meaning_until_it_is_reindexed(
    filed: MemoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_store: Callable[..., MemoryStore],
) -> None:
    with monkeypatch.context() as before:
        before.delitem(KINDS, PLACES.name)
        before.delitem(RECORDS, PLACES.name)
        older = make_store("older.db")
        older.import_paths(tmp_path / "notes")
    assert all(one.kind != "folder" for one in older.landscape().regions)
    older.reindex()
    assert {one.name for one in older.landscape().regions} == set(NOTES)
