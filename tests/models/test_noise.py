"""What means nothing finds nothing that is likely to be an answer."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_store.store import MemoryStore

NOTES = Path(__file__).parents[2] / "demo" / "notes"


@pytest.fixture(scope="module")
def notes(minilm: dict[str, Path]) -> Iterator[MemoryStore]:
    """A third of the demo's notes, embedded by MiniLM."""
    with MemoryStore.in_memory(embedder=str(minilm["int8"])) as store:
        store.import_paths([NOTES / "house", NOTES / "sailing"])
        yield store


def syllables(seed: int) -> str:
    draw = random.Random(seed)
    word = ["bcdfghjklmnprstvwz", "aeiou"] * draw.randint(2, 4)
    return " ".join("".join(map(draw.choice, word)) for _ in range(draw.randint(1, 4)))


@pytest.mark.once
def test_random_syllables_find_hardly_anything(notes: MemoryStore) -> None:
    """But where one of them happens to be a word of a note, or is a slip away from one."""
    found = [notes.search(syllables(seed), limit=1) for seed in range(100)]
    unheld = [one for one in found if one.rows and one.rows[0].keyword_rank is None]
    assert len(unheld) > 50
    assert all(one.rows[0].score < 0.2 for one in unheld)


@pytest.mark.once
def test_one_word_of_a_note_among_noise_is_hardly_an_answer(notes: MemoryStore) -> None:
    """But it is one in a question: words such as *the* show that the query is one."""
    alone, among, asked = (
        notes.search(query).rows[0].score
        for query in ("compass", "zixofhct compass lcgxroftx", "the zixofhct of the compass")
    )
    assert among < 0.2 < min(alone, asked)


@pytest.mark.once
def test_two_words_of_a_note_among_unknown_ones_are_none_of_noise(notes: MemoryStore) -> None:
    """The unknown ones may be names; the same word twice is one."""
    asked, twice = (
        notes.search(query).rows[0]
        for query in (
            "zixofhct mainsail lcgxroftx reefed vujepali",
            "zixofhct mainsail lcgxroftx mainsail vujepali",
        )
    )
    assert asked.keyword_rank == 1
    assert asked.score > twice.score


@pytest.mark.once
def test_a_question_in_words_that_no_note_holds_is_still_answered(notes: MemoryStore) -> None:
    first = notes.search("moisture ingress").rows[0]
    assert (first.keyword_rank, first.title) == (None, "The wet wall in the dining room")
    assert first.score > 0.05


@pytest.mark.once
def test_a_topic_in_a_word_that_no_model_knows_is_no_noise(notes: MemoryStore) -> None:
    """Only its topic says it: no text holds the word."""
    added = notes.add("Put the seed potatoes in egg boxes.", topics=["rurapeki"])
    first = notes.search("rurapeki").rows[0]
    notes.delete(added.id, now=True)
    assert (first.id, first.keyword_rank, first.topic_rank) == (added.id, None, 1)
    assert first.score > notes.search("dizotica").rows[0].score * 3
