"""Versions from elsewhere, joined with those that are known here, and written as memories.

Boundary: plain text comes out of a seal and goes into the vault's own; a version that loses against
another is opened once, and kept sealed. What is replaced or deleted here goes into the trash.

Rows and what is known of them are written in one transaction. A batch that another writer overtakes
is done again, on top of what that one wrote.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memory_store.actions.attempts import again_if_overtaken
from memory_store.actions.sync.copy import Copy, Sent, contents_of, emptied, filled
from memory_store.errors import ConflictError, FormatError
from memory_store.records import Memory
from memory_store.records.sync import CONFLICT_OF, CONFLICT_TOPIC
from memory_store.session.embedders import WritingEmbedders, without_model
from memory_store.session.entries import Windows, indexable
from memory_store.session.indexer import Indexer
from memory_store.session.writer import drop, take_out, write_batch
from memory_store.vault import sync_state, trash
from memory_store.vault.contents import Content, digest, exact_digest, packed, unpacked
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.originals import is_of
from memory_store.vault.registers import CONFLICT, Register, Version, joined
from memory_store.vault.rows import Origin, opened_head, original_in, row_tag, sealed_head
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.sync_state import Known, State
from memory_store.vault.trash import BY_SYNC, Change


class _Plan(Struct):
    """What joining a batch comes to: rows to write and to delete, and what is known then."""

    known: dict[str, Known] = field(default_factory=dict)
    written: dict[str, Content] = field(default_factory=dict)
    deleted: dict[str, bytes] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    conflicts: list[str] = field(default_factory=list)


def take(copy: Copy, sent: Sequence[Sent], source: str, *, embed: bool = True) -> None:
    """Join registers that a target has, and show what comes of it.

    Raises FormatError for what is no version of a memory; nothing of the batch is written then.
    """
    again_if_overtaken(copy.vault, lambda: _taken(copy, sent, source, embed=embed))


def _taken(copy: Copy, sent: Sequence[Sent], source: str, *, embed: bool) -> None:
    registers = [one.register for one in sent]
    vault, ids = copy.vault, [one.memory for one in registers]
    copy.note(ids)  # or what another program wrote meanwhile would be taken for what is known
    with vault.moment() as (storage, _):
        known = sync_state.read_known(storage, vault.keyring, ids)
        plan = _planned(copy, storage, known, registers, source)
        present = storage.memories.rows([*plan.written])
    if not plan.known:
        return
    state = copy.state
    for memory, one in plan.known.items():
        state = replace(state, sequence=state.sequence + 1)
        plan.known[memory] = replace(one, sequence=state.sequence)
    memories = [
        (
            content.as_version(one, present[one].version + 1 if one in present else 1),
            content.origin,
        )
        for one, content in plan.written.items()
    ]
    memories, originals = _with_originals(copy, memories, sent, present)
    noted = _write(
        copy, plan, memories, state, _given(copy, memories, sent), originals, embed=embed
    )
    copy.wrote(state, noted)
    tally = copy.tally
    tally.deleted += len(plan.deleted)
    tally.changed += len(present)
    tally.added += len(plan.written) - len(present)
    tally.conflicts.update(dict.fromkeys(plan.conflicts))


# -- what joining comes to ----------------------------------------------------------------------


def _planned(
    copy: Copy,
    storage: Storage,
    known: Mapping[str, Known],
    registers: Sequence[Register],
    source: str,
) -> _Plan:
    plan, waiting = _Plan(), deque((one, source) for one in registers)
    looked_up = {one.memory for one in registers}
    while waiting:
        register, came_from = waiting.popleft()
        memory = register.memory
        before = plan.known.get(memory) or known.get(memory)
        if before is None and memory not in looked_up:
            before = sync_state.read_known(storage, copy.vault.keyring, [memory]).get(memory)
        before = before or Known(Register(memory))
        after = joined(before.register, register)
        if _same(after, before.register):
            continue
        here = _content_here(copy, storage, before, plan.written.get(memory))
        after = filled(after, here)
        _show(plan, before, after, here)
        as_it_came = came_from if _same(after, register) else ""
        plan.known[memory] = replace(before, register=emptied(after), source=as_it_came)
        losing = [_conflict(copy, memory, one) for one in after.conflicting]
        if losing:
            plan.conflicts.append(memory)
        waiting.extend((one, "") for one in losing)
    return plan


def _same(one: Register, other: Register) -> bool:
    dots = [[each.dot for each in side.versions] for side in (one, other)]
    return dict(one.seen) == dict(other.seen) and dots[0] == dots[1]


def _content_here(
    copy: Copy, storage: Storage, before: Known, planned: Content | None
) -> bytes | None:
    """What the vault says of a memory, or will when what is planned is done; packed."""
    if planned is not None:
        return packed(planned)
    if not before.row:
        return None
    return contents_of(copy.vault, storage, [before.register.memory])[before.register.memory]


def _show(plan: _Plan, before: Known, after: Register, here: bytes | None) -> None:
    """Write, delete or leave a memory, so that the vault has the version to be shown."""
    shown, memory = after.shown, after.memory
    if shown is None or shown.deleted:
        plan.written.pop(memory, None)
        if before.row:
            plan.deleted[memory] = before.row
        if shown is not None and shown.erased:
            plan.erased.add(memory)
    elif shown.content is None:
        raise FormatError(f"a version of {memory} came without what it says")
    elif shown.content != here or memory in plan.deleted:
        plan.deleted.pop(memory, None)
        plan.erased.discard(memory)
        plan.written[memory] = unpacked(shown.content)


def _conflict(copy: Copy, memory: str, lost: Version) -> Register:
    """What lost, as a memory beside the one that stayed: the same one on every device."""
    keys = copy.vault.keyring.of(VAULT_SCOPE)
    name = keys.plain_dedupe.tag(b"conflict", memory.encode(), repr(lost.dot).encode())
    made = str(uuid.UUID(bytes=name[:16], version=4))
    if lost.content is None:
        raise FormatError(f"a version of {memory} came without what it says")
    said = unpacked(lost.content).memory
    said = replace(
        said,
        topics=tuple(dict.fromkeys((*said.topics, CONFLICT_TOPIC))),
        metadata={**said.metadata, CONFLICT_OF: memory},
        **dict.fromkeys(("ref", "source", "supersedes", "superseded_by", "original")),
    )
    content = packed(Content(said))
    version = Version(CONFLICT, 1, lost.time, digest(said), content, exact_digest(said))
    return Register(made, {CONFLICT: 1}, (version,))


# -- writing --------------------------------------------------------------------------------------


def _given(
    copy: Copy, memories: Sequence[tuple[Memory, Origin]], sent: Sequence[Sent]
) -> dict[tuple[str, bytes], Windows]:
    """The vectors that came with memories, as far as the model here made them, too."""
    vectors = {one.register.memory: one.vectors for one in sent if one.vectors is not None}
    found = {}
    for memory, _ in memories:
        if memory.id not in vectors:
            continue
        fingerprint, spans, data = vectors[memory.id]
        wanted = copy.vault.settings.of(memory.collection)
        if fingerprint != wanted.fingerprint or len(data) != 2 * len(spans) * wanted.dimensions:
            continue
        if not all(0 <= start <= end for start, end in spans):
            continue
        rows = np.frombuffer(data, np.float16).reshape(len(spans), wanted.dimensions).copy()
        tag = indexable(copy.vault.keyring, memory).content_tag
        found[fingerprint, tag] = Windows(tuple(spans), rows)
    return found


def _with_originals(
    copy: Copy,
    memories: Sequence[tuple[Memory, Origin]],
    sent: Sequence[Sent],
    present: Mapping[str, MemoryRow],
) -> tuple[list[tuple[Memory, Origin]], dict[str, bytes]]:
    """Memories whose originals are where this copy has them, and the bytes that came with some."""
    came = {one.register.memory: one.original for one in sent if one.original is not None}
    keyring, found, originals = copy.vault.keyring, list[tuple[Memory, Origin]](), {}
    for memory, origin in memories:
        wanted, data, row = memory.original, came.get(memory.id), present.get(memory.id)
        if wanted is not None and data is not None and is_of(wanted, data):
            originals[memory.id] = data
        elif wanted is not None and row is not None and row.collection == memory.collection:
            here = original_in(sealed_head(row, opened_head(keyring, row)))
            if here is not None and replace(here, token="") == wanted:
                memory = replace(memory, original=here)
        found.append((memory, origin))
    return found, originals


def _write(
    copy: Copy,
    plan: _Plan,
    memories: Sequence[tuple[Memory, Origin]],
    state: State,
    given: Mapping[tuple[str, bytes], Windows],
    originals: Mapping[str, bytes],
    *,
    embed: bool,
) -> list[Known]:
    """Returns what is known then."""
    vault, change, noted = copy.vault, Change(BY_SYNC), list[Known]()

    def also(storage: Storage) -> None:
        if tags_of(storage, copy, plan.deleted) != plan.deleted:
            raise ConflictError("a memory was changed by another writer meanwhile")
        take_out(storage, vault, [*plan.deleted.keys() - plan.erased], change)
        take_out(storage, vault, [*plan.deleted.keys() & plan.erased], None)
        if plan.erased:
            trash.erase(storage, vault.keyring, plan.erased)
            drop(storage, vault.keyring, plan.erased)
        rows = tags_of(storage, copy, plan.written)
        noted[:] = [_with_row(plan, one, rows) for one in plan.known.values()]
        copy.write(storage, state, noted)

    models = WritingEmbedders(copy.opened.embedders, vault) if embed else without_model
    preparer = Indexer(vault, models)
    preparer.given = given
    try:
        with vault.moment() as (storage, _):
            memories = _with_free_origins(storage, memories)
        prepared = preparer.prepare(memories)
        write_batch(vault, prepared, preparer.model, change, also, originals)
    finally:
        preparer.close()
    if plan.deleted or plan.erased:
        with vault.writing() as storage:
            storage.erase_traces()
    return noted


def _with_row(plan: _Plan, known: Known, rows: Mapping[str, bytes]) -> Known:
    memory = known.register.memory
    if memory in plan.deleted:
        return replace(known, row=b"")
    return replace(known, row=rows.get(memory, known.row))


def tags_of(storage: Storage, copy: Copy, memories: Iterable[str]) -> dict[str, bytes]:
    """The row tags of memories as they stand in a transaction."""
    keyring = copy.vault.keyring
    return {
        one: row_tag(keyring.of(row.collection), one, row.version, opened_head(keyring, row))
        for one, row in storage.memories.rows([*memories]).items()
    }


def _with_free_origins(
    storage: Storage, memories: Sequence[tuple[Memory, Origin]]
) -> list[tuple[Memory, Origin]]:
    """Memories with where they came from, unless another came from there: two devices may have
    imported one file."""
    taken: set[bytes] = set()
    found = []
    for memory, origin in memories:
        came_from = origin.origin
        there = storage.origins.memory_of(came_from) if came_from is not None else None
        if came_from in taken or (there is not None and there[0] != memory.id):
            origin = Origin()
        elif came_from is not None:
            taken.add(came_from)
        found.append((memory, origin))
    return found
