"""A machine on which no thread can be started."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

TOO_LARGE = 1 << 46  # bytes of address space: more than a process can have


@contextmanager
def no_thread_to_be_had() -> Iterator[None]:
    """Inside, every thread fails to start as it does when the machine has too many."""
    usual = threading.stack_size(TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(usual)
