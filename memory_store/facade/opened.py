"""What every part of the store works on: an opened vault, entered by each method that uses it.

Boundary: no lock clears anything up while a method runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from memory_store.session.embedders import Embedders
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.damage import vault_faults

Method = TypeVar("Method", bound=Callable[..., Any])


def inside(method: Method) -> Method:
    """A method that uses the opened vault: no lock clears anything up while it runs.

    What the disk refuses is StorageError.
    """

    @wraps(method)
    def entered(self: OpenedStore, *arguments: Any, **options: Any) -> Any:
        vault = self._vault
        with vault_faults(vault.path), vault.gate.entered(), vault.access.unchanged(vault.path):
            result = method(self, *arguments, **options)
        if self.heard is not None:
            self.heard(method.__name__, result)
        return result

    return cast(Method, entered)


class OpenedStore:
    """An opened vault and its models."""

    def __init__(self, vault: OpenVault, embedder: str | None) -> None:
        self._vault = vault
        self._embedders = Embedders(vault, embedder)
        self.heard: Callable[[str, Any], None] | None = None
        """Told of every method that used the vault, by its name, and what it returned."""
