"""What is exported comes back the same, and no title or collection chooses where it is written."""

from __future__ import annotations

import io
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from reading_files import read

from memory_store.actions.export import (
    export_markdown,
    export_ndjson,
    export_ndjson_folder,
    memory_markdown,
)
from memory_store.errors import MemoryStoreError
from memory_store.records import TYPES, Memory, MemoryDraft

MEMORY = Memory(
    id="0b0d5b76-6c43-4f3e-9c39-0a4a6a3c8a11",
    collection="personal",
    type="note",
    title="Harbour walk",
    text="# Harbour walk\n\nWe saw #seals.",
    topics=("sea",),
    created="2024-05-01T09:30:00Z",
    updated="2024-05-01T09:30:00.250000Z",
    ref="walks/harbour.md",
    source="/home/ada/notes",
)

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
TRICKY = st.sampled_from(
    [
        *("", " ", "null", "~", "true", "007", "1e5", "12:30", "2024-05-01", "---", "...", "- a"),
        *("a: b", "'", '"', "#tag", "[a", "{a", "&a", "*a", "!!str", "%", "@", "`", "|", ">", "\\"),
        *("\0", "\x07", "\x7f", "\x85", "\u2028", "\ufeff", "\uffff", "🎉", "e\u0301", "\t"),
        *("a\nb", "k" * 1_100),
    ]
)
SMALL_TEXT = ANY_TEXT | TRICKY
# The store's texts are canonical: no NUL, no carriage returns, and not blank.
TEXTS = (
    st.lists(ANY_TEXT | TRICKY, min_size=1)
    .map("\n".join)
    .map(lambda text: text.replace("\0", "").replace("\r", ""))
    .filter(str.strip)
)
TIMES = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | SMALL_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SMALL_TEXT, inner, max_size=3),
    max_leaves=8,
)
MEMORIES = st.builds(
    Memory,
    id=st.uuids(version=4).map(str),
    collection=SMALL_TEXT,
    type=st.sampled_from([*TYPES, *(f"{kind}_done" for kind in TYPES)]),
    title=SMALL_TEXT,
    text=TEXTS,
    topics=st.lists(SMALL_TEXT, max_size=4, unique=True).map(tuple),
    created=TIMES,
    updated=TIMES,
    version=st.just(1),
    ref=st.none() | SMALL_TEXT,
    source=st.none() | SMALL_TEXT.filter(bool),
    valid_from=st.none() | TIMES,
    valid_to=st.none() | TIMES,
    supersedes=st.none() | st.uuids().map(str),
    superseded_by=st.none() | st.uuids().map(str),
    parent=st.none() | st.uuids().map(str),
    metadata=st.dictionaries(SMALL_TEXT, VALUES, max_size=4),
)


def as_draft(memory: Memory) -> MemoryDraft:
    """What an import of the exported memory has to say."""
    values = {name: getattr(memory, name) for name in MemoryDraft.__struct_fields__}
    return MemoryDraft(**values | {"collection": memory.collection or None})


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


@given(MEMORIES)
def test_a_memory_survives_markdown(memory: Memory) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert export_markdown([memory], Path(folder) / "out") == 1
        outcome = read(Path(folder) / "out")
        assert not outcome.failures
        assert outcome.drafts == [as_draft(memory)]


@given(st.lists(MEMORIES, max_size=4, unique_by=lambda memory: memory.id))
def test_memories_survive_ndjson(memories: list[Memory]) -> None:
    stream = io.StringIO()
    assert export_ndjson(memories, stream) == len(memories)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.ndjson"
        path.write_bytes(stream.getvalue().encode())
        outcome = read(path)
    assert not outcome.failures
    assert outcome.drafts == [as_draft(memory) for memory in memories]


def test_a_memory_that_is_a_title_alone_comes_back(tmp_path: Path) -> None:
    alone = replace(MEMORY, text="")
    export_markdown([alone], tmp_path / "out")
    with (tmp_path / "alone.ndjson").open("w") as stream:
        export_ndjson([alone], stream)
    for written in ("out", "alone.ndjson"):
        assert read(tmp_path / written).only == as_draft(alone)


@given(MEMORIES)
def test_the_front_matter_is_yaml_for_everybody_else_too(memory: Memory) -> None:
    block = memory_markdown(memory).split("\n---\n", 1)[0].removeprefix("---\n")
    values: dict[str, Any] = yaml.safe_load(block)
    assert values["title"] == memory.title
    assert values.get("metadata", {}) == dict(memory.metadata)


