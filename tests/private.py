"""Folders of the tests' own: nothing of the account that runs them is read or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def set_private(environment: pytest.MonkeyPatch, folder: Path) -> None:
    """Cache, configuration, data and state stand below the folder; no key and no model is named."""
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        environment.setenv(f"MEMORY_STORE_{name}", str(folder / name.lower()))
    for name in ("KEY_FILE", "PASSPHRASE", "EXPANDER", "DB"):
        environment.delenv(f"MEMORY_STORE_{name}", raising=False)
    environment.setenv("MEMORY_STORE_OFFLINE", "1")


@contextmanager
def private_below(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """The same for as long as it lasts, for what several tests share; more can be set in it."""
    with pytest.MonkeyPatch.context() as environment:
        set_private(environment, folder)
        yield environment
