"""A server that answers the programs of one user: the system says which account connects.

Boundary: an address of this machine can be asked by every account on it, and a link that a browser
is started with stands in the list of processes, which every account reads. So the system is asked
who made a connection. Where it does not say, as outside of Linux, all are answered.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from datasette import Response, hookimpl

CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # man 5 proc_net
LISTED = len("0100007F:1F41")  # of an address, what stands last; before it the rest of IPv6
ROOT = 0  # reads all there is anyhow
REFUSAL = "This server answers the user who started it alone."


class OneUser:
    """A plugin of Datasette's."""

    __name__ = "memory-store serve"  # Datasette lists its plugins

    @hookimpl  # type: ignore[untyped-decorator]
    def asgi_wrapper(self) -> Callable[[Any], Any]:
        """Around the whole of Datasette."""
        return _wrapped


def _wrapped(app: Any) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        ours = scope["type"] != "http" or is_ours(scope["client"], scope["server"])
        await (app(scope, receive, send) if ours else _refuse(send))

    return answer


async def _refuse(send: Any) -> None:
    await Response.text(f"{REFUSAL}\n", status=403).asgi_send(send)


def is_ours(client: tuple[str, int], server: tuple[str, int]) -> bool:
    """Whether a process of this user, or of root, made a connection to a port of this machine.

    Also where the system does not list who made it: it does not list connections, or a machine
    around this one forwards its own, as Windows does around WSL.
    """
    ends, let_go = (_as_listed(*client), _as_listed(*server)), False
    for table in CONNECTIONS:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                _, local, remote, *_, user, _, inode = line.split()[:10]
                if (local[-LISTED:], remote[-LISTED:]) == ends:
                    if inode != "0":
                        return int(user) in (os.getuid(), ROOT)
                    let_go = True  # by its process, which may have been another account's
    return not let_go


def _as_listed(host: str, port: int) -> str:
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
