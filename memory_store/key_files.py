"""Key files on disk: made private, refused when others can read them or the database lies beside.

Boundary: writes new random keys, reads none; messages name the file, never what is in it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memory_store.crypto.keys import SecretKey, encode_key_file
from memory_store.errors import BadInputError
from memory_store.paths import home_path, make_private_file, real_path

LOST = (
    ". If yours is lost, leave it out: the recovery code opens the vault, typed in a terminal "
    "where the passphrase is asked for"
)
KEY_FILE_LIMIT = 256  # bytes: one line of base64 is 44; more is not a key file


def checked_key_file(path: str | Path, database: Path) -> Path:
    """``path``, once it is known to be a small private file that lies elsewhere.

    Raises :class:`BadInputError` naming the file and what to do.
    """
    file = home_path(path)
    try:
        status = file.stat()
    except OSError as error:
        lost = LOST if isinstance(error, FileNotFoundError) else ""
        raise BadInputError(f"key file {file}: {error.strerror}{lost}", "key-file") from error
    refuse_beside(file, database)
    if not stat.S_ISREG(status.st_mode):
        raise BadInputError(f"key file {file} is not a file", "key-file")
    if os.name == "posix" and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise BadInputError(
            f"key file {file} can be used by others (mode {mode:04o}): chmod 600 {file}", "key-file"
        )
    if status.st_size > KEY_FILE_LIMIT:
        raise BadInputError(f"{file} is too large to be a key file", "key-file")
    return file


def made_key_file(path: str | Path, database: Path) -> Path:
    """``path`` as a usable key file, made with a random key (mode 0600) when it is absent.

    An existing key file is kept and checked, so several vaults may share one.
    """
    file = home_path(path)
    refuse_beside(file, database)
    if file.exists() or file.is_symlink():
        return checked_key_file(file, database)
    make_private_file(file, encode_key_file(SecretKey.generate()), "key file")
    return file


def refuse_beside(file: Path, database: Path, what: str = "key file") -> None:
    """Raise BadInputError for a key in the folder of the vault that it opens."""
    if real_path(file).parent == real_path(database).parent:
        raise BadInputError(
            f"{what} {file} lies in the folder of {database}: a copy of that folder would hold "
            "both. Keep it elsewhere, for example in ~/.config/memory-store",
            what.replace(" ", "-"),
        )
