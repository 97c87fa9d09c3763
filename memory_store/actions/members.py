"""Who may use a collection of an opened vault: its members and their roles.

Boundary: changes the vault's sealed settings, and a name with them. Who may change members is
decided before, and of an owner once more inside the transaction: another may have gone first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from memory_store.actions.action import Opened, action
from memory_store.errors import NotFoundError
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.audit_events import MEMBERS
from memory_store.vault.members import ROLES, changed_members


@action(None, writes=False)
def members(opened: Opened, collection: str) -> Mapping[str, str]:
    """Actor id → role (see :data:`memory_store.vault.members.ROLES`) in a collection.

    Empty where it is open. Raises NotFoundError.
    """
    return _members(opened.vault, collection)


@action(MEMBERS, writes=True)
def change_members(
    opened: Opened,
    name: str,
    add: Mapping[str, str] | None = None,
    remove: Collection[str] = (),
    *,
    by: str | None = None,
    new_name: str | None = None,
) -> Mapping[str, str]:
    """Let actors in by role, or change theirs, and let others go, all at once.

    Returns the members afterwards. The first member closes a collection and owns it; one with
    members keeps an owner. ``by``: an actor who must be an owner when it is written. The collection
    gets a ``new_name`` in the same transaction. Raises NotFoundError, BadInputError.
    """
    vault = opened.vault
    collection = vault.collections.find(name)
    fresh = None if new_name is None else vault.collections.new_name(collection, new_name)

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        _check_manages(present, by)
        return changed_members(present, add or {}, remove)

    vault.collections.change_members(collection, change, fresh)
    return _members(vault, collection)


@action(MEMBERS, writes=True)
def open_collection(
    opened: Opened, name: str, *, by: str | None = None, new_name: str | None = None
) -> None:
    """Take away all members of a collection: it is open again. As :func:`change_members`."""
    vault = opened.vault
    collection = vault.collections.find(name)
    fresh = None if new_name is None else vault.collections.new_name(collection, new_name)

    def change(present: Mapping[str, str]) -> Mapping[str, str]:
        _check_manages(present, by)
        return {}

    vault.collections.change_members(collection, change, fresh)


def _members(vault: OpenVault, name: str) -> Mapping[str, str]:
    known = vault.collections.membership()  # first: it follows what others have made
    return known[vault.collections.find(name)]


def _check_manages(present: Mapping[str, str], by: str | None) -> None:
    if by is not None and (by not in present or not ROLES[present[by]].manage):
        raise NotFoundError(f"{by!r} is no owner any more")
