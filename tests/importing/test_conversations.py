"""What ChatGPT and Claude export becomes one memory a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reading_files import Outcome

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
