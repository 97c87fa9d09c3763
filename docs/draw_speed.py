"""Draws what docs/speed.json holds: cost against size, ours, its peers' and the target's.

    python docs/draw_speed.py            # after make bench ARGS="--full --json docs/speed.json"

Every plot is a small SVG, readable on white and on black.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

FIGURES = Path(__file__).with_name("speed.json")
INK = "#7d8590"  # a grey that stands out from white (4.0 : 1) and from black (5.2 : 1) alike
COLOURS = ("#1f77b4", "#d9730d", "#2a9d5c", "#b0529e", "#8a6d3b")
OURS = "#d1242f"
CAPTIONS = {"ours": "memory-store", "cpu": "CPU time", "wall": "time on the clock"}
ON_THE_CLOCK = ("hybrid search, answered",)  # a model works on several cores

# file → title, the operations it draws, the targets as (notes, seconds)
PLOTS: dict[str, tuple[str, tuple[str, ...], tuple[tuple[int, float], ...]]] = {
    "plot-keyword.svg": (
        "Ranking by eight words",
        ("keyword ranking, 8 words",),
        ((10_000, 0.001), (100_000, 0.005)),
    ),
    "plot-vector.svg": (
        "The 64 nearest vectors",
        ("vector ranking, k 64",),
        ((100_000, 0.005), (1_000_000, 0.040)),
    ),
    "plot-hybrid.svg": (
        "Hybrid search, answered",
        ("hybrid search, answered",),
        ((10_000, 0.025), (100_000, 0.040)),
    ),
    "plot-unlock.svg": ("Unlock", ("unlock, words and vectors",), ((100_000, 0.3),)),
    "plot-import.svg": (
        "Import without embedding",
        ("import without embedding",),
        ((10_000, 15.0),),
    ),
    "plot-again.svg": (
        "Import again, unchanged",
        ("import again, nothing changed",),
        ((10_000, 1.0),),
    ),
}


def draw(lines: Sequence[dict[str, Any]], name: str, folder: Path) -> None:
    """One plot into ``folder``: seconds against size, both logarithmic."""
    title, operations, targets = PLOTS[name]
    time = "wall" if operations == ON_THE_CLOCK else "cpu"
    chosen = [line for line in lines if line["kind"] == "Line" and line["operation"] in operations]
    figure, axes = plt.subplots(figsize=(4.6, 3.2))
    ours = sorted({(line["size"], line["ours"][time]) for line in chosen})
    axes.plot(*zip(*ours, strict=True), "o-", color=OURS, label=CAPTIONS["ours"], zorder=3)
    peers = list(dict.fromkeys(line["peer"] for line in chosen if line["theirs"]))
    for peer, colour in zip(peers, COLOURS, strict=False):
        theirs = [(one["size"], one["theirs"][time]) for one in chosen if one["peer"] == peer]
        axes.plot(*zip(*sorted(theirs), strict=True), "s--", color=colour, label=peer, markersize=4)
    axes.plot(*zip(*targets, strict=True), "v:", color=INK, label="target", markersize=8)
    _dress(axes, title, CAPTIONS[time])
    figure.savefig(folder / name, transparent=True, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def _dress(axes: Any, title: str, measure: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(title, color=INK, fontsize=11)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _seconds(seconds)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("vectors" if "vectors" in title else "notes", color=INK, fontsize=9)
    axes.tick_params(colors=INK, which="both", labelsize=8)
    axes.grid(color=INK, alpha=0.25, linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_color(INK)
    axes.set_ylabel(measure, color=INK, fontsize=9)
    axes.legend(labelcolor=INK, frameon=False, fontsize=8)


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1_000:g} ms"


def main(folder: Path = Path(__file__).parent) -> None:
    """Every plot that something was measured for."""
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "speed"  # the same file for the same figures
    lines = json.loads(FIGURES.read_text("utf-8"))["lines"]
    measured = {line.get("operation") for line in lines}
    for name, (_, operations, _) in PLOTS.items():
        if measured & set(operations):
            draw(lines, name, folder)


if __name__ == "__main__":
    main()
