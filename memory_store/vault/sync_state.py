"""What a copy of a vault knows of the others: the versions of each memory, and what was exchanged.

Boundary: sealed rows of ``vault_sync``, under the key of the vault's own scope, each found by a
keyed tag. A version that lost against another is in here with its text. Nothing accounts for these
rows: who can write the file can take one away, or put an earlier one back. Then a memory counts as
changed here, and at worst both versions of it are kept.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec import MsgspecError, Struct, field, msgpack
from msgspec.structs import replace

from memory_store.crypto.identities import X25519, identity_of, signature
from memory_store.crypto.keys import SecretKey, length_prefixed
from memory_store.errors import FormatError, TamperedError
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, WholeKeyring
from memory_store.vault.machine import machine_id
from memory_store.vault.registers import Register
from memory_store.vault.storage import Storage
from memory_store.vault.storage.sync import TABLE, SyncRow

PURPOSE = "sync"
DEVICE_BYTES = 8
AHEAD = 2 * 366 * 86_400_000  # milliseconds that another's clock may be ahead
DO_NOT_FOLLOW = "keys that do not follow from those of this vault"
ITSELF = ""  # the name of the one row that is about no memory


class Known(Struct, frozen=True, tag="memory"):
    """A register, and which row of the vault shows its version.

    ``row`` is that row's tag (empty: there is none). ``sequence`` counts the changes of registers
    in this copy; ``source`` is the target that the register came from as it is (empty: from here).
    """

    register: Register
    row: bytes = b""
    sequence: int = 0
    source: str = ""


class Target(Struct, frozen=True):
    """What was exchanged with a folder or another copy.

    ``sent`` is the sequence up to which it has everything. Of a folder: ``epoch`` is that of the
    key which its files were sealed with, ``files`` are the numbers of this copy's own there,
    ``read`` those of other devices that were read, ``newest`` the last ones that were ever there,
    ``keys`` and ``described`` are digests of the keys and the collections that were written there.
    """

    sent: int = 0
    epoch: int = -1
    files: tuple[int, ...] = ()
    read: dict[str, tuple[int, ...]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    keys: bytes = b""
    described: bytes = b""


class Described(Struct, frozen=True):
    """A collection as the devices agree on it; the one that was described last counts.

    ``name`` is the one that was chosen: where several have one name, all but the oldest are shown
    with a number behind it.
    """

    collection: str
    name: str
    created: str = ""
    analyser: str = "auto"
    members: dict[str, str] = field(default_factory=dict)
    time: int = 0
    deleted: bool = False

    @property
    def rank(self) -> tuple[int, bool, str, str]:
        return self.time, self.deleted, self.name, repr(sorted(self.members.items()))


class Chosen(Struct, frozen=True):
    """A setting as the devices agree on it, packed; the one that was chosen last counts. Empty: as
    in a new vault, or taken back."""

    value: bytes = b""
    time: int = 0

    @property
    def rank(self) -> tuple[int, bytes]:
        return self.time, self.value


class Step(Struct, frozen=True):
    """A root key that took the place of another, which signed it."""

    generation: int
    verify_key: bytes
    signed: bytes


class State(Struct, frozen=True, tag="device"):
    """This copy as a device: its random name, where it lies, and what it counted.

    ``roots`` are the root keys of the owner that there were, each signed by the one before.

    ``place`` is a digest of the machine and the file's path, or of the database: a copy that lies
    elsewhere is another device. ``number`` is that of its last change, ``file`` of the last file it
    wrote anywhere.
    ``noted`` is a digest of the accounts (manifests) up to which every change is noted.
    ``folder`` is the path of the last folder that was exchanged with, ``folder_from`` a digest of
    the machine that knows it by that path, and of the vault's own there.
    """

    device: str = ""
    place: str = ""
    number: int = 0
    sequence: int = 0
    file: int = 0
    noted: bytes = b""
    collections: dict[str, Described] = field(default_factory=dict)
    settings: dict[str, Chosen] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    roots: tuple[Step, ...] = ()
    folder: str = ""
    folder_from: str = ""

    def with_target(self, name: str, target: Target) -> State:
        """The state with one target set anew."""
        return replace(self, targets={**self.targets, name: target})


Row: TypeAlias = "Known | State"
OfTime = TypeVar("OfTime", Described, Chosen)


def note_root(storage: Storage, keyring: WholeKeyring, root: SecretKey, generation: int) -> None:
    """Sign a new root key with the one that it replaces, in the caller's transaction, so that other
    devices know it for the owner's: also where there was no exchange yet, for there may be copies
    with the key of before. A state that was tampered with keeps no key: the copy begins anew."""
    try:
        state = read_state(storage, keyring)
    except TamperedError:
        state = State()
    verify_key = identity_of(root, X25519).verify_key
    signed = signature(keyring.root, _signed(keyring.vault, generation, verify_key))
    step = Step(generation, verify_key, signed)
    write(storage, keyring, (), replace(state, roots=(*state.roots, step)))


def check_roots(
    vault: bytes, own: tuple[int, SecretKey], roots: Sequence[Step], theirs: tuple[int, SecretKey]
) -> None:
    """Raise TamperedError unless a root key follows from the one that is known here.

    Each of the two is given with how often it was replaced before.
    """
    wanted, root = theirs
    if following(vault, own, roots, wanted) != identity_of(root, X25519).verify_key:
        raise TamperedError(DO_NOT_FOLLOW)


def following(
    vault: bytes, own: tuple[int, SecretKey], roots: Sequence[Step], wanted: int
) -> bytes:
    """By what the root key is known that was the ``wanted`` one, as those before it signed.

    Raises TamperedError where they do not lead to it.
    """
    generation, known = own
    identity = identity_of(known, X25519)
    were = {identity.verify_key}
    for step in sorted(roots, key=lambda one: one.generation):
        follows = step.generation == generation + 1 <= wanted
        if follows and step.verify_key not in were:  # or an earlier one would come back
            message = _signed(vault, step.generation, step.verify_key)
            identity.check_signature(step.signed, message, "the new root key")
            identity = replace(identity, verify_key=step.verify_key)
            generation = step.generation
            were.add(step.verify_key)
    if generation != wanted:
        raise TamperedError(DO_NOT_FOLLOW)
    return identity.verify_key


def generation_of(
    vault: bytes, root: SecretKey, roots: Sequence[Step], said: int, theirs: int
) -> int:
    """How often the root key of this copy was replaced before, beside keys that were ``theirs``
    times: as their steps prove it, by leading to that root key or on from it.

    Else as often as is ``said`` here, in clear, and no more often than theirs: who can write to the
    file could have this copy take any keys for older ones.
    """
    own = identity_of(root, X25519)
    for step in roots:
        if step.verify_key == own.verify_key:
            return step.generation
        with suppress(TamperedError):
            message = _signed(vault, step.generation, step.verify_key)
            own.check_signature(step.signed, message, "the new root key")
            return step.generation - 1
    return min(said, theirs)


def _signed(vault: bytes, generation: int, verify_key: bytes) -> bytes:
    return length_prefixed(b"sync-root", vault, generation.to_bytes(8, "big"), verify_key)


def place_of(storage: Storage, path: Path) -> str:
    """A digest of where a copy stands: in which database, by whatever address, or in which file of
    this machine."""
    place = storage.place()
    return _digest(place.encode()) if place else machine_place(path)


def machine_place(path: Path) -> str:
    """A digest of a path on this machine."""
    return _digest(machine_id().encode() + b"\0" + os.fsencode(path.resolve()))


def _digest(where: bytes) -> str:
    return hashlib.sha256(where).hexdigest()[:32]


def new_device() -> str:
    """A random name for a device: it says nothing of it."""
    return secrets.token_hex(DEVICE_BYTES)


def read_state(storage: Storage, keyring: WholeKeyring) -> State:
    """This copy's state; an empty one before its first exchange. Raises TamperedError."""
    keys = keyring.of(VAULT_SCOPE)
    found = [_opened(keys, *row) for row in storage.sync.of([_tag(keys, ITSELF)])]
    return next((one for one in found if isinstance(one, State)), State())


