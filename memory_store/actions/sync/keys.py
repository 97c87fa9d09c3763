"""Keys on several devices: published in the folder, replaced on one of them, and a new device.

Boundary: keys that another device replaced are opened with the key slot that opened this vault, or
with a secret that is given for it; both must lead to keys that open the settings which came with
them. A device whose slot was removed has neither.

What is published stands in a vault's file as well. So a passphrase can be guessed at with the
folder, as with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from msgspec.structs import replace

from memory_store.actions.key_rotation import begin_in, rotate_scope
from memory_store.actions.sync.copy import Copy
from memory_store.crypto.keys import SecretKey
from memory_store.errors import (
    BadInputError,
    FormatError,
    LockedError,
    MemoryStoreError,
    TamperedError,
    WrongKeyError,
)
from memory_store.session.creation import make_private_file
from memory_store.session.unlock import open_vault
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import bundles, sync_state
from memory_store.vault.bundles import KEYS, Found
from memory_store.vault.identities import publish_owner
from memory_store.vault.key_heads import (
    Head,
    decoded,
    encoded,
    in_memory,
    opened_head,
    read_head,
    write_head,
)
from memory_store.vault.keyring import OWNER, ROOT_SETTING, VAULT_SCOPE, WholeKeyring
from memory_store.vault.opened_slots import OpenedSlot, open_root, reopened
from memory_store.vault.settings import Settings, write_settings
from memory_store.vault.slots import Secret, insert_slots
from memory_store.vault.storage import Storage
from memory_store.vault.sync_state import (
    State,
    check_roots,
    following,
    generation_of,
    read_state,
)

NEED_SECRET = (
    "the keys were replaced on another device: its passphrase or recovery code is needed once"
)
AT_ONCE = "keys were replaced on two devices at once: replace them once more, on one of them"


def finish_rotation(vault: WholeVault) -> None:
    """Finish a change of keys that was stopped."""
    vault.follow_settings()
    for one in vault.settings.epochs:
        if one.before is not None:
            rotate_scope(vault, one.collection)


# -- published ------------------------------------------------------------------------------------


def publish(copy: Copy, folder: Path, found: Sequence[Found], before: bytes) -> bytes:
    """Write how the vault is opened into the folder, if that is not there. Returns its digest."""
    head, device = read_head(copy.vault.reader(), copy.state.roots), copy.state.device
    own = [one for one in found if one.kind == KEYS and one.device == device]
    if own and head.digest == before:
        return before
    number, keys = copy.state.file + 1, copy.vault.keyring.of(VAULT_SCOPE)
    copy.save(replace(copy.state, file=number))
    parts = bundles.key_parts(keys, device, number, encoded(head))
    bundles.write_file(folder, keys, KEYS, device, number, parts)
    for one in own:
        with suppress(OSError):
            one.path.unlink()
    return head.digest


def published(found: Iterable[Found]) -> tuple[list[tuple[Found, Head, list[bytes]]], list[str]]:
    """The keys in a folder, the newest first, and which files of keys are none."""
    heads, problems = [], list[str]()
    for one in found:
        if one.kind != KEYS:
            continue
        try:
            parts = bundles.content_of_keys(one)
            head = decoded(parts[0])
            if head.clear.get("vault") != one.vault.hex() or head.rank[1] != one.epoch:
                raise FormatError("keys of another vault, or not of the time that it says")
            heads.append((one, head, parts))
        except (TamperedError, FormatError) as error:
            problems.append(f"{one.named}: {str(error).removeprefix(f'{one.named}: ')}")
    heads.sort(key=lambda each: (each[1].rank, each[0].number), reverse=True)
    return heads, problems


# -- replaced elsewhere ------------------------------------------------------------


def adopt(copy: Copy, found: Sequence[Found], secrets: Sequence[Secret]) -> tuple[bool, list[str]]:
    """Use keys that another device replaced. Returns whether there were any, and what is wrong.

    Everything here is sealed anew then. Raises WrongKeyError where a secret is needed for them.
    """
    vault, (heads, problems) = copy.vault, published(found)
    said = read_head(vault.reader()).rank
    for one, head, parts in heads:
        own = _rank(vault, said, head)
        if head.rank == own and one.device != copy.state.device:
            with suppress(FormatError):
                try:
                    bundles.check_keys(one, vault.keyring.of(VAULT_SCOPE), parts)
                except TamperedError:
                    problems.append(f"{one.named}: {AT_ONCE}")
        if head.rank <= own:
            continue
        try:
            _check_written_by_owner(vault, own[0], one, head, parts)
            with closing(in_memory(head)) as storage, storage.transaction():
                opening = _opening(vault, head, secrets)
                theirs, settings, slot = opened_head(storage, opening)
                bundles.check_keys(one, theirs.of(VAULT_SCOPE), parts)
                mine = (own[0], vault.keyring.root)
                check_roots(vault.vault, mine, head.roots, (head.rank[0], theirs.root))
        except WrongKeyError as error:
            raise WrongKeyError(f"{NEED_SECRET} ({error})") from None
        except (TamperedError, FormatError, LockedError) as error:
            problems.append(f"{one.named}: {error}")
            continue
        try:
            _use(vault, head, theirs, settings, slot)
        finally:
            theirs.wipe()
        copy.state = read_state(vault.reader(), vault.keyring)
        copy.save(replace(copy.state, roots=head.roots))
        return True, problems
    return False, problems


def adopt_from(copy: Copy, other: Copy) -> bool:
    """Use the keys that another copy, which is open, too, was given since. Returns whether it was.

    Raises TamperedError where they do not follow from those of this one.
    """
    vault, there = copy.vault, other.vault.keyring
    head = read_head(other.vault.reader(), other.state.roots)
    own = _rank(vault, read_head(vault.reader()).rank, head)
    mine = (own[0], vault.keyring.root)
    if head.rank[0] == own[0] and there.root != vault.keyring.root:
        raise TamperedError(f"{other.vault.path}: {AT_ONCE}")
    if head.rank <= own:
        return False
    check_roots(vault.vault, mine, head.roots, (head.rank[0], there.root))
    used = vault.keyring
    slot = next((one for one in head.slots if one.id == used.slot), None)
    if slot is None or used.slot_key is None:
        raise BadInputError(f"{other.vault.path}: {NEED_SECRET}", "target")
    opened = reopened(slot, vault.vault, SecretKey(used.slot_key.buffer))
    _use(vault, head, there, other.vault.settings, opened)
    copy.state = read_state(vault.reader(), vault.keyring)
    copy.save(replace(copy.state, roots=head.roots))
    return True


def _rank(vault: WholeVault, said: tuple[int, int], head: Head) -> tuple[int, int]:
    """That of this vault's keys beside others."""
    root = vault.keyring.root
    return generation_of(vault.vault, root, head.roots, said[0], head.rank[0]), said[1]


