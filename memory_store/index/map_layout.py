"""A map: circles beside those that they are near to, none over another, and in place tomorrow.

Boundary: numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 1_000.0, 640.0  # of the map
LARGEST, SMALLEST = 105.0, 26.0  # radii
PULL, LOOSE, DRAWN = 0.8, 0.15, 30  # how strongly circles are drawn to near ones, and how often
ROUNDS = 240  # in which what overlaps is moved apart

Circle = tuple[float, float, float]
"""``x`` (0 … ``WIDTH``), ``y`` (0 … ``HEIGHT``) and radius."""


def laid_out(
    counts: Sequence[int], near: npt.NDArray[np.float32], seeds: Sequence[bytes]
) -> list[Circle]:
    """A circle for each of ``counts``, as large as it has memories.

    Each has an anchor on the map by its seed, so it stays where it was, and is drawn from there to
    those that it is ``near`` to (float [n, n], 0–1).
    """
    if not counts:
        return []
    anchors = np.array([_anchor(seed) for seed in seeds])
    pull = near.astype(np.float64)
    np.fill_diagonal(pull, 0)
    pull /= pull.sum(axis=1, keepdims=True) + LOOSE
    points = anchors
    for _ in range(DRAWN):
        points = (1 - PULL) * anchors + PULL * (
            pull @ points + (1 - pull.sum(axis=1, keepdims=True)) * anchors
        )
    points = points - points.mean(axis=0)
    points = np.tanh(points / np.maximum(1e-9, points.std(axis=0)) / 1.2)
    points = (points + 1) / 2 * (WIDTH, HEIGHT)
    sizes = np.array(counts, dtype=float)
    radii = np.maximum(SMALLEST, LARGEST * np.sqrt(sizes / sizes.max()))
    radii *= min(1.0, float(np.sqrt(0.5 * WIDTH * HEIGHT / (np.pi * (radii**2).sum()))))
    points = _apart(points, radii)
    return [
        (float(x), float(y), float(radius))
        for (x, y), radius in zip(points.round(1), radii.round(1), strict=True)
    ]


def _anchor(seed: bytes) -> tuple[float, float]:
    """A place between -1 and 1 by what stands for what is drawn."""
    x, y = (int.from_bytes(seed[at : at + 4], "big") / 2**31 - 1 for at in (0, 4))
    return x, y


def _apart(points: npt.NDArray[np.float64], radii: npt.NDArray[np.float64]) -> Any:
    """Points moved until circles of those radii do not overlap, and are on the map."""
    gap = 6.0
    points = points + np.arange(len(points))[:, None] * (0.01, 0.007)  # none lies on another
    low, high = radii[:, None], np.array([WIDTH, HEIGHT]) - radii[:, None]
    points = np.clip(points, low, high)
    for _ in range(ROUNDS):
        lines = points[:, None, :] - points[None, :, :]
        lengths = np.maximum(1e-6, np.sqrt((lines**2).sum(axis=2)))
        over = np.maximum(0, radii[:, None] + radii[None, :] + gap - lengths)
        np.fill_diagonal(over, 0)
        if not over.any():
            break
        points = points + (lines / lengths[:, :, None] * over[:, :, None] / 2).sum(axis=1) * 0.6
        points = np.clip(points, low, high)
    return points
