"""The trace: what each stage did, written down while it runs. There is no second code path.

Only a trace that is *following* keeps the stages, the order that each of them left and what was
dropped on the way. Otherwise these notes cost nothing.

Boundary: ordinals, scores, names of stages and the caller's own words; no text of memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from memory_store.records.explanation import Stage

if TYPE_CHECKING:
    from memory_store.search.candidates import Scored


Kind = TypeVar("Kind", bound=Stage)


class Standing(Struct, frozen=True):
    """The results in the order that ``stage`` left, best first."""

    stage: str
    results: tuple[Scored, ...]


class Trace:
    """The stages of one search, in order, with times and details.

    ``following`` says whether the caller wants more than how long it took: ``standings`` are the
    orders after each stage that reorders, ``dropped`` the reasons why opened memories (by id) were
    left out. Otherwise these and the stages stay empty.
    """

    def __init__(self, *, following: bool = False) -> None:
        self.following = following
        self.standings: list[Standing] = []
        self.dropped: dict[str, str] = {}
        self._start = perf_counter()
        self._stages: list[Stage] = []

    def again(self) -> Trace:
        """An empty trace of a search that began when this one did."""
        trace = Trace(following=self.following)
        trace._start = self._start
        return trace

    @contextmanager
    def stage(self, kind: type[Kind]) -> Iterator[Kind]:
        """Time a stage, which fills in what is yielded."""
        stage = kind()
        if not self.following:
            yield stage
            return
        start, cpu = perf_counter(), process_time()
        yield stage
        stage.milliseconds = round((perf_counter() - start) * 1_000, 3)
        # processor time of the whole process: models and legs have own threads
        stage.cpu_milliseconds = round((process_time() - cpu) * 1_000, 3)
        self._stages.append(stage)

    def order(self, stage: str, results: Sequence[Scored]) -> None:
        """Remember the order that a stage left."""
        if self.following:
            self.standings.append(Standing(stage, tuple(results)))

    def drop(self, memory_id: str, reason: str) -> None:
        """Remember why an opened memory was left out."""
        if self.following:
            self.dropped[memory_id] = reason

    def of(self, kind: type[Kind]) -> Kind:
        """A stage that is over, to fill in more of."""
        return next(stage for stage in self._stages if isinstance(stage, kind))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What each stage did, so far."""
        return tuple(self._stages)

    @property
    def milliseconds(self) -> float:
        """Wall time since the search began."""
        return (perf_counter() - self._start) * 1_000
