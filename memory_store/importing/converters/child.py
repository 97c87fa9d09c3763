"""A process that reads documents of one kind: it locks itself in, then answers its parent.

Boundary: hostile bytes come in, text goes out, both through pipes. After the parser is loaded, the
process can open nothing any more (neither files nor connections: no number is left for them), can
write no byte to a file, leaves no picture of its memory behind, and has a bounded memory. So on
Linux and macOS; on Windows, time alone is limited.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import msgspec

from memory_store.importing.converters.document import Document, LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import KINDS, converter
from memory_store.processes import pipes, receive_bytes, send_bytes

MEMORY_LIMIT = 3 * 1024**3  # bytes of address space, of which the libraries take a third


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
    asked, answered = pipes()
    lock_in()
    with suppress(EOFError):
        while True:
            answer = _answer(convert, bytes(receive_bytes(asked)))
            send_bytes(answered, msgspec.msgpack.encode(answer))


def _answer(convert: Callable[[bytes], list[Document]], data: bytes) -> Answer:
    try:
        return Answer(convert(data))
    except LeftOutError as error:
        return Answer(refused=str(error), left_out=True)
    except UnreadableError as error:
        return Answer(refused=str(error))
    except MemoryError:
        return Answer(refused="needs more memory than it may take")
    except RecursionError:
        return Answer(refused="nested too deeply")
    except Exception as error:  # noqa: BLE001 - a parser fails in its own ways on broken files
        return Answer(refused=f"broken: its reader stopped ({type(error).__name__})")


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
        (resource.RLIMIT_NPROC, 0),  # no other process and no thread; root may start some
    ):
        with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
            resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    import_module("memory_store.importing.converters.child").main(sys.argv[1])
