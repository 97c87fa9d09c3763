"""Order in one's own memories: what is shown, and what becomes of a pair."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_commands import run

from memory_store.errors import BadInputError
from memory_store.records import MemoryDraft
from memory_store.scopes import Scope
from memory_store.store import MemoryStore

KEY = "The spare key of the boat hangs behind the pump in the engine room"


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    store = make_store()
    for number, thing in enumerate(("ferry", "lease", "rye bread", "heat pump", "dentist")):
        store.add(f"All about the {thing}, number {number}, and nothing else.", topics=[thing])
    return store


def same(store: MemoryStore) -> list[tuple[str, str]]:
    return [(pair.newer.id, pair.older.id) for pair in store.review.list().same]


def test_what_says_the_same_is_a_pair_the_newer_first(store: MemoryStore) -> None:
    old = store.add(f"{KEY}.", created="2024-01-01", topics=["boat"])
    new = store.add(f"{KEY}!", created="2025-01-01", topics=["boat"])
    assert same(store) == [(new.id, old.id)]


def test_equal_texts_are_a_pair_without_vectors_too(store: MemoryStore) -> None:
    made = [MemoryDraft(KEY, created=f"{year}-01-01") for year in (2024, 2025)]
    old, new = store.add_once(made, embed=False)
    (pair,) = store.review.list().same
    assert (pair.newer.id, pair.older.id) == (new.memory.id, old.memory.id)
    assert pair.near == 1.0


def test_equal_texts_are_a_pair_however_alike_all_others_are(store: MemoryStore) -> None:
    """Memories in two clusters: what is usual between any two, and six deviations, is beyond 1."""
    clusters = [f"The {one} {n}" for one in ("hound", "vehicle") for n in range(20)]
    made = store.add_once([MemoryDraft(text) for text in (*clusters, KEY)])
    again = store.add(KEY)
    assert (again.id, made[-1].memory.id) in same(store)


@pytest.mark.parametrize("said", [5, None, [None, ["x"]], {"a": 1}])
def test_metadata_that_makes_no_sense_spoils_no_review(store: MemoryStore, said: object) -> None:
    old = store.add(f"{KEY}.", created="2024-01-01", metadata={"distinct_from": said})
    new = store.add(f"{KEY}!", created="2025-01-01", metadata={"distinct_from": said})
    assert same(store) == [(new.id, old.id)]
    store.review.keep(new.id, old.id)
    assert same(store) == []


def test_the_beginning_of_a_memory_is_words_without_marks(store: MemoryStore) -> None:
    store.add("## Early\n\nSee [[Ferry|the *ferry*]]. " + "At five sharp, says it. " * 40)
    begins = next(one.begins for one in store.review.list().untagged)
    assert begins.startswith("Early See the ferry. At five sharp")
    assert begins.endswith(" …")
    assert "[" not in begins


def test_a_review_that_follows_changes_is_as_one_from_the_beginning(
    store: MemoryStore, key_file: Path
) -> None:
    cargo = [f"Cargo {n}: {n * 7} crates of {n * 13}." for n in range(60)]
    store.add_once([MemoryDraft(text, topics=["cargo"]) for text in cargo])
    made = [
        store.add(f"{KEY} {n // 2}.", created=f"202{n % 2}-01-01", topics=["x"]) for n in range(8)
    ]
    shown = [store.review.list()]
    assert shown[0].counts["same"] == 4

    def as_from_the_beginning() -> bool:
        with MemoryStore.open(store.path, key_file=key_file) as other:
            shown.append(store.review.list())
            return shown[-1] == other.review.list()

    store.review.merge(made[0].id, made[1].id)
    assert as_from_the_beginning()
    store.review.keep(made[2].id, made[3].id)
    assert as_from_the_beginning()
    store.edit(made[4].id, text="Something about the weather in June.")
    store.add(f"{KEY} 3!", topics=["x"])
    assert as_from_the_beginning()
    store.undo()
    assert as_from_the_beginning()
    assert store.review.list() == shown[-1]
    assert len({str(one.as_dict()) for one in shown}) >= 4, "each change shows"


def test_a_pair_that_is_kept_is_not_shown_again(store: MemoryStore) -> None:
    old, new = (store.add(KEY, created=f"{year}-01-01") for year in (2024, 2025))
    store.review.keep(old.id, new.id)
    assert same(store) == []
    store.undo()
    assert same(store) == [(new.id, old.id)]


def test_merged_memories_are_one_with_the_words_and_topics_of_both(store: MemoryStore) -> None:
    old = store.add(f"{KEY}. The code is on the tag.", created="2024-01-01", topics=["keys"])
    new = store.add(f"{KEY}.", created="2025-01-01", topics=["boat"])
    merged = store.review.merge(old.id, new.id)
    assert (merged.id, merged.topics) == (new.id, ("boat", "keys"))
    assert merged.text == f"{KEY}.\n\n{KEY}. The code is on the tag."
    assert [one.id for one in store.trash.list() if one.change == "deleted"] == [old.id]


def test_nothing_is_said_twice_by_a_merger(store: MemoryStore) -> None:
    old = store.add(KEY, created="2024-01-01")
    new = store.add(f"{KEY}, as of May.", created="2025-01-01")
    assert store.review.merge(new.id, old.id).text == f"{KEY}, as of May."


def test_a_superseded_memory_ends_where_its_successor_begins(store: MemoryStore) -> None:
    old = store.add(KEY, created="2024-01-01", topics=["boat"])
    new = store.add(KEY, created="2025-01-01", topics=["boat"])
    assert store.review.supersede(old.id, new.id).supersedes == old.id
    ended = store.get(old.id)
    assert (ended.superseded_by, ended.valid_to) == (new.id, new.created)
    assert same(store) == []


def test_one_memory_is_no_pair(store: MemoryStore) -> None:
    (one, *_) = store.list()
    for act in (store.review.keep, store.review.merge, store.review.supersede):
        with pytest.raises(BadInputError):
            act(one.id, one.id)
    with pytest.raises(BadInputError, match="limit"):
        store.review.list(limit=0)


def test_what_is_over_and_what_has_no_topic_is_listed(store: MemoryStore) -> None:
    over = store.add("The gate code is 4711.", valid_to="2024-02-01", topics=["gate"])
    plain = store.add("The lamp in the hall flickers.")
    found = store.review.list()
    assert [one.id for one in found.over] == [over.id]
    assert [one.id for one in found.untagged] == [plain.id]
    assert found.counts == {"conflicts": 0, "same": 0, "apart": 0, "over": 1, "untagged": 1}


def test_topics_of_several_neighbours_are_suggested_and_never_given(store: MemoryStore) -> None:
    for day in range(1, 4):
        store.add(f"{KEY}, said {day} times.", topics=["boat"], created=f"2024-01-0{day}")
    plain = store.add(f"{KEY}, I think.")
    (one,) = store.review.list().untagged
    assert one.suggested[:1] == ("boat",)
    assert store.get(plain.id).topics == ()


def test_no_topics_are_suggested_of_the_nearest_that_are_far_away(store: MemoryStore) -> None:
    for topic in ("Rhubarb crumble needs butter", "Bake the crumble for an hour"):
        store.add(topic, topics=["baking"])
    plain = store.add_many([MemoryDraft(f"{KEY}, said {day} times.") for day in range(40)])[0]
    assert store.suggested_topics(plain.id) == []
    assert [one.topic for one in store.suggested_topics(store.add("Crumble with butter").id)] == [
        "baking"
    ]


def test_others_collections_have_no_part_in_it(store: MemoryStore) -> None:
    work = store.collections.create("work")
    store.add(KEY, collection="work", created="2024-01-01")
    store.add(KEY, created="2025-01-01")
    assert len(same(store)) == 1
    found = store.limited_to(Scope(frozenset([work.id]))).review.list()
    assert found.same == ()
    assert found.counts["untagged"] == 1


def test_the_command_lists_it(store: MemoryStore, key_file: Path) -> None:
    store.add(KEY, created="2024-01-01")
    store.add(KEY, created="2025-01-01", title="Spare key")
    words = [str(store.path), "--key-file", str(key_file)]
    shown = run("review", *words).output
    assert "Say nearly the same (1)" in shown
    assert "Spare key" in shown
    found = json.loads(run("review", *words, "--json").output)
    assert found["same"][0]["newer"]["title"] == "Spare key"
    refused = run("review", *words, "-i")
    assert (refused.exit_code, "-i needs a terminal" in refused.output) == (2, True)


def test_the_command_says_where_nothing_can_be_compared_for_want_of_vectors(
    make_store: Callable[..., MemoryStore], key_file: Path
) -> None:
    store = make_store("words.db")
    words = ["review", str(store.path), "--key-file", str(key_file)]
    store.add_many([MemoryDraft(KEY, topics=("keys",))], embed=False)
    assert "No memory has vectors yet" in run(*words).output
    store.reindex()
    assert "No memory" not in run(*words).output


def test_a_pair_of_one_title_says_which_file_each_is_from(
    store: MemoryStore, tmp_path: Path
) -> None:
    for name in ("2024/boat.md", "2025/boat.md"):
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"# Boat\n\n{KEY}", encoding="utf-8")
    store.import_paths(tmp_path / "notes")
    (pair,) = store.review.list().same
    assert {pair.newer.title, pair.older.title} == {"Boat"}
    assert {pair.newer.ref, pair.older.ref} == {"2024/boat.md", "2025/boat.md"}
