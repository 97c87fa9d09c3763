"""Memories without topics belong together by their folder, else by their meaning."""

from __future__ import annotations

import random

import numpy as np
import pytest
from made_up_entries import DIMENSIONS, entry

from memory_store.index.folders import folders
from memory_store.index.landscape import FOLDER, MEANING, Regions, regions
from memory_store.index.meanings import clusters
from memory_store.index.places import Place, place_in
from memory_store.index.segment import IndexEntry, build
from memory_store.index.snapshot import Snapshot

THEMES = 6
CENTRES = np.random.default_rng(3).normal(size=(THEMES, DIMENSIONS)).astype(np.float32)


def document(theme: int, chance: random.Random) -> IndexEntry:
    noise = np.random.default_rng(chance.randrange(1 << 30)).normal(size=DIMENSIONS)
    vector = CENTRES[theme] + noise.astype(np.float32) * 0.8
    digits = f"{chance.getrandbits(128):032x}"
    name = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return entry(["word"], vectors=vector[None] / np.linalg.norm(vector), memory_id=name)


def documents(count: int, seed: int = 1) -> list[tuple[int, IndexEntry]]:
    chance = random.Random(seed)
    themes = [chance.randrange(THEMES) for _ in range(count)]
    return [(theme, document(theme, chance)) for theme in themes]


def snapshot(made: list[tuple[int, IndexEntry]]) -> Snapshot:
    segment = build([one for _, one in made], DIMENSIONS)
    return Snapshot([(segment, np.ones(segment.count, np.bool_), "notes")])


def found(made: list[tuple[int, IndexEntry]], places: dict[int, Place] | None = None) -> Regions:
    shot = snapshot(made)
    return regions(shot, shot.alive, [], [], lambda _: places or {})


def test_what_means_alike_is_one_region() -> None:
    made = documents(300)
    shown = found(made).shown
    assert [one.kind for one in shown] == [MEANING] * THEMES
    for one in shown:
        assert len({made[at][0] for at in one.documents.tolist()}) == 1
    assert sum(len(one.documents) for one in shown) > 290


def test_a_memory_more_joins_a_region_and_changes_no_other() -> None:
    made = documents(200)
    before = found(made)
    homes = {at: one.seed for one in before.shown for at in one.documents.tolist()}
    chance = random.Random(7)
    for _ in range(20):
        made.append((theme := chance.randrange(THEMES), document(theme, chance)))
        after = found(made)
        assert len(after.shown) == THEMES
        for one in after.shown:
            assert {homes[at] for at in one.documents.tolist() if at in homes} == {one.seed}


def test_the_order_in_which_they_are_stored_does_not_matter() -> None:
    made = documents(150)
    shuffled = random.Random(4).sample(made, len(made))
    sizes = [sorted(len(one.documents) for one in found(some).shown) for some in (made, shuffled)]
    assert sizes[0] == sizes[1]


def test_few_or_none_with_vectors_are_in_no_cluster() -> None:
    bare = build([entry(["a"]) for _ in range(5)], DIMENSIONS)
    shot = Snapshot([(bare, np.ones(5, np.bool_), "notes")])
    made = clusters(shot, np.arange(5), np.arange(5))
    assert (made.members, made.loose.tolist()) == ((), [0, 1, 2, 3, 4])
    assert found(documents(2)).without == 2


def test_a_folder_is_a_region_and_what_lies_outside_goes_by_meaning() -> None:
    made = documents(40)
    made += [(0, document(0, random.Random(n))) for n in range(90, 100)]
    places = {n: Place("/home/me/notes", "garden" if n % 2 else "boat") for n in range(40)}
    shown = found(made, places).shown
    assert [(one.kind, len(one.documents)) for one in shown] == [
        (FOLDER, 20),
        (FOLDER, 20),
        (MEANING, 10),
    ]


def test_a_folder_with_much_in_it_is_shown_by_those_in_it() -> None:
    places = {n: Place("/n", "work/" + ("plans" if n % 2 else "logs")) for n in range(200)}
    places |= {n: Place("/n", "work") for n in range(200, 210)}
    places |= {n: Place("/n", "home/tiny") for n in range(210, 216)}
    cut = {one.path: len(one.documents) for one in folders(places)}
    assert cut == {
        ("/n", "work", "logs"): 100,
        ("/n", "work", "plans"): 100,
        ("/n", "work"): 10,
        ("/n", "home"): 6,
    }


def test_the_top_of_a_source_and_hardly_filled_folders_are_none() -> None:
    places = {0: Place("/n", ""), 1: Place("/n", "a"), 2: Place("/n", "a"), 3: Place()}
    assert folders(places) == []


def test_a_large_folder_without_folders_is_told_apart_by_meaning() -> None:
    made = documents(300)
    shown = found(made, {n: Place("/n", "zettel") for n in range(300)}).shown
    by_meaning = [one for one in shown if one.kind == MEANING]
    assert len(by_meaning) == THEMES
    assert all(one.folder and one.folder[1] == 2 for one in by_meaning)


@pytest.mark.parametrize(
    ("source", "ref", "folder"),
    [
        ("/n", "garden/2024/plan.md", "garden/2024"),
        ("/n", "garden\\plan.md", "garden"),
        ("/n", "plan.md", ""),
        ("/n", "./a/../b/plan.md", "b"),
        (None, "garden/plan.md", None),
        ("bookmarks.html", "https://example.org/a/b", None),
        ("/n", None, None),
    ],
)
def test_a_place_is_the_folder_of_a_path(
    source: str | None, ref: str | None, folder: str | None
) -> None:
    assert place_in(source, ref) == (Place() if folder is None else Place(source or "", folder))
