"""The store's calls that tell whether a vault is what it was, and what was done with it.

Boundary: records are authenticated here and none is shown; the audit trail names who did what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.facade.opened import OpenedStore, inside

if TYPE_CHECKING:
    from memory_store.records import Progress
    from memory_store.vault.audit_events import AuditEvent


@contextmanager
def accepting_older_shares(path: Path) -> Iterator[None]:
    """Open inside what an older vault tells a member; unless that fails, it is the newest for her.

    The owner's settings are held against their account as ever.
    """
    from memory_store.sqlite import connect
    from memory_store.vault.machine import SHARES, without
    from memory_store.vault.schema import check_is_vault
    from memory_store.vault.settings import read_vault_id

    check_is_vault(path)
    connection = connect(path, read_only=True)
    try:
        vault = read_vault_id(connection)
    finally:
        connection.close()
    with without(vault, SHARES):
        yield


class Checking(OpenedStore):
    """Seals, age and the audit trail."""

    @inside
    def verify(self, progress: Progress | None = None, *, full: bool = False) -> dict[str, Any]:
        """Authenticate every record and hold it against accounts and index. Changes nothing.

        The words of a sample, and the vectors of a smaller one, are made again and compared with
        the index; those of every memory if ``full``. ``compared`` in the report says how many.
        """
        from memory_store.session.verification import verify

        vault = self._vault.whole_vault()
        found = verify(vault, progress, full=full, model=self._embedders.load)
        return {**found, "older": self._vault.older}

    @inside
    def untold(self) -> str | None:
        """What has to be told to a person about this opening, once: that the file is older than
        the one last used on this machine (see ``verify``, which tells it until it is accepted)."""
        return self._vault.untold()

    @inside
    def older(self) -> str | None:
        """The same as long as nobody has accepted it; see :meth:`accept_older`."""
        return self._vault.older

    @inside
    def accept_older(self) -> None:
        """Take the file as it is for the newest there is, after a backup was put back."""
        self._vault.whole_vault().accept_older()

    @inside
    def keep_audit(self, events: Sequence[AuditEvent], *, days: float, most: int) -> None:
        """Write events to the audit trail, sealed; keep so many ``days`` and events of it.

        ``days`` of 0 keeps them however old. Raises ReadOnlyError, TamperedError.
        """
        self._vault.whole_vault().keep_audit(events, days=days, most=most)

    @inside
    def audit_trail(self) -> list[AuditEvent]:
        """Every event that was written, oldest first. Raises TamperedError."""
        from memory_store.vault import audit

        return audit.events(self._vault.reader(), self._vault.whole_vault().keyring)
