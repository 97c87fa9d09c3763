"""Where a vault is served on this machine, so that commands can lead to its pages.

Boundary: the address is kept in a folder that only this user can open, beside the sockets. The
address holds no token: you sign in there as usual.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memory_store.keeper.address import SUFFIX, SUPPORTED, folder, socket_of

SERVED = ".served"


@contextmanager
def announced(database: str, address: str) -> Iterator[None]:
    """Say inside that the vault's pages are below ``address``."""
    file = _file(database, make=True)
    if file is None:
        yield
        return
    with open(file, "w", encoding="utf-8") as out:
        out.write(f"{os.getpid()} {address}")
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)


def served_at(database: str) -> str:
    """The address that the vault's pages are below; empty where no process says so."""
    file = _file(database, make=False)
    try:
        with open(file or "", encoding="utf-8") as found:
            process, _, address = found.read(1_000).partition(" ")
        os.kill(int(process), 0)
    except (OSError, ValueError):
        return ""
    return address


def _file(database: str, *, make: bool) -> str | None:
    if not SUPPORTED:
        return None
    try:
        return socket_of(database, folder(make=make)).removesuffix(SUFFIX) + SERVED
    except OSError:  # a folder that cannot be trusted
        return None
