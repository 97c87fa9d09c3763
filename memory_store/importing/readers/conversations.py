"""Conversations with assistants, as ChatGPT and Claude export them (``conversations.json``).

One memory a conversation. Its turns are sections of the second level, with who spoke and when, and
headings in what was said become lower ones; of several branches the one is followed that was shown
last. What an assistant only thought, what its tools answered, and
pictures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memory_store.importing.readers.export_fields import moment
from memory_store.records import MemoryDraft

CHATGPT, CLAUDE = "ChatGPT", "Claude"
NOT_SAID = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
MARKS = re.compile(r"^(#{1,6})(?=[ \t])|^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


class Turn(Struct, frozen=True):
    """What one side said; ``when`` is ISO 8601."""

    speaker: str
    text: str
    when: str | None = None
    model: str = ""


def conversation(values: Mapping[str, Any]) -> MemoryDraft | None:
    """The conversation that an exported row is, with an empty text where no one said anything;
    ``None`` for any other row."""
    if isinstance(values.get("mapping"), dict):
        assistant, turns = CHATGPT, [*_turns_of_chatgpt(values)]
        created, updated = moment(values.get("create_time")), moment(values.get("update_time"))
        title = values.get("title")
    elif isinstance(values.get("chat_messages"), list):
        assistant, turns = CLAUDE, [*_turns_of_claude(values["chat_messages"])]
        created, updated = moment(values.get("created_at")), moment(values.get("updated_at"))
        title = values.get("name")
    else:
        return None
    names = (values.get(key) for key in ("conversation_id", "uuid", "id"))
    return talk(
        assistant,
        turns,
        title=title.strip() if isinstance(title, str) and title.strip() else None,
        created=created or next((turn.when for turn in turns if turn.when), None),
        updated=updated,
        ref=next((name for name in names if isinstance(name, str) and name), None),
    )


def talk(assistant: str, turns: Sequence[Turn], **fields: Any) -> MemoryDraft:
    """A talk with an assistant as a memory; ``fields`` are further ones of it."""
    models = dict.fromkeys(turn.model for turn in turns if turn.model)
    return MemoryDraft(
        "\n\n".join(_section(number, turn) for number, turn in enumerate(turns, 1)),
        metadata={
            "assistant": assistant,
            "turns": str(len(turns)),
            **({"models": ", ".join(models)} if models else {}),
        },
        source=assistant,  # the same conversation in a newer export is its next version
        **fields,
    )


def _section(number: int, turn: Turn) -> str:
    when = f", {turn.when[:16].replace('T', ' ')}" if turn.when else ""
    return f"## {number}. {turn.speaker}{when}\n\n{_within(turn.text)}"


def _within(text: str) -> str:
    """What was said, so that it stays within its section: its headings are two levels lower, and
    a block of code that was not closed is."""
    fence = ""

    def moved(mark: re.Match[str]) -> str:
        nonlocal fence
        level, ticks, after = mark.groups()
        if ticks and fence:
            fence = "" if ticks.startswith(fence) and not after.strip() else fence
        elif ticks:
            fence = "" if ticks[0] in after else ticks
        return f"{level}##"[:6] if level and not fence else mark[0]

    found = MARKS.sub(moved, text)
    return f"{found}\n{fence}" if fence else found


def _turns_of_chatgpt(values: Mapping[str, Any]) -> Iterator[Turn]:
    for node in _branch(values["mapping"], values.get("current_node")):
        message = _mapping(node.get("message"))
        about = _mapping(message.get("metadata"))
        role = _mapping(message.get("author")).get("role")
        hidden = about.get("is_visually_hidden_from_conversation")
        if role not in ("user", "assistant") or hidden:
            continue
        text = _said(_mapping(message.get("content")))
        if not text:
            continue
        yield Turn(
            "You" if role == "user" else CHATGPT,
            text,
            moment(message.get("create_time")),
            str(about.get("model_slug") or "") if role == "assistant" else "",
        )


def _branch(nodes: Mapping[str, Any], last: Any) -> list[Mapping[str, Any]]:
    """The nodes from the root to the ``last`` one shown; without that, to the newest leaf."""
    if last not in nodes:
        leaves = [name for name, node in nodes.items() if not _mapping(node).get("children")]
        last = leaves[-1] if leaves else None
    found: list[Mapping[str, Any]] = []
    passed = set()
    while isinstance(last, str) and last in nodes and last not in passed:  # a ring ends, too
        passed.add(last)
        node = _mapping(nodes[last])
        found.append(node)
        last = node.get("parent")
    return found[::-1]


def _said(content: Mapping[str, Any]) -> str:
    kind = content.get("content_type")
    if kind in NOT_SAID:
        return ""
    if kind == "code":
        code = str(content.get("text") or "").strip()
        return f"```\n{code}\n```" if code else ""
    parts = content.get("parts")
    texts = [
        part if isinstance(part, str) else str(_mapping(part).get("text") or "")
        for part in (parts if isinstance(parts, list) else [content.get("text") or ""])
    ]
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _turns_of_claude(messages: list[Any]) -> Iterator[Turn]:
    for message in map(_mapping, messages):
        blocks = message.get("content")
        texts = [
            str(block.get("text") or "")
            for block in map(_mapping, blocks if isinstance(blocks, list) else ())
            if block.get("type") == "text"
        ] or [str(message.get("text") or "")]
        attached = message.get("attachments")
        for one in map(_mapping, attached if isinstance(attached, list) else ()):
            name, content = one.get("file_name") or "attachment", one.get("extracted_content")
            if isinstance(content, str) and content.strip():
                texts.append(f"{name}:\n\n{content}")
        text = "\n\n".join(text.strip() for text in texts if text.strip())
        if text:
            speaker = "You" if message.get("sender") == "human" else CLAUDE
            yield Turn(speaker, text, moment(message.get("created_at")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
