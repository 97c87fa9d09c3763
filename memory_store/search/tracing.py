"""Explain: what each stage did, written down while it does it. There is no second code path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from memory_store.records import StageReport


class Trace:
    """The stages of one search, in order, with wall times and details."""

    def __init__(self) -> None:
        self._start = perf_counter()
        self._reports: list[StageReport] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time a stage; what is put into the dictionary becomes its details."""
        start = perf_counter()
        details: dict[str, Any] = {}
        yield details
        self._reports.append(StageReport(name, (perf_counter() - start) * 1_000, details))

    @property
    def reports(self) -> tuple[StageReport, ...]:
        """One report per stage so far."""
        return tuple(self._reports)

    @property
    def milliseconds(self) -> float:
        """Wall time since the search began."""
        return (perf_counter() - self._start) * 1_000
