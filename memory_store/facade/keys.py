"""The store's calls about keys: slots, recovery codes, new keys.

Boundary: secrets come in as the names of files, as text, or not at all; none is kept or told, but
a new recovery code, once. All of it is done with a whole vault: BadInputError in a part of one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memory_store import actions
from memory_store.errors import LockedError, MemoryStoreError, NotFoundError
from memory_store.facade.opened import OpenedStore, inside
from memory_store.session.secrets_given import new_recovery, passphrase_to_set, secret_to_add
from memory_store.vault.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.actions.key_devices import DeviceKey
    from memory_store.actions.key_rotation import Rotation
    from memory_store.actions.key_sharing import Holder
    from memory_store.actions.key_slots import KeySlot, NewRoot
    from memory_store.records import Progress


class Keys(OpenedStore):
    """The keys of an opened vault."""

    @inside
    def key_slots(self) -> list[KeySlot]:
        """The ways to open the vault that whoever opened it has, oldest first."""
        return actions.key_slots.slots(self._vault.whole_vault())

    @inside
    def add_key(
        self,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        keyring: bool = False,
        device_key: bool | None = None,
    ) -> KeySlot:
        """Let one more key open the vault. A key file that is absent is made.

        ``device_key``: whether a passphrase also needs a device key, which is then on this
        machine; ``None`` as was chosen for the vault.

        Raises BadInputError unless exactly one is given, for a passphrase that is too short, a key
        file beside the vault, or too many slots; ReadOnlyError.
        """
        if device_key is None:
            device_key = actions.key_slots.wants_device_key(self._vault.whole_vault())
        secret = secret_to_add(
            self._vault.path,
            key_file=key_file,
            passphrase=passphrase,
            keyring=keyring,
            device_key=device_key,
        )
        return actions.key_slots.add(self._vault.whole_vault(), secret)

    @inside
    def add_recovery_code(self) -> tuple[KeySlot, str]:
        """One more recovery code, told once and stored nowhere in clear."""
        secret, code = new_recovery()
        return actions.key_slots.add(self._vault.whole_vault(), secret), code

    @inside
    def remove_key(self, slot: str) -> KeySlot:
        """Take a key slot away (its id, or the beginning of it); never the last one.

        What it opened before may have been copied: :meth:`rotate_root` replaces it. Raises
        NotFoundError, BadInputError.
        """
        return actions.key_slots.remove(self._vault.whole_vault(), slot)

    @inside
    def rotate_root(self) -> tuple[NewRoot, str]:
        """A new root key, in the slot that opened the vault and under a new recovery code.

        All other key slots go, and everything that was shared is shared no longer. Follow it with
        :meth:`rotate_keys`: whoever had the old root key knows the collections' keys. Returns what
        went, and the recovery code, told once. Raises BadInputError.
        """
        recovery, code = new_recovery()
        return actions.key_slots.replace_root(self._vault.whole_vault(), recovery), code

    @inside
    def delete_collection(self, name: str) -> str:
        """Delete a collection: its key first, so that what remains of it anywhere opens no more.

        Backups made before hold its key and rows, and open as they did. The personal collection
        stays. Returns its name. Raises NotFoundError, BadInputError.
        """
        return actions.key_shredding.delete_collection(self._vault.whole_vault(), name)

    def superseded(self) -> bool:
        """Whether the key that opened the vault was replaced or removed: it must be unlocked anew.

        Looks at the file.
        """
        try:
            with vault_faults(self._vault.path), self._vault.gate.entered():
                self._vault.refresh_settings()
        except (LockedError, NotFoundError):
            return True
        except MemoryStoreError:
            return False  # whatever else is wrong, whoever uses the vault is told
        return False

    # -- device keys --------------------------------------------------------------------

    @staticmethod
    def device_keys(path: str | Path) -> list[DeviceKey]:
        """The device keys that a vault's passphrases need, and whether this machine has them.

        Needs no key. Raises NotAVaultError, FormatError, BadInputError without a state folder.
        """
        with vault_faults(Path(path)):
            return actions.key_devices.listed(Path(path))

    @staticmethod
    def import_device_key(path: str | Path, code: str) -> list[DeviceKey]:
        """Keep a vault's device key on this machine, from the code that another one exported.

        Needs no key. Raises BadInputError for a code that is none of this vault's.
        """
        with vault_faults(Path(path)):
            return actions.key_devices.imported(Path(path), code)

    @inside
    def export_device_key(self) -> str:
        """The code of the device key that your passphrase needs, for another machine. A secret.

        Raises NotFoundError where it needs none.
        """
        return actions.key_devices.exported(self._vault.whole_vault())

    @inside
    def restore_device_key(self) -> list[DeviceKey]:
        """Keep the device key on this machine, as after the recovery code opened the vault here.

        Raises NotFoundError where your passphrase needs none.
        """
        return actions.key_devices.restored(self._vault.whole_vault())

    @inside
    def add_device_key(self, passphrase: str) -> KeySlot:
        """Make a passphrase need a device key, or a new one in the place of the one it needs.

        Raises WrongKeyError where that is no passphrase of yours; BadInputError.
        """
        secret = passphrase_to_set(passphrase, device_key=True)
        return actions.key_slots.give_device_key(self._vault.whole_vault(), secret)

    @inside
    def lacks_device_key(self) -> bool:
        """Whether the recovery code opened the vault on a machine without its device key."""
        return actions.key_devices.lacking(self._vault.whole_vault())

    # -- sharing ------------------------------------------------------------------------

    @staticmethod
    def introduce(
        path: str | Path,
        name: str,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        device_key: bool = True,
    ) -> tuple[bytes, Holder, str]:
        """Introduce oneself to the owner of a vault, with a key of one's own that will open it.

        Returns a small public file's content for the owner, who one is in it, and the owner's
        fingerprint. People compare both fingerprints, by voice. Needs no key of the vault.
        ``device_key``: whether a passphrase also needs a device key, which is made here. Raises
        BadInputError, NotAVaultError.
        """
        database = Path(path)
        secret = secret_to_add(
            database,
            key_file=key_file,
            passphrase=passphrase,
            keyring=False,
            device_key=device_key,
        )
        with vault_faults(database):
            return actions.key_sharing.introduce(database, name, [secret])

    @inside
    def identity(self) -> Holder:
        """Who opened the vault: his fingerprint, and what he may read."""
        return actions.key_sharing.own_identity(self._vault.whole_vault())

    @inside
    def introduced(self, introduction: bytes) -> Holder:
        """Who introduces himself. Raises BadInputError, TamperedError."""
        return actions.key_sharing.read_introduction(self._vault.whole_vault(), introduction).holder

    @inside
    def share(self, collection: str, who: bytes | str) -> Holder:
        """Share a collection with whom an introduction (bytes) is from, or somebody known by name.

        Compare the fingerprint of :meth:`introduced` first. Raises NotFoundError, BadInputError,
        TamperedError, and BadInputError for a key that is not the owner's.
        """
        return actions.key_sharing.share(self._vault.whole_vault(), collection, who)

    @inside
    def holders(self) -> list[Holder]:
        """With whom collections are shared. Raises BadInputError for others than the owner."""
        return actions.key_sharing.holders(self._vault.whole_vault())

    def revoke(
        self, who: str, collection: str | None = None, progress: Progress | None = None
    ) -> list[Rotation]:
        """Share a collection with somebody no longer, or nothing at all, and seal it anew.

        From then on he opens nothing of it; what he read before he may have kept. Raises
        NotFoundError, BadInputError, StorageError; :meth:`rotate_keys` goes on then.
        """
        with vault_faults(self._vault.path):
            return actions.key_sharing.revoke(self._vault.whole_vault(), who, collection, progress)

    # -- new keys -----------------------------------------------------------------------

    def rotate_keys(self, *collections: str, progress: Progress | None = None) -> list[Rotation]:
        """New keys for some collections (names or ids), or for all, and the vault's settings.

        Everything of them is sealed anew, in batches: others may search and write meanwhile, and
        what was stopped goes on when it is called again. Raises NotFoundError, BadInputError for
        a key that is not the owner's, TamperedError, ReadOnlyError, StorageError.
        """
        with vault_faults(self._vault.path):
            done = actions.key_rotation.rotate(self._vault.whole_vault(), collections, progress)
            actions.key_shredding.finish(self._vault.whole_vault())
        return done

    @inside
    def unfinished_rotations(self) -> list[str]:
        """The names of collections whose keys are being replaced, ``settings`` for the vault's."""
        names = self._vault.collections.names()
        return [
            names.get(one, "settings")
            for one in actions.key_rotation.unfinished(self._vault.whole_vault())
        ]
