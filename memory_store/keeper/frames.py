"""What passes between a command and a keeper: frames of a kind, a length and bytes.

Boundary: the other end is untrusted as to form: lengths are limited before memory is taken, and a
deadline holds for a whole frame, however slowly it comes. Standard library alone: a command
imports this before anything else.
"""

from __future__ import annotations

import socket
import struct
from time import monotonic

PROTOCOL = 1
HEADER = struct.Struct("!cI")

ASKED = b"Q"  # JSON: what is asked
INPUT = b"I"  # what the command was sent on standard input
ACCEPTED = b"A"  # it is being worked on
OUT, ERR = b"O", b"E"  # a piece of standard output, of standard error
PAGE = b"P"  # JSON: lines for standard output, through the caller's pager
EXIT = b"X"  # the exit code, in decimal
YOURSELF = b"Y"  # the keeper does not do this: the reason, in a word
VERSION = b"version"  # that reason: it runs other code than what is installed now
PERSON = b"H"  # a person has to answer what was written: the SHA-256 of all of it, in hex
EDIT = b"T"  # JSON: a version and a text, which a person is to change in an editor
ANSWER = b"J"  # JSON: the answer to a question about the keeper
STEP = b"S"  # JSON: a step of what goes on beside other commands, its name and what it says
RAW = b"R"  # from here on the connection carries what an assistant says and hears

MOST_ASKED = 1_000_000  # bytes of a question; a command line of Linux is at most twice that
MOST_INPUT = 50_000_001  # as much as a command takes on standard input, and one more
MOST_ANSWERED = 1 << 30
QUESTION_SECONDS = 5.0
PIECE = 1 << 20


class BrokenError(OSError):
    """The other end sent what is no frame, too much, too slowly, or went away."""


def send(connection: socket.socket, kind: bytes, data: bytes = b"") -> None:
    """Raises OSError where the other end is gone or does not read."""
    connection.sendall(HEADER.pack(kind, len(data)) + data)


def receive(
    connection: socket.socket, most: int, *, seconds: float | None = None
) -> tuple[bytes, bytes]:
    """A frame of at most so many bytes. Raises BrokenError."""
    deadline = None if seconds is None else monotonic() + seconds
    kind, length = HEADER.unpack(_exactly(connection, HEADER.size, deadline))
    if length > most:
        raise BrokenError(f"a frame of {length:,} bytes")
    return kind, _exactly(connection, length, deadline)


def _exactly(connection: socket.socket, count: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < count:
        if deadline is not None:
            left = deadline - monotonic()
            if left <= 0:
                raise BrokenError("too slow")
            connection.settimeout(left)
        try:
            piece = connection.recv(min(count - len(data), PIECE))
        except TimeoutError:
            raise BrokenError("too slow") from None
        if not piece:
            raise BrokenError("it went away")
        data += piece
    return bytes(data)
