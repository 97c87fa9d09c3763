"""Snapshots filter inside the candidate stage, and topics rank by words matched and rarity."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_entries import DIMENSIONS, all_alive, entry, snapshot_of, topic_hash, varied_entries

from memory_store.index.segment import build
from memory_store.index.snapshot import Filters, Snapshot
from memory_store.index.topics import topic_counts, topic_matches, with_topic

moments = st.none() | st.integers(0, 2**31).map(float)


def topic_group(topic: str, *collections: str) -> dict[str, list[bytes]]:
    return {collection: [topic_hash(topic)] for collection in collections or ("notes",)}


@given(
    seed=st.integers(0, 2**32),
    types=st.lists(st.sampled_from(["note", "task", "task_done", "never"]), max_size=3),
    status=st.sampled_from(["all", "open", "done"]),
    since=moments,
    until=moments,
    topics=st.lists(st.sampled_from(["garden", "tax", "never"]), max_size=2),
    collections=st.none() | st.lists(st.sampled_from(["a", "b", "c"]), max_size=2).map(tuple),
    data=st.data(),
)
def test_a_mask_lets_through_exactly_what_was_asked_for(
    seed, types, status, since, until, topics, collections, data
):
    groups = [varied_entries(seed, 12, "a"), varied_entries(seed + 1, 12, "b")]
    booleans = st.lists(st.booleans(), min_size=12, max_size=12)
    alive = [np.array(data.draw(booleans)) for _ in groups]
    snapshot = snapshot_of(*groups, alive=alive)

    mask = snapshot.mask(
        Filters(
            collections=collections,
            types=tuple(types),
            status=status,
            since=since,
            until=until,
            topics_any=tuple(topic_group(topic, "a", "b") for topic in topics),
        )
    )

    expected = [
        bool(living)
        and (collections is None or e.collection in collections)
        and (not types or bool({e.type, e.type.removesuffix("_done")} & set(types)))
        and (status == "all" or (status == "done") == e.type.endswith("_done"))
        and (since is None or e.created >= since)
        and (until is None or e.created <= until)
        and all(topic_hash(topic) in e.topics for topic in topics)
        for group, living_rows in zip(groups, alive, strict=True)
        for e, living in zip(group, living_rows, strict=True)
    ]
    assert mask.tolist() == expected


def test_any_topic_of_a_group_will_do():
    snapshot = snapshot_of([entry(tags=["garden"]), entry(tags=["tax"]), entry()])
    either = {"notes": [topic_hash("garden"), topic_hash("tax")]}
    assert snapshot.mask(Filters(topics_any=(either,))).tolist() == [True, True, False]


@given(seed=st.integers(0, 2**32), data=st.data())
def test_topics_are_counted_among_chosen_documents(seed, data):
    snapshot = snapshot_of(varied_entries(seed, 12, "a"), varied_entries(seed + 1, 12, "b"))
    among = np.array(data.draw(st.lists(st.booleans(), min_size=24, max_size=24)))
    topics = ("garden", "tax", "never")
    expected = [
        int((with_topic(snapshot, topic_group(topic, "a", "b")) & among).sum()) for topic in topics
    ]
    hashes = [topic_hash(topic) for topic in topics]
    assert topic_counts(snapshot, {"a": hashes, "b": hashes}, among) == expected


def test_an_unknown_status_is_refused():
    with pytest.raises(ValueError, match="status"):
        snapshot_of([entry()]).mask(Filters(status="finished"))


def test_a_mask_that_does_not_fit_its_segment_is_refused():
    segment = build([entry(), entry()], DIMENSIONS)
    with pytest.raises(ValueError, match="mask"):
        Snapshot([(segment, np.ones(1, dtype=bool), "notes")])


def test_an_edited_memory_is_found_at_its_newest_place():
    key = str(uuid.uuid4())
    old, new = entry(memory_id=key), entry(memory_id=key, version=2)
    dead = np.array([False])
    snapshot = snapshot_of([old], [entry(), new], alive=[dead, np.array([True, True])])
    assert snapshot.ordinal_of(key) == 2
    assert snapshot.ordinal_of(key.upper()) == 2
    assert snapshot.total == 2
    gone = snapshot_of([old], [entry(), new], alive=[dead, np.array([True, False])])
    assert gone.ordinal_of(key) is None
    assert gone.ordinal_of("no id at all") is None


def test_ids_that_share_their_first_half_are_distinguished():
    keys = [str(uuid.UUID(int=7 << 64 | low)) for low in (3, 1, 2)]
    snapshot = snapshot_of([entry(memory_id=key) for key in keys])
    assert [snapshot.ordinal_of(key) for key in keys] == [0, 1, 2]


def test_bytes_of_zero_at_the_end_of_an_id_or_tag_are_kept():
    key = str(uuid.UUID(int=0xAB << 120))
    snapshot = snapshot_of([entry(memory_id=key, content_tag=b"\1" + bytes(15))])
    assert snapshot.ids([0]) == [key]
    assert snapshot.content_tags[0].tobytes() == b"\1" + bytes(15)


def test_names_of_types_and_languages_are_shared_between_segments():
    snapshot = snapshot_of(
        [entry(type="note", language="de"), entry(type="task")],
        [entry(type="task", language="fr"), entry(type="fact", language="de")],
    )
    assert [snapshot.type(o) for o in range(4)] == ["note", "task", "task", "fact"]
    assert [snapshot.language(o) for o in range(4)] == ["de", "en", "fr", "de"]
    assert snapshot.languages_in("notes") == {"de": 2, "en": 1, "fr": 1}
    assert snapshot.languages_in("other") == {}


def test_a_document_outside_the_snapshot_is_an_index_error():
    snapshot = snapshot_of([entry()])
    for ordinal in (-1, 1):
        with pytest.raises(IndexError):
            snapshot.windows(ordinal)


def test_topics_rank_by_words_matched_then_rarity_then_recency_then_id():
    keys = sorted(str(uuid.uuid4()) for _ in range(6))
    entries = [
        entry(memory_id=keys[5], tags=["common"], created=5.0),
        entry(memory_id=keys[4], tags=["common"], created=5.0),
        entry(memory_id=keys[3], tags=["common"], created=9.0),
        entry(memory_id=keys[2], tags=["rare"], created=1.0),
        entry(memory_id=keys[1], tags=["common", "rare"], created=0.0),
        entry(memory_id=keys[0], tags=["other"], created=99.0),
    ]
    snapshot = snapshot_of(entries[:3], entries[3:])
    found = topic_matches(snapshot, [topic_group("common"), topic_group("rare")])
    assert found.ordinals.tolist() == [4, 3, 2, 1, 0]
    assert found.matched.tolist() == [2, 1, 1, 1, 1]
    assert found.rarity[1] > found.rarity[2] == found.rarity[4]


def test_topic_rarity_counts_only_what_is_visible_and_alive():
    mine = [entry(tags=["tax"], collection="mine"), entry(tags=["tea"], collection="mine")]
    theirs = [entry(tags=["tax"], collection="theirs") for _ in range(9)]
    groups = [topic_group("tax", "mine", "theirs"), topic_group("tea", "mine", "theirs")]
    both, alone = snapshot_of(mine, theirs), snapshot_of(mine)
    found, expected = topic_matches(both, groups, visible=("mine",)), topic_matches(alone, groups)
    assert found.ordinals.tolist() == expected.ordinals.tolist()
    assert found.rarity.tolist() == expected.rarity.tolist()
    dead = snapshot_of(mine, alive=[np.array([True, False])])
    assert topic_matches(dead, groups).ordinals.tolist() == [0]


def test_topics_respect_the_mask():
    snapshot = snapshot_of([entry(tags=["tax"]) for _ in range(4)])
    mask = np.array([False, True, False, True])
    found = topic_matches(snapshot, [topic_group("tax")], mask)
    assert sorted(found.ordinals.tolist()) == [1, 3]
    assert topic_matches(snapshot, []).ordinals.tolist() == []


def test_wiping_a_snapshot_zeroes_every_array_of_it_and_its_segments():
    segments = [build(varied_entries(seed, 30, "a"), DIMENSIONS) for seed in (1, 2)]
    snapshot = Snapshot([(s, all_alive(s), "a") for s in segments])
    arrays = [v for v in vars(snapshot).values() if isinstance(v, np.ndarray)]
    arrays += [array for segment in segments for array in segment.arrays()]
    assert sum(array.any() for array in arrays) > 30
    snapshot.wipe()
    assert not any(array.any() for array in arrays)
