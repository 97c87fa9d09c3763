"""Nothing of a vault stands in clear in a folder that its devices share, nor in what is said of it.

Each canary is written where a person writes something, then edited, deleted, and changed on two
devices at once. The scan reads every byte and every name in the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from canaries import KINDS, canary, leaks, spelled_in

from memory_store.cli.backup import copy_vault
from memory_store.records import search_request
from memory_store.store import MemoryStore


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_no_word_leaves_for_the_folder(
    make_store: Callable[..., MemoryStore], key_file: Path, tmp_path: Path, profile: str
) -> None:
    words = {kind: canary(kind) for kind in KINDS}
    shared, notes = tmp_path / "shared", tmp_path / words["path"]
    shared.mkdir()
    notes.mkdir()
    (notes / f"{words['source']}.md").write_text(f"{words['text']} again #{words['hashtag']}\n")
    store = make_store(profile=profile)
    memory = store.add(
        words["text"],
        title=words["title"],
        topics=[words["topic"]],
        metadata={words["metadata"]: words["metadata"]},
        collection=words["collection"],
    )
    store.import_paths([notes])
    store.searches.save("root", words["title"], search_request(words["text"]))
    (tmp_path / "phone").mkdir()
    copy_vault(store.path, tmp_path / "phone" / "notes.db")
    with MemoryStore.open(tmp_path / "phone" / "notes.db", key_file=key_file) as phone:
        reports = [one.sync_with_folder(shared) for one in (store, phone)]
        store.edit(memory.id, text=f"{words['text']} here")
        phone.edit(memory.id, text=f"{words['text']} there")
        gone = store.add(f"{words['text']} gone")
        reports += [one.sync_with_folder(shared) for one in (store, phone)]
        store.delete(gone.id)
        reports += [one.sync_with_folder(shared) for one in (phone, store, phone)]
        phone.searches.rename("root", words["title"], words["topic"])
        reports += [one.sync_with_folder(shared) for one in (phone, store)]
        assert store.searches.find("root", words["topic"]).search["q"] == words["text"]
        assert any(report.conflicts for report in reports)
        assert len(phone.list()) == len(store.list()) == 3
    files = [*shared.iterdir()]
    assert len(files) > 3
    assert leaks(shared, words) == set()
    assert all(len(file.name) == len("0123456789abcdef-00000001.sealed") for file in files)
    said = repr(reports).replace(str(tmp_path), "")
    assert spelled_in(said.encode(), words) == set()
    (shared / "control").write_text(words["text"])
    assert leaks(shared, words) == {("text", "control")}  # the scan finds what is there


def test_two_memories_of_one_size_class_look_alike(
    make_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    sizes = []
    for name, text in (("a", "Yes."), ("b", "No, not for the next two weeks.")):
        shared = tmp_path / name
        shared.mkdir()
        store = make_store(f"{name}.db")
        store.add(text)
        store.sync_with_folder(shared)
        sizes.append(sorted(file.stat().st_size for file in shared.iterdir()))
    assert sizes[0] == sizes[1]
