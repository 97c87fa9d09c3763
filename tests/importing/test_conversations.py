"""What ChatGPT and Claude export becomes one memory a conversation."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reading_files import Outcome

from memory_store.importing.archive import in_archive_file
from memory_store.importing.readers import read_file
from memory_store.importing.source_file import Failure, Limits, SourceFile
from memory_store.records import MemoryDraft

Rows = Callable[[str, str], Outcome]
NOON = 1714564800  # 2024-05-01 12:00


def node(name: str, parent: str | None, role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    about = {"model_slug": "gpt-4o", **more.pop("metadata", {})}
    message = {
        "author": {"role": role},
        "create_time": NOON + 60.5,
        "content": {"content_type": "text", "parts": [*parts], **more},
        "metadata": about,
    }
    return {"id": name, "parent": parent, "message": message, "children": []}


def chatgpt(*nodes: dict[str, Any], last: str, **more: Any) -> dict[str, Any]:
    root = {"id": "root", "parent": None, "message": None, "children": []}
    mapping = {one["id"]: one for one in (root, *nodes)}
    about = {"title": "Tomatoes", "create_time": NOON, "update_time": NOON + 3600.0}
    return {**about, "mapping": mapping, "current_node": last, "conversation_id": "c-1", **more}


def test_a_conversation_follows_the_branch_that_was_shown_last(rows: Rows) -> None:
    exported = chatgpt(
        node("hidden", "root", "system", "You are helpful"),
        node("q", "hidden", "user", "When do I water?", {"content_type": "image_asset_pointer"}),
        node("first", "q", "assistant", "Daily."),
        node("thought", "q", "assistant", content_type="thoughts", thoughts=[]),
        node("tool", "thought", "tool", "a search result"),
        node("second", "tool", "assistant", "Every second day."),
        last="second",
    )
    draft = rows("conversations.json", json.dumps([exported])).only
    assert draft.text == (
        "## 1. You, 2024-05-01 12:01\n\nWhen do I water?\n\n"
        "## 2. ChatGPT, 2024-05-01 12:01\n\nEvery second day."
    )
    assert (draft.title, draft.ref, draft.type) == ("Tomatoes", "c-1", "conversation")
    assert (draft.created, draft.updated) == ("2024-05-01T12:00:00Z", "2024-05-01T13:00:00Z")
    assert draft.metadata == {"assistant": "ChatGPT", "turns": "2", "models": "gpt-4o"}


def test_a_conversation_with_claude_keeps_what_was_attached_as_text(rows: Rows) -> None:
    exported = {
        "uuid": "c-2",
        "name": "The lease",
        "created_at": "2024-05-01T12:00:00.123456Z",
        "updated_at": "2024-05-01T13:00:00Z",
        "chat_messages": [
            {
                "sender": "human",
                "text": "When does it end?",
                "created_at": "2024-05-01T12:00:00Z",
                "attachments": [{"file_name": "lease.txt", "extracted_content": "It ends in May"}],
            },
            {
                "sender": "assistant",
                "text": "all of it",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "In May."},
                ],
                "created_at": "2024-05-01T12:01:00Z",
            },
        ],
    }
    draft = rows("conversations.json", json.dumps([exported])).only
    assert draft.text == (
        "## 1. You, 2024-05-01 12:00\n\nWhen does it end?\n\nlease.txt:\n\nIt ends in May\n\n"
        "## 2. Claude, 2024-05-01 12:01\n\nIn May."
    )
    assert (draft.title, draft.ref, draft.metadata["assistant"]) == ("The lease", "c-2", "Claude")


def test_what_is_missing_or_makes_no_sense_costs_no_other_conversation(rows: Rows) -> None:
    ring = chatgpt(node("a", "b", "user", "Round"), node("b", "a", "user", "and round"), last="a")
    empty = chatgpt(last="root", conversation_id="c-3")
    bare = {"mapping": {"a": node("a", None, "user", "Only this")}, "create_time": "never"}
    odd = {"chat_messages": [None, {"content": 3, "text": 4, "attachments": {}}], "uuid": 5}
    found = rows("conversations.json", json.dumps([ring, empty, bare, odd]))
    assert [draft.ref for draft in found.drafts] == ["c-1", "row-3", "row-4"]
    assert found.drafts[0].metadata["turns"] == "2"
    assert found.skips == {"conversations.json:1": "empty"}
    assert not found.failures


def test_an_export_larger_than_any_document_may_be_is_read_turn_by_turn(tmp_path: Path) -> None:
    """Years of conversations are one array: of it, as of the archive it is in, a piece is read."""
    long = " ".join(random.Random(1).choices(["heron", "pond", "reed", "mud", "dawn"], k=2_000))
    each = [
        chatgpt(node("a", "root", "assistant", f"{n} {long}"), last="a", conversation_id=f"c-{n}")
        for n in range(60)
    ]
    exported = json.dumps(each)
    limits = Limits(bytes=len(exported) // 20)
    (tmp_path / "conversations.json").write_text(exported)
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", exported)
    (packed,) = in_archive_file(tmp_path / "export.zip", "export.zip")
    plain = SourceFile(tmp_path / "conversations.json", tmp_path, "conversations.json", "json")
    for file in (plain, packed):
        assert isinstance(file, SourceFile)
        drafts = [*read_file(file, limits)]
        assert [draft.ref for draft in drafts if isinstance(draft, MemoryDraft)] == [
            f"c-{n}" for n in range(60)
        ]
    alone = tmp_path / "one.json"
    alone.write_text(json.dumps({"rows": each}))
    (failure,) = read_file(SourceFile(alone, tmp_path, "one.json", "json"), limits)
    assert isinstance(failure, Failure)
    assert "larger than" in failure.reason
