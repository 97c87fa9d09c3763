"""What searches and actions are given: an opened vault, whole or limited.

Boundary: mypy lets them use what both have, which is what :class:`.LimitedVault` lists. All else
needs :meth:`.WholeVault.whole_vault`, which a limited view refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from memory_store.session.limited_vault import LimitedVault
    from memory_store.session.whole_vault import WholeVault

OpenVault: TypeAlias = "WholeVault | LimitedVault"

ChangeRoles = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From the roles of a collection's members (actor → role) to those they are to have."""
