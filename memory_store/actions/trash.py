"""The trash of an opened vault: what is in it, put back, erased; and taking back the last change.

Boundary: titles and, of what is put back, texts are opened, where the keys open memories; what is
in collections that may be searched and not read is not there. What is put back is written as any
memory: sealed anew, one version above all that there were, in one transaction with its row of the
trash, which goes. What it replaces goes into the trash.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.attempts import SettledConflictError, again_if_overtaken
from memory_store.actions.reads import open_all, shown
from memory_store.dates import format_time
from memory_store.errors import BadInputError, ConflictError, NotFoundError
from memory_store.importing import drafts
from memory_store.records import Memory, TrashEntry, Undone, base_type
from memory_store.session.embedders import WritingEmbedders
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.session.writer import drop, take_out, write_batch
from memory_store.titles import shown_title
from memory_store.vault import originals, trash
from memory_store.vault.audit_events import ERASE, READ, RESTORE
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import MemoryRow
from memory_store.vault.trash import BY_HAND, BY_TRASH, Change, Entry, is_deleted, is_named

NOTHING = "there is nothing to undo: no deletion or edit of this key is in the trash"


@action(READ, writes=False, counts=lambda found: (len(found), len(found)))
def listed(
    opened: Opened,
    memory_id: str | None = None,
    *,
    by: str | None = None,
    limit: int | None = None,
) -> list[TrashEntry]:
    """What is in the trash, newest first; of one memory (an id or its beginning), its versions with
    their texts. ``by``: what the assistant of that name changed or deleted. ``limit``: so many at
    most.

    Opens heads, and the texts of one memory or of what has no title. An id that is not in there
    gives an empty list.
    """
    vault = opened.vault
    names = vault.collections.names()
    with vault.reader().reading() as storage:
        found = open_entries(vault, storage)
        if memory_id is not None:
            found = [one for one in found if is_named(one, memory_id)]
        if by is not None:
            found = [one for one in found if one.kept.by == by]
        newest = found[::-1][:limit]
        return [_shown(vault, storage, names, one, memory_id is not None) for one in newest]


@action(None, writes=False)
def days(opened: Opened) -> int:
    """For how many days what is deleted or replaced stays in the trash; 0: it is erased at once."""
    opened.vault.follow_settings()
    return opened.vault.settings.trash


def open_entries(vault: OpenVault, storage: Storage) -> list[Entry]:
    """What these keys may open, oldest first."""
    return trash.entries(storage, vault.keyring, vault.keyring.openable())


def _shown(
    vault: OpenVault, storage: Storage, names: Mapping[str, str], entry: Entry, text: bool
) -> TrashEntry:
    memory, kept = trash.open_entry(storage, vault.keyring, entry, text=text), entry.kept
    if not text and not memory.title.strip():  # its first words stand for it
        memory = trash.open_entry(storage, vault.keyring, entry)
    end = datetime.fromisoformat(kept.time) + timedelta(days=vault.settings.trash)
    return TrashEntry(
        id=memory.id,
        version=memory.version,
        change="deleted" if is_deleted(entry) else "edited",
        by=kept.way,
        assistant=kept.by,
        time=kept.time,
        until=format_time(end),
        group=kept.group,
        collection=names[entry.collection],
        type=memory.type,
        title=shown_title(memory.title, memory.text),
        topics=memory.topics,
        text=memory.text if text else None,
    )


@action(RESTORE, writes=True, counts=lambda put: (len(put), len(put)))
def restore(
    opened: Opened,
    ids: str | Iterable[str] | Mapping[str, int | None] = (),
    *,
    version: int | None = None,
    group: str = "",
) -> list[Memory]:
    """Put memories back as they were when they last went, or one of them in an earlier ``version``.

    All of them or none, named by ids or their beginnings, by titles, or by the ``group`` of a
    change; a mapping says which version of each (``None``: the last). One that is there takes the
    restored content, and what it said goes to the trash. Of a ``group`` what was changed again
    afterwards stays as it is, and in the trash. Raises NotFoundError, and ConflictError where that
    is all of the group.
    """
    vault = opened.vault
    given = [ids] if isinstance(ids, str) else ids
    wanted = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, version)
    if not wanted and not group:
        raise BadInputError("name a memory that is in the trash", "id")
    if version is not None and len(wanted) != 1:
        raise BadInputError("a version is one of a single memory", "version")

    def attempt() -> list[Memory]:
        with vault.reader().reading() as storage:
            every = open_entries(vault, storage)
            named = {given: _named(vault, storage, every, given) for given in wanted}
            of_group = [one for one in every if group and one.kept.group == group]
            chosen = [_newest(named[given], given, which) for given, which in wanted.items()]
            _refuse_moved(vault, storage, chosen)
            _refuse_moved(vault, storage, of_group)
            every, of_group = (told(vault, storage, some) for some in (every, of_group))
        later = _changed_since(of_group, every)
        chosen += [one for one in of_group if one.kept.memory not in later]
        if later and not chosen:
            raise SettledConflictError(
                "all of it was changed again afterwards, and is left as it is; an earlier version "
                "can be put back by itself",
                sorted(later),
            )
        if not chosen:
            raise NotFoundError("nothing of that change is in the trash any more")
        return put_back(opened, chosen, every)

    return again_if_overtaken(vault, attempt)


def _changed_since(chosen: Sequence[Entry], every: Sequence[Entry]) -> frozenset[str]:
    """The memories of these rows that were changed again, but for what was undone since."""
    last = {one.kept.memory: one.number for one in chosen}
    return frozenset(
        one.kept.memory
        for one in every
        if one.number > last.get(one.kept.memory, one.number) and one.kept.way != BY_TRASH
    )


def _is_told(vault: OpenVault, entry: Entry, row: MemoryRow) -> bool:
    """Whether a row of the trash is believed for a memory that is there: of a collection that is or
    was shared, where another may have written it, for one of that collection alone."""
    shared = vault.settings.shared.union(vault.settings.once_shared)
    own = vault.keyring.is_owner and entry.collection not in shared
    return own or row.collection == entry.collection


def told(vault: OpenVault, storage: Storage, entries: Sequence[Entry]) -> list[Entry]:
    """The rows of the trash that are believed for where their memories are now."""
    rows = storage.memories.rows([*{one.kept.memory for one in entries}])
    found = ((one, rows.get(one.kept.memory)) for one in entries)
    return [one for one, row in found if row is None or _is_told(vault, one, row)]


def _refuse_moved(vault: OpenVault, storage: Storage, entries: Sequence[Entry]) -> None:
    """Raise SettledConflictError where none of some rows of the trash is believed."""
    if entries and not told(vault, storage, entries):
        moved = entries[-1].kept.memory
        raise SettledConflictError(
            f"memory {moved} left a collection that is or was shared: move it there by an edit, "
            f"or take this out of the trash: memory-store trash empty {moved}",
            [moved],
        )


def made_with(vault: OpenVault, storage: Storage, entries: Sequence[Entry]) -> dict[str, int]:
    """Id → version of the memories that are there and that changes made, as rows of the trash tell,
    where they are believed."""
    rows = storage.memories.rows([*{added for one in entries for added in one.kept.added}])
    return {
        row.id: row.version
        for row in rows.values()
        if any(row.id in one.kept.added and _is_told(vault, one, row) for one in entries)
    }


def _named(vault: OpenVault, storage: Storage, entries: Sequence[Entry], given: str) -> list[Entry]:
    """The rows of memories whose id is, or begins as, what was given; else of that title."""
    found = [one for one in entries if is_named(one, given)]
    if found:
        return found
    heads = [trash.open_entry(storage, vault.keyring, one, text=False) for one in entries]
    title = given.strip().casefold()
    same = {head.id for head in heads if title and head.title.strip().casefold() == title}
    return [one for one in entries if one.kept.memory in same]


def _newest(named: Sequence[Entry], given: str, version: int | None) -> Entry:
    """The last row of a memory, or that of a version of it. Raises NotFoundError."""
    several = sorted({one.kept.memory for one in named})
    if len(several) > 1:
        raise NotFoundError(
            f"{given!r} may be several memories of the trash: {', '.join(several)}. Name one by id"
        )
    of_version = [one for one in named if version in (None, one.kept.version)]
    if of_version:
        return of_version[-1]
    if named:
        present = ", ".join(str(one.kept.version) for one in named)
        raise NotFoundError(f"no version {version} in the trash; there is: {present}")
    raise NotFoundError(f"no memory {given!r} in the trash; memory-store trash list shows all")


def put_back(
    opened: Opened,
    chosen: Sequence[Entry],
    every: Sequence[Entry],
    gone: Mapping[str, int] | None = None,
) -> list[Memory]:
    """Write what rows of the trash hold, and delete the memories ``gone``, each in the version
    that it must have, in one transaction.

    Where another memory has its id by now, in a collection that these keys do not read, what was
    deleted comes back under a new id. Raises ConflictError where another was quicker.
    """
    gone = gone or {}
    vault = opened.vault
    # of several rows of one memory the oldest is what it was before all of that
    first = {one.kept.memory: one for one in reversed(chosen)}
    last = {one.kept.memory: one.kept.version for one in every}
    with vault.reader().reading() as storage:
        present, readable = storage.memories.rows([*first]), vault.keyring.readable()
        befores = {
            memory: trash.open_entry(storage, vault.keyring, one) for memory, one in first.items()
        }
        origins = [trash.origin_of(storage, vault.keyring, one) for one in first.values()]
        newest = {one.kept.memory: one for one in every}
        taken = {  # what was moved is not taken back from where it is
            one: str(uuid.uuid4())
            for one, row in present.items()
            if row.collection not in readable and is_deleted(newest[one])
        }
        files = {
            fresh: originals.opened(storage, vault.keyring, befores[one])
            for one, fresh in taken.items()
            if (kept := befores[one].original) is not None and kept.token
        }
    held = {one: row.version for one, row in present.items() if one not in taken}
    memories = [
        replace(before, id=taken[one], version=1, updated=drafts.now())
        if one in taken
        else replace(before, version=max(last[one], held.get(one, 0)) + 1, updated=drafts.now())
        for one, before in befores.items()
    ]
    numbers = [one.number for one in chosen]
    change = Change(BY_TRASH)

    def also(storage: Storage) -> None:
        if storage.trash.delete(numbers) != len(numbers):
            raise ConflictError("another program put back or erased some of it meanwhile")
        trash.drop_originals(storage, vault.keyring, taken)
        rows = storage.memories.rows([*gone])
        if {one.id: one.version for one in rows.values()} != gone:
            raise ConflictError("another program changed some of it meanwhile")
        take_out(storage, vault, [*gone], change)

    preparer = Indexer(vault, WritingEmbedders(opened.embedders, vault))
    try:
        prepared = preparer.prepare(list(zip(memories, origins, strict=True)))
        restored = [replace(one, replaces=held.get(one.memory.id, 0)) for one in prepared]
        write_batch(vault, restored, preparer.model, change, also, files)
    finally:
        preparer.close()
    return shown(vault, memories)


@action(ERASE, writes=True, counts=lambda gone: (0, gone))
def empty(opened: Opened, ids: str | Iterable[str] = ()) -> int:
    """Erase what is in the trash, all of it or that of some memories. Returns how many rows.

    After that no byte of it is left in the file. With all of it goes what is damaged, which would
    keep the keys from being replaced. Raises NotFoundError where one is not in there,
    ReadOnlyError.
    """
    vault = opened.vault
    wanted = [ids] if isinstance(ids, str) else [*ids]
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            openable = vault.keyring.openable()
            found, damaged = trash.whole_entries(storage, vault.keyring, openable)
            named = [
                _newest([one for one in found if is_named(one, given)], given, None).kept.memory
                for given in wanted
            ]
            rows = [one.number for one in found if not wanted or one.kept.memory in named]
            rows += [] if wanted else damaged
            storage.trash.delete(rows)
            gone = {one.kept.memory for one in found if one.number in rows}
            trash.drop_originals(storage, vault.keyring, gone)
            drop(storage, vault.keyring, gone if wanted else None)
        storage.erase_traces()
    return len(rows)


@action(RESTORE, writes=True, counts=lambda undone: (len(undone.memories), len(undone.memories)))
def undo(opened: Opened) -> Undone:
    """Take back the last deletion or edit made with this key; again, the one before.

    What was changed again afterwards, as by an import, stays as it is, and is named (``left``).
    What imports replaced is not undone (see :func:`restore`). Raises NotFoundError where nothing
    is left to undo.
    """
    vault = opened.vault

    def attempt() -> Undone:
        with vault.reader().reading() as storage:
            every = open_entries(vault, storage)
        mine = [
            one
            for one in every
            if one.kept.way == BY_HAND and one.kept.principal == vault.keyring.principal
        ]
        if not mine:
            raise NotFoundError(NOTHING)
        last = mine[-1].kept
        of_group = [one for one in mine if one.kept.group == last.group]
        with vault.reader().reading() as storage:
            _refuse_moved(vault, storage, of_group)
            every, of_group = (told(vault, storage, some) for some in (every, of_group))
            later = _changed_since(of_group, every)
            # the successor of what stays as it is stays, too
            made = {} if later else made_with(vault, storage, of_group)
        chosen = [one for one in of_group if one.kept.memory not in later]
        before = open_all(vault, [one.kept.memory for one in chosen])
        put = put_back(opened, chosen, every, made) if chosen or made else []
        change = _change(of_group, before, put)
        return Undone(change, last.group, tuple(put), tuple(made), tuple(sorted(later)))

    return again_if_overtaken(vault, attempt)


def _change(chosen: Sequence[Entry], before: Sequence[Memory], after: Sequence[Memory]) -> str:
    """What is undone, in one word: what all of it was, else an edit."""
    if all(map(is_deleted, chosen)):
        return "delete"
    was = {one.id: one for one in before}
    pairs = [(was[one.id], one) for one in after if one.id in was]
    unsaid = {"type": "", "version": 0, "updated": "", "collection": ""}
    if pairs and all(replace(a, **unsaid) == replace(b, **unsaid) for a, b in pairs):
        if all(a.type == drafts.done_type(b.type) != b.type for a, b in pairs):
            return "done"
        if all(a.type == base_type(b.type) != b.type for a, b in pairs):
            return "reopen"
    return "edit"
