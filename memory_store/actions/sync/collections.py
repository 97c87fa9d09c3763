"""Collections on several devices: made, named, chosen for and deleted on any of them.

Boundary: what a collection's contents are compared with travels sealed under the key of the vault's
own scope. The key that its rows are sealed with does not: each copy has one of its own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.actions.action import Actions
from memory_store.actions.collections import delete_collection
from memory_store.actions.sync.copy import BATCH, READY_BATCH, Copy, Sent
from memory_store.actions.sync.merge import take
from memory_store.crypto.keys import KEY_BYTES, SecretKey
from memory_store.errors import FormatError
from memory_store.vault.collection_keys import CARRIED, Bundle
from memory_store.vault.contents import unpacked
from memory_store.vault.manifest import Manifest, write_manifest
from memory_store.vault.settings import Epoch, Settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.table import parts
from memory_store.vault.sync_state import Described, latest, names_shown, not_ahead


class SentCollection(Struct, frozen=True):
    """A collection on its way to another copy: what is agreed on of it, and the keys that go with
    it from epoch to epoch (empty where it was deleted)."""

    described: Described
    carried: bytes = b""

    __repr__ = object.__repr__


def note_collections(copy: Copy) -> None:
    """Notice what was made of collections here since the last time."""
    vault, state = copy.vault, copy.state
    vault.follow_settings()
    settings, created = vault.settings, vault.reader().collections.created()
    shown, now = names_shown(state.collections), time.time_ns() // 1_000_000
    noted = dict(state.collections)
    for one in settings.collections:
        before = state.collections.get(one)
        if before is not None and before.deleted:
            continue  # elsewhere, and it still holds memories here
        name = settings.names.get(one, one)
        here = Described(
            one,
            before.name if before is not None and shown.get(one) == name else name,
            created.get(one, ""),
            settings.chosen(one).analyser,
            settings.members_of(one),
        )
        if before is None or replace(here, time=before.time) != before:
            noted[one] = replace(here, time=_after(before, now))
    for one, before in state.collections.items():
        if one not in settings.collections and not before.deleted:
            noted[one] = replace(before, deleted=True, members={}, time=_after(before, now))
    if noted != state.collections:
        copy.save(replace(state, collections=noted))


def _after(before: Described | None, now: int) -> int:
    """The time of a description that takes the place of one, whatever the clocks say."""
    return now if before is None else max(now, before.time + 1)


def sent_collections(copy: Copy) -> list[SentCollection]:
    """All that are known here."""
    keyring = copy.vault.keyring
    held = set(keyring.readable())
    return [
        SentCollection(
            described,
            b"".join(bytes(key.buffer) for key in keyring.of(one).bundle.carried)
            if one in held
            else b"",
        )
        for one, described in sorted(copy.state.collections.items())
    ]


def take_all(
    copy: Copy,
    sent: Sequence[SentCollection],
    memories: Sequence[Sent],
    source: str,
    *,
    embed: bool,
) -> None:
    """Take what another copy sent: its collections, then the versions of memories."""
    needed = {
        unpacked(shown.content).memory.collection
        for one in memories
        if (shown := one.register.shown) is not None and shown.content is not None
    }
    take_collections(copy, sent, needed)
    model = copy.vault.settings.fingerprint
    ready = not embed or all(one.vectors and one.vectors[0] == model for one in memories)
    for some in parts(memories, READY_BATCH if ready else BATCH):
        take(copy, some, source, embed=embed)


def take_collections(
    copy: Copy, sent: Iterable[SentCollection], needed: Collection[str] = ()
) -> None:
    """Make, name and set up collections as others have them.

    One that was deleted is made again where memories that were changed elsewhere ``needed`` it.
    """
    vault, now = copy.vault, time.time_ns() // 1_000_000
    offered = {one.described.collection: one for one in sent}
    merged = dict(copy.state.collections)
    for name, one in offered.items():
        described = not_ahead(one.described, now)
        merged[name] = latest(merged.get(name, described), described)
        if name in needed and merged[name].deleted:
            merged[name] = replace(merged[name], deleted=False, time=now)
    present = set(vault.settings.collections)
    made = [
        name
        for name, one in merged.items()
        if not one.deleted and name not in present and name in offered and offered[name].carried
    ]
    state = replace(copy.state, collections=merged)
    changes = _changes(vault.settings, merged, made)
    if not made and not changes:
        if state != copy.state:
            copy.save(state)
        return
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            settings = vault.stored_settings(storage)
            for name in made:
                _make(storage, copy, offered[name])
            vault.change_settings(storage, present=settings, **_changes(settings, merged, made))
            copy.write(storage, state)
        vault.refresh_settings()
    copy.wrote(state)


def _make(storage: Storage, copy: Copy, sent: SentCollection) -> None:
    """A collection's row, its account, and a key of this copy's own."""
    if len(sent.carried) != len(CARRIED) * KEY_BYTES:
        raise FormatError("a collection came without its keys")
    carried = tuple(
        SecretKey(sent.carried[start : start + KEY_BYTES])
        for start in range(0, len(sent.carried), KEY_BYTES)
    )
    described, keyring = sent.described, copy.vault.keyring
    bundle = Bundle(SecretKey.generate(), carried)
    keys = keyring.add_collection_key(storage, described.collection, 1, bundle)
    storage.collections.insert(described.collection, described.created)
    write_manifest(storage, keys, Manifest())


def _changes(
    settings: Settings, merged: dict[str, Described], made: Collection[str]
) -> dict[str, Any]:
    """What the settings are to say otherwise."""
    later = replace(settings, collections=(*settings.collections, *made))
    for one in made:
        later = replace(later, epochs=later.with_epoch(Epoch(one, 1)))
    shown = names_shown(merged)
    for one in later.collections:
        if one not in shown:
            continue
        described, chosen = merged[one], later.chosen(one)
        if chosen.analyser != described.analyser:
            choice = replace(chosen, analyser=described.analyser)
            later = replace(later, choices=later.with_choice(choice))
        if later.members_of(one) != described.members:
            later = replace(later, members=later.with_members(one, described.members))
        later = replace(later, names={**later.names, one: shown[one]})
    fields = ("collections", "epochs", "choices", "members", "names")
    return {
        name: getattr(later, name)
        for name in fields
        if getattr(later, name) != getattr(settings, name)
    }


def delete_collections(copy: Copy) -> None:
    """Destroy the keys of collections that were deleted elsewhere, once nothing is in them here."""
    vault = copy.vault
    gone = [
        one
        for one, described in copy.state.collections.items()
        if described.deleted and one in vault.settings.collections
    ]
    counts = vault.reader().memories.counts(gone)
    for one in gone:
        if not counts.get(one) and one != vault.settings.personal:
            delete_collection(Actions(copy.opened), one)
