"""Whether a vault is what it was, and the newest there is.

Boundary: records are authenticated here, and none is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.actions.action import Opened, action
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.records import Progress


@action(None, writes=False)
def verify(
    opened: Opened, progress: Progress | None = None, *, full: bool = False
) -> dict[str, Any]:
    """Authenticate every record and hold it against accounts and index. Changes nothing.

    The words of a sample, and the vectors of a smaller one, are made again and compared with
    the index; those of every memory if ``full``. ``compared`` in the report says how many.
    """
    from memory_store.session.verification import verify as verified

    whole = opened.vault.whole_vault()
    found = verified(whole, progress, full=full, model=opened.embedders.load)
    return {**found, "older": opened.vault.older}


@action(None, writes=False)
def untold(opened: Opened) -> str | None:
    """What to show once to the person who opened the vault: that the file is older than the one
    last used on this machine (``verify`` shows that until it is accepted), what an upgrade did."""
    return opened.vault.untold()


@action(None, writes=False)
def older(opened: Opened) -> str | None:
    """A warning that the file is older, as long as it is not accepted (:func:`accept_older`)."""
    return opened.vault.older


@action(None, writes=False)
def accept_older(opened: Opened) -> None:
    """Take the file as it is for the newest there is, after a backup was put back."""
    opened.vault.whole_vault().accept_older()


@contextmanager
def accepting_older_shares(path: Path) -> Iterator[None]:
    """Open inside what an older vault tells a member; unless that fails, it is the newest for her.

    The owner's settings are held against their account as ever.
    """
    from memory_store.vault.machine import SHARES, without
    from memory_store.vault.settings import read_vault_id
    from memory_store.vault.storage.schema import check_is_vault

    check_is_vault(path)
    storage = Storage.open(path, read_only=True)
    try:
        vault = read_vault_id(storage)
    finally:
        storage.close()
    with without(vault, SHARES):
        yield
