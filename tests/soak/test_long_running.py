"""Two writers and several readers for minutes: no error, nothing lost, memory flat.

``SOAK_SECONDS`` sets for how long (120).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # killing

from killing import Scene, start

from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
WRITERS, READERS = 2, 2  # processes; each reader has four threads
GROWTH = 1.10  # of the most memory held, from the first quarter of the time to the end


def test_writers_and_readers_get_along_for_minutes_in_flat_memory(
    make_store: Callable[..., MemoryStore], key_file: Path, tiny_model: Path, second_model: Path
) -> None:
    store = make_store()
    store.create_collection("other", embedder=str(second_model), analyser="code")
    store.add("The first entry, on otters.", topics=["otters"])
    store.lock()
    scene = Scene(store.path, key_file, tiny_model)
    work = ["write_for_long"] * WRITERS + ["read_for_long"] * READERS
    more = {"seconds": SECONDS, "collections": ["personal", "other"]}
    processes = [start(name, scene.arguments(seed=seed, **more)) for seed, name in enumerate(work)]
    said = [process.communicate(timeout=SECONDS + 300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(work)
    reports = [json.loads(lines.splitlines()[-1]) for lines in said]
    assert [report["errors"] for report in reports] == [[]] * len(work)
    assert min(report["rounds"] for report in reports) > SECONDS / 2
    expected = {memory: text for report in reports for memory, text in report["kept"].items()}
    with scene.reopened() as again:
        kept = {memory.id: memory.text for memory in again.list(limit=1_000)}
        assert len(kept) == len(expected) + 1
        assert expected.items() <= kept.items()
    for name, report in zip(work, reports, strict=True):
        early, *_, late = report["peaks"]
        assert late <= early * GROWTH, f"{name} grew: {report['peaks']} (ru_maxrss)"
