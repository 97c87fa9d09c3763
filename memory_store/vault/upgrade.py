"""Bringing a vault of an earlier format up to today's.

Boundary: needs the owner's keys, and a file that may be written. Everything happens in one
transaction: the vault is of the one format or of the other. What is read under the earlier rules
here is believed for the last time.

A vault is upgraded when its owner first opens it for writing. Until then it can be read by its
owner, as a file that may not be written can; those with whom collections are shared wait for the
owner. The settings say the format under a seal, so that the earlier rules cannot be had back by
writing an earlier number into the file.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from memory_store.vault.earlier_sources import own_sources, prove_origins
from memory_store.vault.identities import publish_owner
from memory_store.vault.keyring import WholeKeyring
from memory_store.vault.settings import Settings, read_settings, write_settings
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import FORMAT_VERSION

Step = Callable[[Storage, WholeKeyring, Settings], Settings]
"""Brings one kind of row up to date, inside the transaction. Returns the settings to go on with."""


def _empty_names(storage: Storage, _: WholeKeyring, settings: Settings) -> Settings:
    """Names go into the settings, where they were read into already; the rows lose theirs."""
    storage.collections.empty_names()
    return settings


TO_FORMAT_3: tuple[Step, ...] = (_empty_names, own_sources, prove_origins)


def upgrade(storage: Storage, keyring: WholeKeyring, of_index: tuple[Step, ...] = ()) -> bool:
    """Make the vault one of today's format, if it is not. Returns whether it was an earlier one.

    ``of_index`` are the steps that know what the index holds: they come last.

    Raises TamperedError where a row is not what its keys sealed: nothing is changed then.
    """
    keyring.check_owner()
    if read_settings(storage, keyring).format >= FORMAT_VERSION:
        return False
    with storage.transaction(keyring):
        settings = read_settings(storage, keyring)
        if settings.format >= FORMAT_VERSION:  # another process was faster
            return False
        keyring.strict = settings.profile == "strict"
        storage.create_later_tables()
        publish_owner(storage, keyring.root)
        for step in (*TO_FORMAT_3, *of_index):
            settings = step(storage, keyring, settings)
        changed = replace(settings, format=FORMAT_VERSION, revision=settings.revision + 1)
        write_settings(storage, keyring, changed)
        storage.note_format()
    storage.erase_traces()
    return True
