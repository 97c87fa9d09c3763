"""A keeper: ``python -m memory_store.keeper_process``, started by ``unlock`` alone.

Boundary: takes the vault's root key from the pipe that it was started with, and wipes it, with
index and models, before it ends. Standard streams are closed: nothing is printed or logged.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

from memory_store.crypto.keys import SecretKey
from memory_store.errors import MemoryStoreError
from memory_store.keeper.launch import READY, Kept
from memory_store.keeper_process.server import Server
from memory_store.processes import Stream
from memory_store.searchers.wire import receive, receive_root, send
from memory_store.session.unlock import open_with_root
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.storage.file_access import file_access

PR_SET_DUMPABLE = 4  # linux/prctl.h


def main() -> int:
    """Take the vault over, say so, and keep it until a limit, a signal or ``lock``."""
    _keep_memory_private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the terminal's, which has gone on
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.umask(0o077)
    asked: Stream = os.fdopen(os.dup(0), "rb", buffering=0)
    answered: Stream = os.fdopen(os.dup(1), "wb", buffering=0)
    with open(os.devnull, "r+b", buffering=0) as nothing:
        for descriptor in range(3):
            os.dup2(nothing.fileno(), descriptor)
    threading.excepthook = lambda _: None  # a traceback may quote a memory
    kept: Kept = receive(asked)
    root = receive_root(asked)
    threading.Thread(target=_load_assistants, name="loading", daemon=True).start()
    try:
        with _opened(kept, root) as store, Server(store, kept) as server:
            store.warm()
            gc.freeze()  # what is there now stays: no use in looking through it again and again
            send(answered, READY)
            for pipe in (asked, answered):
                pipe.close()
            server.serve()
    except (MemoryStoreError, OSError, sqlite3.Error) as error:
        _say(answered, str(error))
        return 1
    return 0


def _load_assistants() -> None:
    """Import what serves an assistant, beside index and model: the first one is not to wait."""
    with suppress(ImportError):  # the extra is missing: an assistant reads that when it connects
        import_module("memory_store.assistants.server")


def _opened(kept: Kept, root: SecretKey) -> MemoryStore:
    opening = kept.opening
    access = file_access(opening.path)
    vault = open_with_root(opening.path, opening.principal, root, access, opening.pin)
    return MemoryStore(vault, embedder=opening.embedder, expander=opening.expander)


def _say(answered: Any, message: str) -> None:
    """To the process that started this one, as long as it listens."""
    if not answered.closed:
        send(answered, message)


def _keep_memory_private() -> None:
    """No core dump, and no look into this process by others of the same user."""
    import resource  # not on Windows, where there are no keepers

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
