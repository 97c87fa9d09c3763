"""Changing memories of an opened vault: one or many, all of a request or nothing; publishing them.

Boundary: opens the memories that it changes; plain text comes in and is sealed again. Refusals
name ids, fields and versions, never what a memory says. Of a published memory a copy is sealed
under the other collection's key; what names the original's place stays behind.

A version is checked twice: against what was read, and once more inside the transaction that
writes (``session/writer.py``). So of two changes to one version exactly one is written, whichever
processes make them. A change that expects no version is made again on top of the newer one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.attempts import SettledConflictError, again_if_overtaken, with_succession
from memory_store.actions.reads import open_all, open_one, resolve, shown
from memory_store.actions.writes import write
from memory_store.errors import BadInputError, BadRowsError, NotFoundError, RowProblem, checked_each
from memory_store.importing import drafts
from memory_store.records import (
    BY,
    Addition,
    Memory,
    MemoryChange,
    MemoryDraft,
    base_type,
    read_record,
)
from memory_store.scopes import EVERYTHING, Scope
from memory_store.session.opened_vault import OpenVault
from memory_store.session.writer import delete_memories
from memory_store.text.canonical import normalise_topic
from memory_store.vault.audit_events import ADD, DELETE, EDIT
from memory_store.vault.rows import content_tag
from memory_store.vault.trash import Change

Row = TypeVar("Row")
Answer = TypeVar("Answer")

ENDED_BY_OTHERS = ("valid_to", "superseded_by")

_FIELDS: dict[str, Callable[[Any], Any]] = {
    "text": drafts.checked_text,
    "title": drafts.checked_title,
    "type": drafts.checked_type,
    "topics": drafts.clean_topics,
    "metadata": drafts.checked_metadata,
    "valid_from": lambda given: drafts.optional_time(given, "valid_from"),
    "valid_to": lambda given: drafts.optional_time(given, "valid_to"),
}
"""Each field that an edit may change, as it is kept."""


@action(EDIT, writes=True, counts=lambda _: (1, 1))
def edit(opened: Opened, /, memory_id: str, **changes: Any) -> Memory:
    """Change a memory. Keywords are the other fields of :class:`MemoryChange`; what is None stays.

    Raises NotFoundError, ConflictError (see ``expected_version``), BadInputError.
    """
    changes["version"] = changes.pop("expected_version", None)
    return change_many(opened, [read_record(MemoryChange, {"id": memory_id, **changes})])[0]


@action(EDIT, writes=True, counts=lambda edited: (len(edited), len(edited)))
def edit_many(
    opened: Opened,
    edits: Iterable[MemoryChange],
    *,
    refs: bool = True,
    group: str = "",
    embed: bool = True,
) -> list[Memory]:
    """Change memories, all of them or none. Returns them in the same order.

    ``refs``: whether a memory may be named by its ref, too (looking for one opens every head).
    ``group`` is what the trash calls this change (empty: a random name). Without ``embed`` what
    says something new has no vectors until :func:`embed_missing`.
    Raises NotFoundError, BadRowsError and ConflictError, whose ``ids`` are not at the version
    that was expected.
    """
    return change_many(opened, [*edits], refs=refs, group=group, embed=embed)


def change_many(
    opened: Opened,
    edits: Sequence[MemoryChange],
    *,
    refs: bool = True,
    group: str = "",
    embed: bool = True,
) -> list[Memory]:
    """See :func:`edit_many`; for other actions."""
    vault = opened.vault
    named = [replace(edit, id=resolve(vault, edit.id, refs=refs)) for edit in edits]
    _refuse_twice([edit.id for edit in named])

    def attempt() -> list[Memory]:
        befores = [open_one(vault, edit.id, refs=False) for edit in named]
        _refuse_stale(befores, named)
        afters = checked_rows(list(zip(befores, named, strict=True)), _changed)
        afters = [_moved(vault, after, edit) for after, edit in zip(afters, named, strict=True)]
        write(opened, afters, group=group, embed=embed)
        return shown(vault, afters)

    return again_if_overtaken(vault, attempt)


@action(ADD, writes=True, counts=lambda added: (0, len(added)))
def add_once(
    opened: Opened,
    given: Iterable[MemoryDraft],
    *,
    embed: bool = True,
    readable: Scope = EVERYTHING,
) -> list[Addition]:
    """Add memories, all of them or none; one that is there already, just as given, stays.

    So a request that was sent twice is done once, provided that the sender chose the ids. Raises
    BadRowsError, and ConflictError with the ``ids`` that hold something else; nothing is written
    then. Outside of the ``readable`` collections any id that is taken is a conflict: that a memory
    is there just as given would confirm what it says.
    """
    vault, asked = opened.vault, [*given]
    made = checked_rows(asked, lambda draft: drafts.new_memory(draft, ""))
    _refuse_twice([memory.id for memory in made])

    def attempt() -> list[Addition]:
        # only now, when nothing is wrong with any row, may a collection be made
        wanted = [
            replace(memory, collection=vault.collections.find_or_create(draft.collection))
            for memory, draft in zip(made, asked, strict=True)
        ]
        taken = vault.reader().memories.rows([memory.id for memory in wanted])
        known = {one for one in vault.keyring.readable() if one in readable}
        ours = [one for one, row in taken.items() if row.collection in known]
        present = {memory.id: memory for memory in open_all(vault, ours)}
        others = [
            memory.id
            for memory, draft in zip(wanted, asked, strict=True)
            if memory.id in taken and not _says_the_same(present.get(memory.id), memory, draft)
        ]
        if others:
            raise SettledConflictError(f"there is another memory {others[0]} already", others)
        new = [one for one in wanted if one.id not in present]
        write(opened, with_succession(vault, new), embed=embed)
        kept = shown(vault, [present.get(memory.id, memory) for memory in wanted])
        return [Addition(memory, memory.id in present) for memory in kept]

    return again_if_overtaken(vault, attempt)


@action(EDIT, writes=True, counts=lambda _: (1, 2))
def supersede(
    opened: Opened,
    memory_id: str,
    text: str,
    *,
    title: str | None = None,
    type: str | None = None,
    add_topics: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    expected_version: int | None = None,
    embed: bool = True,
) -> Memory:
    """Put a new memory in the place of one, which stays and is valid until now: both or neither.

    Title, type, topics and collection are those of the old one where they are not given. ``embed``
    is as in :func:`edit_many`. Raises NotFoundError, ConflictError (see ``expected_version``),
    BadInputError.
    """
    vault = opened.vault

    def attempt() -> Memory:
        old = open_one(vault, memory_id, refs=False)
        _refuse_stale([old], [MemoryChange(old.id, expected_version=expected_version)])
        draft = MemoryDraft(
            text,
            title=old.title if title is None else title,
            type=type or old.type,
            topics=drafts.clean_topics([*old.topics, *add_topics]),
            supersedes=old.id,
            metadata=metadata or {},
        )
        new = drafts.new_memory(draft, old.collection)
        write(opened, with_succession(vault, [new]), embed=embed)
        return shown(vault, [new])[0]

    return again_if_overtaken(vault, attempt)


@action(DELETE, writes=True, counts=lambda _: (0, 1))
def delete(opened: Opened, memory_id: str, *, now: bool = False) -> None:
    """Delete a memory: rows and index at once, and sealed it stays in the trash for some days.

    ``now`` erases it everywhere, with all that the trash has of it. Raises NotFoundError.
    """
    remove_many(opened, {memory_id: None}, None if now else Change(by=opened.by))


@action(DELETE, writes=True, counts=lambda gone: (0, gone))
def delete_many(
    opened: Opened,
    ids: Iterable[str] | Mapping[str, int | None],
    *,
    refs: bool = True,
    now: bool = False,
    group: str = "",
) -> int:
    """Delete memories, all of them or (NotFoundError) none, as :func:`delete`. Returns how many.

    A mapping says which version each must have (``None``: any); ConflictError, with their ``ids``,
    where some have another. ``group`` is what the trash calls this deletion (empty: a random name).
    """
    versions = ids if isinstance(ids, Mapping) else dict.fromkeys(ids)
    change = Change(by=opened.by, group=group) if group else Change(by=opened.by)
    return remove_many(opened, versions, None if now else change, refs=refs)


def remove_many(
    opened: Opened,
    versions: Mapping[str, int | None],
    change: Change | None,
    *,
    refs: bool = True,
) -> int:
    """See :func:`delete_many`; for other actions."""
    vault = opened.vault
    resolved = {resolve(vault, given, refs=refs): version for given, version in versions.items()}
    held_to = {one: version for one, version in resolved.items() if version is not None}
    return delete_memories(vault, [*resolved], change, versions=held_to)


@action(EDIT, writes=True, counts=lambda _: (1, 1))
def done(opened: Opened, memory_id: str, *, expected_version: int | None = None) -> Memory:
    """Mark a memory completed: ``task`` becomes ``task_done``.

    Raises ConflictError where it is at another version than the one expected.
    """
    return _of_type(opened, memory_id, drafts.done_type, expected_version)


@action(EDIT, writes=True, counts=lambda _: (1, 1))
def reopen(opened: Opened, memory_id: str, *, expected_version: int | None = None) -> Memory:
    """Mark a completed memory open again: ``task_done`` becomes ``task``. Else as :func:`done`."""
    return _of_type(opened, memory_id, base_type, expected_version)


def checked_rows(rows: Sequence[Row], check: Callable[[Row], Answer]) -> list[Answer]:
    """What ``check`` makes of every row. Raises BadRowsError for all that are wrong at once."""
    answers: list[Answer] = []
    problems: list[RowProblem] = []
    for number, row in enumerate(rows):
        try:
            answers.append(check(row))
        except BadInputError as error:
            problems += [RowProblem(number, name, said) for name, said in error.each]
    if problems:
        raise BadRowsError(problems)
    return answers


def _of_type(
    opened: Opened, memory_id: str, changed: Callable[[str], str], version: int | None
) -> Memory:
    before = open_one(opened.vault, memory_id)
    kind = changed(before.type)
    edit = MemoryChange(before.id, type=kind, expected_version=version)
    if kind == before.type and opened.vault.discloses(before.collection):
        _refuse_stale([before], [edit])
        return shown(opened.vault, [before])[0]
    return change_many(opened, [edit])[0]


def checked_change(edit: MemoryChange) -> dict[str, Any]:
    """What an edit changes, as it is kept. Raises BadInputError naming all wrong fields."""
    return checked_each(
        {
            name: partial(check, value)
            for name, check in _FIELDS.items()
            if (value := getattr(edit, name)) is not None
        }
    )


def _changed(pair: tuple[Memory, MemoryChange]) -> Memory:
    """The next version of a memory, still in its collection."""
    before, edit = pair
    changes = checked_change(edit)
    if edit.add_topics or edit.remove_topics:
        changes["topics"] = _topics(changes.get("topics", before.topics), edit)
    if "text" in changes:
        topics = changes.get("topics", before.topics)
        changes["topics"] = drafts.with_hashtags(topics, changes["text"], before.text)
    if changes.get("valid_to", before.valid_to) is None:
        changes["superseded_by"] = None
    after = drafts.next_version(before, **changes)
    if "text" in changes and not after.text.strip():
        raise BadInputError(
            "text: a change leaves no memory without text: delete it instead", "text"
        )
    if not after.text.strip() and not after.title:
        raise BadInputError("an empty memory: it has neither text nor title", "text")
    if (after.valid_from, after.valid_to) != (before.valid_from, before.valid_to):
        drafts.refuse_backwards(after)
    return after


def _topics(present: Sequence[str], edit: MemoryChange) -> tuple[str, ...]:
    unwanted = {normalise_topic(topic.strip().lstrip("#")) for topic in edit.remove_topics}
    kept = [topic for topic in present if normalise_topic(topic) not in unwanted]
    return drafts.clean_topics([*kept, *edit.add_topics])


def _moved(vault: OpenVault, memory: Memory, edit: MemoryChange) -> Memory:
    """The memory in the collection that the edit names, which may be made for it."""
    if edit.collection is None:
        return memory
    return replace(memory, collection=vault.collections.find_or_create(edit.collection))


def _refuse_stale(befores: Sequence[Memory], edits: Sequence[MemoryChange]) -> None:
    stale = [
        (before, edit.expected_version)
        for before, edit in zip(befores, edits, strict=True)
        if edit.expected_version not in (None, before.version)
    ]
    if stale:
        before, expected = stale[0]
        raise SettledConflictError(
            f"memory {before.id} is at version {before.version}, not {expected}",
            [memory.id for memory, _ in stale],
        )


def _refuse_twice(ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    problems = [
        RowProblem(number, "id", f"row {first[one]} has the same id")
        for number, one in enumerate(ids)
        if first.setdefault(one, number) != number
    ]
    if problems:
        raise BadRowsError(problems)


def _says_the_same(present: Memory | None, wanted: Memory, draft: MemoryDraft) -> bool:
    """Whether a memory is what a draft asks for; of times, those that it names.

    ``None``: it is in a collection that this key may not read.
    """
    if present is None:
        return False
    unsaid = {
        name: getattr(present, name)
        for name in ("created", "updated")
        if getattr(draft, name) is None
    } | {"original": present.original}
    if present.superseded_by and draft.superseded_by is None:  # by a later memory
        unsaid |= {name: getattr(present, name) for name in ENDED_BY_OTHERS}
    return replace(wanted, version=present.version, **unsaid) == present


# -- publication --------------------------------------------------------------------------
#
# A copy's id is a keyed hash of the original's, so that publishing again finds it without looking
# at any other memory, and without the key a copy looks like any other memory there.
# The hash is another one in another vault; there the copy is recognised by what it says.

LINKS = ("parent", "supersedes", "superseded_by")
LEFT_BEHIND: dict[str, Any] = dict.fromkeys(("ref", "source", "original", *LINKS))
SAID = ("title", "text", "type", "topics", "metadata", "created", "valid_from", "valid_to")


@action(ADD, writes=True, counts=lambda _: (1, 1))
def publish(
    opened: Opened, memory_id: str, collection: str, *, readable: Scope = EVERYTHING
) -> Memory:
    """The same content in another collection, too: a copy with an id of its own.

    Published again, the copy that is there is returned. The original stays as it is, and later
    changes to it do not reach the copy. An assistant's copy bears its name (``by``).
    ``readable`` are the collections that the caller may read: the original is in one of them; in
    another one, a memory that says the same is not taken for the copy, which would confirm what it
    says. Raises NotFoundError, and BadInputError when the memory is in that collection itself.
    """
    vault = opened.vault
    original = open_one(vault, memory_id)
    if original.collection not in readable:
        raise NotFoundError(f"no memory {memory_id!r}")
    target = vault.collections.find(collection)
    if target == original.collection:
        raise BadInputError("the memory is in that collection itself", "collection")
    wanted = replace(original, collection=target, version=1, updated=drafts.now(), **LEFT_BEHIND)
    if opened.by:
        wanted = replace(wanted, metadata={**original.metadata, BY: opened.by})

    def attempt() -> Memory:
        copy, present = _place_of(vault, wanted)
        kept = open_all(vault, [copy.id]) if present else []
        if not present and target in readable:
            kept = _saying_the_same(vault, copy)
        if not kept:
            write(opened, [copy])
        return shown(vault, [*kept, copy])[0]

    return again_if_overtaken(vault, attempt)


def _place_of(vault: OpenVault, wanted: Memory) -> tuple[Memory, bool]:
    """The copy with its id, and whether it is there. One that was moved away is left alone, and
    not mentioned: the caller may not see that collection."""
    keys = vault.keyring.of(wanted.collection)
    for number in count():
        parts = [b"published", wanted.id.encode()] + [str(number).encode()] * bool(number)
        copied = str(uuid.UUID(bytes=keys.dedupe.tag(*parts)[:16], version=4))
        row = vault.reader().memories.rows([copied]).get(copied)
        if row is None or row.collection == wanted.collection:
            return replace(wanted, id=copied), row is not None
    raise AssertionError("an endless row ends")


def _saying_the_same(vault: OpenVault, copy: Memory) -> list[Memory]:
    """Memories of the copy's collection that say all that it says."""
    keys = vault.keyring.of(copy.collection)
    tags = [*keys.stored_forms(content_tag(keys, copy.title, copy.text))]
    alike = open_all(vault, vault.reader().memories.holding(copy.collection, tags))
    return [one for one in alike if all(getattr(one, n) == getattr(copy, n) for n in SAID)]
