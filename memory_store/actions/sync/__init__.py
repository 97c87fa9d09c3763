"""Exchanges between copies of one vault: by a folder that devices share, or file to file.

copy         what changed in a copy, and what it sends
merge        what comes from elsewhere, joined and written
collections  made, named and deleted on several devices
settings     chosen on several devices
folder       a folder of sealed files
keys         keys that were replaced on another device, and a new device

Boundary: the owner alone exchanges, with the keys of everything. What leaves the machine is sealed
(:mod:`memory_store.vault.bundles`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from memory_store.actions.action import Actions, Opened, action, entered
from memory_store.actions.sync.collections import (
    delete_collections,
    note_collections,
    sent_collections,
    take_all,
    take_collections,
)
from memory_store.actions.sync.copy import Copy
from memory_store.actions.sync.folder import Folder
from memory_store.actions.sync.keys import adopt_from, finish_rotation
from memory_store.actions.sync.settings import agree_settings
from memory_store.errors import BadInputError
from memory_store.records.sync import SyncReport
from memory_store.vault.audit_events import SYNC, AuditEvent
from memory_store.vault.slots import Secret
from memory_store.vault.storage.damage import vault_faults
from memory_store.vault.sync_state import Target

SURFACE = "sync"
MOST_EVENTS = 1_000_000  # however old: a server has bounds of its own


def _counts(report: SyncReport) -> tuple[int, int]:
    return report.sent, report.added + report.changed + report.deleted


@action(SYNC, writes=True, counts=_counts)
def with_folder(
    opened: Opened,
    folder: str | Path | None = None,
    *,
    embed: bool = True,
    whole: bool = False,
    answer: str | None = None,
) -> SyncReport:
    """Exchange changes with the devices that see a folder; the one of the last time, if none is
    named.

    ``whole``: write everything there anew, and take this device's earlier files away. ``answer``: a
    passphrase or recovery code, for keys that another device replaced. Raises WrongKeyError where
    one is needed, BadInputError for a key that is not the owner's, StorageError, ReadOnlyError.
    """
    copy = Copy(opened)
    shared = Folder(copy, copy.last_folder() if folder is None else Path(folder))
    secrets = [*Secret.typed(answer)] if answer else []
    sent = shared.exchange(secrets, embed=embed, whole=whole)
    return _reported(copy, str(shared.path), sent, shared, adopted=shared.adopted)


@action(SYNC, writes=True, counts=_counts)
def with_copy(opened: Opened, other: Actions, *, embed: bool = True) -> SyncReport:
    """Exchange changes with another copy of this vault, which is open, too.

    Raises BadInputError where it is another vault, or this very file.
    """
    mine, theirs = Copy(opened), Copy(other._opened)
    if mine.vault.vault != theirs.vault.vault:
        raise BadInputError(f"{theirs.vault.path}: another vault, not a copy of this one", "target")
    if mine.vault.path.resolve() == theirs.vault.path.resolve():
        raise BadInputError(f"{theirs.vault.path}: is this vault itself", "target")
    with entered(theirs.vault), vault_faults(theirs.vault.path):
        for one in (mine, theirs):
            finish_rotation(one.vault)
        adopted = adopt_from(mine, theirs)
        mine.begin(theirs.clock())
        theirs.begin(mine.clock())
        for one in (mine, theirs):
            one.note_changes()
            note_collections(one)
            agree_settings(one)
        sent = _hand_over(mine, theirs, embed=embed)
        _hand_over(theirs, mine, embed=embed)
        for one in (mine, theirs):
            delete_collections(one)
            note_collections(one)
        _reported(theirs, str(mine.vault.path), 0, None)
    return _reported(mine, str(theirs.vault.path), sent, None, adopted=adopted)


def _hand_over(source: Copy, receiver: Copy, *, embed: bool) -> int:
    """Give one copy what the other has, and it lacks. Returns how many memories that were."""
    known_as, name = f"copy {source.state.device}", f"copy {receiver.state.device}"
    before, until, count = source.state.targets.get(name, Target()), source.state.sequence, 0
    collections = sent_collections(source)
    take_collections(receiver, collections)
    agree_settings(receiver, source.state.settings)
    for batch in source.outgoing(name, before.sent):
        memories = [one for _, one in batch]
        source.note_numbers()
        take_all(receiver, collections, memories, known_as, embed=embed)
        count += len(memories)
    source.save(source.state.with_target(name, replace(before, sent=until)))
    return count


def _reported(
    copy: Copy, target: str, sent: int, folder: Folder | None, *, adopted: bool = False
) -> SyncReport:
    tally = copy.tally
    report = SyncReport(
        target,
        sent,
        tally.added,
        tally.changed,
        tally.deleted,
        tuple(tally.conflicts),
        len(folder.devices()) if folder else 1,
        folder.waiting() if folder else 0,
        tuple(folder.ignored) if folder else (),
        "adopted" if adopted else "",
    )
    if copy.opened.heard is None:  # else the trail learns of it by whom that is
        now = datetime.now(UTC).isoformat(timespec="seconds")
        event = AuditEvent(now, None, False, SURFACE, SYNC, *_counts(report))
        copy.vault.keep_audit([event], days=0, most=MOST_EVENTS)
    return report
