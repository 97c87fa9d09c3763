"""The same requests in process: Datasette's application called as its server would call it.

    python -m benchmarks.inside VAULT.db PLAIN.db < QUESTIONS.json

One request after the other, with no network, no queue and nobody else: what a surface's answer
takes by itself. ``QUESTIONS.json`` holds the ``secret`` and the ``cookie`` of the actor, and by
surface the ``addresses``; the seconds of each are printed in the same shape. The vault is unlocked
as a server would unlock it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from datasette.app import Datasette

WARM_UP = 3  # requests that are not counted: models load, caches fill


async def taken(
    databases: Sequence[str], secret: str, cookie: str, addresses: Mapping[str, Sequence[str]]
) -> dict[str, list[float]]:
    """Seconds of each answer, by surface. Raises ``RuntimeError`` for any other than 200."""
    datasette = Datasette(list(databases), secret=secret)
    datasette.root_enabled = True  # as --root does, where the version asks for it
    await datasette.invoke_startup()
    seconds: dict[str, list[float]] = {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=datasette.app()),
        base_url="http://127.0.0.1",
        headers={"Cookie": cookie},
    ) as client:
        for surface, paths in addresses.items():
            for path in paths[:WARM_UP]:
                await _seconds(client, path)
            seconds[surface] = [await _seconds(client, path) for path in paths]
    return seconds


async def _seconds(client: httpx.AsyncClient, path: str) -> float:
    begun = time.perf_counter()
    response = await client.get(path)
    if response.status_code != 200:
        raise RuntimeError(f"{path}: {response.status_code} {response.text[:200]!r}")
    return time.perf_counter() - begun


def measured(
    python: Path, databases: Sequence[Path], environment: Mapping[str, str], **questions: Any
) -> dict[str, list[float]]:
    """:func:`taken` by another Python. Raises ``RuntimeError`` with its last words."""
    done = subprocess.run(
        [str(python), "-m", "benchmarks.inside", *map(str, databases)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        env=dict(environment),
        cwd=Path(__file__).parent.parent,
    )
    if done.returncode:
        raise RuntimeError(f"in process: {done.stderr[-500:]}")
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    json.dump(asyncio.run(taken(sys.argv[1:], **json.load(sys.stdin))), sys.stdout)
