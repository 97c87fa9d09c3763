"""A process that reads documents of one kind: it locks itself in, then answers its parent.

Boundary: hostile bytes come in, text goes out, both through pipes. After the parser is loaded, the
process can open nothing any more (neither files nor connections: no number is left for them), can
write no byte to a file, leaves no picture of its memory behind, and has a bounded memory. So on
Linux and macOS; on Windows, time alone is limited.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import IO

import msgspec

from memory_store.importing.converters.document import Document, LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import KINDS, converter

MEMORY_LIMIT = 3 * 1024**3  # bytes of address space, of which the libraries take a third
LENGTH = 8  # bytes before each message: its length, big-endian


class Answer(msgspec.Struct, frozen=True):
    """What was read; or ``refused``, why not. ``left_out``: there is nothing to import."""

    documents: list[Document] = []
    refused: str = ""
    left_out: bool = False


def main(name: str) -> None:
    """Answer until the pipe is closed."""
    convert = converter(name)
    if name == "eml":  # attachments may be of any kind
        for kind in KINDS:
            if not kind.missing:
                converter(kind.name)
    for alias in set(encodings.aliases.aliases.values()):  # what text is written in, loaded ahead
        with suppress(LookupError, ImportError):
            codecs.lookup(alias)
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes where its errors go: nowhere
    lock_in()
    while data := receive(incoming):
        try:
            answer = Answer(convert(data))
        except LeftOutError as error:
            answer = Answer(refused=str(error), left_out=True)
        except UnreadableError as error:
            answer = Answer(refused=str(error))
        except MemoryError:
            answer = Answer(refused="needs more memory than it may take")
        except RecursionError:
            answer = Answer(refused="nested too deeply")
        except Exception as error:  # noqa: BLE001 - a parser fails in its own ways on broken files
            answer = Answer(refused=f"broken: its reader stopped ({type(error).__name__})")
        send(outgoing, msgspec.msgpack.encode(answer))


def send(stream: IO[bytes], data: bytes) -> None:
    """One message to the other side."""
    stream.write(len(data).to_bytes(LENGTH, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes], most: float = float("inf")) -> bytes:
    """One message; empty where the other side is gone, or would send more than the ``most``."""
    head = stream.read(LENGTH)
    size = int.from_bytes(head, "big")
    if len(head) < LENGTH or size > most:
        return b""
    data = stream.read(size)
    return data if len(data) == size else b""


def lock_in() -> None:
    """Give up what reading needs no more."""
    if sys.platform == "win32":
        return
    import resource

    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_NOFILE, 3),  # 0, 1 and 2 are taken
    ):
        with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
            resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    import_module("memory_store.importing.converters.child").main(sys.argv[1])
