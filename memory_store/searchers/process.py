"""A search process: ``python -m memory_store.searchers.process``, started by ``pool`` alone.

Boundary: holds the vault's keys, index and models from its start to its end, and ends by being
killed: the operating system takes the memory back whole. It ends by itself when the server that
started it is gone. Nothing but answers leaves it, through the pipe.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

from memory_store.errors import MemoryStoreError
from memory_store.processes import Stream, pipes
from memory_store.searchers.wire import READY, Outcome, Question, receive, receive_root, send
from memory_store.session.unlock import open_with_root
from memory_store.store import MemoryStore, Opening

NICENESS = 5  # when all processors are busy, a page goes before a search


def main() -> int:
    """Open the vault that is named, say so, and answer until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's: it ends us
    with contextlib.suppress(AttributeError, OSError):  # not everywhere, nor always allowed
        os.nice(NICENESS)
    asked, answered = pipes()
    try:
        store = _opened(asked)
        store.warm()
        gc.freeze()  # what is there now stays: no use in looking through it again and again
        send(answered, READY)
        while True:
            send(answered, _outcome(store, receive(asked)))
    except (EOFError, BrokenPipeError):
        return 0


def _opened(asked: Stream) -> MemoryStore:
    opening: Opening = receive(asked)
    root = receive_root(asked)
    vault = open_with_root(opening.path, opening.principal, root, opening.access, opening.pin)
    return MemoryStore(vault, embedder=opening.embedder, expander=opening.expander)


def _outcome(store: MemoryStore, question: Question) -> Outcome:
    try:
        for one in question.views:
            store = store.limited_to(one.scope, readable=one.readable, asker=one.asker)
        return Outcome(found=getattr(store, question.method)(question.request))
    except MemoryStoreError as refusal:
        return Outcome(refused=refusal)
    except Exception:  # noqa: BLE001 - the server tries it itself, and meets the error where it can name it
        return Outcome()


if __name__ == "__main__":
    sys.exit(main())
