"""Embedding in the background: an open vault gives memories that have no vectors theirs.

Boundary: works with the open store, which opens texts and closes them again; only counts and times
leave this module. A lock stops it first: what a batch had begun is dropped, and the next unlock
goes on from the batch before.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from time import monotonic

from memory_store.errors import LockedError, MemoryStoreError
from memory_store.records import Embedding
from memory_store.records.pace import Pace
from memory_store.store import MemoryStore

REST = 0.25  # of the time worked: searches and writes that wait get the processor meanwhile
LONGEST_REST = 1.0
AGAIN_SECONDS = 60.0  # between two looks that searches ask for, where the last one found no more
FINISH_SECONDS = 10.0
NICENESS = 10  # of 19: behind whatever else this machine does

Begin = Callable[[str, Callable[[], object], Callable[[], object]], None]
"""Runs work of a name in a thread; it is given what stops that work, too."""


class BackgroundEmbedding:
    """The one thread that embeds what an open vault still lacks. Made at an unlock.

    ``log`` is given a line about a model that is missing or fails.
    """

    def __init__(self, store: MemoryStore, log: Callable[[str], None], begin: Begin) -> None:
        self._store = store
        self._thread = begin
        self._log = log
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._anew = False
        self._running = False
        self._ended = -AGAIN_SECONDS
        self._rested = 0.0
        self._pace = Pace()

    def begin(self) -> None:
        """Embed what lacks vectors. One that is at work begins again with the newest."""
        with self._lock:
            self._anew = True
            if self._running or self._stopped.is_set():
                return
            self._running = True
        try:  # on behalf of no asker
            Context().run(self._thread, "hybrid-embed", self._run, self.stop)
        except RuntimeError:  # no thread is to be had: the next import or unlock tries again
            self._running = False

    def look(self) -> None:
        """Begin where a search has found memories without vectors, but not again and again."""
        if not self._running and monotonic() - self._ended > AGAIN_SECONDS:
            self.begin()

    def stop(self) -> None:
        """End at the next breath, a quarter of a second of work from here. Waits for nothing."""
        self._stopped.set()

    @property
    def running(self) -> bool:
        """Whether memories are being embedded now."""
        return self._running and not self._stopped.is_set()

    def seconds_left(self, words: int) -> float | None:
        """How long so many words will take; ``None`` while that is not known."""
        return self._pace.seconds(words)

    def _run(self) -> None:
        _step_back()
        while self._next():
            try:
                for line in self._store.embed_missing(progress=self._at, breath=self._breathe):
                    self._log(line)
            except _NewerError:
                continue
            except LockedError:  # or the server ends: the next unlock goes on
                self._stopped.set()
            except MemoryStoreError as error:
                self._log(f"embedding stopped: {error}")
            except Exception as error:  # noqa: BLE001 - its own words may quote a text
                self._log(f"embedding stopped ({type(error).__name__})")

    def _next(self) -> bool:
        """Whether there may be more to do. Where there is not, the thread ends."""
        with self._lock:
            self._running = self._anew and not self._stopped.is_set()
            self._anew = False
            self._ended = self._rested = monotonic()
            self._pace = Pace()
            return self._running

    def _at(self, now: Embedding) -> None:
        self._pace.at(now.words_done)

    def _breathe(self) -> None:
        """Rest for a share of the time worked since the last rest.

        Raises LockedError at a stop, and _NewerError where more was imported meanwhile.
        """
        worked = monotonic() - self._rested
        if self._stopped.wait(min(REST * worked, LONGEST_REST)):
            raise LockedError("the vault is being locked")
        if self._anew:
            raise _NewerError
        self._rested = monotonic()


@contextmanager
def embedding_beside(
    store: MemoryStore, log: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """For a process that keeps a vault open for a while: index and model are loaded at once, beside
    what it does, and then what lacks vectors is embedded.

    Gives what begins that again, when more was written in words alone. Then the end waits for it,
    up to :data:`FINISH_SECONDS`; who opens the vault next goes on.
    """
    threads: list[threading.Thread] = []
    asked = threading.Event()

    def begin(name: str, work: Callable[[], object], _: object) -> None:
        threads.append(threading.Thread(target=work, name=name, daemon=True))
        threads[-1].start()

    def load() -> None:
        with suppress(MemoryStoreError):  # a search that needs the model says so itself
            store.warm()
            if store.embedding().left or store.incomplete():
                embedding.begin()

    def again() -> None:
        asked.set()
        embedding.begin()

    embedding = BackgroundEmbedding(store, log, begin)
    store.embedded_by(embedding)
    begin("loading", load, None)
    try:
        yield again
    finally:
        ending = monotonic() + FINISH_SECONDS
        for thread in threads if asked.is_set() else ():
            thread.join(max(0.0, ending - monotonic()))
        embedding.stop()
        for thread in threads:  # a process that ends inside of a model crashes
            thread.join()


class _NewerError(Exception):
    """More was imported: the newest of all comes first."""


def _step_back() -> None:
    """Let everything else on this machine go first: this thread, and those that it begins.

    Linux alone counts each thread by itself; elsewhere the rests have to do.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
