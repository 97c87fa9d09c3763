"""The landscape: what stands together and means alike is one region, today and tomorrow."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from made_up_entries import DIMENSIONS, entry, topic_hash

from memory_store.index.landscape import Regions, regions
from memory_store.index.map_layout import HEIGHT, WIDTH, laid_out
from memory_store.index.segment import IndexEntry, build
from memory_store.index.snapshot import Snapshot

THEMES, TOPICS = 12, 6
NAMES = sorted(f"{theme:02}-{topic}" for theme in range(THEMES) for topic in range(TOPICS))
GROUPS = [{"notes": [topic_hash(name)]} for name in NAMES]
SEEDS = [topic_hash(name) for name in NAMES]
CENTRES = np.random.default_rng(3).normal(size=(THEMES, DIMENSIONS)).astype(np.float32)


def document(theme: int, tags: Sequence[str], chance: random.Random) -> IndexEntry:
    noise = np.random.default_rng(chance.randrange(1 << 30)).normal(size=DIMENSIONS)
    vector = CENTRES[theme] + noise.astype(np.float32) * 0.8
    identity = f"{chance.getrandbits(128):032x}"
    name = "-".join((identity[:8], identity[8:12], identity[12:16], identity[16:20], identity[20:]))
    return entry(["word"], vectors=vector[None] / np.linalg.norm(vector), tags=tags, memory_id=name)


def documents(count: int, seed: int = 1) -> list[IndexEntry]:
    """Of themes, the first the most frequent; one in five without a topic."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        theme = chance.choices(range(THEMES), [1 / (n + 2) for n in range(THEMES)])[0]
        tags = {f"{theme:02}-{chance.randrange(TOPICS)}" for _ in range(chance.randint(1, 3))}
        made.append(document(theme, sorted(tags) if chance.random() < 0.8 else [], chance))
    return made


def snapshot(entries: Sequence[IndexEntry]) -> Snapshot:
    segments = [build(entries[:200], DIMENSIONS), build(entries[200:], DIMENSIONS)]
    return Snapshot([(one, np.ones(one.count, np.bool_), "notes") for one in segments])


def found(entries: Sequence[IndexEntry], mask: npt.NDArray[np.bool_] | None = None) -> Regions:
    shot = snapshot(entries)
    return regions(shot, shot.alive if mask is None else mask, GROUPS, SEEDS)


def theme_of(topic: int) -> str:
    return NAMES[topic][:2]


def test_topics_of_one_theme_are_one_region() -> None:
    made = found(documents(900))
    all_ = [*made.shown, *made.others]
    assert len(all_) == THEMES
    for one in all_:
        assert len({theme_of(topic) for topic in one.topics}) == 1
    assert sorted(t for one in all_ for t in one.topics) == list(range(len(NAMES)))


def test_each_document_is_in_one_region_and_those_without_a_topic_by_their_meaning() -> None:
    entries = documents(900)
    made = found(entries)
    placed = np.concatenate([one.documents for one in (*made.shown, *made.others)])
    assert len(placed) == len(set(placed.tolist())) == len(entries) - made.without
    assert made.without < 0.05 * len(entries)


def test_one_memory_more_changes_only_where_it_belongs() -> None:
    """Three hundred times: no other topic changes its region, and no region its neighbours."""
    entries = documents(700)
    before = found(entries)
    homes = {t: one.topics[0] for one in (*before.shown, *before.others) for t in one.topics}
    places = {one.topics[0]: (one.x, one.y) for one in before.shown}
    chance, moved, further = random.Random(9), 0, []
    for _ in range(60):
        theme = chance.randrange(THEMES)
        tags = [f"{theme:02}-{chance.randrange(TOPICS)}"]
        after = found([*entries, document(theme, tags, chance)])
        for one in (*after.shown, *after.others):
            moved += sum(
                homes[t] != one.topics[0] for t in one.topics if theme_of(t) != tags[0][:2]
            )
        for one in after.shown:
            if one.topics[0] in places:
                x, y = places[one.topics[0]]
                further.append(np.hypot(one.x - x, one.y - y))
    assert moved == 0
    assert np.median(further) < 0.01 * WIDTH
    assert np.quantile(further, 0.95) < 0.1 * WIDTH


def test_the_same_memories_make_the_same_landscape_in_any_order() -> None:
    entries = documents(600)
    shuffled = random.Random(4).sample(entries, len(entries))
    one, other = found(entries), found(shuffled)
    assert [r.topics for r in one.shown] == [r.topics for r in other.shown]
    assert [len(r.documents) for r in one.shown] == [len(r.documents) for r in other.shown]
    np.testing.assert_allclose(
        [(r.x, r.y) for r in one.shown], [(r.x, r.y) for r in other.shown], atol=1
    )


def test_circles_are_on_the_map_and_lie_apart() -> None:
    made = found(documents(900)).shown
    for place, one in enumerate(made):
        assert one.radius - 1 <= one.x <= WIDTH - one.radius + 1
        assert one.radius - 1 <= one.y <= HEIGHT - one.radius + 1
        for other in made[:place]:
            assert np.hypot(one.x - other.x, one.y - other.y) > 0.95 * (one.radius + other.radius)


def test_circles_that_lie_apart_from_the_first_are_on_the_map_too() -> None:
    for seed in range(40):
        seeds = [random.Random(f"{seed} {one}").randbytes(8) for one in range(4)]
        circles = laid_out([29, 10, 9, 6], np.zeros((4, 4), dtype=np.float32), seeds)
        for x, y, radius in circles:
            assert radius - 1 <= x <= WIDTH - radius + 1
            assert radius - 1 <= y <= HEIGHT - radius + 1


def test_without_vectors_topics_go_by_what_stands_together() -> None:
    entries = [entry(["a"], tags=["00-0", "00-1"]) for _ in range(9)]
    entries += [entry(["b"], tags=["01-0", "01-1"]) for _ in range(5)] + [entry(["c"])]
    made = found(entries)
    named = [{NAMES[t] for t in one.topics} for one in made.shown]
    assert named == [{"00-0", "00-1"}, {"01-0", "01-1"}]
    assert made.without == 1


def test_what_the_mask_leaves_out_has_no_part_in_it() -> None:
    entries = documents(400)
    mask = np.ones(len(entries), np.bool_)
    mask[300:] = False
    made, alone = found(entries, mask), found(entries[:300])
    assert [r.topics for r in made.shown] == [r.topics for r in alone.shown]
    assert max(int(one.documents.max()) for one in made.shown) < 300


def test_nothing_makes_an_empty_landscape() -> None:
    made = found([entry(["a"])])
    assert (made.shown, made.others, made.without) == ((), (), 1)
