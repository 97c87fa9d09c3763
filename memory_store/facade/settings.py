"""The store's calls about the settings of its vault.

Boundary: no text and no name comes out here. To put topics back into the table their heads are
opened, each for a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_store import actions
from memory_store.facade.opened import OpenedStore, inside
from memory_store.records import VaultSettings
from memory_store.vault.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.records import Progress


class Settings(OpenedStore):
    """How the vault is set up."""

    @inside
    def settings(self) -> VaultSettings:
        """The vault's settings as they are now."""
        return actions.settings.settings(self._vault)

    def set_topics(self, where: str, progress: Progress | None = None) -> bool:
        """Keep topics as hashes in a ``table`` of the file, or in ``memory`` alone.

        In the table SQL can join by them (:meth:`topic_hash`), and who has the file sees which
        memories share a topic; ``memory`` takes them out of the file. Searches are the same. It is
        done in batches while others read and write; what was stopped goes on when it is called
        again. Returns whether the write-ahead log is empty, too: it is not as long as another
        program reads. Raises BadInputError for a strict vault, a part of one or a key that is not
        the owner's, ConflictError, TamperedError, ReadOnlyError, StorageError.
        """
        with vault_faults(self._vault.path):
            return actions.settings.set_topics(self._vault.whole_vault(), where, progress)
