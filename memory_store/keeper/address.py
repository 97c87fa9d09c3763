"""Where keepers' sockets lie: a folder of the user's own, for as long as they are logged in.

Boundary: a folder that another user owns or may enter is never used, for a socket there could be
theirs. Both ends of a connection check whose process the other one is.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys

RUNTIME_VARIABLE = "XDG_RUNTIME_DIR"
RUNTIME_FOLDER = "/run/user/{}"  # what the variable says on Linux with systemd
NAME = "memory-store"
SUFFIX = ".socket"
LONGEST = 103  # bytes of a socket's path, on macOS; Linux takes 107

SUPPORTED = hasattr(socket, "AF_UNIX") and os.name == "posix"
NOT_HERE = "unlock is not there yet on Windows: commands open the vault themselves"


def folder(*, make: bool = False) -> str:
    """The folder of sockets. Raises PermissionError where it is not the user's alone.

    It is in ``XDG_RUNTIME_DIR``, which goes at logout, else in the state folder.
    """
    runtime = os.environ.get(RUNTIME_VARIABLE)
    if not runtime and os.path.isdir(own := RUNTIME_FOLDER.format(os.getuid())):
        runtime = own  # assistants start programs with next to no variables
    if runtime:
        _check_own(runtime)
        chosen = os.path.join(runtime, NAME)
    else:
        from memory_store.errors import BadInputError
        from memory_store.paths import state_folder

        try:
            chosen = str(state_folder(make=make) / "run")
        except BadInputError as error:
            raise PermissionError(13, str(error)) from None
    if make:
        os.makedirs(chosen, mode=0o700, exist_ok=True)
    if os.path.lexists(chosen):
        _check_own(chosen)
    return chosen


def _check_own(path: str) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(20, "is not a folder", path)
    if found.st_uid != os.getuid():
        raise PermissionError(13, "belongs to another user", path)
    if found.st_mode & 0o077:
        raise PermissionError(13, "can be entered by other users: chmod 700", path)


def socket_of(database: str, where: str) -> str:
    """The socket of a vault's keeper, in the folder ``where``."""
    from hashlib import sha256

    named = os.fsencode(on_server(database) or os.path.realpath(database))
    return os.path.join(where, sha256(named).hexdigest()[:16] + SUFFIX)


def on_server(database: str) -> str | None:
    """The one form of the address of a vault on a server, without its password; ``None`` for a
    path, and for what cannot be understood."""
    if not database.lower().startswith("postgres"):  # few do, and the module takes a while
        return None
    from memory_store.addresses import Address, is_address
    from memory_store.errors import BadInputError

    try:
        return Address(database).text if is_address(database) else None
    except BadInputError:
        return None


def sockets() -> list[str]:
    """The sockets there are; also those of keepers that were killed. Raises OSError."""
    where = folder()
    try:
        names = os.listdir(where)
    except FileNotFoundError:
        return []
    return [os.path.join(where, name) for name in sorted(names) if name.endswith(SUFFIX)]


def peer_is_mine(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user."""
    if hasattr(socket, "SO_PEERCRED"):  # Linux: pid, uid, gid
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return bool(struct.unpack("3i", found)[1] == os.getuid())
    if sys.platform == "darwin":  # struct xucred: version, uid, number of groups, groups
        level, option = 0, 1  # SOL_LOCAL, LOCAL_PEERCRED of sys/un.h
        found = connection.getsockopt(level, option, struct.calcsize("IIh16I"))
        return len(found) >= 8 and bool(struct.unpack_from("II", found)[1] == os.getuid())
    return False
