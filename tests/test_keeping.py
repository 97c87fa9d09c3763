"""A vault is kept: copied while it is written to, put back, exported and imported the same."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent / "proofs"))  # counts

from counts import counted

from memory_store.actions.export import NDJSON_NAME, export_markdown, export_ndjson_folder
from memory_store.cli.backup import copy_vault
from memory_store.errors import LockedError
from memory_store.records import TYPES, MemoryDraft
from memory_store.store import MemoryStore

Make = Callable[..., MemoryStore]

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=60)
HOSTILE = st.sampled_from(
    [
        *(
            "---\ntitle: x\n---\n",
            "# A heading\n\n#tag",
            "\u2028\u0085\ufeffx",
            "{{ x }}",
            "```\n---",
        ),
        *(
            "null",
            "~",
            "2024-05-01",
            "!!python/object:os.system x",
            "'\"\\",
            "a\n...\nb",
            "e\u0301",
        ),
    ]
)
NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12)
ORIGINS = st.none() | st.tuples(NAMES, NAMES)  # ref and source; who has a ref came from somewhere
PLAIN = st.builds(
    MemoryDraft,
    text=(TEXTS | HOSTILE).filter(str.strip),
    title=st.none() | TEXTS,
    type=st.sampled_from([*TYPES, "task_done"]),
    topics=st.lists(NAMES, max_size=3, unique_by=str.casefold).map(tuple),
    collection=st.sampled_from([None, "Zweite", "a/b: c"]),
    created=st.none() | st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    metadata=st.dictionaries(NAMES, TEXTS | HOSTILE | st.integers(-(2**53), 2**53), max_size=3),
)
DRAFTS = st.builds(
    lambda draft, origin: replace(draft, ref=origin[0], source=origin[1]) if origin else draft,
    PLAIN,
    ORIGINS,
)


def apart(drafts: list[MemoryDraft]) -> list[MemoryDraft]:
    """No two of one ref and source: of such, an import takes the first and names the second."""
    origins = ((draft.ref, draft.source) if draft.ref else n for n, draft in enumerate(drafts))
    return [*dict(zip(origins, drafts, strict=True)).values()]


def described(store: MemoryStore) -> dict[str, dict[str, Any]]:
    """Id → all that an export keeps of a memory."""
    found = {memory.id: memory.as_dict() for memory in store.every()}
    return {name: {**record, "version": 1} for name, record in found.items()}


@settings(
    max_examples=counted(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(DRAFTS, min_size=1, max_size=6).map(apart), st.booleans())
def test_an_export_that_is_imported_into_a_new_vault_is_the_same_vault(
    key_file: Path, tiny_model: Path, private_folders: Path, drafts: list[MemoryDraft], lines: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        options: dict[str, Any] = {"key_file": key_file, "embedder": str(tiny_model)}
        with MemoryStore.create(place / "one.db", **options)[0] as store:
            store.add_many(drafts, embed=False)
            before = described(store)
            export = export_ndjson_folder if lines else export_markdown
            assert export(store.every(), place / "out") == len(before)
        source = place / "out" / NDJSON_NAME if lines else place / "out"
        with MemoryStore.create(place / "two.db", **options)[0] as store:
            report = store.import_paths([source], embed=False)
            assert (report.failures, report.skips) == ((), ())
            assert described(store) == before
            assert store.verify()["failures"] == []
            assert store.import_paths([source], embed=False).unchanged == len(before)


def test_an_export_holds_a_few_memories_at_a_time(make_store: Make, tmp_path: Path) -> None:
    store, count = make_store(), max(800, counted(20_000))
    text = "The miller's daughter keeps the sluice. " * 400  # 16 kB
    store.add_many([MemoryDraft(f"{number}. {text}") for number in range(count)], embed=False)
    store.search("sluice", mode="keyword")
    tracemalloc.start()
    export_ndjson_folder(store.every(), tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = (tmp_path / "out" / "memories.ndjson").stat().st_size
    assert whole > count * len(text)
    assert peak < 6_000_000 < whole


def test_what_others_write_during_an_export_is_not_in_it(make_store: Make) -> None:
    store = make_store()
    store.add_many([MemoryDraft(f"Number {n}, as it was.") for n in range(200)], embed=False)
    before = described(store)
    exported = store.every()
    read = [next(exported)]
    with MemoryStore.open(
        store.path, key_file=store.path.parents[1] / "keys" / "notes.key"
    ) as other:
        for memory in sorted(before)[:20]:
            other.edit(memory, text="Edited meanwhile.")
        other.add("Added meanwhile.")
    read += exported
    assert {memory.id: memory.text for memory in read} == {n: m["text"] for n, m in before.items()}
    assert len(described(store)) == 201


def test_a_lock_ends_an_export(make_store: Make) -> None:
    store = make_store()
    store.add_many([MemoryDraft(f"Number {n}.") for n in range(200)], embed=False)
    exported = store.every()
    next(exported)
    locking = threading.Thread(target=store.lock)
    locking.start()
    locking.join()
    with pytest.raises(LockedError):
        list(exported)


def test_a_backup_taken_while_a_person_writes_is_whole(
    make_store: Make, key_file: Path, tmp_path: Path
) -> None:
    store = make_store()
    stop, meanwhile, written = threading.Event(), threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            memory = store.add(f"Number {len(written)}, written during the backup.")
            written.append(memory.id)
            if len(written) > 5:
                meanwhile.set()
            if len(written) % 5 == 0:
                store.delete(written[-2])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            known = set(written[:-2])
            copy_vault(store.path, tmp_path / f"{number}.db")
            with MemoryStore.open(tmp_path / f"{number}.db", key_file=key_file) as copy:
                assert copy.verify()["failures"] == []
                there = {memory.id for memory in copy.every()}
                gone = {memory for memory in known if memory not in there}
                assert all(written.index(memory) % 5 == 3 for memory in gone)  # those deleted
            assert meanwhile.wait(120)
    finally:
        stop.set()
        writer.join()
    assert len(written) > 5


def test_a_backup_that_is_put_back_says_that_it_is_older_until_it_is_accepted(
    make_store: Make, key_file: Path, tmp_path: Path
) -> None:
    with make_store() as store:
        store.add("Before the backup.")
        copy_vault(store.path, tmp_path / "backup.db")
        store.add("After the backup.")
    for opening, warned in enumerate((True, True, False)):
        shutil.copy(tmp_path / "backup.db", store.path)
        with MemoryStore.open(store.path, key_file=key_file) as restored:
            response = restored.search("backup", mode="keyword")
            assert [row.preview for row in response.rows] == ["Before the backup."]
            assert any("older" in line for line in response.degraded) is warned
            found = restored.verify()
            assert (found["failures"], found["older"] is not None) == ([], warned)
            if opening == 1:
                restored.accept_older()
