"""Draws what docs/figures/speed.json holds: cost against size, ours, its peers' and the target's.

    make bench ARGS="--full --json docs/figures/speed.json" && make plots

Every plot is a small SVG, readable on white and on black.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter
from msgspec import Struct

FOLDER = Path(__file__).parents[1] / "figures"
FIGURES = FOLDER / "speed.json"
INK = "#7d8590"  # a grey that stands out from white (4.0 : 1) and from black (5.2 : 1) alike
COLOURS = ("#1f77b4", "#d9730d", "#2a9d5c", "#b0529e", "#8a6d3b")
OURS = ("#d1242f", "#8957e5")

Figure = Mapping[str, Any]
Points = Sequence[tuple[float, float]]


class Series(Struct, frozen=True):
    """What a plot draws as (size, cost), by the name in its legend."""

    ours: Mapping[str, Points]
    peers: Mapping[str, Points]


class Plot(Struct, frozen=True):
    """One plot: what of the figures it draws, and its targets as (size, cost).

    ``cost_scale`` is matplotlib's; a linear one begins at nothing.
    """

    title: str
    measure: str
    series: Callable[[Sequence[Figure]], Series]
    shown: Callable[[float], str]
    targets: Points = ()
    sizes: str = "notes"
    cost_scale: str = "log"


def _timed(operation: str, time: str = "cpu") -> Callable[[Sequence[Figure]], Series]:
    """Seconds of one operation and of each peer."""

    def series(lines: Sequence[Figure]) -> Series:
        chosen = [line for line in lines if line.get("operation") == operation]
        ours = [(line["size"], line["ours"][time]) for line in chosen]
        peers = {
            peer: [(one["size"], one["theirs"][time]) for one in chosen if one["peer"] == peer]
            for peer in dict.fromkeys(line["peer"] for line in chosen if line["theirs"])
        }
        return Series({"memory-store": ours}, peers)

    return series


def _held(lines: Sequence[Figure]) -> Series:
    """Bytes that unlocking added to a process, beside the vectors alone in their peers."""
    ours = {
        f"memory-store, {mode}": [
            (line["size"], line["unlocked"] - line["before"])
            for line in lines
            if line["kind"] == "Held" and line["process"].split(",")[0] == mode
        ]
        for mode in ("keyword", "hybrid")
    }
    vectors = [line for line in lines if line.get("operation") == "vector index in memory"]
    peers = {
        peer: [(line["size"], line["theirs"]) for line in vectors if line["peer"] == peer]
        for peer in dict.fromkeys(line["peer"] for line in vectors)
    }
    return Series(ours, peers)


def _filed(lines: Sequence[Figure]) -> Series:
    """File size ÷ text."""

    def shares(operation: str) -> Points:
        return [(one["size"], one["ratio"]) for one in lines if one.get("operation") == operation]

    ours = {
        "memory-store, with vectors": shares("database size, words and vectors"),
        "memory-store, words": shares("database size, words"),
    }
    index = shares("sealed index, words and vectors")
    return Series(ours, {"plain FTS5": shares("database size, plain FTS5"), "its index": index})


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1_000:g} ms"


def _bytes(count: float) -> str:
    return f"{count / 1e9:g} GB" if count >= 1e9 else f"{count / 1e6:g} MB"


def _times(ratio: float) -> str:
    return f"{ratio:g} ×"


CPU, CLOCK = "CPU time", "time on the clock"  # a model works on several cores
PLOTS: Mapping[str, Plot] = {
    "plot-keyword.svg": Plot(
        "Ranking by eight words",
        CPU,
        _timed("keyword ranking, 8 words"),
        _seconds,
        ((10_000, 0.001), (100_000, 0.005)),
    ),
    "plot-vector.svg": Plot(
        "The 64 nearest vectors",
        CPU,
        _timed("vector ranking, k 64"),
        _seconds,
        ((100_000, 0.005), (1_000_000, 0.040)),
        "vectors",
    ),
    "plot-hybrid.svg": Plot(
        "Hybrid search, answered",
        CLOCK,
        _timed("hybrid search, answered", "wall"),
        _seconds,
        ((10_000, 0.025), (100_000, 0.040)),
    ),
    "plot-unlock.svg": Plot(
        "Unlock", CPU, _timed("unlock, words and vectors"), _seconds, ((100_000, 0.3),)
    ),
    "plot-import.svg": Plot(
        "Import without embedding",
        CPU,
        _timed("import without embedding"),
        _seconds,
        ((10_000, 15.0),),
    ),
    "plot-again.svg": Plot(
        "Import again, unchanged",
        CPU,
        _timed("import again, nothing changed"),
        _seconds,
        ((10_000, 1.0),),
    ),
    "plot-memory.svg": Plot(
        "Memory held by an unlocked vault", "bytes", _held, _bytes, sizes="notes, or vectors"
    ),
    "plot-size.svg": Plot(
        "The file beside its text",
        "file ÷ text",
        _filed,
        _times,
        ((10_000, 4), (100_000, 4)),
        cost_scale="linear",
    ),
}


def draw(plot: Plot, series: Series, path: Path) -> None:
    """One plot: cost against size, which is logarithmic. Series without points are left out."""
    figure, axes = plt.subplots(figsize=(4.6, 3.2))
    ours = {name: points for name, points in series.ours.items() if points}
    peers = {name: points for name, points in series.peers.items() if points}
    for (name, points), colour in zip(ours.items(), OURS, strict=False):
        drawn = zip(*sorted(set(points)), strict=True)
        axes.plot(*drawn, "o-", color=colour, label=name, zorder=3)
    for (name, points), colour in zip(peers.items(), COLOURS, strict=False):
        drawn = zip(*sorted(points), strict=True)
        axes.plot(*drawn, "s--", color=colour, label=name, markersize=4)
    if plot.targets:
        drawn = zip(*plot.targets, strict=True)
        axes.plot(*drawn, "v:", color=INK, label="target", markersize=8)
    _dress(axes, plot)
    figure.savefig(path, transparent=True, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def _dress(axes: Any, plot: Plot) -> None:
    axes.set_xscale("log")
    axes.set_yscale(plot.cost_scale)
    if plot.cost_scale == "linear":
        axes.set_ylim(bottom=0)
    axes.set_title(plot.title, color=INK, fontsize=11)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: plot.shown(cost)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(plot.sizes, color=INK, fontsize=9)
    axes.tick_params(colors=INK, which="both", labelsize=8)
    axes.grid(color=INK, alpha=0.25, linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.set_ylabel(plot.measure, color=INK, fontsize=9)
    axes.legend(labelcolor=INK, frameon=False, fontsize=8)


def main(folder: Path = FOLDER) -> None:
    """Every plot that something was measured for."""
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "speed"  # the same file for the same figures
    lines = json.loads(FIGURES.read_text("utf-8"))["lines"]
    for name, plot in PLOTS.items():
        series = plot.series(lines)
        if any(series.ours.values()):
            draw(plot, series, folder / name)


if __name__ == "__main__":
    main()