def _check_written_by_owner(
    vault: WholeVault, generation: int, one: Found, head: Head, parts: list[bytes]
) -> None:
    """Raise TamperedError, FormatError unless the owner's key of this vault says that keys are the
    owner's. Before a secret is tried on them, or asked for: or anyone could have every device ask
    for one, spend hours on it, and exchange nothing."""
    root = vault.keyring.root
    if head.rank[0] > generation:
        following(vault.vault, (generation, root), head.roots, head.rank[0])
        return
    with closing(in_memory(head)) as storage:
        theirs = WholeKeyring.unlock(storage, vault.vault, OWNER, SecretKey(root.buffer))
    try:
        bundles.check_keys(one, theirs.of(VAULT_SCOPE), parts)
    finally:
        theirs.wipe()


def _opening(
    vault: WholeVault, head: Head, secrets: Sequence[Secret]
) -> Callable[[Storage, bytes], OpenedSlot]:
    """How another's keys are opened: by the slot that opened this vault, else by a secret."""

    def opening(storage: Storage, name: bytes) -> OpenedSlot:
        keyring = vault.keyring
        same = next((one for one in head.slots if one.id == keyring.slot), None)
        if same is not None and keyring.slot_key is not None:
            with suppress(TamperedError, FormatError):
                return reopened(same, name, keyring.slot_key)
        if not secrets:
            raise WrongKeyError("the key that opened this vault is none of theirs")
        return open_root(storage, name, secrets, vault.path)

    return opening


def _use(
    vault: WholeVault, head: Head, theirs: WholeKeyring, settings: Settings, slot: OpenedSlot
) -> None:
    """Take over root key, slots and the key of the vault's own scope, and seal everything anew."""
    generation, epoch = head.rank
    keyring, root = vault.keyring, SecretKey(theirs.root.buffer)
    fresh = WholeKeyring(vault.vault, OWNER, root)
    given = theirs.of(VAULT_SCOPE).bundle.copied()
    with vault.writing() as storage:
        with storage.transaction(keyring):
            present = vault.stored_settings(storage)
            replaced = root != keyring.root
            made = begin_in(
                storage,
                vault,
                present,
                [VAULT_SCOPE, *present.collections],
                {VAULT_SCOPE: (epoch, given)},
                holders=() if replaced else present.holders,
                slots=settings.slots or tuple(one.id for one in head.slots),
                passphrase_alone=settings.passphrase_alone,
            )
            bundles_held = {
                (scope, number): bundle
                for scope, keys in keyring.collections.items()
                for number, bundle in keys.bundles().items()
            }
            storage.keys.insert(
                [
                    (scope, number, OWNER, fresh.wrapped(scope, number, bundle))
                    for (scope, number), bundle in {**bundles_held, **made}.items()
                ]
            )
            if replaced:
                storage.principals.forget_others(OWNER)
            storage.slots.delete_of(OWNER)
            insert_slots(storage, *head.slots)
            publish_owner(storage, root)
            storage.settings.write_clear({ROOT_SETTING: str(generation)})
        keyring.replace_root(root, generation)
        if keyring.slot_key is not None:
            keyring.slot_key.wipe()
        keyring.slot, keyring.slot_key = slot.slot.id, SecretKey(slot.key.buffer)
        vault.refresh_settings()
        storage.erase_traces()
    finish_rotation(vault)


