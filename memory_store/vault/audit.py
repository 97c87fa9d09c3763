"""The audit trail: who opened how many memories, when and by which surface. Never a query or text.

Boundary: events come in open and are kept sealed, in batches of one size, so that a thief of the
file learns how many batches there are and roughly when they were written, and nothing else: not
who, not what, not how many events. Each batch names the one before it by a hash, and a sealed head
names the last one, so that a batch which was changed, moved, taken out or put back is noticed
(:func:`check`). The head put back with the last batch, or with all of them, looks like an older
file: ``last_seen`` keeps how many batches there were, and how often the trail was written.

What happens rarely is kept in batches of its own, with bounds of its own (``STRANDS`` in
``audit_events.py``), so that no number of searches pushes an unlock or a wrong secret out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memory_store.crypto.sealing import LENGTH
from memory_store.errors import FormatError, TamperedError
from memory_store.vault.audit_events import (
    STRAND_NUMBERS,
    STRANDS,
    AuditEvent,
    event_of,
    event_text,
)
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, WholeKeyring
from memory_store.vault.storage import Storage

TABLE = "vault_audit"
HEAD = 0  # the sequence of the row that names the others
BATCH_BYTES = 4096 - LENGTH.size
"""What a batch holds, blanks at its end included: about 40 events, a megabyte for 10,000."""
KEPT_DAYS = 400.0
KEPT_EVENTS = 100_000
PATIENCE = 1.0  # seconds for another writer; what could not be written waits in memory
BATCH_LASTS = timedelta(
    days=30
)  # a batch that was begun so long ago takes no more: days are kept to that


class _Head(Struct, frozen=True):
    """Of a strand: which batches there are, how many events they hold, the hash of the last.

    ``writes``, of the first strand alone: how often the trail was written.
    """

    first: int = 1
    last: int = 0
    events: int = 0
    tag: str = ""
    writes: int = 0


class _Batch(Struct):
    before: str
    events: list[AuditEvent] = field(default_factory=list)


def append(
    path: Path,
    keyring: WholeKeyring,
    events: Sequence[AuditEvent],
    *,
    days: float = KEPT_DAYS,
    most: int = KEPT_EVENTS,
) -> int:
    """Write events, oldest first, and let go of those that are too old or too many. Returns how
    often the trail was written by then.

    ``days`` of 0 keeps them however old; ``most`` are kept of each strand's share. Raises
    ``sqlite3.OperationalError`` where the file cannot be written to now, TamperedError where the
    trail was tampered with: nothing is written then.
    """
    keys = keyring.of(VAULT_SCOPE)
    with closing(Storage.open(path, patience=PATIENCE)) as storage, storage.transaction(keyring):
        storage.audit.create()
        heads = _read_heads(storage, keys)
        for number, strand in enumerate(STRANDS):
            new = [event for event in events if event.strand == number]
            head = _append(storage, keys, heads[number], new)
            kept = int(most * strand.share)
            heads[number] = _trimmed(storage, keys, head, days, kept)
        heads[0] = replace(heads[0], writes=heads[0].writes + 1)
        _write_heads(storage, keys, heads)
    return heads[0].writes


def events(storage: Storage, keyring: WholeKeyring) -> list[AuditEvent]:
    """Every event, oldest first. Raises TamperedError, BadInputError for others than the owner."""
    keyring.check_owner()
    keys = keyring.of(VAULT_SCOPE)
    with storage.reading():
        if not storage.audit.exists:
            return []
        numbers = _numbers(_read_heads(storage, keys))
        found = [
            _open(keys, sequence, sealed)
            for sequence, sealed in storage.audit.batches()
            if sequence in numbers
        ]
    return sorted((event for batch in found for event in batch.events), key=lambda one: one.time)


def check(storage: Storage, keyring: WholeKeyring) -> int:
    """Hold every batch against the one before it and the head. Returns how many batches there are.

    Raises TamperedError naming what is wrong.
    """
    keys = keyring.of(VAULT_SCOPE)
    with storage.reading():
        if not storage.audit.exists:
            return 0
        heads = _read_heads(storage, keys)
        rows = dict(storage.audit.batches())
    _check_all(keys, heads, rows)
    return len(rows)


def _check_all(keys: CollectionKeys, heads: Sequence[_Head], rows: dict[int, bytes]) -> None:
    if rows.keys() != _numbers(heads):
        raise TamperedError(f"{TABLE}: not just those batches are there that were written")
    for head in heads:
        _check_strand(keys, head, rows)


def _check_strand(keys: CollectionKeys, head: _Head, rows: dict[int, bytes]) -> None:
    tag, count = None, 0
    for sequence in range(head.first, head.last + 1):
        batch = _open(keys, sequence, rows[sequence])
        if tag is not None and batch.before != tag:
            raise TamperedError(f"{TABLE} {sequence}: another batch was before it")
        tag, count = _tag(rows[sequence]), count + len(batch.events)
    if (tag or "") != head.tag or count != head.events:
        raise TamperedError(f"{TABLE}: an older batch was put in place of the last one")


def _numbers(heads: Sequence[_Head]) -> set[int]:
    """Which batches there are to be."""
    return {number for head in heads for number in range(head.first, head.last + 1)}


def written(storage: Storage, keyring: WholeKeyring) -> tuple[int, int | None]:
    """How many batches were ever written to the file, and how often the trail was. That is ``None``
    where its head cannot be read: by another than the owner, or as it was changed, which
    :func:`check` says."""
    ranges = [(strand.base, strand.base + STRAND_NUMBERS) for strand in STRANDS]
    newest, head = storage.audit.newest(ranges, HEAD)
    batches = sum(last - first for last, (first, _) in zip(newest, ranges, strict=True))
    if head is None:
        return batches, None if batches else 0
    if not keyring.is_owner:
        return batches, None
    try:
        return batches, _heads(keyring.of(VAULT_SCOPE), head)[0].writes
    except (TamperedError, FormatError):
        return batches, None


def reseal(storage: Storage, keys: CollectionKeys) -> None:
    """Seal the whole trail in the newest epoch (inside the caller's transaction).

    Each batch names the one before it anew. Raises TamperedError where one was changed, moved or
    is missing: nothing is sealed then.
    """
    if not storage.audit.exists:
        return
    heads = _read_heads(storage, keys)
    rows = dict(storage.audit.batches())
    _check_all(keys, heads, rows)
    if rows:
        _write_heads(storage, keys, [_resealed(storage, keys, h, rows) for h in heads])


def _resealed(storage: Storage, keys: CollectionKeys, head: _Head, rows: dict[int, bytes]) -> _Head:
    for number in range(head.first, head.last + 1):
        batch = _open(keys, number, rows[number])
        before = batch.before if number == head.first else head.tag
        head = _write(storage, keys, head, number, replace(batch, before=before))
    return head


def _append(
    storage: Storage, keys: CollectionKeys, head: _Head, new: Sequence[AuditEvent]
) -> _Head:
    """Fill the last batch up, then make new ones. Returns the head as it is then."""
    if not new:
        return head
    number, batch = _last(storage, keys, head)
    new = [event for event in new if not _merge(batch, event)]
    room = BATCH_BYTES - len(_encoded(batch))
    for event in new:
        room -= len(event_text(event)) + 1
        if batch.events and (room < 0 or batch.events[0].until(event) > BATCH_LASTS):
            head = _write(storage, keys, head, number, batch)
            number, batch = number + 1, _Batch(head.tag)
            room = BATCH_BYTES - len(_encoded(batch)) - len(event_text(event)) - 1
        batch.events.append(event)
    head = _write(storage, keys, head, number, batch)
    return replace(head, events=head.events + len(new))


def _merge(batch: _Batch, event: AuditEvent) -> bool:
    """Let an event of the batch stand for this one, too, where one is alike and there is room."""
    for number, earlier in reversed(list(enumerate(batch.events))):
        both = earlier.with_later(event)
        if both is None:
            continue
        batch.events[number] = both
        if len(_encoded(batch)) <= BATCH_BYTES:
            return True
        batch.events[number] = earlier
        return False
    return False


def _last(storage: Storage, keys: CollectionKeys, head: _Head) -> tuple[int, _Batch]:
    """The last batch and its number; an empty one where there is none yet."""
    if head.last < head.first:
        return head.last + 1, _Batch(head.tag)
    sealed = _sealed_row(storage, head.last)
    if _tag(sealed) != head.tag:
        raise TamperedError(f"{TABLE}: an older batch was put in place of the last one")
    return head.last, _open(keys, head.last, sealed)


def _write(
    storage: Storage, keys: CollectionKeys, head: _Head, number: int, batch: _Batch
) -> _Head:
    content = _encoded(batch).ljust(BATCH_BYTES).encode()
    return replace(head, last=number, tag=_put(storage, keys, number, content))


def _put(storage: Storage, keys: CollectionKeys, number: int, content: bytes) -> str:
    """Seal a row, the former one of that number replaced. Returns its hash."""
    sealed = keys.seal("audit", keys.place(TABLE, "sealed", str(number)), content)
    storage.audit.write(number, sealed)
    return _tag(sealed)


def _trimmed(storage: Storage, keys: CollectionKeys, head: _Head, days: float, most: int) -> _Head:
    """Take out whole batches from the beginning, and what is too old of the last one."""
    oldest_kept = (datetime.now(UTC) - timedelta(days=days)).isoformat() if days else ""
    while head.first < head.last:
        batch = _open(keys, head.first, _sealed_row(storage, head.first))
        if head.events <= most and batch.events[-1].time >= oldest_kept:
            return head
        storage.audit.delete(head.first)
        head = replace(head, first=head.first + 1, events=head.events - len(batch.events))
    number, batch = _last(storage, keys, head)
    kept = [event for event in batch.events if event.time >= oldest_kept]
    gone = len(batch.events) - len(kept)
    if gone:
        head = _write(storage, keys, head, number, replace(batch, events=kept))
    return replace(head, events=head.events - gone)


def _read_heads(storage: Storage, keys: CollectionKeys) -> list[_Head]:
    """The head of every strand: those of the others stand behind the first one's."""
    heads = [_Head(strand.base + 1, strand.base) for strand in STRANDS]
    row = storage.audit.row(HEAD)
    if row is not None:
        written = _heads(keys, row[0])
        return written + heads[len(written) :]
    if storage.audit.batches():
        raise TamperedError(f"{TABLE}: its head is missing")
    return heads


def _heads(keys: CollectionKeys, sealed: bytes) -> list[_Head]:
    first = json.loads(_unsealed(keys, HEAD, sealed))
    others = first.pop("others", [])  # a trail of one strand has none
    return [_Head(**first), *(_Head(**other) for other in others)]


def _write_heads(storage: Storage, keys: CollectionKeys, heads: Sequence[_Head]) -> None:
    first, *others = map(asdict, heads)
    _put(storage, keys, HEAD, json.dumps({**first, "others": others}).encode())


def _sealed_row(storage: Storage, number: int) -> bytes:
    row = storage.audit.row(number)
    if row is None:
        raise TamperedError(f"{TABLE} {number}: this batch is missing")
    return bytes(row[0])


def _open(keys: CollectionKeys, number: int, sealed: bytes) -> _Batch:
    data = json.loads(_unsealed(keys, number, sealed))
    return _Batch(data["before"], [event_of(values) for values in data["events"]])


def _unsealed(keys: CollectionKeys, number: int, sealed: bytes) -> bytes:
    return bytes(keys.unseal("audit", keys.place(TABLE, "sealed", str(number)), sealed))


def _encoded(batch: _Batch) -> str:
    events = ",".join(map(event_text, batch.events))
    return f'{{"before":"{batch.before}","events":[{events}]}}'


def _tag(sealed: bytes) -> str:
    """The hash by which a batch is named: of what is sealed, which is never the same twice."""
    return hashlib.sha256(sealed).hexdigest()[:32]
