"""The certificates by which nodes know each other: each is named, none goes by an authority.

Boundary: reads a private key from a file that others must not be able to read.
"""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec import Struct

from memory_store.crypto.certificates import signs_others
from memory_store.errors import BadInputError

MOST_BYTES = 65_536


class Identity(Struct, frozen=True):
    """A node's certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Identity()"


def read_identity(certificate: Path, key: Path) -> Identity:
    """Raises BadInputError that names the file at fault."""
    if key.is_file() and key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInputError(f"{key}: others can read it: chmod 600 {key}", "private-key")
    return Identity(read_certificate(certificate), _read(key))


def read_certificate(path: Path) -> bytes:
    """One certificate (PEM). Raises BadInputError, also for one that may sign others: then those
    others would be let in, too."""
    data = _read(path)
    try:
        signs = signs_others(data)
    except ValueError:
        raise BadInputError(f"{path}: no certificate in PEM", "certificate") from None
    if signs:
        raise BadInputError(
            f"{path}: this certificate may sign others, which would be let in, too: make one with "
            "-addext basicConstraints=critical,CA:FALSE",
            "certificate",
        )
    return data


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInputError(f"{path}: larger than {MOST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}") from None
