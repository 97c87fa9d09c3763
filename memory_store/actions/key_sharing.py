"""Sharing a collection with a person who has a key of their own, and taking it back.

Boundary: an introduction is public (names, public keys, and key slots that are as hard to open as
the vault's). Only what its signature covers is believed. Whose signature it is, people compare by
the fingerprint.

A person with whom collections are shared is a principal with key slots, a root key and public keys
of their own. They open the same file; the shared collections are all they can see.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from memory_store.actions.action import Opened, action
from memory_store.actions.key_rotation import Progress, Rotation, begin_in, grant_all, rotate_scope
from memory_store.addresses import vault_path
from memory_store.crypto.identities import (
    Identity,
    fingerprint,
    identity_of,
    signature,
    strongest_kem,
)
from memory_store.crypto.keys import LABEL_PREFIX, SecretKey, length_prefixed
from memory_store.errors import BadInputError, FormatError, NotFoundError, TamperedError
from memory_store.session.credentials import secrets_to_set
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import device_keys
from memory_store.vault.identities import publish_owner, read_identity
from memory_store.vault.settings import KeyHolder, Settings, read_vault_id
from memory_store.vault.slots import (
    OWNER,
    Slot,
    check_of_another,
    check_room,
    insert_slots,
    made_slot,
)
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import vault_faults
from memory_store.vault.storage.file_access import file_access
from memory_store.vault.storage.schema import check_is_vault

FORMAT = 1
MOST_BYTES = 20_000  # of an introduction; honest ones have 3,000
MOST_NAME = 100  # characters
MOST_OWN_SLOTS = 4
UNREADABLE = (ValueError, FormatError, RecursionError)  # [[[[… goes too deep


class Holder(Struct, frozen=True):
    """A person with whom collections (names) are shared, or who asks for it."""

    name: str
    principal: int
    fingerprint: str
    collections: tuple[str, ...] = ()


class Introduction(Struct, frozen=True):
    """How a person asks a vault's owner for a share: public, and signed by that person."""

    vault: bytes
    name: str
    identity: Identity
    slots: tuple[Slot, ...]

    @property
    def holder(self) -> Holder:
        return Holder(self.name, self.identity.principal(), self.identity.fingerprint())

    def message(self) -> bytes:
        """What the signature covers: all of it."""
        parts = [LABEL_PREFIX.encode() + b"introduction", self.vault, self.name.encode()]
        parts.append(self.identity.encoded())
        for slot in self.slots:
            for value in asdict(slot).values():
                parts.append(value if isinstance(value, bytes) else str(value).encode())
        return length_prefixed(*parts)


class IntroductionFile(Struct, frozen=True, kw_only=True):
    """An introduction as it is sent: JSON, bytes in base64."""

    format: int = field(name="memory-store introduction")
    vault: str
    name: str
    keys: bytes
    slots: tuple[Slot, ...]
    signature: bytes


# -- the person to share with ---------------------------------------------------------


def introduce(
    path: str | Path,
    name: str,
    *,
    key_file: str | Path | None = None,
    passphrase: str | None = None,
    device_key: bool = True,
) -> tuple[bytes, Holder, str]:
    """Introduce yourself to the owner of a vault, with a key of your own that will open it.

    Returns a small public file's content for the owner, who you are in it, and the owner's
    fingerprint. People compare both fingerprints, by voice. Needs no key of the vault.
    ``device_key``: whether a passphrase also needs a device key, which is made here. Raises
    NotAVaultError, BadInputError, also where the owner has not shown his keys in the file yet.
    """
    path = vault_path(path)
    (secret,) = secrets_to_set(
        path,
        key_file=key_file,
        passphrase=passphrase,
        keyring=False,
        device_key=device_key,
        one=True,
    )
    with vault_faults(path):
        vault, owner = _shown_by(path)
    if owner is None:
        raise BadInputError(
            f"the owner of {path.name} has to show his keys first: memory-store keys identity "
            f"{path.name}",
            "db",
        )
    root = SecretKey.generate()
    identity = identity_of(root, strongest_kem())
    principal, pin = identity.principal(), owner.digest()
    device = device_keys.made(vault, path) if secret.two_factors else None
    slot = made_slot(vault, principal, secret, root, pin, device)
    introduction = Introduction(vault, _checked_name(name), identity, (slot,))
    signed = signature(root, introduction.message())
    root.wipe()
    return _written(introduction, signed), introduction.holder, owner.fingerprint()


