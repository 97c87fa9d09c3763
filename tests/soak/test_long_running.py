"""Two writers and eight readers for minutes: no error, nothing lost, memory and log flat.

``SOAK_SECONDS`` sets for how long (120).
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from statistics import median

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # killing

from flatness import growth
from killing import Scene, Worker

from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
WRITERS, READERS = 2, 2  # processes; each reader has four threads
MOST_GROWTH = 0.05  # of the memory held, in the later half of the time
MOST_LOG = 32_000_000  # bytes of the write-ahead log when all have ended


def test_writers_and_readers_get_along_for_minutes_in_flat_memory(
    make_store: Callable[..., MemoryStore], key_file: Path, tiny_model: Path, second_model: Path
) -> None:
    store = make_store()
    store.collections.create("other", embedder=str(second_model), analyser="code")
    store.add("The first entry, on otters.", topics=["otters"])
    store.lock()
    scene = Scene(store.path, key_file, tiny_model)
    work = ["write_for_long"] * WRITERS + ["read_for_long"] * READERS
    more = {"seconds": SECONDS, "collections": ["personal", "other"]}
    workers = [Worker(name, scene.arguments(seed=seed, **more)) for seed, name in enumerate(work)]
    said = [worker.heard(SECONDS + 300) for worker in workers]
    assert [worker.ended() for worker in workers] == [0] * len(work)
    reports = [json.loads(lines[-1]) for lines in said]
    assert [report["errors"] for report in reports] == [[]] * len(work)
    assert min(report["rounds"] for report in reports) > SECONDS / 2
    expected = {memory: text for report in reports for memory, text in report["kept"].items()}
    with scene.reopened() as again:
        kept = {memory.id: memory.text for memory in again.list(limit=1_000)}
        assert len(kept) == len(expected) + 1
        assert expected.items() <= kept.items()
    for name, report in zip(work, reports, strict=True):
        held = report["held"]
        print(f"{name}: {report['rounds']} rounds, {median(held):,.0f} bytes, {growth(held):+.2%}")
        assert growth(held) <= MOST_GROWTH, f"{name} grew: {held}"
        assert max(report["logs"]) <= MOST_LOG, f"the log grew: {report['logs']}"


@pytest.mark.parametrize("seed", range(5))
def test_growth_is_distinguished_from_noise(seed: int) -> None:
    choose = random.Random(seed)
    noise = [100e6 + choose.gauss(0, 2e6) for _ in range(60)]
    warming = [value - 40e6 * 0.8**moment for moment, value in enumerate(noise)]
    bursts = [value + 60e6 * (moment % 9 == 0) for moment, value in enumerate(noise)]
    for flat in (noise, warming, bursts):
        assert abs(growth(flat)) <= MOST_GROWTH
    steps = [choose.choice([0, 0, 1e6]) for _ in noise]
    leak = [value + more for value, more in zip(noise, accumulate(steps), strict=True)]
    assert growth(leak) > MOST_GROWTH
