"""Who may use a collection of an opened vault: its members and their roles.

Boundary: changes the vault's sealed settings alone. Who may change members is decided before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from memory_store.index.opened import OpenVault
from memory_store.vault.members import changed_members


def members(vault: OpenVault, name: str) -> Mapping[str, str]:
    """Actor → role in a collection; empty where it is open. Raises NotFoundError."""
    known = vault.membership()  # first: it follows what others have made
    return known[vault.find_collection(name)]


def change_members(
    vault: OpenVault, name: str, add: Mapping[str, str], remove: Collection[str]
) -> Mapping[str, str]:
    """Let actors in by role, or change theirs, and let others go; the members afterwards.

    Raises NotFoundError, BadInputError when no owner would be left.
    """
    vault.change_members(
        vault.find_collection(name), lambda present: changed_members(present, add, remove)
    )
    return members(vault, name)


def open_collection(vault: OpenVault, name: str) -> None:
    """Take away all members of a collection: it is open again. Raises NotFoundError."""
    vault.change_members(vault.find_collection(name), lambda present: {})
