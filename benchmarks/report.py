"""The lines of the benchmark and the table they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.measuring import Spent

HEADINGS = ("operation", "n", "CPU", "wall", "peer", "CPU", "ours ÷ peer", "target", "met")


@dataclass(frozen=True)
class Line:
    """One measurement. ``limit`` is the target in seconds, or as a ratio where ``judged`` says so.

    ``judged`` is what the limit is held against: ``cpu``, ``wall`` or ``ratio`` (ours ÷ peer).
    """

    operation: str
    size: int
    ours: Spent
    peer: str = ""
    theirs: Spent | None = None
    target: str = ""
    limit: float | None = None
    judged: str = "cpu"

    @property
    def ratio(self) -> float | None:
        """Ours ÷ the peer's, in CPU time (wall where that is judged)."""
        if self.theirs is None:
            return None
        if self.judged == "wall":
            return self.ours.wall / self.theirs.wall
        return self.ours.cpu / self.theirs.cpu

    def cells(self) -> tuple[str, ...]:
        """The line as the table shows it."""
        held = {"cpu": self.ours.cpu, "wall": self.ours.wall, "ratio": self.ratio}[self.judged]
        return (
            self.operation,
            f"{self.size:,}",
            shown_time(self.ours.cpu),
            shown_time(self.ours.wall),
            self.peer,
            shown_time(self.theirs.cpu) if self.theirs else "",
            shown_ratio(self.ratio),
            self.target,
            _met(held, self.limit),
        )


@dataclass(frozen=True)
class Proportion:
    """One size: bytes on disk ÷ bytes of text."""

    operation: str
    size: int
    ratio: float
    target: str = ""
    limit: float | None = None

    def cells(self) -> tuple[str, ...]:
        """The line as the table shows it."""
        met = _met(self.ratio, self.limit)
        size, ratio = f"{self.size:,}", shown_ratio(self.ratio)
        return (self.operation, size, "", "", "the text", "", ratio, self.target, met)


def _met(held: float | None, limit: float | None) -> str:
    """``yes``, or by how much the target is missed; empty without one."""
    if held is None or limit is None:
        return ""
    return "yes" if held <= limit else f"{held / limit:.1f} × over"


def shown_time(seconds: float) -> str:
    """Seconds with three digits that say something."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1_000
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2f} ms"


def shown_ratio(ratio: float | None) -> str:
    """A ratio with two digits that say something."""
    if ratio is None:
        return ""
    return f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}"


def table(lines: Iterable[Line | Proportion]) -> str:
    """A Markdown table, its columns aligned for the terminal too."""
    return drawn([HEADINGS, *(line.cells() for line in lines)])


def drawn(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first one as its head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
