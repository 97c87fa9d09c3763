"""The search processes of one opened vault: started, asked, replaced, and killed at the lock.

Boundary: hands the vault's root key to processes that this one starts, through a pipe that no
other process can open: never on a command line, in the environment or in a file. Passphrases are
taken out of their environment. :meth:`Searchers.stop` kills them, and waits until their memory is
gone.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic

from memory_store.errors import LockedError
from memory_store.processes import Child, send_bytes, variables_without
from memory_store.records import SearchRequest, SearchResponse
from memory_store.scopes import Limits
from memory_store.searchers.wire import Outcome, Question, receive, send
from memory_store.store import MemoryStore, Opening

COMMAND = (sys.executable, "-P", "-m", "memory_store.searchers.process")
"""``-P``: no module is taken from the folder that the server was started in."""
SECRETS = ("MEMORY_STORE_PASSPHRASE", "MEMORY_STORE_KEY_FILE")
DEPTH = 2
"""Questions that a process has at once: it goes on with the next one while the server, whose
threads wait for one another, has not looked at the last answer yet (50 pages a second, not 43)."""
WORTH = 3  # searches; for one or two, starting a process takes longer than they do
SHORT_LIFE = 60.0  # seconds; a process that dies younger than that is not started again

LONGEST = 60.0
"""Seconds until an answer is not waited for any more: the deepest search takes a few, and rewording
a question at most ten. A process that takes longer is stuck, as one that is stopped is."""


class SearchProcess:
    """One process with the vault open, asked by many threads and answering in their order."""

    def __init__(self, store: MemoryStore) -> None:
        self.begun = monotonic()
        self._child = Child(*COMMAND, variables=variables_without(*SECRETS))
        self._store = store
        self._asked: deque[Future[Outcome]] = deque()
        self._asking = threading.Lock()
        self._ended = False
        self._listener = threading.Thread(target=self._listen, name="hybrid-searcher", daemon=True)

    def open(self) -> None:
        """Hand the vault over, and wait until it is open and its models are loaded.

        Raises ``OSError`` or ``EOFError`` when the process ends instead, :class:`LockedError`.
        """

        def lend(opening: Opening, root: bytearray) -> None:
            send(self._child.asked, opening)
            send_bytes(self._child.asked, root)

        self._store.lend(lend)
        receive(self._child.answered)
        self._listener.start()

    def ask(self, question: Question) -> Outcome:
        """The outcome. Raises ``OSError`` or ``EOFError`` when the process is gone.

        When it is stuck: ``TimeoutError``, which is an ``OSError``.
        """
        outcome: Future[Outcome] = Future()
        with self._asking:
            if self._ended:
                raise EOFError
            self._asked.append(outcome)
            send(self._child.asked, question)
        return outcome.result(LONGEST)

    def kill(self) -> None:
        """End it at once, and wait until it has."""
        self._child.process.kill()
        if self._listener.is_alive():
            self._listener.join()
        self._child.end()

    def _listen(self) -> None:
        """Hand out answers until there are no more. At the end no caller is left waiting."""
        try:
            while True:
                outcome = receive(self._child.answered)
                self._asked.popleft().set_result(outcome)
        except (OSError, EOFError, pickle.UnpicklingError):
            return  # gone, or no answers: those who wait get an error below
        finally:
            with self._asking:
                self._ended = True
            for unanswered in self._asked:
                unanswered.set_exception(EOFError())


class Searchers:
    """At most so many search processes over one opened store. Safe to use from many threads.

    One is started with the third search, and another one when a search finds none that is free.
    The store does such searches itself. So a vault that is hardly searched, or by one at a time,
    costs no more memory than it is worth.
    """

    def __init__(self, store: MemoryStore, count: int, log: Callable[[str], None]) -> None:
        self._store = store
        self._log = log
        self._missing = count
        self._starting = False
        self._unanswered = 0
        self._free: deque[SearchProcess] = deque()  # each as often as it can be asked
        self._all: set[SearchProcess] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def ask(
        self, views: tuple[Limits, ...], method: str, request: SearchRequest
    ) -> SearchResponse | None:
        """The answer of a process that is free; ``None`` when there is none: search yourself.

        Raises what the store's method raises.
        """
        with self._lock:
            process = self._free.popleft() if self._free else None
        if process is None:
            self._start_another()
            return None
        asked = monotonic()
        try:
            outcome = process.ask(Question(views, method, request))
        except BaseException as error:  # it may be in the middle of anything
            end = "was stuck" if isinstance(error, TimeoutError) else "died"
            self._replace(process, f"a search process {end}", asked - process.begun)
            if isinstance(error, OSError | EOFError):
                return None
            raise
        with self._lock:
            if process in self._all:
                self._free.append(process)
        if outcome.refused is not None:
            raise outcome.refused
        return outcome.found

    @property
    def ready(self) -> int:
        """How many processes can be asked just now."""
        return len(set(self._free))

    def stop(self) -> None:
        """Kill them all, and start none again."""
        with self._lock:
            self._stopped = True
            ending, self._all = self._all, set()
            self._free.clear()
        for process in ending:
            process.kill()

    def _start_another(self) -> None:
        with self._lock:
            self._unanswered += 1
            worth = self._unanswered >= WORTH and not self._starting and not self._free
            if self._stopped or not worth or not self._missing:
                return
            self._missing -= 1
            self._starting = True
        starting = threading.Thread(target=self._start, name="hybrid-searcher", daemon=True)
        try:
            starting.start()
        except RuntimeError:  # as many threads as this machine allows: a later search tries again
            with self._lock:
                self._missing += 1
                self._starting = False

    def _start(self) -> None:
        process = None
        try:
            with self._lock:
                if self._stopped:
                    return
                process = SearchProcess(self._store)
                self._all.add(process)
            process.open()
        except (OSError, EOFError, RuntimeError, LockedError):  # or no thread that listens to it
            self._discard(process, "a search process did not start")
        with self._lock:
            self._starting = False
            if process in self._all:
                self._free.extend([process] * DEPTH)

    def _replace(self, process: SearchProcess, problem: str, lived: float) -> None:
        """Have another process instead of one that died, unless it died young: so would that.

        It ``lived`` until it was asked: being stuck for long is no long life.
        """
        if self._discard(process, problem):
            with self._lock:
                self._missing += lived > SHORT_LIFE

    def _discard(self, process: SearchProcess | None, problem: str) -> bool:
        """Whether it was one of ours until now."""
        with self._lock:
            if self._stopped or (process is not None and process not in self._all):
                return False
            self._all -= {process}
            self._free = deque(other for other in self._free if other is not process)
        if process is not None:
            process.kill()
        self._log(f"{problem}: its searches run in the server itself")
        return True
