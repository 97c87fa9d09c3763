"""One write at a time: transactions, and the clean-up that makes a deletion real."""

from __future__ import annotations

from contextlib import AbstractContextManager

from memory_store.vault.storage import Storage
from memory_store.vault.storage.sqlite import CatchesUp


def transaction(storage: Storage, keys: CatchesUp | None = None) -> AbstractContextManager[None]:
    """See :meth:`Storage.transaction`."""
    return storage.transaction(keys)


def erase_traces(storage: Storage) -> bool:
    """See :meth:`Storage.erase_traces`."""
    return storage.erase_traces()