def read_known(
    storage: Storage, keyring: WholeKeyring, memories: Iterable[str] | None = None
) -> dict[str, Known]:
    """Memory → what is known of it, of some memories or of all. Raises TamperedError."""
    keys = keyring.of(VAULT_SCOPE)
    if memories is None:
        rows = storage.sync.all()
    else:
        rows = storage.sync.of([_tag(keys, one) for one in memories])
    found = (_opened(keys, *row) for row in rows)
    return {one.register.memory: one for one in found if isinstance(one, Known)}


def write(
    storage: Storage, keyring: WholeKeyring, known: Sequence[Known], state: State | None = None
) -> None:
    """Replace what is known of some memories, and the state (in the caller's transaction)."""
    keys = keyring.of(VAULT_SCOPE)
    rows: list[tuple[str, Row]] = [(one.register.memory, one) for one in known]
    if state is not None:
        rows.append((ITSELF, state))
    storage.sync.write(_sealed(keys, _tag(keys, name), row) for name, row in rows)


def reseal(storage: Storage, keys: CollectionKeys) -> None:
    """Seal every row in the newest epoch of the vault's scope (in the caller's transaction)."""
    rows = [(tag, _opened(keys, tag, sealed)) for tag, sealed in storage.sync.all()]
    if rows:
        storage.sync.write([_sealed(keys, tag, row) for tag, row in rows])


