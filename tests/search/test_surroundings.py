"""A memory in a sequence is found by what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

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


WORDS = tuple(" ".join(MATTERS).split())


ANSWERS = (
    "Last July, everybody came",
    "Nineteen eighty",
    "On Tuesday, by bus",
    "Only twice, sadly",
    "Uncle Piet would know",
    "Forty francs, roughly",
    "Behind a cupboard",
    "Not before Easter",
    "Hazel wrote it down",
    "Somewhere near Ghent",
)


def conversation() -> Iterator[MemoryDraft]:
    """Ten talks of six turns, a day apart; in each, one answer that names nothing asked for."""
    for day, (matter, answer) in enumerate(zip(MATTERS, ANSWERS, strict=True), start=1):
        first, second, third = matter.split()
        turns = (
            f"{first} {second} {third} {first}?",
            f"{second} {third} {first} {third}",
            answer,
            f"{third} {first} {second} {second}",
            f"{first} {third} {second} {first}",
            f"{second} {first} {third} {third}",
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
    assert set(refs(talks, "violin", limit=6)) == {f"3.{turn}" for turn in range(6)}


def test_words_alone_are_never_found_by_their_neighbours(talks: MemoryStore):
    assert "3.2" not in refs(talks, "violin begin", mode="keyword", limit=32)


def test_the_described_systems_rank_without_neighbours(talks: MemoryStore):
    assert "3.2" not in refs(talks, "violin teacher", recipe="qmd", limit=4)


def test_what_a_filter_leaves_out_lends_nothing(talks: MemoryStore):
    for memory in talks.list(limit=100):
        if str(memory.ref).endswith(".2"):
            talks.edit(memory.id, type="fact")
    everywhere = refs(talks, "violin lesson teacher", limit=6)
    among_facts = talks.search("violin lesson teacher", type="fact", limit=5)
    assert "3.2" in everywhere
    assert all(row.keyword_rank is None for row in among_facts.rows)


def test_explain_says_which_collections_are_sequential(talks: MemoryStore):
    stages = {report.stage: report.details for report in talks.search("knee", explain=True).explain}
    reported = stages["fetch"]["sequential_collections"]
    assert list(reported) == ["personal"]
    assert 0 < reported["personal"] <= 1
    plain = {r.stage: r.details for r in talks.search("knee", mode="keyword", explain=True).explain}
    assert "sequential_collections" not in plain["fetch"]


def test_unrelated_notes_rank_as_without(make_store: Callable[..., MemoryStore]):
    store = make_store("box.db")
    store.add_many(
        MemoryDraft(f"{word} kept in drawer {n}", ref=str(n))
        for n, word in enumerate(" ".join(MATTERS).split())
    )
    report = next(r for r in store.search("violin", explain=True).explain if r.stage == "fetch")
    assert "sequential_collections" not in report.details


def test_an_explanation_says_what_neighbours_lent(talks: MemoryStore):
    report = next(r for r in talks.search("violin", explain=True).explain if r.stage == "adjust")
    refs_by_id = {memory.id: memory.ref for memory in talks.list(limit=100)}
    accounts = {refs_by_id[one["id"]]: one for one in report.details["results"]}
    words = next(c for c in accounts["3.2"]["contributions"] if c["kind"] == "words held")
    assert words["own_strength"] == 0.0
    assert words["strength"] > 0.0


def test_a_box_beside_another_box_ranks_as_if_shuffled(make_store: Callable[..., MemoryStore]):
    """Two boxes of unrelated notes, one after the other: being stored so says nothing."""
    store = make_store("boxes.db")
    garden = [f"{word} and compost for the garden" for word in WORDS]
    tools = [f"{word} and cables for the server" for word in WORDS]
    store.add_many(MemoryDraft(text, ref=str(n)) for n, text in enumerate(garden + tools))
    report = next(r for r in store.search("comet", explain=True).explain if r.stage == "fetch")
    assert "sequential_collections" not in report.details


def test_whole_documents_of_one_folder_are_no_turns(make_store: Callable[..., MemoryStore]):
    store = make_store()
    store.add_many(replace(draft, type="document") for draft in conversation())
    response = store.search("violin", limit=6, explain=True)
    assert "3.2" not in {row.ref for row in response.rows}
    report = next(r for r in response.explain if r.stage == "fetch")
    assert "sequential_collections" not in report.details
