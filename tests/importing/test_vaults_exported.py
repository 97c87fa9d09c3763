"""A vault that is exported and imported elsewhere has the same memories, links and places there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from memory_store.actions.export import export_markdown, export_ndjson_folder
from memory_store.errors import NotFoundError
from memory_store.records import Memory
from memory_store.store import MemoryStore

Export = Callable[[Iterable[Memory], Path], int]
OWN = {"version", "original"}
"""What a vault says of its own rows: an export has none of it."""
NOTES = {
    "Home.md": "---\naliases: [Start]\n---\nSee [[Lease#Ends]] and [the rent](deep/Rent.md).",
    "deep/Lease.md": "# Lease\n\n## Ends\n\nThe lease ends in May. [[Nobody]]",
    "deep/Rent.md": "Rent is due. Back to [[start]].",
    "talk.txt": "A twin of the name.",
    "deep/talk.txt": "Another twin of the name.",
}


@pytest.fixture
def full(make_store: Callable[..., MemoryStore], tmp_path: Path) -> MemoryStore:
    """A vault with linked notes, their originals, what has ended, and what was deleted."""
    for name, text in NOTES.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    store = make_store()
    store.import_paths([tmp_path / "notes"], keep_originals=True, embed=False)
    old = store.add("We pay 900.", type="fact", valid_from="2023-01-01", valid_to="2024-01-01")
    store.add("We pay 950.", type="fact", supersedes=old.id, valid_from="2024-01-01")
    store.add("Call the landlord.", type="task_done", parent=old.id, metadata={"n": [1, None]})
    store.delete(store.add("Thrown away.").id)
    return store


def told(store: MemoryStore) -> dict[str, dict[str, object]]:
    return {
        one.id: {name: value for name, value in asdict(one).items() if name not in OWN}
        for one in store.every()
    }


def links(store: MemoryStore) -> dict[str, object]:
    """What each memory links to and is linked from, which comes in the order of writing."""
    each = {one.id: store.links(one.id) for one in store.every()}
    return {
        name: replace(one, back=sorted(one.back, key=lambda link: link.id))
        for name, one in each.items()
    }


def places(store: MemoryStore, query: str) -> list[tuple[str, str | None]]:
    rows = store.search(query, mode="keyword").rows
    return [(row.id, passage.place) for row in rows for passage in row.passages]


@pytest.mark.parametrize("export", [export_markdown, export_ndjson_folder])
def test_what_ends_before_it_begins_comes_back_too_with_a_warning(
    make_store: Callable[..., MemoryStore], tmp_path: Path, export: Export
) -> None:
    """A successor makes such a memory, or an earlier version of this program."""
    store, again = make_store(), make_store("again.db")
    old = store.add("From next year on", valid_from="2100-01-01")
    store.supersede(old.id, "From now on")
    export(store.every(), tmp_path / "out")
    report = again.import_paths([*(tmp_path / "out").glob("*")], embed=False)
    assert (report.imported, report.failed) == (2, 0)
    ((_, why),) = report.warnings
    assert why == "valid_to is before valid_from; the note was imported with both as they are"
    assert told(again) == told(store)
    assert again.import_paths([*(tmp_path / "out").glob("*")], embed=False).unchanged == 2
    assert again.verify()["failures"] == []


@pytest.mark.parametrize("export", [export_markdown, export_ndjson_folder])
def test_a_vault_comes_back_whole_but_for_its_trash_and_originals(
    full: MemoryStore, make_store: Callable[..., MemoryStore], tmp_path: Path, export: Export
) -> None:
    assert export(full.every(), tmp_path / "out") == len(told(full))
    again = make_store("again.db")
    report = again.import_paths([*(tmp_path / "out").glob("*")], embed=False)
    assert (report.imported, report.failures) == (len(told(full)), ())
    assert told(again) == told(full)
    assert links(again) == links(full)
    for query in ("lease", "rent", "twin", "landlord"):
        assert places(again, query) == places(full, query) != []
    assert "Thrown away." not in {one.text for one in again.every()}
    assert again.stats()["trash"] != full.stats()["trash"]
    lease = full.get("deep/Lease.md")
    assert full.original(lease.id) == NOTES["deep/Lease.md"].encode()
    with pytest.raises(NotFoundError):
        again.original(lease.id)
    report = again.import_paths([*(tmp_path / "out").glob("*")], embed=False)
    assert report.unchanged == len(told(full))


@pytest.mark.in_a_file
def test_a_vault_is_not_read_as_a_table_and_the_failure_says_what_to_import_instead(
    full: MemoryStore, make_store: Callable[..., MemoryStore]
) -> None:
    report = make_store("other.db").import_paths([full.path], table="memories")
    assert report.failures == (
        (str(full.path), "a vault: import what memory-store export writes of it"),
    )
