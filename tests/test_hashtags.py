"""The ``#hashtags`` of a text are topics, however it comes in, and stay off once taken off."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.actions.export import export_markdown, export_ndjson_folder
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

TEXT = """\
We saw #seals
and #grey-seals. `#code` is none, nor is #42.

```
#no
```
#last""".replace("\n", "\r\n")
TAGS = ("sea", "seals", "grey-seals", "last")


def test_the_same_text_gives_the_same_topics_however_it_comes_in(
    store: MemoryStore, tmp_path: Path
) -> None:
    added = store.add(TEXT, topics=["sea"])
    once = store.add_once([MemoryDraft(TEXT, topics=("sea",))])[0].memory
    (tmp_path / "note.md").write_bytes(b"---\ntags: sea\n---\n" + TEXT.encode())
    (tmp_path / "rows.ndjson").write_text(json.dumps({"text": TEXT, "topics": ["sea"]}))
    report = store.import_paths([tmp_path / "note.md", tmp_path / "rows.ndjson"], embed=False)
    imported = [store.get(one).topics for one in report.ids]
    assert [added.topics, once.topics, *imported] == [TAGS] * 4
    assert {one.id for one in store.list(topic="grey seals")} == {added.id, once.id, *report.ids}


def test_a_topic_that_was_given_is_not_added_twice(store: MemoryStore) -> None:
    assert store.add("#Home_Office and #sea", topics=["home office"]).topics == (
        "home office",
        "sea",
    )


def test_a_text_of_hashtags_fills_a_memory_and_no_more(store: MemoryStore) -> None:
    given = ["chosen", "too"]
    topics = store.add(" ".join(f"#t{n}" for n in range(300)), topics=given).topics
    assert len(topics) == 200
    assert topics[:3] == ("chosen", "too", "t0")


def test_a_change_adds_what_is_new_and_leaves_off_what_was_taken_off(store: MemoryStore) -> None:
    one = store.add("At #sea with #harper", topics=["walk"])
    store.edit(one.id, remove_topics=["sea"])
    changed = store.edit(one.id, text="At #sea, with #ada")
    assert changed.topics == ("walk", "harper", "ada")
    assert store.edit(one.id, title="Only the title").topics == changed.topics


def test_topics_named_in_a_change_stay_as_named(store: MemoryStore) -> None:
    one = store.add("At #sea")
    assert store.edit(one.id, text="At #sea, again", topics=["calm"]).topics == ("calm",)
    assert store.edit(one.id, text="A #storm at #sea", topics=[]).topics == ("storm",)


def test_what_is_added_twice_is_there_once(store: MemoryStore) -> None:
    draft = MemoryDraft("At #sea", id="00000000-0000-4000-8000-00000000000a")
    assert [store.add_once([draft])[0].unchanged for _ in range(2)] == [False, True]


@pytest.mark.parametrize("write", [export_markdown, export_ndjson_folder])
def test_an_export_brings_no_topic_back_that_was_taken_off(
    store: MemoryStore, tmp_path: Path, write: Callable[..., int]
) -> None:
    one = store.add("At #sea with #ada")
    store.edit(one.id, remove_topics=["sea"])
    write(store.list(), tmp_path / "out")
    store.delete(one.id)
    report = store.import_paths(tmp_path / "out", glob=["*"], embed=False)
    assert report.imported == 1, report
    assert store.get(one.id).topics == ("ada",)


def test_an_accent_makes_another_topic_and_the_same_word(store: MemoryStore) -> None:
    """Facets count what a topic leads to, and hashes in a file are exact."""
    accented, plain = store.add("Tea at the #café"), store.add("Cake at the #cafe")
    assert [one.id for one in store.list(topic="CAFÉ")] == [accented.id]
    assert [one.id for one in store.list(topic="cafe\u0301")] == [accented.id]
    assert [one.id for one in store.list(topic="cafe")] == [plain.id]
    found = store.search("cafe", mode="keyword").rows
    assert {row.id for row in found} == {accented.id, plain.id}
