"""A line to a PostgreSQL server that counts how often a client waits, and can be cut."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from postgres_server import Server

NOT_WAITED_FOR = (b"Q\x00\x00\x00\x0drollback\x00", b"H\x00\x00\x00\x04")
Chunk = Callable[[bytes], bool]


class Line:
    """Connections that pass through here, to one server."""

    def __init__(self, server: Server, listening: socket.socket, folder: str) -> None:
        self.waits = 0
        """How often a client asked something and waited for the answer."""
        self.received = 0
        """Bytes of the server's."""
        self.cut_before: Chunk = lambda sent: False
        """Whether a connection is cut before these bytes of a client's reach the server."""
        self.cut_behind: Chunk = lambda sent: False
        """The same, once the server has them, and before its answer comes back."""
        self.server = server
        self._listening, self._folder = listening, folder

    def address(self, vault: str = "") -> str:
        """The address of a vault of the server, by this line."""
        direct = self.server.address(vault)
        return direct.replace(str(self.server.folder), self._folder)

    def accept(self) -> None:
        """Let connections through, until the listening socket is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with client, server, suppress(OSError):
            server.connect(f"{self.server.folder}/.s.PGSQL.5432")
            answered = [True]

            def back() -> None:
                with suppress(OSError):
                    while received := server.recv(1 << 16):
                        answered[0] = True
                        self.received += len(received)
                        client.sendall(received)
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

            threading.Thread(target=back, daemon=True).start()
            while sent := client.recv(1 << 16):
                if answered[0] and sent not in NOT_WAITED_FOR:
                    self.waits += 1
                answered[0] = False
                if self.cut_before(sent):
                    break
                if self.cut_behind(sent):
                    client.shutdown(socket.SHUT_RDWR)
                    server.sendall(sent)
                    break
                server.sendall(sent)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)


@contextmanager
def line_to(server: Server) -> Iterator[Line]:
    """A line until the end."""
    named = tempfile.TemporaryDirectory(prefix="pg")
    with named as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/.s.PGSQL.5432")
        listening.listen()
        line = Line(server, listening, folder)
        threading.Thread(target=line.accept, daemon=True).start()
        try:
            yield line
        finally:
            listening.shutdown(socket.SHUT_RDWR)