# -- a new device ------------------------------------------------------------


def join(path: Path, folder: Path, secrets: Sequence[Secret]) -> WholeVault:
    """A copy of the vault whose devices share a folder, with no memories yet, opened.

    The newest keys count: a key that was removed since opens no earlier ones. They must follow from
    all others there that a secret opens, or a lost device could call its own the newest. Raises
    BadInputError where there are none in the folder, WrongKeyError where no secret opens them,
    TamperedError where they do not follow.
    """
    found, _ = bundles.found_in(folder)
    heads, _ = published(found)
    if not heads:
        raise BadInputError(
            f"{folder}: no keys of a vault there; sync it with that folder on another device first",
            "target",
        )
    newest = {one.vault: head.rank for one, head, _ in reversed(heads)}
    others, heads = heads, [each for each in heads if each[1].rank == newest[each[0].vault]]
    refusal: MemoryStoreError | None = None
    make_private_file(path)
    try:
        for one, head, parts in heads:
            try:
                _make(path, one, head, parts, secrets, others)
            except (WrongKeyError, TamperedError, FormatError) as error:
                refusal = refusal or error
                continue
            return open_vault(path, secrets)
    except BaseException:
        _take_away(path)
        raise
    _take_away(path)
    assert refusal is not None
    raise refusal


def _make(
    path: Path,
    one: Found,
    head: Head,
    parts: list[bytes],
    secrets: Sequence[Secret],
    others: Sequence[tuple[Found, Head, list[bytes]]],
) -> None:
    def opening(storage: Storage, vault: bytes) -> OpenedSlot:
        return open_root(storage, vault, secrets, path)

    with closing(Storage.open(path)) as storage:
        if not storage.begin_file():
            storage.create_tables()
        with storage.transaction():
            write_head(storage, head)
            keyring, settings, slot = opened_head(storage, opening)
            try:
                bundles.check_keys(one, keyring.of(VAULT_SCOPE), parts)
                _check_follows(one, head, keyring.root, others, opening)
                alone = replace(settings, holders=(), revision=settings.revision + 1)
                write_settings(storage, keyring, alone)
                sync_state.write(storage, keyring, (), State(roots=head.roots))
            finally:
                keyring.wipe()
                slot.key.wipe()


def _check_follows(
    one: Found,
    head: Head,
    root: SecretKey,
    others: Sequence[tuple[Found, Head, list[bytes]]],
    opening: Callable[[Storage, bytes], OpenedSlot],
) -> None:
    """Raise TamperedError unless keys follow from all others of the vault that a secret opens."""
    tried = {head.digest}
    for other, before, parts in others:
        if other.vault != one.vault or before.digest in tried:
            continue
        tried.add(before.digest)
        theirs = _opened_beside(other, before, parts, opening)
        if theirs is None:
            continue
        try:
            check_roots(one.vault, (before.rank[0], theirs.root), head.roots, (head.rank[0], root))
        except TamperedError as error:
            raise TamperedError(f"{one.named}, beside {other.named}: {error}") from None
        finally:
            theirs.wipe()


def _opened_beside(
    one: Found,
    head: Head,
    parts: list[bytes],
    opening: Callable[[Storage, bytes], OpenedSlot],
) -> WholeKeyring | None:
    """The keys in a head. ``None`` where no secret opens them, or where no holder of these keys
    sealed what came with them."""
    try:
        with closing(in_memory(head)) as storage, storage.transaction():
            keys, _, slot = opened_head(storage, opening)
    except (WrongKeyError, TamperedError, FormatError):
        return None
    slot.key.wipe()
    try:
        bundles.check_keys(one, keys.of(VAULT_SCOPE), parts)
    except TamperedError:
        keys.wipe()
        return None
    return keys


def _take_away(path: Path) -> None:
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        file.unlink(missing_ok=True)
