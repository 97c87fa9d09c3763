"""An exchange by way of a folder that several devices see: a synced drive, or a stick.

Boundary: nothing that is read there is trusted until all of it opens under the vault's key; only
then is any of it taken. Files of other devices are never changed. Each device
adds files of its own, and takes its own away only once later ones of its own say all that they did.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import MsgspecError, Struct, field, msgpack
from msgspec.structs import replace

from memory_store.actions.sync.collections import (
    SentCollection,
    delete_collections,
    note_collections,
    sent_collections,
    take_all,
)
from memory_store.actions.sync.copy import BATCH, Copy, Outgoing, Sent
from memory_store.actions.sync.keys import adopt, finish_rotation, publish
from memory_store.actions.sync.settings import agree_settings
from memory_store.errors import FormatError, MemoryStoreError, TamperedError
from memory_store.vault import bundles
from memory_store.vault.bundles import CHANGES, FIRST_PART, Found
from memory_store.vault.contents import digest, exact_digest, unpacked
from memory_store.vault.keyring import VAULT_SCOPE
from memory_store.vault.registers import LATEST, Register
from memory_store.vault.slots import Secret
from memory_store.vault.sync_state import Chosen, Target, machine_place

T = TypeVar("T")
BUNDLE_BYTES = 8 * 2**20  # of contents in a file: what a drive sends again where it was cut off
MOST_FILES = 64  # of a device's own, until one takes the place of all
EARLIER_KEYS = "sealed with keys that were replaced; that device has to sync again"
LATER_KEYS = "sealed with keys that this vault does not have yet"


class Opening(Struct, frozen=True):
    """The first part of a bundle. ``files`` are the numbers of its device's files that count;
    ``clock``: device → the number of its last change that was seen there. ``largest``:
    bytes of the longest content that follows, so that no more is read of a file that was changed.
    """

    files: tuple[int, ...]
    clock: dict[str, int]
    collections: list[SentCollection] = field(default_factory=list)
    settings: dict[str, Chosen] = field(default_factory=dict)
    largest: int = bundles.MOST_PART


class Folder:
    """A folder as one copy of a vault finds it at the beginning of an exchange."""

    def __init__(self, copy: Copy, path: Path) -> None:
        self.copy, self.path = copy, path
        self.name = "folder " + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
        self.found, self.ignored = bundles.found_in(path)
        others = [one for one in self.found if one.vault != copy.vault.vault]
        self.ignored += [f"{one.named}: of another vault" for one in others]
        self.found = [one for one in self.found if one not in others]
        self.adopted = False

    @property
    def target(self) -> Target:
        """What was exchanged with it so far."""
        return self.copy.state.targets.get(self.name, Target())

    def _set(self, target: Target) -> None:
        self.copy.save(self.copy.state.with_target(self.name, target))

    def exchange(self, secrets: Sequence[Secret], *, embed: bool, whole: bool) -> int:
        """Take what others wrote, and write what they lack. Returns how many memories were sent.

        ``secrets`` open keys that were replaced elsewhere, where the one of this vault does not.
        """
        copy = self.copy
        finish_rotation(copy.vault)
        self.adopted, problems = adopt(copy, self.found, secrets)
        self.ignored += problems
        copy.begin(self._clock(), last_file=self._last_own())
        place = {"folder": str(self.path.resolve()), "folder_from": machine_place(copy.vault.path)}
        if copy.state != (state := replace(copy.state, **place)):
            copy.save(state)  # before the rest, so that what is stopped goes on by its name alone
        copy.note_changes()
        note_collections(copy)
        agree_settings(copy)
        self._take(embed=embed)
        delete_collections(copy)
        note_collections(copy)
        return self._send(whole=whole)

    # -- what is there --------------------------------------------------------------------------

    def _bundles(self) -> list[Found]:
        """The bundles that are sealed with the present key."""
        epoch = self.copy.vault.keyring.of(VAULT_SCOPE).epoch
        return [one for one in self.found if one.kind == CHANGES and one.epoch == epoch]

    def _unread(self) -> list[Found]:
        read = self.target.read
        return [
            one
            for one in self._bundles()
            if one.device != self.copy.state.device and one.number not in read.get(one.device, ())
        ]

    def _last_own(self) -> int:
        device = self.copy.state.device
        return max((one.number for one in self.found if one.device == device), default=0)

    def _clock(self) -> dict[str, int]:
        """Device → the last of its changes that a bundle knows which was not read here."""
        seen: dict[str, int] = {}
        for one in self._unread():
            with suppress(MemoryStoreError):  # what does not open is named when it is to be taken
                for device, number in self._opening(one).clock.items():
                    seen[device] = max(number, seen.get(device, 0))
        return seen

    def _opening(self, one: Found) -> Opening:
        keys = self.copy.vault.keyring.of(VAULT_SCOPE)
        return _decoded(one, bundles.opened_parts(one, keys, FIRST_PART, most=1)[0], Opening)

    # -- taking ---------------------------------------------------------------------------------

    def _take(self, *, embed: bool) -> None:
        epoch = self.copy.vault.keyring.of(VAULT_SCOPE).epoch
        for one in self.found:
            if one.kind == CHANGES and one.epoch != epoch:
                why = EARLIER_KEYS if one.epoch < epoch else LATER_KEYS
                self.ignored.append(f"{one.named}: {why}")
        there: dict[str, set[int]] = {}
        for one in self._bundles():
            there.setdefault(one.device, set()).add(one.number)
        before = self.target
        read = {
            device: tuple(n for n in numbers if n in there.get(device, ()))
            for device, numbers in before.read.items()
        }
        if read != before.read:
            self._set(replace(before, read=read))
        refused: dict[tuple[str, int], str] = {}
        for one in self._unread():
            which = (one.device, one.number)
            if one.number in self.target.read.get(one.device, ()):
                continue  # a second copy of it
            try:
                opening, memories = self._opened(one)
                agree_settings(self.copy, opening.settings)
            except (TamperedError, FormatError) as error:
                refused[which] = str(error)
                continue
            refused.pop(which, None)
            take_all(self.copy, opening.collections, memories, self.name, embed=embed)
            self._note_read(one)
        self.ignored += refused.values()

    def _opened(self, one: Found) -> tuple[Opening, list[Sent]]:
        """What a bundle says, every part and every version of it checked."""
        keys = self.copy.vault.keyring.of(VAULT_SCOPE)
        opening = self._opening(one)
        _, *content = bundles.opened_parts(one, keys, FIRST_PART + opening.largest)
        memories = [each for part in content for each in _decoded(one, part, list[Sent])]
        for each in memories:
            _check(one, each.register)
        return opening, memories

    def _note_read(self, one: Found) -> None:
        target = self.target
        numbers = tuple(sorted({*target.read.get(one.device, ()), one.number}))
        newest = max(one.number, target.newest.get(one.device, 0))
        self._set(
            replace(
                target,
                read={**target.read, one.device: numbers},
                newest={**target.newest, one.device: newest},
            )
        )

    def devices(self) -> set[str]:
        """The other devices that wrote here."""
        return {one.device for one in self._bundles()} - {self.copy.state.device}

    def waiting(self) -> int:
        """How many files of others are said to be here and are not, or not whole."""
        missing = 0
        for device in self.devices():
            there = {one.number: one for one in self._bundles() if one.device == device}
            if max(there) < self.target.newest.get(device, 0):
                self.ignored.append(f"{there[max(there)].named}: a later one of it was here before")
            with suppress(MemoryStoreError):
                missing += len(set(self._opening(there[max(there)]).files) - set(there))
        return missing + len(self._unread())

    # -- sending --------------------------------------------------------------------------------

    def _send(self, *, whole: bool) -> int:
        """Write what others may lack; all there is, where keys were replaced or files are gone."""
        copy, before = self.copy, self.target
        epoch = copy.vault.keyring.of(VAULT_SCOPE).epoch
        own = [one for one in self._bundles() if one.device == copy.state.device]
        there, replaced = {one.number for one in own}, before.epoch not in (-1, epoch)
        whole = whole or replaced or not {*before.files} <= there or len(there) >= MOST_FILES
        collections = sent_collections(copy)
        agreed = msgpack.encode([collections, copy.state.settings])
        described = hashlib.sha256(agreed).digest()
        keys = publish(copy, self.path, self.found, before.keys)
        target = replace(before, epoch=epoch, described=described, keys=keys)
        if whole:
            target = replace(target, files=(), sent=0)
        count, some, size, until = 0, list[Outgoing](), 0, copy.state.sequence
        everything = copy.outgoing("" if replaced else self.name, target.sent, all=replaced)
        for batch in everything:
            some += batch
            size += sum(one.size for _, one in batch)
            if size >= BUNDLE_BYTES:
                target = self._write(target, collections, some)
                count, some, size = count + len(some), [], 0
        if some or described != before.described or not target.files:
            target = self._write(target, collections, some)
        target = replace(target, sent=max(target.sent, until))  # the rest came from there
        if target != self.target:
            self._set(target)
        if whole:
            self._take_away([one for one in self.found if one.device == copy.state.device])
        return count + len(some)

    def _write(
        self, target: Target, collections: list[SentCollection], some: Sequence[Outgoing]
    ) -> Target:
        """Write a bundle. Its number is taken first: it is never given to two."""
        copy, keys = self.copy, self.copy.vault.keyring.of(VAULT_SCOPE)
        number = copy.state.file + 1
        copy.save(replace(copy.state, file=number))
        target = replace(target, files=(*target.files, number))
        memories = [one for _, one in some]
        starts = range(0, len(memories), BATCH)
        content = [msgpack.encode(memories[at : at + BATCH]) for at in starts]
        opening = Opening(
            files=target.files,
            clock=copy.clock(),
            collections=collections,
            settings=copy.state.settings,
            largest=max(map(len, content), default=0),
        )
        parts = [msgpack.encode(opening), *content]
        copy.note_numbers()
        sealed = bundles.sealed_parts(keys, CHANGES, copy.state.device, number, parts)
        bundles.write_file(self.path, keys, CHANGES, copy.state.device, number, [*sealed])
        if some:
            target = replace(target, sent=max(target.sent, some[-1][0]))
        self._set(target)
        return target

    def _take_away(self, files: Collection[Found]) -> None:
        """Delete own bundles that later ones of this device replaced."""
        for one in files:
            if one.kind == CHANGES and one.number not in self.target.files:
                with suppress(OSError):  # the next exchange that writes everything tries again
                    one.path.unlink()


def _decoded(one: Found, part: bytes, kind: type[T]) -> T:
    try:
        return msgpack.decode(part, type=kind)
    except (MsgspecError, ValueError):
        raise FormatError(f"{one.named}: is nothing that this version reads") from None


def _check(one: Found, register: Register) -> None:
    """Raise FormatError for what no device writes."""
    try:
        whole = str(uuid.UUID(register.memory)) == register.memory
        for version in register.versions:
            whole = whole and version.time <= LATEST
            if not version.deleted:
                said = unpacked(version.content or b"").memory
                whole = whole and digest(said) == version.says
                whole = whole and exact_digest(said) == version.exact
    except ValueError:
        whole = False
    if not whole:
        raise FormatError(f"{one.named}: is nothing that this version reads")
