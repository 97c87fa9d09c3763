"""A second process that reads source code for a large import: ``SourceProcess`` starts and asks it.

Boundary: the process gets opened texts, and gives back what needs no key; it has none, nor another
secret (see ``processes``). It writes no file and leaves no core dump. It ends when the import does,
however that ends.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread

from msgspec import MsgspecError, Struct, msgpack

from memory_store.processes import Child, Stream, pipes, reader, receive_bytes, send_bytes
from memory_store.records import Memory
from memory_store.session.source_parts import PartsOf, SourceParts, source_parts
from memory_store.text.name_counts import NameCounter

TOGETHER = 4  # files a message: what the last ones of a batch are waited for
AHEAD = 3  # messages that are sent before they are answered, so that it need not wait for this one

_memories = msgpack.Decoder(list[Memory])
_parts = msgpack.Decoder(list[SourceParts])
_UNSENT = (ValueError, TypeError, OverflowError)  # half a character


class _Asked(Struct, frozen=True):
    """Some files of a batch, which are asked for together; ``batch`` are those not yet begun."""

    memories: Sequence[Memory]
    parts: Future[list[SourceParts]]
    batch: list[_Asked]


class SourceProcess:
    """One process, begun when it is first asked. ``here`` gives parts in this one."""

    def __init__(self, here: PartsOf) -> None:
        self._here = here
        self._child: Child | None = None
        self._asking = Thread(target=self._ask, name="source-process", daemon=True)
        self._waiting = SimpleQueue[_Asked | None]()
        self._asked: dict[str, tuple[_Asked, int]] = {}
        self._made: dict[str, SourceParts] = {}

    def begin(self, memories: Sequence[Memory]) -> None:
        """Have files of source code read in their order, without waiting."""
        if self._child is None:
            self._child = reader(__name__)
            self._asking.start()
        batch: list[_Asked] = []
        new = [one for one in memories if one.id not in self._asked]
        for start in range(0, len(new), TOGETHER):
            asked = _Asked(new[start : start + TOGETHER], Future(), batch)
            batch.append(asked)
            self._asked |= {one.id: (asked, number) for number, one in enumerate(asked.memories)}
            self._waiting.put(asked)

    def parts(self, memory: Memory) -> SourceParts:
        """The parts of a file. While the process reads it, those of the last ones that were begun
        with it are made here, so that neither waits for the other."""
        asked, number = self._asked.pop(memory.id, (None, 0))
        if asked is None:
            return self._here(memory)
        while asked.batch and not asked.parts.done():
            last = asked.batch.pop()
            if last.parts.cancel():
                self._made |= {one.id: self._here(one) for one in last.memories}
        if memory.id in self._made:
            return self._made.pop(memory.id)
        try:
            return asked.parts.result()[number]
        except (OSError, EOFError, MsgspecError, *_UNSENT):
            return self._here(memory)

    def close(self) -> None:
        """End the process, and with it all that it read."""
        for asked, _ in self._asked.values():
            asked.parts.cancel()
        self._waiting.put(None)
        if self._child is not None:
            self._child.process.kill()
            self._asking.join()
        self._asked.clear()
        self._made.clear()

    def _ask(self) -> None:
        """Ask the process until there is nothing more to come, or it fails: what it has not begun
        then is made here."""
        sent, child = deque[_Asked](), self._child
        assert child is not None
        try:
            with contextlib.suppress(OSError, EOFError, MsgspecError):
                while self._sends(child.asked, sent):
                    found = _parts.decode(receive_bytes(child.answered))
                    sent.popleft().parts.set_result(found)
        finally:
            for asked in sent:
                asked.parts.set_exception(EOFError())
            child.end()

    def _sends(self, stream: Stream, sent: deque[_Asked]) -> bool:
        """Send what waits, :data:`AHEAD` of the answers. False once nothing more will come."""
        while len(sent) < AHEAD:
            try:
                asked = self._waiting.get(block=not sent)
            except Empty:
                break
            if asked is None:
                return False
            if not asked.parts.set_running_or_notify_cancel():
                continue
            try:
                said = msgpack.encode(asked.memories)
            except _UNSENT as error:
                asked.parts.set_exception(error)
                continue
            sent.append(asked)
            send_bytes(stream, said)
        return True


def _listen(stream: Stream, heard: SimpleQueue[bytearray]) -> None:
    """Take messages as they come, so that the other end never waits; an empty one ends them."""
    with contextlib.suppress(EOFError):
        while True:
            heard.put(receive_bytes(stream))
    heard.put(bytearray())


def main() -> None:
    """Read files until the importing process closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the import's: it ends this
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asked, answered = pipes()
    heard, counter = SimpleQueue[bytearray](), NameCounter()
    Thread(target=_listen, args=(asked, heard), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):
        while said := heard.get():
            some = _memories.decode(said)
            parts = [source_parts(one, counter) for one in some]
            send_bytes(answered, msgpack.encode(parts))


if __name__ == "__main__":
    main()
