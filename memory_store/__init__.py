"""An encrypted store of notes and memories that is as easy to search as a plain one.

The public names are loaded on first use, so ``import memory_store`` stays cheap: NumPy, the
cryptography library and the models arrive only with the code that needs them.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# From version 1.32 on, onnxruntime makes an id of this machine as soon as it is imported, and sends
# its maker what it does. It asks this variable once, before anything else.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

if TYPE_CHECKING:
    from memory_store.errors import (
        BadInputError,
        BadRowsError,
        ConflictError,
        FormatError,
        LockedError,
        MemoryStoreError,
        ModelMismatchError,
        ModelUnavailableError,
        NotAVaultError,
        NotFoundError,
        ReadOnlyError,
        TamperedError,
        WrongKeyError,
    )
    from memory_store.records import (
        Answer,
        Citation,
        CollectionInfo,
        ImportReport,
        Memory,
        MemoryChange,
        MemoryDraft,
        Passage,
        SearchOptions,
        SearchRequest,
        SearchResponse,
        SearchResult,
    )
    from memory_store.store import MemoryStore
    from memory_store.unlocking import open_store

__all__ = [
    "Answer",
    "BadInputError",
    "BadRowsError",
    "Citation",
    "CollectionInfo",
    "ConflictError",
    "FormatError",
    "ImportReport",
    "LockedError",
    "Memory",
    "MemoryChange",
    "MemoryDraft",
    "MemoryStore",
    "MemoryStoreError",
    "ModelMismatchError",
    "ModelUnavailableError",
    "NotAVaultError",
    "NotFoundError",
    "Passage",
    "ReadOnlyError",
    "SearchOptions",
    "SearchRequest",
    "SearchResponse",
    "SearchResult",
    "TamperedError",
    "WrongKeyError",
    "open_store",
]

_ELSEWHERE = {"MemoryStore": "memory_store.store", "open_store": "memory_store.unlocking"}


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it, once."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    usual = "memory_store.errors" if name.endswith("Error") else "memory_store.records"
    value = getattr(import_module(_ELSEWHERE.get(name, usual)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
