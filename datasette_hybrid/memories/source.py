"""Where the file of a memory is on this machine, with a link that opens it there.

Boundary: names a path of the server, and looks whether it is there. Only for the owner of the vault
(hybrid-audit) whose browser runs on the server's own machine, and only below a path that this
vault's key has imported: what a record merely says of itself is not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import EVERYTHING, file_of, opener
from memory_store.records import Memory

from ..vaults.vault import Vault

FORWARDED = {b"forwarded", b"x-forwarded-for", b"x-real-ip"}


class Origin(Struct, frozen=True):
    """The path of a memory's file, and the address that opens it; empty where no program does."""

    path: str
    link: str


def is_here(scope: Mapping[str, Any]) -> bool:
    """Whether a request comes from the server's own machine, and by no proxy that says so."""
    host = (scope.get("client") or ("",))[0]
    try:
        return ip_address(host).is_loopback and not FORWARDED & {one for one, _ in scope["headers"]}
    except ValueError:
        return False


def origin(vault: Vault, grants: Grants, found: Memory) -> Origin | None:
    """Where the file is that a memory came from, for one who is here. Work for a thread."""
    source = found.source or ""
    if not grants.audit or not os.path.isabs(source) or not vault.use(EVERYTHING).is_source(source):
        return None
    path = Path(file_of(source, found.ref))
    if ".." in path.parts or not path.is_relative_to(source) or not path.is_file():
        return None
    try:
        link = opener(Path(source)) or ""
    except BadInputError:  # commands say so
        link = ""
    absolute = quote(path.as_posix())
    return Origin(str(path), link.format(absolute=absolute, path=absolute.removeprefix("/")))
