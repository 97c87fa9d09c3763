"""What this machine last saw of a vault, so that an older copy put in its place is noticed.

Boundary: numbers alone (how often each collection and the audit trail were written) in the state
folder. The file
itself cannot show that all of it was rolled back: everything in an old copy is authentic.

A copy that syncs as a device of its own is written at its own pace: it is held against what was
last seen of itself, and not of the others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from memory_store.errors import FormatError, TamperedError
from memory_store.vault import audit
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.machine import read_numbers, write_numbers
from memory_store.vault.storage import Storage

AUDIT, TRAIL = "audit", "trail"  # its batches, and how often it was written: no collections' ids
MARK = "older:"  # nor such a one: a place where an older file was, which was not accepted yet
OF = "of:"  # the place of the file that the numbers without a place are of
AT = "at:"  # before a place and a name: a number of a copy there
MOST_PLACES = 16  # beside that one
BEHIND = (
    "this standby is behind what was last used on this machine: the latest changes are missing "
    "until it has caught up. If it never does, the vault was exchanged for an older one"
)
WARNING = (
    "this file is older than the one last used on this machine: its latest changes are missing. "
    "After a backup was put back, accept it with memory-store verify DB --accept-older; otherwise "
    "the file was exchanged"
)


def counters(storage: Storage, keyring: WholeKeyring, seen: Mapping[str, int]) -> dict[str, int]:
    """Collection → how often it was written, as the file says; and the audit trail, where its head
    can be read. Else that is as often as was ``seen``."""
    found, (batches, writes) = storage.accounts.counters(), audit.written(storage, keyring)
    own = {AUDIT: batches, TRAIL: seen.get(TRAIL) if writes is None else writes}
    return {**found, **{name: number for name, number in own.items() if number}}


def rollback_warning(
    vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring
) -> str | None:
    """A warning when the file is older than the one last locked on this machine, else None.

    From then on it is given at every opening of a file in that place, whatever is written to it,
    until :func:`accept`. Copies elsewhere, such as backups, do not matter. Of a standby nothing is
    noted: it may only be behind.
    """
    seen, place = read_numbers(_file(vault)), _place(path)
    if MARK + place in seen:
        return WARNING
    present = counters(storage, keyring, seen)
    behind = _behind(_newest(seen), present) and not _is_device(path, storage, keyring)
    if not (behind or _behind(_at(seen, place), present)):
        return None
    if storage.standby:
        return BEHIND
    write_numbers(_file(vault), {**seen, MARK + place: 1})
    return WARNING


def remember(
    vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring, writes: int
) -> None:
    """Keep the counters for the next time, unless it is an older file that was not accepted, or a
    standby that is behind. ``writes``: how often the trail was, when this process last wrote it."""
    seen, place = read_numbers(_file(vault)), _place(path)
    present = counters(storage, keyring, seen)
    if writes > present.get(TRAIL, 0):
        present[TRAIL] = writes
    behind = _behind(_newest(seen), present)
    if MARK + place not in seen and not (storage.standby and behind):
        (_keep_beside if behind else _keep)(vault, place, present, seen)


def accept(vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring) -> None:
    """Take the file as it is for the newest there is."""
    _keep(vault, _place(path), counters(storage, keyring, {}), read_numbers(_file(vault)))


def begin(vault: bytes, path: Path, storage: Storage, keyring: WholeKeyring) -> None:
    """From now on a copy is a device of its own: its numbers are no others'. Where this machine
    has seen the vault in that place before, a warning stays."""
    seen, place = read_numbers(_file(vault)), _place(path)
    if not _at(seen, place):
        _keep_beside(vault, place, counters(storage, keyring, {}), seen)


def _behind(seen: Mapping[str, int], present: Mapping[str, int]) -> bool:
    """Whether something was written less often. A collection that is not there was deleted: before
    one is made, the personal one was written less often, which counts its settings."""
    return any(
        present.get(name, 0 if name in (AUDIT, TRAIL) else counter) < counter
        for name, counter in seen.items()
    )


def _newest(seen: Mapping[str, int]) -> dict[str, int]:
    """What was seen of the vault that was written most."""
    return {name: counter for name, counter in seen.items() if ":" not in name}


def _at(seen: Mapping[str, int], place: str) -> dict[str, int]:
    """What was seen of the copy in a place."""
    if OF + place in seen:
        return _newest(seen)
    before = f"{AT}{place}:"
    return {name.removeprefix(before): seen[name] for name in seen if name.startswith(before)}


def _keep(vault: bytes, place: str, present: dict[str, int], seen: dict[str, int]) -> None:
    """Note the numbers of a file as the newest; what they replace stays that of its own file."""
    last = next((name.removeprefix(OF) for name in seen if name.startswith(OF)), place)
    beside = {} if last == place else _named(last, _newest(seen))
    _write(vault, seen, {**_others(seen, place), **beside, OF + place: 1, **present})


def _keep_beside(vault: bytes, place: str, present: dict[str, int], seen: dict[str, int]) -> None:
    """Note the numbers of a copy that is not the newest."""
    newest = {name: seen[name] for name in seen if ":" not in name or name.startswith(OF)}
    if not newest or OF + place in newest:
        _keep(vault, place, present, seen)
    else:
        _write(vault, seen, {**_others(seen, place), **_named(place, present), **newest})


def _named(place: str, numbers: Mapping[str, int]) -> dict[str, int]:
    return {f"{AT}{place}:{name}": counter for name, counter in numbers.items()}


def _others(seen: Mapping[str, int], place: str) -> dict[str, int]:
    """Marks and numbers of other places, the latest of them."""
    marks = {name: 1 for name in seen if name.startswith(MARK) and name != MARK + place}
    places = dict.fromkeys(name.split(":")[1] for name in seen if name.startswith(AT))
    kept = [one for one in places if one != place][-MOST_PLACES:]
    return marks | {name: n for one in kept for name, n in _named(one, _at(seen, one)).items()}


def _write(vault: bytes, seen: dict[str, int], numbers: dict[str, int]) -> None:
    if seen != numbers:
        write_numbers(_file(vault), numbers)


def _is_device(path: Path, storage: Storage, keyring: WholeKeyring) -> bool:
    """Whether the copy in that place syncs by itself."""
    from memory_store.vault import sync_state  # late: its cryptography is for those who sync

    try:
        state = sync_state.read_state(storage, keyring)
    except (FormatError, TamperedError):  # then it is as good as none
        return False
    return bool(state.device) and state.place == sync_state.place_of(storage, path)


def _file(vault: bytes) -> str:
    return f"last-seen/{vault.hex()}.json"


def _place(path: Path) -> str:
    """The name of a place, which the state folder need not say."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
