"""A vault of small notes, and a small cross-encoder that can be switched on."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_reranker

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

SENTENCES = (
    "The automobile needs new brake pads before winter",
    "Mina keeps the spare key under the blue pot",
    "Spare keys were cut in March, three of them",
    "The lease ends in May and the landlord wants the deposit settled",
    "Sourdough wants a warm corner and a day of patience",
    "Harper called about the surveyor's report",
    "The physician moved the appointment to Friday",
    "Rain barrels fill in one night of April weather",
    "The ferry to the islands leaves at seven",
    "Paint for the hall is called oyster white",
    "Seed potatoes go into egg boxes by the window",
    "The boiler was serviced and the filter replaced",
)


@pytest.fixture
def notes(store: MemoryStore) -> MemoryStore:
    """Twelve notes on twelve matters, newest last."""
    store.add_many(
        MemoryDraft(
            text,
            title=f"Note {number}",
            ref=str(number),
            topics=("house",) if number % 2 else ("errands",),
            created=f"2024-{number + 1:02}-01",
        )
        for number, text in enumerate(SENTENCES)
    )
    return store


@pytest.fixture
def reranker(private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The tiny cross-encoder, under the name of a model that is calibrated."""
    return tiny_reranker.chosen(private_folders / "reranker", monkeypatch)
