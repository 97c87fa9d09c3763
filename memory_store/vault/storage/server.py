"""The storage of vaults on a server, for the modules that it is built on itself.

Boundary: an address passes. The module is imported by its name, when the first address comes: its
library takes a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from memory_store.addresses import Address

_MODULE = "memory_store.vault.storage.postgres"


def on_server(function: str) -> Callable[..., Any]:
    """A function of the adapter."""
    found: Callable[..., Any] = getattr(import_module(_MODULE), function)
    return found


def is_on_server(path: object) -> bool:
    """Whether a vault's place is a database on a server."""
    return isinstance(path, Address)
