"""The store's calls about keys: slots, recovery codes, new keys.

Boundary: secrets come in as the names of files, as text, or not at all; none is kept or told, but
a new recovery code, once. All of it is done with a whole vault: BadInputError in a part of one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_store.facade.opened import OpenedStore, inside
from memory_store.keys import new_recovery, secret_to_add
from memory_store.operations import key_rotation, key_slots
from memory_store.operations.key_rotation import Rotation
from memory_store.operations.key_slots import KeySlot, NewRoot

if TYPE_CHECKING:
    from memory_store.importing.pipeline import Progress


class Keys(OpenedStore):
    """The keys of an opened vault."""

    @inside
    def key_slots(self) -> list[KeySlot]:
        """The ways to open the vault that whoever opened it has, oldest first."""
        return key_slots.slots(self._vault)

    @inside
    def add_key(
        self,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        keyring: bool = False,
    ) -> KeySlot:
        """Let one more key open the vault. A key file that is absent is made.

        Raises BadInputError unless exactly one is given, for a passphrase that is too short, a key
        file beside the vault, or too many slots; ReadOnlyError.
        """
        secret = secret_to_add(
            self._vault.path, key_file=key_file, passphrase=passphrase, keyring=keyring
        )
        return key_slots.add(self._vault, secret)

    @inside
    def add_recovery_code(self) -> tuple[KeySlot, str]:
        """One more recovery code, told once and stored nowhere in clear."""
        secret, code = new_recovery()
        return key_slots.add(self._vault, secret), code

    @inside
    def remove_key(self, slot: str) -> KeySlot:
        """Take a key slot away (its id, or the beginning of it); never the last one.

        What it opened before may have been copied: :meth:`rotate_root` replaces it. Raises
        NotFoundError, BadInputError.
        """
        return key_slots.remove(self._vault, slot)

    @inside
    def rotate_root(self) -> tuple[NewRoot, str]:
        """A new root key, in the slot that opened the vault and under a new recovery code.

        All other key slots go, and everything that was shared is shared no longer. Follow it with
        :meth:`rotate_keys`: whoever had the old root key knows the collections' keys. Returns what
        went, and the recovery code, told once. Raises BadInputError.
        """
        recovery, code = new_recovery()
        return key_slots.replace_root(self._vault, recovery), code

    def rotate_keys(self, *collections: str, progress: Progress | None = None) -> list[Rotation]:
        """New keys for some collections (names or ids), or for all, and the vault's settings.

        Everything of them is sealed anew, in batches: others may search and write meanwhile, and
        what was stopped goes on when it is called again. Raises NotFoundError, BadInputError for
        a key that is not the owner's, TamperedError, ReadOnlyError.
        """
        return key_rotation.rotate(self._vault, collections, progress)

    @inside
    def unfinished_rotations(self) -> list[str]:
        """The names of collections whose keys are being replaced, ``settings`` for the vault's."""
        names = self._vault.collection_names()
        return [names.get(one, "settings") for one in key_rotation.unfinished(self._vault)]
