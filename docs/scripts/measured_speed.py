"""Writes the tables and sentences of trust/benchmarks.md from what ``make bench`` wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "figures"
FIGURES = FOLDER / "speed.json"
NEXT = FOLDER / "load-next.json"  # the same under Datasette 1.0
PLOTS = ("keyword", "vector", "hybrid", "unlock", "import", "again", "memory", "size")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TIMED = ("operation", "peer", *(f"{size:,}" for size in SIZES), "target")
HELD = (
    *("process", "n", "unlock", "first search", "later searches", "before", "unlocked", "searched"),
    "index",
)
WEIGHED = ("what", "peer", *(f"{size:,}" for size in SIZES), "target")
TIMES = ("Line", "Proportion")
HUNDRED = 100_000

Figures = dict[str, Any]


def conditions() -> str:
    """The machine, the command and every version, in a few lines."""
    found = _figures()
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    qmd = " QMD was not there." if found["without_qmd"] else ""
    return f"Machine: {found['machine']}. Command: `{found['command']}`. {versions}.{qmd}"


def timed() -> str:
    """Every time, and every share of one."""
    return _by_size(TIMED, [line for line in _lines() if line["kind"] in TIMES])


def weighed() -> str:
    """Bytes in memory and in files; empty where that was not measured."""
    lines = [line for line in _lines() if line["kind"] == "Amount"]
    return _by_size(WEIGHED, lines) if lines else ""


def _by_size(headings: Sequence[str], lines: Sequence[Figures]) -> str:
    """A row for each operation, a column for each size; a size that has no column is named."""
    rows: dict[str, list[Figures]] = {}
    for line in lines:
        named = "" if line["size"] in SIZES else f" (n {line['size']:,})"
        rows.setdefault(f"{line['operation']}{named}", []).append(line)
    return _table(headings, [_row(name, found) for name, found in rows.items()])


def _row(name: str, lines: Sequence[Figures]) -> list[str]:
    peers = list(dict.fromkeys(line["peer"] for line in lines))
    target = next((line["target"] for line in lines if line["target"]), "")
    cells = []
    for size in SIZES:
        at = {line["peer"]: line for line in lines if _column(line) == size}
        cells.append(_cell([at.get(peer) for peer in peers]) if at else "")
    return [name, ", ".join(peers), *cells, target]


def _column(line: Figures) -> int:
    """The size whose column a line stands in; the first for one without a column of its own."""
    size: int = line["size"]
    return size if size in SIZES else SIZES[0]


def _cell(peers: Sequence[Figures | None]) -> str:
    """Ours, and ours ÷ each peer's in brackets; bold where a target is missed."""
    line = next(one for one in peers if one is not None)
    amount = line["kind"] == "Amount"
    ours = line["cells"][3 if line.get("judged") == "wall" else 2]
    ratios = [one["cells"][5 if amount else 6] if one else "–" for one in peers]
    shared = ", ".join(ratios) if any(ratios) else ""
    shown = f"{ours} ({shared})" if ours and shared else ours or shared
    return f"**{shown}**" if _missed(line) else shown


def _missed(line: Figures) -> bool:
    return " over" in line["cells"][-1] or _no(line)


def held() -> str:
    """What processes with an opened vault hold; empty where that was not measured."""
    rows = [line["cells"] for line in _lines() if line["kind"] == "Held"]
    return _table(HELD, rows) if rows else ""


def plots() -> str:
    """Those that are drawn, two beside each other."""
    names = [f"plot-{name}.svg" for name in PLOTS if (FOLDER / f"plot-{name}.svg").exists()]
    rows = [names[n : n + 2] for n in range(0, len(names), 2)]
    return "\n\n".join(
        " ".join(
            f'<img src="../figures/{name}" width="400" alt="{_caption(name)}">' for name in row
        )
        for row in rows
    )


def _caption(name: str) -> str:
    return f"cost against size: {name.removeprefix('plot-').removesuffix('.svg')}"


def under_load() -> str:
    """Datasette under load, each version that was measured."""
    loads = [_figures().get("load")]
    loads += [json.loads(NEXT.read_text("utf-8"))] if NEXT.exists() else []
    return "\n\n".join(_load(one) for one in loads if one is not None)


def _load(one: Figures) -> str:
    pages = ", ".join(f"{name} {_time(taken)}" for name, taken in one["idle"].items())
    memory = " + ".join(f"{held / 1e6:.0f}" for held in one["memory"])
    inside = ", ".join(f"{name} {_time(taken)}" for name, taken in one["requests"].items())
    lines = (
        f"{one['versions']}. In process: {inside}; a search {_time(one['search'])}. Idle: {pages}."
    )
    if memory:
        lines += f" Its processes held {memory} MB at the end."
    eight = [line for line in one["lines"] if _has_target(line)]
    others = [line for line in one["lines"] if not _has_target(line)]
    lines += (
        f" **With 8 clients on the page and JSON, the targets are met in {_met(eight)}**; with "
        f"other crowds and in SQL, held against the same, in {_met(others)}."
    )
    return f"{lines}\n\n{_crowds(one['lines'])}"


def _crowds(lines: Sequence[Figures]) -> str:
    """A row for each surface, a column for each crowd; bold where the target is missed."""
    clients = sorted({line["clients"] for line in lines})
    surfaces = dict.fromkeys(line["surface"] for line in lines)
    found = {(line["surface"], line["clients"]): _crowd(line) for line in lines}
    heads = [f"{n} client{'s' if n > 1 else ''}" for n in clients]
    return _table(
        ["", *heads], [[one, *(found.get((one, n), "") for n in clients)] for one in surfaces]
    )


def _crowd(line: Figures) -> str:
    away = f", {line['turned_away']} away" if line["turned_away"] else ""
    shown = (
        f"{line['per_second']:.0f}/s, {_time(line['p95'])} ({line['p95'] / line['allowed']:.2f}), "
        f"home {line['home']:.2g}, table {line['table']:.2g}{away}"
    )
    return shown if line["met"] else f"**{shown}**"


def _has_target(line: Figures) -> bool:
    return line["clients"] == 8 and line["surface"] in ("page", "JSON")


def _met(lines: Sequence[Figures]) -> str:
    return f"{sum(line['met'] for line in lines)} of {len(lines)} lines"


def _no(line: Figures) -> bool:
    return bool(line["cells"][-1] == "no")


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1_000:.0f} ms"


def _figures() -> Figures:
    found: Figures = json.loads(FIGURES.read_text("utf-8"))
    return found


def _lines() -> list[Figures]:
    lines: list[Figures] = _figures()["lines"]
    return lines


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    drawn = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([drawn[0], "|---" * len(headings) + "|", *drawn[1:]])
