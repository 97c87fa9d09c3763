"""A memory told among others is found by what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

MATTERS = (
    "sailing boat harbour",
    "sourdough oven bread",
    "violin lesson teacher",
    "garden potatoes hedge",
    "marathon knee training",
    "boiler repair invoice",
    "passport embassy photograph",
    "chess club tournament",
    "telescope comet night",
    "beehive honey smoker",
)


def conversation() -> Iterator[MemoryDraft]:
    """Ten talks of five turns, a day apart; in each, one answer that names nothing asked for."""
    for day, matter in enumerate(MATTERS, start=1):
        first, second, third = matter.split()
        turns = (
            f"Shall we talk about the {first} and the {second} today?",
            f"Yes, the {second} and the {third}, please. And when did the {first} begin?",
            f"Last July number {day}, with everybody.",
            f"Good, then the {first} and the {third} can wait, and the {second} too",
            f"The {third} and the {second} then, not the {first}",
        )
        for number, text in enumerate(turns):
            yield MemoryDraft(text, ref=f"{day}.{number}", created=f"2024-03-{day:02}T09:00:00Z")


@pytest.fixture
def talks(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = make_store()
    store.add_many(conversation())
    return store


def refs(store: MemoryStore, query: str, **options: object) -> list[str | None]:
    return [row.ref for row in store.search(query, **options).rows]


def test_an_answer_is_found_by_the_turns_beside_it(talks: MemoryStore):
    assert set(refs(talks, "violin", limit=5)) == {"3.0", "3.1", "3.2", "3.3", "3.4"}


def test_words_alone_are_never_found_by_their_neighbours(talks: MemoryStore):
    assert "3.2" not in refs(talks, "violin begin", mode="keyword", limit=32)


def test_the_described_systems_rank_without_neighbours(talks: MemoryStore):
    assert "3.2" not in refs(talks, "violin teacher", recipe="qmd", limit=4)


def test_what_a_filter_leaves_out_lends_nothing(talks: MemoryStore):
    for memory in talks.list(limit=100):
        if str(memory.ref).endswith(".2"):
            talks.edit(memory.id, type="fact")
    everywhere = refs(talks, "violin lesson teacher", limit=5)
    among_facts = talks.search("violin lesson teacher", type="fact", limit=5)
    assert "3.2" in everywhere
    assert all(row.keyword_rank is None for row in among_facts.rows)


def test_explain_says_which_collections_are_told_in_order(talks: MemoryStore):
    stages = {report.stage: report.details for report in talks.search("knee", explain=True).explain}
    told = stages["fetch"]["told_in_order"]
    assert list(told) == ["personal"]
    assert 0 < told["personal"] <= 1
    plain = {r.stage: r.details for r in talks.search("knee", mode="keyword", explain=True).explain}
    assert "told_in_order" not in plain["fetch"]


def test_unrelated_notes_rank_as_without(make_store: Callable[..., MemoryStore]):
    store = make_store("box.db")
    store.add_many(
        MemoryDraft(f"{word} kept in drawer {n}", ref=str(n))
        for n, word in enumerate(" ".join(MATTERS).split())
    )
    report = next(r for r in store.search("violin", explain=True).explain if r.stage == "fetch")
    assert "told_in_order" not in report.details