def _shown_by(path: Path) -> tuple[bytes, Identity | None]:
    """The id of the vault in a file, and the owner's public keys, if they are in there."""
    check_is_vault(path)
    with closing(Storage.open(path, read_only=True, access=file_access(path))) as storage:
        return read_vault_id(storage), read_identity(storage, OWNER)


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise BadInputError(f"a name is 1 to {MOST_NAME} printable characters", "name")
    return name


def _written(introduction: Introduction, signed: bytes) -> bytes:
    file = IntroductionFile(
        format=FORMAT,
        vault=introduction.vault.hex(),
        name=introduction.name,
        keys=introduction.identity.encoded(),
        slots=introduction.slots,
        signature=signed,
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


# -- the owner ----------------------------------------------------------------------------


def read_introduction(vault: WholeVault, data: bytes) -> Introduction:
    """What an introduction says, once its signature was checked.

    Raises BadInputError for what is none, or one to another vault; TamperedError where it was
    changed.
    """
    try:
        introduction, signed = _parsed(data)
        message = introduction.message()  # half a pair in it is no text
    except UNREADABLE:
        raise BadInputError("with: that file is no introduction to a vault", "with") from None
    if introduction.vault != vault.vault:
        raise BadInputError("with: that is an introduction to another vault", "with")
    introduction.identity.check_signature(signed, message, "the introduction")
    principal = introduction.identity.principal()
    if any(slot.principal != principal for slot in introduction.slots):
        raise TamperedError("the introduction: its key slots belong to another person")
    try:
        for slot in introduction.slots:
            check_of_another(slot)
    except FormatError as error:
        raise BadInputError(f"with: {error}", "with") from None
    return introduction


def _parsed(data: bytes) -> tuple[Introduction, bytes]:
    if len(data) > MOST_BYTES:
        raise ValueError("too long")
    file = msgspec.json.decode(data, type=IntroductionFile)
    if file.format != FORMAT or len(file.slots) > MOST_OWN_SLOTS:
        raise ValueError("another format")
    vault, identity = bytes.fromhex(file.vault), Identity.decoded(file.keys)
    return Introduction(vault, _checked_name(file.name), identity, file.slots), file.signature


@action(None, writes=True)
def own_identity(opened: Opened) -> Holder:
    """Who opened the vault: the fingerprint, and what may be read.

    The owner's public keys are written into the file if they are not there.
    """
    vault = opened.vault.whole_vault()
    keyring = vault.keyring
    if not keyring.is_owner:
        identity = keyring.identity(vault.reader())
        names = tuple(vault.collections.names().values())
        return Holder("", keyring.principal, identity.fingerprint(), names)
    present = read_identity(vault.reader(), OWNER)
    identity = keyring.identity(vault.reader())
    if present != identity:
        with vault.writing() as storage, storage.transaction(keyring):
            identity = publish_owner(storage, keyring.root)
    return Holder("", OWNER, identity.fingerprint(), tuple(vault.collections.names().values()))


@action(None, writes=False)
def introduced(opened: Opened, introduction: bytes) -> Holder:
    """Who introduces himself. Raises BadInputError, TamperedError."""
    return read_introduction(opened.vault.whole_vault(), introduction).holder


@action(None, writes=False)
def holders(opened: Opened) -> list[Holder]:
    """With whom collections are shared, as the owner's sealed settings say.

    Raises BadInputError for a key that is not the owner's.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    vault.follow_settings()
    names = vault.collections.names()
    return [_described(holder, names) for holder in vault.settings.holders]


def _described(holder: KeyHolder, names: dict[str, str]) -> Holder:
    shared = tuple(names[one] for one in holder.collections)
    digest = bytes.fromhex(holder.identity)
    return Holder(holder.name, holder.principal, fingerprint(digest), shared)


@action(None, writes=True)
def share(opened: Opened, collection: str, who: bytes | str) -> Holder:
    """Share a collection with whom an introduction (bytes) is from, or with a holder, by name.

    Compare the fingerprint of :func:`introduced` first. Raises NotFoundError, BadInputError,
    TamperedError, and BadInputError for a key that is not the owner's.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    collection = vault.collections.find(collection)
    new = read_introduction(vault, who) if isinstance(who, bytes) else None
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            settings = vault.stored_settings(storage)
            publish_owner(storage, vault.keyring.root)
            holder = _let_in(storage, settings, new) if new else _found(settings, str(who))
            shared = tuple(dict.fromkeys((*holder.collections, collection)))
            holder = replace(holder, collections=shared)
            vault.change_settings(
                storage,
                present=settings,
                holders=settings.with_holder(holder),
                once_shared=tuple(dict.fromkeys((*settings.once_shared, collection))),
            )
            for epoch, bundle in vault.keyring.of(collection).bundles().items():
                grant_all(storage, vault, [holder], collection, epoch, bundle)
        vault.refresh_settings()
    return _described(holder, vault.collections.names())


def _let_in(storage: Storage, settings: Settings, new: Introduction) -> KeyHolder:
    """Write a person's slots and public keys; their name goes into the settings."""
    principal, identity = new.identity.principal(), new.identity.digest().hex()
    for known in settings.holders:
        if known.identity == identity:
            return known
        if known.name == new.name:
            raise BadInputError(f"with: there is a {new.name!r} already: revoke first", "with")
        if known.principal == principal:  # 47 bits of a digest: others can be found that have them
            raise BadInputError(f"with: this has the number of {known.name!r}", "with")
    for slot in new.slots:
        check_room(storage)
        if storage.slots.exists(slot.id):
            raise TamperedError("the introduction: its key slots belong to another person")
        insert_slots(storage, slot)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    storage.principals.insert(principal, now)
    storage.principals.write_public(principal, new.identity.encoded())
    return KeyHolder(principal, new.name, identity)


def _found(settings: Settings, who: str) -> KeyHolder:
    for names in ("principal", "name"):  # no name may be the number of another person
        for holder in settings.holders:
            if who == str(getattr(holder, names)):
                return holder
    raise NotFoundError(
        f"nothing is shared with {who!r}; memory-store keys holders shows with whom"
    )


@action(None, writes=True, in_batches=True)
def revoke(
    opened: Opened, who: str, collection: str | None = None, progress: Progress | None = None
) -> list[Rotation]:
    """Share a collection, or everything, with a holder no longer; it is sealed anew.

    From then on he opens nothing of it; what he read before he may have kept. Stopped, it goes on
    with ``rotate``. Raises NotFoundError, BadInputError, StorageError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    lost: tuple[str, ...] | None = None
    while lost is None:
        with vault.gate.entered():
            vault.follow_settings()
            found = _lost(vault, vault.settings, who, collection)
        for one in found:  # a new key that is being made is known to him already
            if vault.settings.epoch_of(one).before is not None:
                rotate_scope(vault, one, progress)
        lost = _begin_taking_back(vault, who, collection)
    return [rotate_scope(vault, one, progress) for one in lost]


def _lost(vault: WholeVault, settings: Settings, who: str, name: str | None) -> tuple[str, ...]:
    """The collections that a person is to lose. Raises NotFoundError."""
    holder = _found(settings, who)
    lost = holder.collections if name is None else (vault.collections.find(name),)
    if not set(lost) <= set(holder.collections):
        raise NotFoundError(f"{name!r} is not shared with {holder.name!r}")
    return lost


def _begin_taking_back(vault: WholeVault, who: str, name: str | None) -> tuple[str, ...] | None:
    """Take grants away and begin the next epoch. Returns of which collections, ``None`` where
    another program began one for the same collection meanwhile: it is to be finished first."""
    with vault.gate.entered(), vault.writing() as storage:
        with storage.transaction(vault.keyring):
            settings = vault.stored_settings(storage)  # another program may have shared meanwhile
            holder, lost = _found(settings, who), _lost(vault, settings, who, name)
            if any(settings.epoch_of(collection).before is not None for collection in lost):
                return None
            left = tuple(one for one in holder.collections if one not in lost)
            kept = replace(holder, collections=left)
            _take_back(storage, kept, lost)
            begin_in(storage, vault, settings, lost, holders=settings.with_holder(kept))
            for collection in lost:
                if not any(collection in one.collections for one in settings.with_holder(kept)):
                    storage.shares.delete(collection)
        vault.refresh_settings()
        storage.erase_traces()
    return lost


def _take_back(storage: Storage, kept: KeyHolder, lost: Sequence[str]) -> None:
    storage.keys.take_back(kept.principal, lost)
    for collection in lost:
        storage.sources.forget(kept.principal, collection)
    if not kept.collections:
        storage.principals.forget(kept.principal)
