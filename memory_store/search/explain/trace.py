"""What each stage did, written down while it does it. There is no second code path.

Only a trace that *follows* keeps reports, the order that each stage left and what was dropped on
the way; else these notes cost nothing.

Boundary: holds ordinals, scores, names of stages and the asker's own words; no text of memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_store.records import StageReport

if TYPE_CHECKING:
    from memory_store.search.adjustments import Scored


class Standing(Struct, frozen=True):
    """The results in the order that ``stage`` left, best first."""

    stage: str
    results: tuple[Scored, ...]


class Trace:
    """The stages of one search, in order, with times and details.

    ``following`` says whether anybody will ask for more than how long all took: ``standings`` are
    the orders after each stage that reorders, ``dropped`` the reasons why opened memories (by id)
    were left out. These and the reports stay empty otherwise.
    """

    def __init__(self, *, following: bool = False) -> None:
        self.following = following
        self.standings: list[Standing] = []
        self.dropped: dict[str, str] = {}
        self._start = perf_counter()
        self._reports: list[StageReport] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time a stage; what is put into the dictionary becomes its details."""
        details: dict[str, Any] = {}
        if not self.following:
            yield details
            return
        start, cpu = perf_counter(), process_time()
        yield details
        spent = (perf_counter() - start) * 1_000
        # processor time of the whole process: models and legs have own threads
        self._reports.append(StageReport(name, spent, details, (process_time() - cpu) * 1_000))

    def order(self, stage: str, results: Sequence[Scored]) -> None:
        """Remember the order that a stage left."""
        if self.following:
            self.standings.append(Standing(stage, tuple(results)))

    def drop(self, memory_id: str, reason: str) -> None:
        """Remember why an opened memory was left out."""
        if self.following:
            self.dropped[memory_id] = reason

    def add(self, stage: str, **details: Any) -> None:
        """More details for a stage that is over."""
        for report in self._reports:
            if report.stage == stage:
                report.details.update(details)  # type: ignore[attr-defined]  # made in stage()

    @property
    def reports(self) -> tuple[StageReport, ...]:
        """One report per stage so far."""
        return tuple(self._reports)

    @property
    def milliseconds(self) -> float:
        """Wall time since the search began."""
        return (perf_counter() - self._start) * 1_000
