"""What seals a search's place between two pages.

Boundary: keys stay in here. A place sealed for one search opens for no other, and for no one
without the vault's key.
"""

from __future__ import annotations

from msgspec import Struct

from memory_store.crypto.sealing import Place
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, Keyring

PADDED = 40  # bytes: every place has the same length, so that nothing is to be hidden by more


class PageKeys(Struct, frozen=True):
    """The keys for paging of one unlocked vault; ``limits`` keeps views of it apart."""

    keys: CollectionKeys
    limits: str = ""

    @classmethod
    def of(cls, keyring: Keyring, limits: str = "") -> PageKeys:
        """Those of ``keyring``'s vault. Raises LockedError after lock."""
        return cls(keyring.of(VAULT_SCOPE), limits)

    def seal(self, search: str, content: bytes) -> bytes:
        """``content``, sealed for the search of that name."""
        return self.keys.seal("page", self._place(search), content, least=PADDED)

    def unseal(self, search: str, blob: bytes) -> bytes:
        """What :meth:`seal` was given. Raises TamperedError or FormatError for anything else."""
        return bytes(self.keys.unseal("page", self._place(search), blob, least=PADDED))

    def _place(self, search: str) -> Place:
        return self.keys.place("pages", "token", search + self.limits)
