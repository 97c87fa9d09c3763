"""The owner's check of the shares: each is as the settings say.

Boundary: the owner's keys. A share that was taken away, put back to an older one, or written by
another is found by ``verify``, and written anew by the owner's next write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from memory_store.errors import FormatError, TamperedError
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.manifest import read_manifest
from memory_store.vault.settings import Settings, read_settings, shares_of, tell_holders
from memory_store.vault.shares import TABLE, Share, read_share
from memory_store.vault.storage import Storage

Stored = tuple[tuple[str, bytes], ...]


def share_checks(
    storage: Storage, keyring: WholeKeyring, settings: Settings
) -> Iterator[tuple[str, Callable[[], None]]]:
    """A name and a check, which raises TamperedError or FormatError, for each shared collection."""
    for collection, share in shares_of(keyring, settings).items():
        check = partial(_check, storage, keyring, collection, share)
        yield f"share of collection {collection}", check


def _check(storage: Storage, keyring: WholeKeyring, collection: str, wanted: Share) -> None:
    keys = keyring.of(collection)
    if read_share(storage, keys, keyring.owner_identity(storage)) != wanted:
        raise TamperedError(f"{TABLE} of {collection}: not what your settings say")
    if read_manifest(storage, keys).revision != wanted.revision:
        raise TamperedError(f"vault_manifests of {collection}: names another revision of its share")


def mend_shares(storage: Storage, keyring: WholeKeyring) -> Stored:
    """Write the shares anew where one is not as it should be. Returns them as they are stored."""
    with storage.transaction(keyring):
        settings = read_settings(storage, keyring)
        try:
            for _, check in share_checks(storage, keyring, settings):
                check()
        except (TamperedError, FormatError):
            tell_holders(storage, keyring, settings)
    return storage.shares.all()
