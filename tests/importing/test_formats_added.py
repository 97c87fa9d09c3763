"""A new format is one reader and one line: everything else about importing works for it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_store.importing import readers
from memory_store.importing.readers import read_file, register
from memory_store.importing.source_file import (
    Failure,
    Item,
    Limits,
    Reader,
    Skip,
    SourceFile,
    UnreadableError,
)
from memory_store.importing.walker import walk
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

MAGIC = b"CARDS\0"


def read_cards(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """One memory a card; cards are separated by a zero."""
    for number, card in enumerate(file.data(limits).split(b"\0")[1:], 1):
        if card == b"torn":
            raise UnreadableError("a card is torn", number)
        if card:
            yield MemoryDraft(card.decode(), ref=f"card-{number}")


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "READERS", [*readers.READERS])
    register(
        Reader(
            "cards",
            (".cards",),
            read_cards,
            lambda head: head.startswith(MAGIC),
            rows=True,
            binary=True,
        )
    )


def test_a_made_up_format_is_imported_recognised_and_pruned(
    store: MemoryStore, put: Callable[[str, str | bytes], Path]
) -> None:
    file = put("box.cards", MAGIC + b"Reeds by the river.\0Geese on the marsh.")
    assert store.import_paths(file, embed=False).imported == 2
    assert store.import_paths(file, embed=False).unchanged == 2
    assert {row.ref for row in store.search("reeds geese", mode="keyword").rows} <= {
        "card-1",
        "card-2",
    }
    put("box.cards", MAGIC + b"Reeds by the river.")
    report = store.import_paths(file, embed=False, prune=True)
    assert (report.unchanged, report.pruned) == (1, 1)


def test_its_first_bytes_make_it_known_under_any_name(
    store: MemoryStore, put: Callable[[str, str | bytes], Path]
) -> None:
    put("box", MAGIC + b"Reeds.")
    put("notes/box.cards", MAGIC + b"Geese.")
    assert store.import_paths("box", embed=False).imported == 1
    assert store.import_paths("notes", embed=False).imported == 0  # rows are taken when named
    assert store.import_paths("notes", glob=["*.cards"], embed=False).imported == 1


def test_a_broken_file_names_its_line_and_keeps_the_rest(
    store: MemoryStore, put: Callable[[str, str | bytes], Path]
) -> None:
    put("box.cards", MAGIC + b"Reeds.\0torn\0Geese.")
    report = store.import_paths("box.cards", embed=False)
    assert (report.imported, report.failures) == (1, (("box.cards:2", "a card is torn"),))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(items=1), "more than 1 records; the rest was not read"),
        (Limits(seconds=0), "more than 0 s; the rest was not read"),
        (Limits(bytes=3), "larger than 0 MB"),
    ],
)
def test_limits_hold_for_every_reader(
    put: Callable[[str, str | bytes], Path], limits: Limits, reason: str
) -> None:
    (file,) = walk(put("box.cards", MAGIC + b"one\0two\0three"))
    assert isinstance(file, SourceFile)
    *before, last = read_file(file, limits)
    assert last == Failure(file.name, reason)
    assert len(before) <= 1
    assert not any(isinstance(item, Skip) for item in before)
