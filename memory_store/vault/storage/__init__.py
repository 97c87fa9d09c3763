"""What a vault's file holds, and when what is read of it is of one moment.

Boundary: every statement on a vault's tables stands in this folder, named by what it does. Sealed
values, keyed hashes, wrapped keys and clear columns pass; no key and no text does.
"""

from memory_store.vault.storage.sqlite import Storage

__all__ = ["Storage"]
