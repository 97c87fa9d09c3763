"""Work that is broken off in the middle, as a closed terminal would break it off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

Progress = Callable[[str, int, "int | None"], None]


class _Stopped(Exception):
    """What breaks it off."""


@contextmanager
def stopped(after: int = 1) -> Iterator[Progress]:
    """A ``progress`` that breaks off the work inside after that many steps.

    Fails when the work was done before.
    """
    steps = 0

    def stop(name: str, done: int, total: int | None) -> None:
        nonlocal steps
        steps += 1
        if steps == after:
            raise _Stopped

    with pytest.raises(_Stopped):
        yield stop