def test_an_export_reads_well(tmp_path: Path) -> None:
    memory = replace(MEMORY, metadata={"rating": 4, "far": 1e21})
    assert memory_markdown(memory) == (
        "---\n"
        'id: "0b0d5b76-6c43-4f3e-9c39-0a4a6a3c8a11"\n'
        'ref: "walks/harbour.md"\n'
        'source: "/home/ada/notes"\n'
        'collection: "personal"\n'
        'type: "note"\n'
        'title: "Harbour walk"\n'
        'topics: ["sea"]\n'
        'created: "2024-05-01T09:30:00Z"\n'
        'updated: "2024-05-01T09:30:00.250000Z"\n'
        'metadata: {"rating": 4, "far": 1.0e+21}\n'
        "---\n"
        "\n"
        "# Harbour walk\n"
        "\n"
        "We saw #seals.\n"
    )
    stream = io.StringIO()
    export_ndjson([memory], stream)
    assert list(json.loads(stream.getvalue()))[:8] == [
        *("id", "ref", "source", "collection", "type", "title", "text", "topics"),
    ]
    export_markdown([memory], tmp_path / "out")
    (path,) = files_below(tmp_path / "out")
    assert path.relative_to(tmp_path).as_posix() == "out/personal/harbour-walk-0b0d5b76.md"


def test_hashtags_of_an_exported_text_do_not_become_topics_again(tmp_path: Path) -> None:
    export_markdown([MEMORY], tmp_path / "out")
    assert read(tmp_path / "out").only.topics == ("sea",)


def test_a_field_edited_by_hand_without_quotes_is_taken_too(tmp_path: Path) -> None:
    text = memory_markdown(MEMORY).replace('"Harbour walk"', "Long walk").replace('"sea"', "sea, 7")
    path = tmp_path / "a.md"
    path.write_text(text)
    draft = read(path).only
    assert (draft.title, draft.topics, draft.id) == ("Long walk", ("sea", "7"), MEMORY.id)


@pytest.mark.parametrize(
    "title",
    [
        *("../../escape", "/etc/passwd", "..", ".", "", "~root", "C:\\x", "a/b/c", ".hidden"),
        *("con", "nul.md", "x" * 5_000, "é" * 500, "-rf", "$(reboot)", "\0", "a\nb", "🎉"),
        *("\ud800", "\u202e\u2066dm.exe"),
    ],
)
def test_a_hostile_title_or_collection_never_leaves_the_folder(tmp_path: Path, title: str) -> None:
    folder = tmp_path / "below" / "out"
    memories = [
        replace(MEMORY, title=title),
        replace(MEMORY, collection=title, id=MEMORY.id.replace("0b", "1c")),
    ]
    assert export_markdown(memories, folder) == 2
    written = list(files_below(tmp_path))
    assert len(written) == 2
    for path in written:
        assert path.is_relative_to(folder)
        assert len(path.relative_to(folder).parts) == 2
        assert all(part[0].isalnum() for part in path.relative_to(folder).parts)
        assert len(os.fsencode(path.name)) < 150
    assert {draft.id for draft in read(folder).drafts} == {memory.id for memory in memories}


def test_equal_titles_and_equal_beginnings_of_ids_do_not_overwrite(tmp_path: Path) -> None:
    other = replace(MEMORY, id=MEMORY.id[:-1] + "2", text="other")
    export_markdown([MEMORY, other], tmp_path / "out")
    assert {draft.id for draft in read(tmp_path / "out").drafts} == {MEMORY.id, other.id}


def test_what_is_written_is_for_its_owner_alone(tmp_path: Path) -> None:
    export_markdown([MEMORY], tmp_path / "out")
    export_ndjson_folder([MEMORY], tmp_path / "lines")
    for folder in (tmp_path / "out", tmp_path / "lines"):
        for path in (folder, *folder.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_nothing_that_exists_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.md").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name, reason in (("full", "not empty"), ("file", "no folder"), ("link", "no folder")):
        for export in (export_markdown, export_ndjson_folder):
            with pytest.raises(MemoryStoreError, match=reason):
                export([MEMORY], tmp_path / name)
    assert (tmp_path / "full" / "mine.md").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["file", "full", "link"]


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert export_ndjson_folder([MEMORY], tmp_path / "out") == 1
    assert read(tmp_path / "out" / "memories.ndjson").only.id == MEMORY.id


def test_an_export_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    def memories() -> Iterator[Memory]:
        yield MEMORY
        raise MemoryStoreError("the second memory was changed on disk")

    for export in (export_markdown, export_ndjson_folder):
        with pytest.raises(MemoryStoreError, match="changed on disk"):
            export(memories(), tmp_path / "out")
        assert os.listdir(tmp_path) == []


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else "bottom"


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        (  # what no file can hold is replaced, and nothing else
            {"n": float("nan"), "s": "\ud800", "\udfff": float("-inf")},
            {"n": None, "s": "\ufffd", "\ufffd": None},
        ),
        ({"deep": deep(150)}, {"deep": deep(150)}),  # beyond what an import of others reads
    ],
    ids=["odd", "deep"],
)
def test_odd_and_deep_metadata_comes_back(
    tmp_path: Path, metadata: dict[str, Any], kept: dict[str, Any]
) -> None:
    odd = replace(MEMORY, metadata=metadata)
    export_markdown([odd], tmp_path / "out")
    export_ndjson_folder([odd], tmp_path / "lines")
    for path in (tmp_path / "out", tmp_path / "lines" / "memories.ndjson"):
        assert read(path).only.metadata == kept