def stored(storage: Storage) -> list[SyncRow]:
    """Every row, as it stands in the file."""
    return storage.sync.all()


def check(keyring: WholeKeyring, tag: bytes, sealed: bytes) -> None:
    """Open a row. Raises TamperedError, FormatError."""
    _opened(keyring.of(VAULT_SCOPE), tag, sealed)


def not_ahead(one: OfTime, now: int) -> OfTime:
    """As it came, or as of now where its time is years ahead: a device that is another's by now
    may have said so, and nothing that is chosen later would ever count. ``now`` as ``time`` is."""
    return replace(one, time=now) if one.time > now + AHEAD else one


def latest(one: Described, other: Described) -> Described:
    """Of two descriptions of a collection the one that counts."""
    return max(one, other, key=lambda each: each.rank)


def names_shown(collections: Mapping[str, Described]) -> dict[str, str]:
    """Collection → its name; those that have another's get a number behind it, the oldest none."""
    shown: dict[str, str] = {}
    for one in sorted(collections.values(), key=lambda each: (each.created, each.collection)):
        if one.deleted:
            continue
        name, number = one.name, 2
        while name in shown.values():
            name, number = f"{one.name} {number}", number + 1
        shown[one.collection] = name
    return shown


def _tag(keys: CollectionKeys, name: str) -> bytes:
    return keys.plain_dedupe.tag(b"sync", name.encode())


def _sealed(keys: CollectionKeys, tag: bytes, row: Row) -> SyncRow:
    return tag, keys.seal(PURPOSE, keys.place(TABLE, "sealed", tag.hex()), msgpack.encode(row))


def _opened(keys: CollectionKeys, tag: bytes, sealed: bytes) -> Row:
    name = tag.hex() if isinstance(tag, bytes) else "?"
    opened = keys.unseal(PURPOSE, keys.place(TABLE, "sealed", name), sealed)
    try:
        return msgpack.decode(opened, type=Known | State)
    except MsgspecError:
        raise FormatError(f"{TABLE} {name}: is nothing that this reads") from None
