"""The lines of the benchmark and the tables they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from benchmarks.measuring import Spent

HEADINGS = ("operation", "n", "CPU", "wall", "peer", "CPU", "ours ÷ peer", "target", "met")
HELD_HEADINGS = (
    *("process", "n", "unlock", "first search", "later searches", "before", "unlocked", "searched"),
    "index",
)

AMOUNT_HEADINGS = ("what", "n", "ours", "peer", "theirs", "ours ÷ peer", "target", "met")


def write_figures(file: Path | None, figures: Any) -> None:
    """Write the figures as JSON, where a file is named for them."""
    if file is not None:
        file.write_text(
            json.dumps(to_builtins(figures), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )


class Line(Struct, frozen=True):
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


class Proportion(Struct, frozen=True):
    """A share or a ratio: recall, two clients ÷ one, cores busy.

    ``at_least`` turns the target round; ``digits`` are those behind the point.
    """

    operation: str
    size: int
    ratio: float
    target: str = ""
    limit: float | None = None
    peer: str = "the text"
    at_least: bool = False
    digits: int | None = None

    def cells(self) -> tuple[str, ...]:
        """The line as the table shows it."""
        met = _met(self.ratio, self.limit)
        if self.at_least and self.limit is not None:
            met = "yes" if self.ratio >= self.limit else "no"
        shown = shown_ratio(self.ratio) if self.digits is None else f"{self.ratio:.{self.digits}f}"
        return (self.operation, f"{self.size:,}", "", "", self.peer, "", shown, self.target, met)


class Amount(Struct, frozen=True):
    """Bytes in memory or in a file beside a peer's, or bytes a second where ``unit`` says so.

    ``limit`` is held against ours ÷ peer.
    """

    operation: str
    size: int
    ours: float
    peer: str
    theirs: float
    target: str = ""
    limit: float | None = None
    unit: str = "B"

    @property
    def ratio(self) -> float:
        """Ours ÷ the peer's."""
        return self.ours / self.theirs

    def cells(self) -> tuple[str, ...]:
        """The line as its table shows it."""
        return (
            self.operation,
            f"{self.size:,}",
            shown_bytes(self.ours, self.unit),
            self.peer,
            shown_bytes(self.theirs, self.unit),
            shown_ratio(self.ratio),
            self.target,
            _met(self.ratio, self.limit),
        )


class Held(Struct, frozen=True):
    """One process with an opened vault: seconds, and bytes of memory that it alone holds.

    ``before`` is with everything imported and nothing opened; ``index`` the bytes of its index.
    """

    process: str
    size: int
    unlock: Spent
    first: Spent
    later: Spent
    before: int
    unlocked: int
    searched: int
    index: int

    def cells(self) -> tuple[str, ...]:
        """The line as its table shows it."""
        times = (self.unlock, self.first, self.later)
        held = (self.before, self.unlocked, self.searched, self.index)
        return (
            self.process,
            f"{self.size:,}",
            *(shown_time(one.cpu) for one in times),
            *(f"{one / 1e6:.0f} MB" for one in held),
        )


Measured = Line | Proportion | Amount | Held


def as_data(line: Measured) -> dict[str, Any]:
    """The line for JSON, with its ratio, if it has one, and the cells of its table."""
    told = {"kind": type(line).__name__, "cells": line.cells()}
    return {"ratio": getattr(line, "ratio", None), **to_builtins(line), **told}


def _met(held: float | None, limit: float | None) -> str:
    """``yes``, or by how much the target is missed; empty without one."""
    if held is None or limit is None:
        return ""
    times = held / limit
    return "yes" if times <= 1 else f"{times:.{1 if times >= 1.1 else 2}f} × over"


def shown_time(seconds: float) -> str:
    """Seconds with three digits that say something."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1_000
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2f} ms"


def shown_bytes(count: float, unit: str = "B") -> str:
    """Bytes with digits that say something."""
    size, scale = next((one for one in ((1e9, "G"), (1e6, "M")) if count >= one[0]), (1e3, "k"))
    return f"{count / size:.{0 if count >= 10 * size else 1}f} {scale}{unit}"


def shown_ratio(ratio: float | None) -> str:
    """A ratio with two digits that say something."""
    if ratio is None:
        return ""
    return f"{ratio:.0f}" if ratio >= 20 else f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}"


def tables(lines: Iterable[Measured]) -> str:
    """Markdown tables, aligned for the terminal too: times, bytes, and what processes hold."""
    every = list(lines)
    kinds: tuple[tuple[tuple[type, ...], Sequence[str]], ...] = (
        ((Line, Proportion), HEADINGS),
        ((Amount,), AMOUNT_HEADINGS),
        ((Held,), HELD_HEADINGS),
    )
    rows = {heads: [one.cells() for one in every if isinstance(one, kind)] for kind, heads in kinds}
    return "\n\n".join(drawn([heads, *found]) for heads, found in rows.items() if found)


def drawn(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first one as its head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
