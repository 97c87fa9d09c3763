"""What says nearly the same as a text is named by sealed shingles, and nothing is opened for it."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from memory_store.assistants.assistant import only
from memory_store.records import MemoryDraft
from memory_store.search.resemblance import LEAST, SAMPLE
from memory_store.store import MemoryStore

SENTENCE = "The ferry to the outer islands leaves at seven from the northern quay on weekdays"
WORDS = [f"{one}{number}s" for one in ("boiler", "weir", "ledger", "hedge") for number in range(40)]


def shingles(text: str) -> set[tuple[str, str]]:
    return {*pairwise(text.split())}


def shared(one: str, other: str) -> float:
    ours, theirs = shingles(one), shingles(other)
    return len(ours & theirs) / len(ours | theirs)


def test_what_is_named_and_how_much_it_shares_is_as_counted_in_the_open(
    store: MemoryStore,
) -> None:
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(5, 60))) for _ in range(80)]
    for text in texts[:40]:
        words = text.split()
        words[draw.randrange(len(words))] = "elsewhere"
        texts.append(" ".join(words))
    ids = [one.id for one in store.add_many([MemoryDraft(one) for one in texts], embed=False)]
    named = 0
    for text in texts:
        exact = {id_: shared(text, other) for id_, other in zip(ids, texts, strict=True)}
        found = dict(store.resembling(text, most=len(texts)))
        for id_, share in found.items():
            assert share == pytest.approx(exact[id_], abs=0.12)
        assert {id_ for id_, share in exact.items() if share >= LEAST + 0.12} <= {*found}
        named += len(found)
    assert named > len(texts)


def test_nothing_is_opened_for_it(store: MemoryStore) -> None:
    (one, _) = store.add_many([MemoryDraft(SENTENCE), MemoryDraft("Bread")], embed=False)
    before = store.decrypted
    assert store.resembling(SENTENCE.upper() + "!") == [(one.id, 1.0)]
    assert store.resembling("the only word", most=5) == []
    assert store.decrypted == before


@pytest.mark.parametrize("text", ["Milk", "猫", "Die Fähre fährt um sieben vom Kai ab", "  Milk!"])
def test_it_is_found_however_short_and_in_any_language(store: MemoryStore, text: str) -> None:
    (one, _) = store.add_many([MemoryDraft(text), MemoryDraft(SENTENCE)], embed=False)
    assert [id_ for id_, _ in store.resembling(text)] == [one.id]
    assert store.resembling("...") == []


def test_of_a_long_text_a_sample_is_looked_for(store: MemoryStore) -> None:
    draw = random.Random(5)
    words = [f"word{draw.randrange(100_000)}s" for _ in range(3 * SAMPLE)]
    most = words[: len(words) * 7 // 10]
    whole, part = store.add_many(
        [MemoryDraft(" ".join(words)), MemoryDraft(" ".join(most))], embed=False
    )
    ((id_, all_of_it), (other, some)) = store.resembling(" ".join(words))
    assert (id_, other) == (whole.id, part.id)
    assert all_of_it == pytest.approx(1.0, abs=0.001)
    assert some == pytest.approx(0.7, abs=0.1)  # six times what samples differ by


def test_source_code_is_found_by_its_names(store: MemoryStore) -> None:
    text = "def open_session(key):\n    session = Session(key)\n    return session.opened()\n"
    (one,) = store.add_many(
        [MemoryDraft(text, type="code", metadata={"language": "python"})], embed=False
    )
    assert [id_ for id_, _ in store.resembling(text)] == [one.id]


def test_what_is_superseded_or_in_other_collections_is_not_named(store: MemoryStore) -> None:
    store.collections.create("work")
    old, there = store.add_many(
        [MemoryDraft(SENTENCE), MemoryDraft(SENTENCE, collection="work")], embed=False
    )
    assert {id_ for id_, _ in store.resembling(SENTENCE)} == {old.id, there.id}
    store.supersede(old.id, "There is no ferry any more", embed=False)
    assert [id_ for id_, _ in store.resembling(SENTENCE)] == [there.id]
    assert only(store, ["personal"]).resembling(SENTENCE) == []
