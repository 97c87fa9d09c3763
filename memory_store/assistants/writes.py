"""The tools that write: adding memories, and changing, completing, superseding or deleting one.

Boundary: writes only where the assistant's grants say so, and marks what it adds with its name.
What a new memory is like is looked for among those that it may read, and nowhere else.
"""

from __future__ import annotations

import re

from memory_store.assistants.answers import Added, Listed, Updated, WereAdded
from memory_store.assistants.arguments import Add, New, Update
from memory_store.assistants.assistant import Assistant
from memory_store.assistants.reads import TITLE
from memory_store.errors import BadInputError
from memory_store.records import Memory, MemoryChange, MemoryDraft
from memory_store.store import MemoryStore

KNOWN = 0.93  # cosine from which a text says what a memory says already
REPLACES = 0.70  # … from which it may take the place of an older one with a topic in common
COMPARED = 1_000  # characters of a new text that are compared
NEIGHBOURS = 5


def add(assistant: Assistant, given: Add) -> WereAdded:
    """All of them, or none where one is refused."""
    near = [_near(assistant.reader, new) for new in given.memories]
    wanted = [not (given.if_new and known) for known, _ in near]
    drafts = [
        _draft(assistant, new) for new, take in zip(given.memories, wanted, strict=True) if take
    ]
    added = iter(assistant.adder.add_many(drafts))
    return WereAdded(
        [
            Added(
                next(added).id if take else "",
                added=take,
                already_known=known,
                may_replace=older,
            )
            for (known, older), take in zip(near, wanted, strict=True)
        ]
    )


def update(assistant: Assistant, given: Update) -> Updated:
    """One memory changed, superseded or deleted."""
    store = assistant.editor
    if given.delete:
        if given.version is None:
            raise BadInputError("delete needs version: memory_read gives it", "version")
        store.delete_many({given.id: given.version}, refs=False)
        return Updated(given.id, deleted=True)
    if given.supersede is not None:
        return _superseded(assistant, given)
    change = MemoryChange(
        given.id,
        text=given.text,
        title=given.title,
        type=given.type,
        add_topics=tuple(given.add_topics),
        remove_topics=tuple(given.remove_topics),
        valid_to=given.valid_to,
        expected_version=given.version,
    )
    if change != MemoryChange(given.id, expected_version=given.version):
        store.edit_many([change], refs=False)
    if given.done is not None:
        (store.done if given.done else store.reopen)(given.id)
    return _shown(store.get(given.id, refs=False))


def _shown(memory: Memory) -> Updated:
    return Updated(
        memory.id,
        version=memory.version,
        title=memory.title[:TITLE],
        type=memory.type,
        topics=memory.topics,
        valid_to=memory.valid_to or "",
    )


def _draft(assistant: Assistant, new: New) -> MemoryDraft:
    return MemoryDraft(
        new.text,
        title=new.title or None,
        type=new.type or None,
        topics=tuple(new.topics),
        collection=new.collection or None,
        parent=new.parent or None,
        valid_to=new.valid_to or None,
        metadata={"by": assistant.name},
    )


def _near(store: MemoryStore, new: New) -> tuple[list[Listed], list[Listed]]:
    """Memories that say the same as a new text, and older ones that it may take the place of."""
    words = " ".join(re.findall(r"\w+", new.text))[:COMPARED]  # no word of the query language
    if not words or not store.stats()["vectors"]:
        return [], []
    found = store.search(words, mode="vector", limit=NEIGHBOURS, rerank=False, expand=False)
    known, older = [], []
    for row in found.rows:
        near = row.vector_score or 0.0
        short = Listed(row.id, row.shown_title[:TITLE])
        if near >= KNOWN:
            known.append(short)
        elif near >= REPLACES and set(new.topics) & set(row.topics):
            older.append(short)
    return known, older


def _superseded(assistant: Assistant, given: Update) -> Updated:
    """A new memory in the place of an old one, which stays, and is valid until now."""
    new = assistant.editor.supersede(
        given.id,
        given.supersede or "",
        title=given.title,
        type=given.type,
        add_topics=tuple(given.add_topics),
        metadata={"by": assistant.name},
        expected_version=given.version,
    )
    return Updated(new.id, version=new.version, supersedes=new.supersedes or "")
