"""Reading as much as fits into a time limit: batches of like length, none that would pass it.

A model pads every text of a batch to the longest in it, so a batch costs its size times its
longest text. How long a unit of that takes is measured on the first few texts, and every further
batch is begun only if it should end in time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

PROBE = 4  # texts read first to learn the pace: few, since nothing says yet whether they fit


def batches_in_time(
    lengths: Sequence[int],
    size: int,
    deadline: float | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[list[int]]:
    """Batches of at most ``size`` places in ``lengths`` (above 0), each to be read when it comes.

    With a ``deadline`` (a moment of ``clock``) the first places are served first, as many as
    should fit, and the iterator ends before the batch that would not. The time between one batch
    and the request for the next counts as the reading of it.
    """
    if deadline is None:
        yield from sorted_batches(lengths, range(len(lengths)), size)
        return
    done = units = 0
    spent = 0.0
    while done < len(lengths) and clock() < deadline:
        room = (deadline - clock()) * units / spent if spent > 0 else 0.0
        last = _fitting(lengths, done, size, room) if spent > 0 else done + min(PROBE, size)
        if last == done:
            return
        for batch in sorted_batches(lengths, range(done, min(last, len(lengths))), size):
            cost = padded(lengths, batch)
            before = clock()
            if units and before + cost * spent / units > deadline:
                return
            yield batch
            spent += clock() - before
            units += cost
        done = last


def sorted_batches(lengths: Sequence[int], places: Sequence[int], size: int) -> Iterator[list[int]]:
    """``places`` in batches of like length, the shortest first."""
    ordered = sorted(places, key=lambda place: lengths[place])
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def padded(lengths: Sequence[int], batch: Sequence[int]) -> int:
    """What a batch costs: every text of it as long as the longest."""
    return len(batch) * max(lengths[place] for place in batch)


def _fitting(lengths: Sequence[int], done: int, size: int, room: float) -> int:
    """The place up to which everything after ``done`` costs ``room`` units at most."""

    def cost(last: int) -> int:
        batches = sorted_batches(lengths, range(done, last), size)
        return sum(padded(lengths, batch) for batch in batches)

    return done + bisect_right(range(done + 1, len(lengths) + 1), room, key=cost)
