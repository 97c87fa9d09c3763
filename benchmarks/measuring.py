"""Taking times: CPU and wall, medians, ours and a peer's in turn, so both meet the same load."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from msgspec import Struct


class Spent(Struct, frozen=True):
    """Seconds: ``cpu`` of all threads together (user and system), ``wall`` on the clock."""

    cpu: float
    wall: float


def spent_on(work: Callable[[], object]) -> Spent:
    """The time of one call in this process, or in another one where that is what it returns."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    if isinstance(result, Spent):
        return result
    return Spent(time.process_time() - cpu, time.perf_counter() - wall)


def median_of(times: Sequence[Spent]) -> Spent:
    """The medians of CPU and of wall time, each by itself."""
    return Spent(median(t.cpu for t in times), median(t.wall for t in times))


def side_by_side(
    works: Mapping[str, Callable[[Any], object]],
    inputs: Sequence[Any],
    *,
    warm: int = 1,
    pause: float = 0.0,
) -> dict[str, Spent]:
    """Every work on every input, in turn; medians over the inputs. ``warm`` are tried untimed.

    ``pause`` seconds before each: threads of one work may spin for a while after it, and the
    processor time of the whole process counts.
    """
    times: dict[str, list[Spent]] = {name: [] for name in works}
    for given in inputs[:warm]:
        for work in works.values():
            work(given)
    for given in inputs:
        for name, work in works.items():
            time.sleep(pause)
            times[name].append(spent_on(lambda work=work, given=given: work(given)))
    return {name: median_of(taken) for name, taken in times.items()}


def in_a_row(
    works: Mapping[str, Callable[[Any], object]], inputs: Sequence[Any], rounds: int = 3
) -> dict[str, Spent]:
    """Every work on all inputs, one after the other, and in ``rounds`` by turns; medians.

    What a work and its data left in the processor's caches is still there for the next input,
    where in :func:`side_by_side` the others have been there since.
    """
    times: dict[str, list[Spent]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name] += [spent_on(partial(work, given)) for given in inputs]
    return {name: median_of(taken) for name, taken in times.items()}


def commands_side_by_side(
    commands: Mapping[str, Sequence[str]], repeats: int, environment: Mapping[str, str]
) -> dict[str, Spent]:
    """The same for whole processes, started in turn. Raises when one of them fails."""
    times: dict[str, list[Spent]] = {name: [] for name in commands}
    for turn in range(repeats + 1):
        for name, command in commands.items():
            taken = _spent_by_child(command, environment)
            if turn:  # the first turn only fills the file system's cache
                times[name].append(taken)
    return {name: median_of(taken) for name, taken in times.items()}


def _spent_by_child(command: Sequence[str], environment: Mapping[str, str]) -> Spent:
    before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(cpu, time.perf_counter() - wall)
