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
SIZES = (10_000, 100_000, 1_000_000)
SMALL = 1_000
HEADINGS = ("operation", "peer", *(f"{size:,}" for size in SIZES), "target")
SHOWN = (  # beside what misses its target; the file has every line
    "vector ranking, k 64",
    "keyword ranking, 8 words",
    "hybrid search, answered",
    "hybrid search, sealed",
    "standard search, 64 pairs reranked",
    "deep search, 256 pairs reranked",
    "unlock, words and vectors",
    "import without embedding",
    "import with embedding",
    "database size, words and vectors",
)
HELD = {"notes": 1, "unlock": 2, "first search": 3, "later searches": 4, "before": 5, "unlocked": 6}
CROWDS = (1, 8, 32)

Figures = dict[str, Any]


def conditions() -> str:
    """The machine, the command and every version, in a few lines."""
    found = _figures()
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    qmd = " QMD was not there." if found["without_qmd"] else ""
    again = found.get("again", {})
    later = (
        " Vaults of 1,000 and 10,000 notes were measured again, on later code "
        f"({again['machine']}): `{again['command']}`. QMD's ratios are of the first run."
        if again
        else ""
    )
    return f"Machine: {found['machine']}. Command: `{found['command']}`. {versions}.{qmd}{later}"


def chosen() -> str:
    """The lines that are shown, and those that miss their target; small sizes where no other is."""
    lines = [line for line in _lines() if line["kind"] != "Held"]
    larger = {line["operation"] for line in lines if line["size"] != SMALL}
    return _by_size(
        HEADINGS,
        [
            line
            for line in lines
            if line["size"] != SMALL or line["operation"] not in larger
            if line["operation"] in SHOWN or _missed(line)
        ],
    )


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
    """What a process with an opened vault holds, which searches by words and meaning."""
    rows = [line["cells"] for line in _lines() if line["kind"] == "Held"]
    return _table(
        [*HELD],
        [[row[n] for n in HELD.values()] for row in rows if row[0].startswith("hybrid")],
    )


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
    """Datasette under load: a row for each version and surface, a column for each crowd."""
    loads = [_figures()["load"], json.loads(NEXT.read_text("utf-8"))]
    rows = [
        [
            f"{one['versions'].split(',')[0].removeprefix('Datasette ')}, {surface}",
            *_crowds(one, surface),
        ]
        for one in loads
        for surface in dict.fromkeys(line["surface"] for line in one["lines"])
    ]
    heads = [f"{n} client{'s' if n > 1 else ''}" for n in CROWDS]
    return _table(["Datasette", *heads], rows)


def _crowds(one: Figures, surface: str) -> list[str]:
    """Answers a second, the time that 95 of 100 take, and how many were turned away."""
    found = {line["clients"]: line for line in one["lines"] if line["surface"] == surface}
    return [_crowd(found[n]) if n in found else "" for n in CROWDS]


def _crowd(line: Figures) -> str:
    away = f", {line['turned_away']} turned away" if line["turned_away"] else ""
    shown = f"{line['per_second']:.0f}/s, {_time(line['p95'])}{away}"
    return shown if line["met"] else f"**{shown}**"


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
