"""Opening a vault from a command or another program, by the key that :mod:`memory_store.key_lookup`
finds.

Boundary: this module keeps no key; a store that it keeps open is locked when the process ends.
"""

from __future__ import annotations

import atexit
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.key_lookup import key_in_environment, opened_by_first_key

if TYPE_CHECKING:
    from memory_store.store import MemoryStore


def open_store(path: str | Path, **options: Any) -> MemoryStore:
    """:func:`memory_store.key_lookup.opened_by_first_key`, as a store."""
    from memory_store.store import MemoryStore

    return opened_by_first_key(MemoryStore.open, path, **options)


_kept: dict[Path, MemoryStore] = {}
_one_at_a_time = threading.Lock()


def kept_open(path: Path, *, key_file: Path | None = None) -> MemoryStore:
    """The store at ``path``, opened at the first call and kept until the process ends.

    It is kept since a passphrase in the environment can be taken out of there only once. Raises
    what :func:`open_store` raises; it never asks for a passphrase.
    """
    with _one_at_a_time:
        store = _kept.get(path)
        if store is None or store.locked:
            store = _kept[path] = open_store(path, key_file=key_file)
    return store


def key_at_hand() -> bool:
    """Whether a store is kept open, or could be, by what the environment names."""
    return bool(_kept) or key_in_environment()


@atexit.register
def lock_all() -> None:
    """Lock what was kept open."""
    while _kept:
        _kept.popitem()[1].close()
