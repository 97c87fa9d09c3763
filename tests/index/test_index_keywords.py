"""The keyword leg gives FTS5's scores, to the last bit, and sees only what the asker may see."""

from __future__ import annotations

import math
import sqlite3
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_entries import counts, entry, pair_hash, snapshot_of, word_hash

from memory_store.index.snapshot import Filters, Snapshot
from memory_store.index.terms import (
    WORTH_A_TABLE,
    covered,
    document_frequency,
    has_pair,
    has_term,
    keyword_scores,
    look_up,
    terms_of,
    top_k,
)

WORDS = [f"w{i}" for i in range(12)]
Document = tuple[list[str], list[str]]  # title, body

texts = st.lists(st.sampled_from(WORDS), max_size=12)
documents = st.lists(st.tuples(texts.map(lambda t: t[:4]), texts), min_size=1, max_size=30)
queries = st.lists(st.sampled_from([*WORDS, "absent"]), min_size=1, max_size=5)
weights = st.sampled_from([0.5, 1.0, 2.0, 2.5, 8.0])


def word_group(word: str, *collections: str) -> dict[str, list[int]]:
    return {collection: [word_hash(word)] for collection in collections or ("notes",)}


def fts5_ranking(rows: dict[str, Document], query: Sequence[str], weight: float) -> list[Any]:
    """(id, score) of every match, best first and by id, as SQLite's FTS5 has it."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table texts using fts5 (title, body)")
    ids = list(rows)
    connection.executemany(
        "insert into texts (rowid, title, body) values (?, ?, ?)",
        [(i, " ".join(t), " ".join(b)) for i, (t, b) in enumerate(rows.values())],
    )
    match = " or ".join(f'"{word}"' for word in query).replace(" or ", " OR ")
    found = connection.execute(
        "select rowid, -bm25(texts, ?, 1.0) from texts where texts match ?", (weight, match)
    ).fetchall()
    connection.close()
    return sorted(((ids[i], score) for i, score in found), key=lambda hit: (-hit[1], hit[0]))


def our_ranking(
    snapshot: Snapshot, query: Sequence[str], weight: float = 1.0, **options: Any
) -> list[Any]:
    groups = [word_group(word, *snapshot.collections) for word in query]
    found = keyword_scores(snapshot, groups, title_weight=weight, **options)
    best = top_k(snapshot, *found, k=len(found.ordinals))
    return list(zip(snapshot.ids(best.ordinals), best.scores.tolist(), strict=True))


def entries_of(rows: dict[str, Document], collection: str = "notes") -> list[Any]:
    return [
        entry(body, title, memory_id=key, collection=collection)
        for key, (title, body) in rows.items()
    ]


def with_ids(texts: Sequence[Document]) -> dict[str, Document]:
    return {str(uuid.uuid4()): text for text in texts}


@given(documents, queries, weights, st.integers(1, 4), st.sampled_from([0, WORTH_A_TABLE]))
@settings(max_examples=300)
def test_scores_and_order_are_those_of_fts5(texts, query, weight, cuts, before):
    """Also of a snapshot that was searched before, and has a table of all its terms by then."""
    rows = with_ids(texts)
    entries = entries_of(rows)
    snapshot = snapshot_of(*(entries[i::cuts] for i in range(cuts)))
    for _ in range(before):
        our_ranking(snapshot, query, weight)
    assert our_ranking(snapshot, query, weight) == fts5_ranking(rows, query, weight)


@pytest.mark.sampled(0)
def test_scores_and_order_are_those_of_fts5_on_a_larger_corpus():
    rng = np.random.default_rng(11)
    vocabulary = [f"word{i}" for i in range(3_000)]
    frequency = 1 / np.arange(1, 3_001)

    def text(length: int) -> list[str]:
        return rng.choice(vocabulary, size=length, p=frequency / frequency.sum()).tolist()

    rows = with_ids([(text(rng.integers(6)), text(rng.integers(1, 120))) for _ in range(2_000)])
    entries = entries_of(rows)
    snapshot = snapshot_of(entries[:1_500], entries[1_500:])
    for _ in range(25):
        query = text(8)
        expected = fts5_ranking(rows, query, 2.0)
        assert len(expected) > 100
        assert our_ranking(snapshot, query, 2.0) == expected


@given(documents, queries, st.data())
def test_dead_documents_count_for_nothing(texts, query, data):
    rows = with_ids(texts)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    living = {key: text for (key, text), alive in zip(rows.items(), mask, strict=True) if alive}
    found = our_ranking(snapshot_of(entries_of(rows), alive=[mask]), query)
    assert found == (fts5_ranking(living, query, 1.0) if living else [])


@given(documents, documents, queries)
def test_scores_leak_nothing_about_collections_that_are_not_visible(mine, theirs, query):
    rows = with_ids(mine)
    both = snapshot_of(entries_of(rows, "mine"), entries_of(with_ids(theirs), "theirs"))
    alone = snapshot_of(entries_of(rows, "mine"))
    assert our_ranking(both, query, visible=("mine",)) == our_ranking(alone, query)
    for word in query:
        group = word_group(word, "mine", "theirs")
        seen = document_frequency(both, group, ("mine",))
        assert seen == sum(word in title + body for title, body in mine)
    assert our_ranking(both, query, visible=()) == []


@given(documents, queries, st.data())
def test_a_filter_removes_results_and_changes_no_score(texts, query, data):
    rows = with_ids(texts)
    snapshot = snapshot_of(entries_of(rows))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    allowed = set(snapshot.ids(np.flatnonzero(mask)))
    whole = our_ranking(snapshot, query)
    assert our_ranking(snapshot, query, mask=mask) == [hit for hit in whole if hit[0] in allowed]


def test_ids_of_collections_have_hashes_of_their_own():
    """The same word has another hash in another collection: a group names both."""
    here = entry(["tea"], collection="a")
    there = entry(body_terms=counts({99: 1}), length=1, collection="b")
    snapshot = snapshot_of([here], [there])
    found = keyword_scores(snapshot, [{"a": [word_hash("tea")], "b": [99]}])
    assert found.ordinals.tolist() == [0, 1]
    assert found.scores[0] == found.scores[1]
    assert keyword_scores(snapshot, [{"a": [99]}]).ordinals.tolist() == []


def test_a_word_with_several_hashes_counts_once_per_document():
    """One query word in two languages: a document with both is one document with more hits."""
    both, one, none = entry(["tea", "tee"]), entry(["tea", "pot"]), entry(["pot", "lid"])
    snapshot = snapshot_of([both, one, none])
    group = {"notes": [word_hash("tea"), word_hash("tee"), word_hash("tea")]}
    assert document_frequency(snapshot, group) == 2
    scores = keyword_scores(snapshot, [group]).scores
    merged = snapshot_of([entry(["tea", "tea"]), entry(["tea", "pot"]), none])
    assert scores.tolist() == keyword_scores(merged, [word_group("tea")]).scores.tolist()


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(-1, 70))
def test_the_best_few_are_the_first_of_the_whole_order(scores, k):
    snapshot = snapshot_of([entry() for _ in scores])
    values = np.array(scores, dtype=np.float64)
    ordinals = np.arange(len(scores), dtype=np.int32)
    order = sorted(ordinals.tolist(), key=lambda o: (-scores[o], snapshot.id(o)))
    best = top_k(snapshot, ordinals, values, k)
    assert best.ordinals.tolist() == order[: max(k, 0)]
    assert best.scores.tolist() == [scores[o] for o in best.ordinals]


def test_k1_and_b_are_the_recipes_own():
    snapshot = snapshot_of([entry(["tea"] * 3 + ["pot"] * 7), entry(["pot"] * 2), entry(["lid"])])
    (score,) = keyword_scores(snapshot, [word_group("tea")], k1=1.5, b=0.5).scores
    idf = math.log((3 - 1 + 0.5) / (1 + 0.5))
    mean = (10 + 2 + 1) / 3
    assert score == pytest.approx(idf * 3 * 2.5 / (3 + 1.5 * (0.5 + 0.5 * 10 / mean)))


def test_a_title_weight_of_nothing_is_refused():
    with pytest.raises(ValueError, match="title_weight"):
        keyword_scores(snapshot_of([entry(["tea"])]), [word_group("tea")], title_weight=0)


def test_nothing_is_found_in_nothing():
    empty = Snapshot([])
    assert keyword_scores(empty, [word_group("tea")]).ordinals.tolist() == []
    assert keyword_scores(snapshot_of([entry(["tea"])]), []).ordinals.tolist() == []
    assert empty.mask(Filters()).tolist() == []
    assert empty.ordinal_of(str(uuid.uuid4())) is None


def test_words_and_adjacent_pairs_are_shown_for_chosen_documents():
    snapshot = snapshot_of(
        [entry(["green", "tea"]), entry(["tea", "green"])], [entry(["green", "tea", "pot"])]
    )
    pair = {"notes": [pair_hash("green", "tea")]}
    assert has_pair(snapshot, pair).tolist() == [True, False, True]
    assert has_pair(snapshot, pair, np.array([2, 1])).tolist() == [True, False]
    assert has_term(snapshot, word_group("pot"), np.array([2, 1])).tolist() == [True, False]


def test_a_table_of_terms_is_overwritten_when_its_snapshot_is_wiped():
    snapshot = snapshot_of([entry(["tea"])], [entry(["tea"])], [entry(["pot"])])
    for _ in range(WORTH_A_TABLE + 1):
        keyword_scores(snapshot, [word_group("tea")])
    table = terms_of(snapshot)["notes"].table
    keys, postings = table.keys, table.postings
    assert sorted(keys.tolist()) == sorted(map(word_hash, ["tea", "tea", "pot"]))
    del table
    snapshot.wipe()
    assert not keys.any()
    assert not postings.any()


def test_a_wiped_snapshot_finds_nothing():
    snapshot = snapshot_of([entry(["tea"]), entry(["pot"])])
    assert len(keyword_scores(snapshot, [word_group("tea")]).ordinals) == 1
    snapshot.wipe()
    assert keyword_scores(snapshot, [word_group("tea")]).ordinals.tolist() == []


@given(documents, queries)
def test_coverage_is_the_share_of_the_query_s_words_by_rarity(texts, query):
    rows = with_ids(texts)
    snapshot = snapshot_of(entries_of(rows))
    groups = [word_group(word) for word in query]
    ordinals = np.arange(len(rows), dtype=np.int32)
    shares = covered(snapshot, look_up(snapshot, groups), ordinals)
    for ordinal, share in enumerate(shares.tolist()):
        title, body = rows[snapshot.id(ordinal)]
        held = [word in {*title, *body} for word in query]
        assert -1e-9 <= share <= 1 + 1e-9
        assert (share > 1 - 1e-9) == all(held)
        assert (share < 1e-9) == (not any(held))


def test_a_word_no_one_holds_weighs_most():
    rows = with_ids([(["mill"], ["race"]), ([], ["race"]), ([], ["race"])])
    snapshot = snapshot_of(entries_of(rows))
    known, unknown = (
        covered(snapshot, look_up(snapshot, [word_group(w) for w in ("race", other)]), np.arange(3))
        for other in ("mill", "unheard-of")
    )
    assert known[1] > unknown[1]
    assert unknown.max() < 0.5 < known.max()
